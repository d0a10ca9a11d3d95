// What lies behind a row: why it stands there, and its agents.

import { get } from "./api.js";
import { ageInWords } from "./age.js";
import { copyable, el, setText } from "./dom.js";
import { jump } from "./jump.js";
import { markButtons } from "./marks.js";

export function details(box, frame, row) {
  const why = el("p", { class: "why-line" });
  const panes = el("ul", { class: "panes" });
  const actions = el("p", { class: "actions" });
  const go = el("button", { type: "button", class: "action", text: "Go to its terminal", onclick: () => jump(current, frame) });
  const marking = frame.session.scope === "command" ? markButtons(frame, row) : null;
  if (marking) actions.append(go, ...marking.buttons);
  const path = el("p", { class: "path" });
  box.replaceChildren(why, panes, path, actions);
  let current = row;

  async function explain() {
    const asked = current;
    const offset = -new Date().getTimezoneOffset();
    const above = above_of(frame.board, asked);
    const line = await get("/api/why", { a: asked.id, offset }).then((told) => told.line, (refused) => refused.message);
    const compared = above && (await get("/api/why", { a: above.id, b: asked.id, offset }).then((told) => told.line, () => null));
    if (asked === current) setText(why, compared ? `${line}. ${compared}.` : `${line}.`);
  }

  function show(changed) {
    current = changed;
    const now = frame.board.now();
    panes.replaceChildren(...current.panes.map((pane) => paneItem(pane, now, current, frame)));
    panes.hidden = current.panes.length === 0;
    path.replaceChildren(copyable(`cd ${quoted(current.path)}`));
    explain();
  }

  show(row);
  return { show, showMarks: () => marking?.show() };
}

function above_of(board, row) {
  return [...board.rows.values()].find((other) => other.rank === row.rank - 1);
}

function paneItem(pane, now, row, frame) {
  const state = pane.interrupted ? `${pane.state}, interrupted` : pane.state;
  const marks = pane.background ? ` · ${pane.background} in the background` : "";
  const several = row.panes.filter((other) => other.locator).length > 1 && pane.locator && frame.session.scope === "command";
  return el(
    "li",
    {},
    el("b", { text: pane.agent ?? "terminal" }),
    el("span", { text: ` ${state} for ${ageInWords(pane.since_ms, now)}: ${pane.reason}${marks}` }),
    pane.title ? el("span", { class: "pane-title", text: pane.title }) : null,
    several ? el("button", { type: "button", class: "copy", text: "Go there", "aria-label": `Go to the terminal of ${pane.agent ?? pane.id}`, onclick: () => jump(row, frame, pane.id) }) : null,
  );
}

// A path as a shell takes it.
function quoted(path) {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`;
}
