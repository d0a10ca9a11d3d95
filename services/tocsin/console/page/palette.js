// The jump palette: the list in its own order, narrowed by a few letters; Enter goes there.

import { CLASSES } from "./board.js";
import { closesBeside } from "./dialog.js";
import { el } from "./dom.js";
import { fitting } from "./fuzzy.js";
import { jump } from "./jump.js";

const SHOWN_MAX = 50;

export function openPalette(frame) {
  if (document.querySelector("dialog[open]")) return;
  const input = el("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list",
    "aria-label": "Go to a worktree", placeholder: "Go to a worktree: name, branch, or letters of it", autocomplete: "off", spellcheck: "false",
  });
  const list = el("ul", { id: "palette-list", role: "listbox", "aria-label": "Worktrees" });
  const none = el("p", { class: "small", hidden: true, text: "No worktree fits." });
  const box = el("dialog", { class: "box palette", "aria-label": "Go to a worktree" }, input, list, none, el("p", { class: "small keys", text: "↑ ↓ choose · Enter go there · Esc close" }));
  let rows = [];
  let chosen = 0;

  const choose = (at) => {
    chosen = Math.max(0, Math.min(at, rows.length - 1));
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === chosen)));
    const item = list.children[chosen];
    item?.scrollIntoView({ block: "nearest" });
    if (item) input.setAttribute("aria-activedescendant", item.id);
    else input.removeAttribute("aria-activedescendant");
  };
  const fill = () => {
    rows = fitting(frame.board.list(), input.value.trim()).slice(0, SHOWN_MAX);
    list.replaceChildren(...rows.map((row, at) => option(row, at)));
    none.hidden = rows.length > 0;
    list.hidden = rows.length === 0;
    choose(0);
  };
  const option = (row, at) =>
    el(
      "li",
      { id: `palette-${at}`, role: "option", "data-class": row.class, onclick: () => go(row) },
      el("span", { class: "dot", "aria-hidden": "true" }),
      el("span", { class: "name", text: row.name }),
      el("span", { class: "branch", text: row.branch ?? "" }),
      el("span", { class: "class", text: CLASSES[row.class] }),
    );
  const go = (row) => {
    box.close();
    jump(row, frame);
  };

  input.addEventListener("input", fill);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose((chosen + step + rows.length) % Math.max(1, rows.length));
    else if (event.key === "Enter" && rows[chosen]) go(rows[chosen]);
    else return;
    event.preventDefault();
  });
  closesBeside(box);
  box.addEventListener("close", () => box.remove());
  fill();
  document.body.append(box);
  box.showModal();
  input.focus();
}
