// The picture of the day beside the list: fetched when the page opens, and again with each slot.

import { get } from "./api.js";
import { el, setText } from "./dom.js";
import { classPlot, waitPlot } from "./plot.js";
import { duration } from "./age.js";

export function dayPanel() {
  const classes = el("div", { class: "plot" });
  const waits = el("div", { class: "plot" });
  const about = el("p", { class: "small" });
  const element = el(
    "aside",
    { class: "day", "aria-labelledby": "day-title" },
    el("h2", { id: "day-title", text: "The last 24 hours" }),
    el("figure", {}, el("h3", { text: "Worktrees by class" }), classes),
    el("figure", {}, el("h3", { text: "How long they waited for you" }), waits),
    about,
  );
  let timer = 0;
  let ended = false;

  async function load() {
    let next = 60_000;
    try {
      const day = await get("/api/day");
      if (ended) return;
      classes.replaceChildren(classPlot(day));
      waits.replaceChildren(waitPlot(day));
      setText(about, inWords(day));
      next = day.slot_ms - (day.now % day.slot_ms) + 2_000;
    } catch (refused) {
      if (!ended) setText(about, `No picture now: ${refused.message}.`);
    }
    if (!ended) timer = setTimeout(load, next);
  }

  load();
  return {
    element,
    end: () => {
      ended = true;
      clearTimeout(timer);
    },
  };
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null;
}

function inWords(day) {
  const waits = day.samples.flatMap((sample) => sample.waits_s);
  if (day.samples.length === 0) return "The picture begins now: a dot every two minutes.";
  if (waits.length === 0) return "Nobody has been answered in this time.";
  return `${waits.length} answered, half of them within ${duration(median(waits))}; the longest waited ${duration(Math.max(...waits))}.`;
}
