// What the person has marked: shown beside a name, changed in a row's details. The list itself is not moved by it.

import { post } from "./api.js";
import { el } from "./dom.js";

const HALF_AN_HOUR_MS = 30 * 60_000;

export function markOf(board, row) {
  return board.marks[row.id] ?? null;
}

function latestPrompt(row) {
  return Math.max(0, ...row.panes.map((pane) => pane.prompt_ms ?? 0));
}

// As listing/marks.py: a snooze ends at its time, or with a prompt later than those that stood.
export function isSnoozed(mark, row, now) {
  const snooze = mark?.snooze;
  if (!snooze) return false;
  return snooze.until_ms === null ? latestPrompt(row) <= snooze.prompt_ms : now < snooze.until_ms;
}

export function signs(mark, row, now) {
  const found = [];
  if (mark?.urgent) found.push(["⚑", "urgent"]);
  if (isSnoozed(mark, row, now)) found.push(["☾", "snoozed"]);
  return found;
}

export function markButtons(frame, row) {
  const change = async (wanted) => {
    try {
      await post("/api/marks", { worktree: row.id, ...wanted });
    } catch (refused) {
      frame.announce(refused.message, true);
    }
  };
  const mark = () => markOf(frame.board, row);
  const button = (text, title, onclick) => el("button", { type: "button", class: "action", text, title, onclick });
  const urgent = button("Urgent", "Tell me of it also in quiet hours, and louder", () => change({ urgent: !mark()?.urgent }));
  const later = button("Snooze 30 min", "Do not tell me of it for half an hour", () => change({ snooze: HALF_AN_HOUR_MS }));
  const anew = button("Snooze until anew", "Do not tell me of it until it needs me anew", () => change({ snooze: "anew" }));
  const wake = button("End the snooze", "Tell me of it again", () => change({ snooze: null }));

  function show() {
    urgent.setAttribute("aria-pressed", String(mark()?.urgent ?? false));
    const asleep = isSnoozed(mark(), frame.board.rows.get(row.id) ?? row, frame.board.now());
    later.hidden = anew.hidden = asleep;
    wake.hidden = !asleep;
  }

  show();
  return { buttons: [urgent, later, anew, wake], show };
}
