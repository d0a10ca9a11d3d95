// The list: which worktree needs a person, and why. The page that is left open all day.

import { copyable, el, setText } from "../dom.js";
import { dayPanel } from "../day.js";
import { jump } from "../jump.js";
import { isTyping } from "../keys.js";
import { arrange } from "../motion.js";
import { Line } from "../row.js";
import { forgetAllBut } from "../unread.js";

const SORTS = [
  ["smart", "Smart", "Agents that need attention, then most recent activity."],
  ["recent", "Recent", "The most recent activity first."],
  ["oldest-first", "Oldest first", "The longest without activity first."],
  ["name", "Name", "By name."],
  ["mine", "Mine", "What you marked as urgent, then as Smart, then what you snoozed."],
];

const TICK_MS = 1_000;

export function mount(main, frame) {
  const { board } = frame;
  const lines = new Map();
  const list = el("ol", { class: "rows", role: "list", "aria-labelledby": "list-title" });
  const empty = el("section", { class: "notice", hidden: true });
  const summary = el("p", { class: "summary" });
  const day = dayPanel(frame);
  main.append(
    el(
      "div",
      { class: "columns" },
      el("section", { class: "list", "aria-labelledby": "list-title" }, el("div", { class: "list-head" }, el("h1", { id: "list-title", text: "Worktrees" }), summary, sorts(frame)), list, empty),
      day.element,
    ),
  );

  function render() {
    if (board.facts === null && board.none === null) return;
    const rows = board.none === null ? board.list() : [];
    const severalHosts = new Set(rows.map((row) => row.host)).size > 1;
    const now = board.now();
    forgetAllBut(new Set(board.rows.keys()));
    for (const [id, line] of lines) {
      if (board.rows.has(id)) continue;
      line.element.remove();
      lines.delete(id);
    }
    for (const row of rows) {
      if (!lines.has(row.id)) lines.set(row.id, new Line(frame, row));
      lines.get(row.id).show(row, now, severalHosts);
    }
    arrange(list, rows.map((row) => lines.get(row.id).element));
    keepOneStop(list);
    list.hidden = rows.length === 0;
    empty.hidden = rows.length > 0;
    if (rows.length === 0) showEmpty(empty, board.none);
    showCounts(summary, board);
  }

  const promoted = ({ detail }) => {
    for (const row of detail) lines.get(row.id)?.flash();
  };
  const tick = setInterval(() => {
    const now = board.now();
    for (const line of lines.values()) line.tick(now);
  }, TICK_MS);
  const pressed = (event) => press(event, list, frame);
  board.addEventListener("changed", render);
  board.addEventListener("promoted", promoted);
  document.addEventListener("keydown", pressed);
  render();
  return () => {
    clearInterval(tick);
    day.end();
    board.removeEventListener("changed", render);
    board.removeEventListener("promoted", promoted);
    document.removeEventListener("keydown", pressed);
  };
}

function sorts(frame) {
  const choices = SORTS.flatMap(([value, name, tooltip]) => {
    const input = el("input", { type: "radio", name: "sort", value, checked: value === frame.sort, "aria-describedby": `sort-${value}`, onchange: () => frame.setSort(value) });
    return [el("label", { title: tooltip }, input, el("span", { text: name })), el("span", { id: `sort-${value}`, class: "unseen", text: tooltip })];
  });
  return el("fieldset", { class: "sorts" }, el("legend", { class: "unseen", text: "Order" }), ...choices);
}

const WORDS = { 1: "need you", 2: "done", 3: "working", 4: "idle" };

function showCounts(summary, board) {
  const counts = board.counts();
  if (summary.children.length === 0) {
    for (const number of [1, 2, 3, 4]) {
      summary.append(el("span", { class: "count", "data-class": number }, el("b"), " ", el("span")));
    }
  }
  for (const part of summary.children) {
    const number = part.dataset.class;
    setText(part.firstElementChild, counts[number]);
    setText(part.lastElementChild, number === "1" && counts[1] === 1 ? "needs you" : WORDS[number]);
    part.hidden = board.none !== null || board.rows.size === 0;
  }
}

function showEmpty(box, none) {
  const kind = none ? none.code : "empty";
  if (box.dataset.kind === kind) return;
  box.dataset.kind = kind;
  if (none) {
    box.replaceChildren(el("h2", { text: "There is no list" }), el("p", { text: none.message }), ...none.next.map((command) => el("p", {}, copyable(command))));
    return;
  }
  const steps = el(
    "ol",
    { class: "steps" },
    el("li", {}, el("p", { text: "Let the agents on this machine report, once:" }), copyable("tocsin hooks install")),
    el("li", {}, el("p", { text: "Start an agent in a git worktree, and give it something to do:" }), copyable("claude")),
    el("li", {}, el("p", { text: "It appears here with its first turn. If it does not:" }), copyable("tocsin doctor")),
  );
  box.replaceChildren(el("h2", { text: "No worktree and no agent yet" }), steps);
}

// One stop of the Tab key for the whole list; inside it the arrows move.
function keepOneStop(list) {
  const buttons = [...list.querySelectorAll(".line")];
  if (buttons.length && !buttons.some((button) => button.tabIndex === 0)) buttons[0].tabIndex = 0;
}

function focusLine(list, line) {
  for (const other of list.querySelectorAll(".line")) other.tabIndex = other === line ? 0 : -1;
  line.focus();
  line.scrollIntoView({ block: "nearest" });
}

function press(event, list, frame) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const rows = [...list.children];
  if (rows.length === 0) return;
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const to = { j: here + 1, ArrowDown: here + 1, k: here < 0 ? 0 : here - 1, ArrowUp: here < 0 ? 0 : here - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to !== undefined) {
    const isLetter = event.key === "j" || event.key === "k";
    if (here < 0 && !isLetter) return; // arrows scroll the page until the list has the focus
    focusLine(list, rows[Math.max(0, Math.min(to, rows.length - 1))].querySelector(".line"));
  } else if (event.key === "t" && here >= 0) {
    jump(frame.board.rows.get(rows[here].dataset.id), frame);
  } else if (event.key === "Escape" && here >= 0) {
    const line = rows[here].querySelector(".line");
    if (line.getAttribute("aria-expanded") === "true") line.click();
    focusLine(list, line);
  } else return;
  event.preventDefault();
}
