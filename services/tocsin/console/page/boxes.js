// Whose mailbox or account of wakes: the choice above both pages, the Run's own first, then its live workers'.

import { pathOf, pathOfMailbox } from "./places.js";
import { el } from "./dom.js";

export function boxes(view, address, workers) {
  const run = address.slice(address.indexOf(":") + 1).split(".")[0];
  const places = [[`run:${run}`, "the Run's own"], ...workers.map((row) => [`dispatch:${row.dispatch}`, row.dispatch])];
  const items = places.map(([place, text]) =>
    el("li", {}, el("a", { href: pathOfMailbox(view, place), text, "aria-current": place === address ? "page" : null })),
  );
  return [el("a", { href: pathOf("runs", run), class: "id", text: run }), el("ul", { class: "boxes" }, ...items)];
}
