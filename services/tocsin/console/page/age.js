// How long ago, in one unit: 8s, 12m, 3h, 5d. As `tocsin ls`.

const UNITS = [["d", 86_400], ["h", 3_600], ["m", 60]];
const WORDS = { d: "day", h: "hour", m: "minute", s: "second" };

function parts(fromMs, nowMs) {
  const seconds = Math.floor(Math.max(0, nowMs - fromMs) / 1000);
  for (const [unit, size] of UNITS) if (seconds >= size) return [Math.floor(seconds / size), unit];
  return [seconds, "s"];
}

export function age(fromMs, nowMs) {
  return parts(fromMs, nowMs).join("");
}

export function ageInWords(fromMs, nowMs) {
  const [number, unit] = parts(fromMs, nowMs);
  return `${number} ${WORDS[unit]}${number === 1 ? "" : "s"}`;
}

export function duration(seconds) {
  return age(0, seconds * 1000);
}
