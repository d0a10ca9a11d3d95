// Moments as ages that go on by themselves.

import { age } from "./age.js";
import { el, setText } from "./dom.js";

const TICK_MS = 1_000;

export function since(frame, ms) {
  if (!ms) return "";
  const element = el("time", { "data-from": ms, datetime: new Date(ms).toISOString(), title: new Date(ms).toLocaleString() });
  show(element, frame);
  return element;
}

function show(element, frame) {
  setText(element, age(Number(element.dataset.from), frame.board.now()));
}

// Until what is returned is called.
export function tick(main, frame) {
  const timer = setInterval(() => {
    for (const element of main.querySelectorAll("time[data-from]")) show(element, frame);
  }, TICK_MS);
  return () => clearInterval(timer);
}

export function clock(ms) {
  const when = new Date(ms);
  const today = new Date().toDateString() === when.toDateString();
  return when.toLocaleString([], { hour: "2-digit", minute: "2-digit", ...(!today && { day: "numeric", month: "short" }) });
}
