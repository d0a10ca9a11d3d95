// Which worktrees has this person not looked at since they last wanted attention? This browser's own memory, and nothing that
// orders anything: the mark goes with a look, the row stays where it is.

import { recall, remember } from "./memory.js";

const looked = new Map(Object.entries(recall("looked", {})));

export function isUnread(row) {
  return row.class <= 2 && row.attention_at > (looked.get(row.id) ?? 0);
}

export function look(row) {
  if (!isUnread(row)) return;
  looked.set(row.id, row.attention_at);
  keep();
}

const LOOKED_MAX = 1_000;

// Forgets worktrees that are gone, when there are too many: a list may be empty for a moment, and come back.
export function forgetAllBut(ids) {
  if (looked.size <= LOOKED_MAX) return;
  let gone = false;
  for (const id of looked.keys()) if (!ids.has(id)) gone = looked.delete(id) || gone;
  if (gone) keep();
}

function keep() {
  remember("looked", Object.fromEntries(looked));
}
