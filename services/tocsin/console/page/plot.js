// Two small plots of a day, drawn as SVG. A gap in the samples is a gap in the picture: nobody knows what happened there.

import { duration } from "./age.js";
import { svg } from "./svg.js";

const WIDTH = 320;
const HEIGHT = 96;
const LEFT = 26;
const BOTTOM = 16;
const TOP = 6;
const DAY_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const STACK = [1, 2, 3, 4]; // what needs you stands on the ground line, where it can be compared

function label(text, x, y, anchor = "middle") {
  const node = svg("text", { x, y, "text-anchor": anchor, class: "tick" });
  node.textContent = text;
  return node;
}

function across(day) {
  const from = day.now - DAY_MS;
  return (ms) => LEFT + ((ms - from) / DAY_MS) * (WIDTH - LEFT - 4);
}

// Every six hours by the reader's clock.
function hours(day, x) {
  const marks = [];
  const first = new Date(day.now - DAY_MS);
  first.setMinutes(0, 0, 0);
  for (let ms = first.getTime() + HOUR_MS; ms <= day.now; ms += HOUR_MS) {
    const hour = new Date(ms).getHours();
    if (hour % 6) continue;
    marks.push(svg("line", { x1: x(ms), x2: x(ms), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }));
    const at = x(ms);
    if (at > LEFT + 10 && at < WIDTH - 14) marks.push(label(`${String(hour).padStart(2, "0")}:00`, at, HEIGHT - 3));
  }
  return marks;
}

function picture(about, ...parts) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": about }, ...parts);
}

// Runs of samples without a gap.
function runs(samples) {
  const found = [];
  for (const sample of samples) {
    const last = found.at(-1);
    if (last && sample.slot - last.at(-1).slot <= 1) last.push(sample);
    else found.push([sample]);
  }
  return found;
}

export function classPlot(day) {
  const x = across(day);
  const most = Math.max(4, ...day.samples.map((sample) => sample.counts.reduce((a, b) => a + b, 0)));
  const y = (count) => HEIGHT - BOTTOM - (count / most) * (HEIGHT - BOTTOM - TOP);
  const areas = [];
  for (const run of runs(day.samples)) {
    for (const [at, name] of STACK.entries()) {
      const below = (sample) => STACK.slice(0, at).reduce((sum, other) => sum + sample.counts[other - 1], 0);
      const upper = [];
      const lower = [];
      for (const sample of run) {
        const [from, to] = [x(sample.slot * day.slot_ms), x((sample.slot + 1) * day.slot_ms)];
        const floor = below(sample);
        upper.push(`${from} ${y(floor + sample.counts[name - 1])}`, `${to} ${y(floor + sample.counts[name - 1])}`);
        lower.unshift(`${to} ${y(floor)}`, `${from} ${y(floor)}`);
      }
      areas.push(svg("path", { d: `M${[...upper, ...lower].join("L")}Z`, class: `area class-${name}` }));
    }
  }
  const last = day.samples.at(-1);
  const about = last
    ? `Worktrees by class over 24 hours. At last: ${last.counts[0]} needed you, ${last.counts[1]} done, ${last.counts[2]} working, ${last.counts[3]} idle.`
    : "Worktrees by class over 24 hours: nothing is known yet.";
  return picture(about, ...hours(day, x), ground(), label(most, LEFT - 4, TOP + 7, "end"), label(0, LEFT - 4, HEIGHT - BOTTOM, "end"), ...areas);
}

const SCALE = [[1, "1s"], [10, "10s"], [60, "1m"], [600, "10m"], [3600, "1h"], [36_000, "10h"]];

export function waitPlot(day) {
  const x = across(day);
  const top = Math.log(36_000);
  const y = (seconds) => HEIGHT - BOTTOM - (Math.log(Math.min(36_000, Math.max(1, seconds))) / top) * (HEIGHT - BOTTOM - TOP);
  const marks = SCALE.filter((_, at) => at % 2 === 0).flatMap(([seconds, name]) => [
    svg("line", { x1: LEFT, x2: WIDTH - 4, y1: y(seconds), y2: y(seconds), class: "grid" }),
    label(name, LEFT - 4, y(seconds) + 3, "end"),
  ]);
  const dots = day.samples.flatMap((sample) => sample.waits_s.map((seconds) => svg("circle", { cx: x((sample.slot + 0.5) * day.slot_ms), cy: y(seconds), r: 2.5, class: "dot" })));
  const waits = day.samples.flatMap((sample) => sample.waits_s);
  const about = waits.length
    ? `How long worktrees waited for you over 24 hours: ${waits.length} waits, the longest ${duration(Math.max(...waits))}.`
    : "How long worktrees waited for you over 24 hours: no wait yet.";
  return picture(about, ...hours(day, x), ...marks, ground(), ...dots);
}

function ground() {
  return svg("line", { x1: LEFT, x2: WIDTH - 4, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, class: "ground" });
}
