// The tab: how many need you, told by its title and its icon.

import { NEEDS_YOU } from "./board.js";

export function showInTab(board, view) {
  const needed = board.counts()[NEEDS_YOU];
  const name = view === "Worktrees" ? "Tocsin" : `${view} · Tocsin`;
  document.title = needed ? `(${needed}) ${name}` : name;
  const icon = document.getElementById("icon");
  const wanted = needed ? "/icon-needed.svg" : "/bell.svg";
  if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}
