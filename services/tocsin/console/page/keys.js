// The keyboard: what works everywhere, and the page that tells all keys.

import { dialog } from "./dialog.js";
import { el } from "./dom.js";
import { openPalette } from "./palette.js";

const HELP = [
  ["Ctrl K or /", "go to a worktree"],
  ["j k or ↓ ↑", "next and previous row"],
  ["Home End", "first and last row"],
  ["Enter", "open a row: why it stands there, its agents"],
  ["t", "go to the row's terminal"],
  ["Esc", "close"],
  ["?", "this page"],
];

export function help() {
  if (document.querySelector("dialog[open]")) return;
  dialog("Keys", el("dl", { class: "help" }, ...HELP.flatMap(([keys, what]) => [el("dt", {}, el("kbd", { text: keys })), el("dd", { text: what })])));
}

export function listen(frame) {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette(frame);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (event.key === "/") openPalette(frame);
    else if (event.key === "?") help();
    else return;
    event.preventDefault();
  });
}

export function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}
