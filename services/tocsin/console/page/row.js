// One worktree of the list, as an element that is changed where its row has changed.

import { age, ageInWords } from "./age.js";
import { CLASSES } from "./board.js";
import { details } from "./details.js";
import { el, setText } from "./dom.js";
import { markOf, signs } from "./marks.js";
import { isUnread, look } from "./unread.js";

const EVIDENCE = {
  inferred: ["~inferred", "A title, a key, a process or a transcript says so; no hook has."],
  restored: ["?restored", "From before a gap; nothing was heard since."],
  stale: ["!stale", "No contact for 30 minutes."],
  unverifiable: ["!unverifiable", "Its machine is out of contact: this is the last that was heard."],
};

const FLASH_MS = 2_400;
let numbers = 0;

export class Line {
  #row;
  #frame;
  #details = null;

  constructor(frame, row) {
    this.#frame = frame;
    this.#row = row;
    const id = `details-${numbers++}`;
    const part = (name) => el("span", { class: name });
    this.parts = Object.fromEntries(["badge", "name", "marks", "branch", "agents", "why", "evidence", "host"].map((name) => [name, part(name)]));
    this.parts.age = el("span", { class: "age" });
    this.parts.unread = el("span", { class: "unread" }, el("span", { class: "unseen", text: "unread" }));
    const { badge, name, marks, branch, agents, why, evidence, host } = this.parts;
    this.line = el(
      "button",
      { type: "button", class: "line", tabindex: "-1", "aria-expanded": "false", "aria-controls": id, onclick: () => this.#toggle(), onfocus: () => this.#becomeStop() },
      this.parts.unread, " ", badge, " ",
      el("span", { class: "what" }, el("span", { class: "named" }, name, " ", marks), " ", el("span", { class: "meta" }, branch, " ", agents, " ", host)), " ",
      el("span", { class: "reason" }, why, " ", evidence), " ",
      this.parts.age,
    );
    this.box = el("div", { id, class: "details", hidden: true });
    this.element = el("li", { class: "row", "data-id": row.id }, this.line, this.box);
  }

  show(row, now, withHost) {
    const changed = row !== this.#row;
    this.#row = row;
    const { parts } = this;
    this.element.dataset.class = row.class;
    setText(parts.badge, CLASSES[row.class]);
    setText(parts.name, row.name);
    setText(parts.branch, row.branch ? row.branch + (row.dirty ? "*" : "") : "");
    parts.branch.title = row.branch ? (row.dirty ? `${row.branch}, with changes that are not committed` : row.branch) : "";
    setText(parts.agents, [...new Set(row.panes.map((pane) => pane.agent).filter(Boolean))].sort().join(", "));
    setText(parts.why, row.reason);
    const [mark, about] = EVIDENCE[row.evidence] ?? ["", ""];
    setText(parts.evidence, mark);
    parts.evidence.title = about;
    setText(parts.host, withHost ? `on ${row.host}` : "");
    parts.unread.hidden = !isUnread(row);
    showSigns(parts.marks, signs(markOf(this.#frame.board, row), row, now));
    this.tick(now);
    this.#details?.showMarks();
    if (changed) this.#details?.show(row);
  }

  // The age goes on by itself.
  tick(now) {
    const moment = this.#row.attention_at || this.#row.active_at;
    setText(this.parts.age, moment ? age(moment, now) : "");
    const words = moment ? `${ageInWords(moment, now)} ago, since ${new Date(moment).toLocaleString()}` : "";
    if (this.parts.age.title !== words) this.parts.age.title = words;
  }

  // It has just begun to need somebody.
  flash() {
    this.element.classList.add("promoted");
    setTimeout(() => this.element.classList.remove("promoted"), FLASH_MS);
  }

  #becomeStop() {
    for (const other of this.element.parentElement?.querySelectorAll(".line[tabindex='0']") ?? []) other.tabIndex = -1;
    this.line.tabIndex = 0;
  }

  #toggle() {
    const opens = this.box.hidden;
    this.box.hidden = !opens;
    this.line.setAttribute("aria-expanded", String(opens));
    if (!opens) {
      this.#details = null;
      this.box.replaceChildren();
      return;
    }
    look(this.#row);
    this.parts.unread.hidden = true;
    this.#details = details(this.box, this.#frame, this.#row);
  }
}

function showSigns(part, found) {
  const key = found.map(([sign]) => sign).join("");
  if (part.dataset.signs === key) return;
  part.dataset.signs = key;
  part.replaceChildren(...found.flatMap(([sign, word]) => [el("span", { "aria-hidden": "true", title: word, text: sign }), el("span", { class: "unseen", text: word })]));
}
