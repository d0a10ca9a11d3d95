// Notices on the desktop, for whoever has asked for them in this browser. The console decides what is told, and when; of all open
// tabs one shows it.

import { el } from "./dom.js";
import { recall, remember } from "./memory.js";

const TOLD_MAX = 100;
const HELD_MS = 60_000; // a tab that is late by more has read what another has stored
const LOCK = "tocsin.notices";

function canAsk() {
  return "Notification" in window && Notification.permission !== "denied";
}

function isOn() {
  return "Notification" in window && Notification.permission === "granted" && recall("notices", false);
}

export function noticeButton(frame) {
  const button = el("button", { type: "button", class: "tool", "aria-label": "Notifications" }, el("img", { src: "/bell.svg", alt: "", width: 16, height: 16 }));
  const show = () => {
    button.setAttribute("aria-pressed", String(isOn()));
    button.title = isOn() ? "Notifications: on" : canAsk() ? "Notifications: off" : "Notifications: this browser forbids them";
    button.disabled = !canAsk();
  };
  button.addEventListener("click", async () => {
    const wanted = !isOn();
    const granted = !wanted || (await Notification.requestPermission()) === "granted";
    remember("notices", wanted && granted);
    show();
    frame.announce(isOn() ? "You are told on this desktop what needs you" : "Nothing is told on this desktop", true);
  });
  // Another tab has changed it.
  addEventListener("storage", show);
  show();
  return button;
}

export function showNotices(board) {
  board.addEventListener("notice", ({ detail }) => {
    if (isOn()) once(detail.id, () => tell(detail));
  });
}

// Does it in one tab: whichever has the lock of this notice first. Storage alone would not do: another tab may read it before it is
// told of the change. It is for a tab that hears of the notice when the lock is gone.
function once(id, what) {
  navigator.locks.request(`${LOCK}.${id}`, { ifAvailable: true }, (lock) => {
    const told = recall("told", []);
    if (!lock || told.includes(id)) return undefined;
    remember("told", [...told, id].slice(-TOLD_MAX));
    what();
    return new Promise((resolve) => {
      setTimeout(resolve, HELD_MS);
    });
  });
}

function tell(notice) {
  const shown = new Notification(notice.title, { body: notice.text, tag: notice.id, icon: "/bell.svg", requireInteraction: notice.urgent });
  shown.addEventListener("click", () => {
    shown.close();
    window.focus();
    document.querySelector(`.row[data-id="${CSS.escape(notice.worktrees[0] ?? "")}"] .line`)?.focus();
  });
}
