// Going to a worktree's terminal.

import { post } from "./api.js";
import { copyable, el } from "./dom.js";
import { dialog } from "./dialog.js";
import { look } from "./unread.js";

export async function jump(row, frame, pane) {
  look(row);
  frame.board.dispatchEvent(new CustomEvent("changed"));
  let told;
  try {
    told = await post("/api/jump", { worktree: row.id, pane });
  } catch (refused) {
    return explain(row, refused.message, refused.next[0]);
  }
  if (told.selected) return frame.announce(`${row.name} is in front in your terminal`, true);
  if (told.problem) return explain(row, told.problem, told.command);
  const where = told.host === frame.session.host ? "No terminal shows it now. This goes there:" : `It is on ${told.host}. There:`;
  return explain(row, where, told.command);
}

function explain(row, text, command) {
  dialog(`Go to ${row.name}`, el("p", { text }), command ? el("p", {}, copyable(command)) : null);
}
