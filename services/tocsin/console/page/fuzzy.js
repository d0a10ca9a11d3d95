// How well does a text fit what somebody types? As `tocsin jump`: 0 equal, 1 begins so, 2 contains it, 3 has its letters in order, 4 not.

export function grade(text, query) {
  const [a, b] = [text.toLowerCase(), query.toLowerCase()];
  if (a === b) return 0;
  if (a.startsWith(b)) return 1;
  if (a.includes(b)) return 2;
  let at = 0;
  for (const letter of a) if (letter === b[at]) at += 1;
  return at === b.length ? 3 : 4;
}

// Rows that fit, the best first; equal fits stay in the order of the list.
export function fitting(rows, query) {
  if (!query) return rows;
  return rows
    .map((row, at) => ({ row, at, grade: Math.min(...[row.name, row.branch ?? row.name, row.id].map((text) => grade(text, query))) }))
    .filter((one) => one.grade < 4)
    .sort((a, b) => a.grade - b.grade || a.at - b.at)
    .map((one) => one.row);
}
