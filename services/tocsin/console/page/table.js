// A table whose rows are changed where they have changed, so that the focus and a selection stay. On narrow screens each row is a card.

import { el } from "./dom.js";

// `columns`: { name, cell(row) -> text, node or list of these, wide? }. Roles are said: as cards the elements would lose theirs.
export function table(label, columns, keyOf) {
  const body = el("tbody", { role: "rowgroup" });
  const head = el("tr", { role: "row" }, ...columns.map((column) => el("th", { role: "columnheader", scope: "col", text: column.name })));
  const element = el("table", { class: "table", role: "table", "aria-label": label }, el("thead", { role: "rowgroup" }, head), body);
  const known = new Map();

  function fill(line, row) {
    const cells = columns.map((column) => {
      const cell = el("td", { role: "cell", "data-name": column.name, class: column.wide ? "wide" : null });
      put(cell, column.cell(row));
      return cell;
    });
    replaceKept(line, cells);
  }

  function show(rows) {
    const wanted = new Set(rows.map(keyOf));
    for (const [key, entry] of known) {
      if (wanted.has(key)) continue;
      entry.line.remove();
      known.delete(key);
    }
    rows.forEach((row, at) => {
      const key = keyOf(row);
      const said = JSON.stringify(row);
      let entry = known.get(key);
      if (!entry) {
        entry = { line: el("tr", { role: "row", "data-key": key }), said: null };
        known.set(key, entry);
      }
      if (entry.said !== said) {
        entry.said = said;
        fill(entry.line, row);
      }
      if (body.children[at] !== entry.line) body.insertBefore(entry.line, body.children[at] ?? null);
    });
    element.hidden = rows.length === 0;
  }

  return { element, show };
}

export function put(parent, content) {
  for (const part of [content].flat(2)) if (part !== null && part !== undefined && part !== "") parent.append(part instanceof Node ? part : text(part));
}

function text(part) {
  return el("span", { text: part });
}

// New children in place of the old ones; the focus goes to the one that does the same (`data-does`).
export function replaceKept(parent, children) {
  const held = parent.contains(document.activeElement) ? document.activeElement : null;
  const does = held?.dataset?.does ?? held?.getAttribute("href");
  parent.replaceChildren(...children);
  if (!does) return;
  const same = [...parent.querySelectorAll("[data-does], a[href]")].find((node) => (node.dataset.does ?? node.getAttribute("href")) === does);
  same?.focus({ preventScroll: true });
}
