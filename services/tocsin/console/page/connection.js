// Does the page show what is true now? Said beside the brand, at all times.

import { setText } from "./dom.js";

const mark = document.getElementById("connection");
let cutSince = null;

function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

// Returns true when the line is back.
export function streamIs(state) {
  const wasCut = cutSince !== null;
  cutSince = state === "live" ? null : (cutSince ?? Date.now());
  return wasCut && cutSince === null;
}

export function showConnection(board) {
  const [state, text, why] = judge(board);
  mark.dataset.state = state;
  document.body.dataset.connection = state;
  setText(mark, text);
  mark.title = why;
}

function judge(board) {
  if (cutSince !== null) return ["cut", `reconnecting · as of ${clock(cutSince)}`, "The console does not answer. What is shown may be old."];
  if (board.awaySince !== null) return ["away", `bus away · as of ${clock(board.awaySince)}`, "The console answers, but the bus does not. What is shown may be old."];
  if (board.none !== null) return ["away", "no list", board.none.message];
  if (board.facts === null) return ["connecting", "connecting", "The list has not come yet."];
  if (board.facts.restored) return ["away", `from before a restart · ${clock(board.facts.at)}`, "The services have just started and do not know yet what has changed since."];
  return ["live", "live", "Every change shows at once."];
}
