// States in words, with a tone: colour is never the only thing that tells them apart.

import { el } from "./dom.js";

const TONES = {
  // Tasks
  pending: "rest", ready: "next", dispatched: "works", reported: "asks", accepted: "good", blocked: "asks", cancelled: "over",
  unverifiable: "unsure",
  // Dispatches
  requested: "works", starting: "works", running: "works", start_unknown: "unsure", contact_lost: "unsure", finished_unverified: "unsure",
  stopping: "works", succeeded: "good", failed: "bad", stopped: "over", abandoned: "over", superseded: "over",
  // Runs
  open: "works", paused: "asks", circuit: "bad", closed: "over",
  // custody
  expected: "rest", owned: "works", taken_over: "next", reused: "over", retained: "next", releasing: "works", release_pending: "unsure",
  release_unknown: "bad", released: "good", external: "over",
  // wakes
  due: "works", held: "asks", offered: "works", delivered: "good", withdrawn: "over", undeliverable: "bad", coalesced: "over",
  // mail
  report: "next", question: "asks", escalation: "bad", gate: "asks", rejection: "bad", missing: "bad", answer: "good", guidance: "rest",
  status: "rest",
};

export const SIGNS = { rest: "○", next: "◇", works: "▶", asks: "?", good: "✓", bad: "✗", unsure: "~", over: "–" };

export function tone(word) {
  return TONES[word] ?? "rest";
}

export function plain(word) {
  return String(word).replaceAll("_", " ");
}

export function chip(word) {
  const its = tone(word);
  return el("span", { class: "chip", "data-tone": its }, el("span", { class: "sign", "aria-hidden": "true", text: SIGNS[its] }), el("span", { text: plain(word) }));
}

export function counts(tasks) {
  return Object.entries(tasks).filter(([, number]) => number > 0).map(([state, number]) => `${number} ${plain(state)}`).join(", ") || "no Task yet";
}
