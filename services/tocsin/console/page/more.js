// Lists that come in pages: as many rows as are shown, and a button for more of them.

import { get } from "./api.js";
import { el, setText } from "./dom.js";

const PAGE = 50;
const ASKED_MAX = 100;

// The first `wanted` rows. `cursor`: how this list names the place where a page goes on.
export async function rowsOf(path, parameters, wanted, cursor = "after", most = ASKED_MAX) {
  const rows = [];
  let page = { next: null };
  do {
    const from = page.next === null ? {} : { [cursor]: page.next };
    page = await get(path, { ...parameters, ...from, limit: Math.min(most, wanted - rows.length) });
    rows.push(...page.rows);
  } while (page.next !== null && rows.length < wanted);
  return { ...page, rows };
}

// Counts what is shown, and asks for more by `again`.
export class More {
  wanted;
  element;

  constructor(again, page = PAGE) {
    this.wanted = page;
    this.words = el("span", { class: "small" });
    this.button = el("button", {
      type: "button", class: "action", text: "Show more",
      onclick: () => {
        this.wanted += page;
        again();
      },
    });
    this.element = el("p", { class: "more", hidden: true }, this.words, this.button);
  }

  show(told) {
    this.element.hidden = told.next === null;
    setText(this.words, `${told.rows.length} of ${told.total}`);
  }
}
