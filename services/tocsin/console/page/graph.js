// The picture of a Run: its Tasks in layers, coloured by state, with rounds and who works. The table below it says the same in words.

import { layers, NODE } from "./layers.js";
import { el, shown } from "./dom.js";
import { svg } from "./svg.js";
import { plain, SIGNS, tone } from "./words.js";

const TITLE_CHARS = 27;
const WHO_CHARS = 32;

export function graph(frame, pathOf) {
  const element = el("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "The picture of this Run; the table below says the same" });
  let shape = "";
  let nodes = new Map();

  // `workers`: Task -> row of who works on it.
  function show(tasks, workers, chosen) {
    element.hidden = tasks.length === 0;
    if (tasks.length === 0) return;
    const now = JSON.stringify(tasks.map((task) => [task.task, task.deps, task.reviews]));
    if (now !== shape) {
      shape = now;
      nodes = draw(element, tasks, (task) => frame.go(pathOf(task)));
    }
    for (const task of tasks) fill(nodes.get(task.task), task, workers.get(task.task), task.task === chosen);
  }

  return { element, show };
}

function draw(element, tasks, choose) {
  const placed = layers(tasks);
  const nodes = new Map();
  const tip = svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8Z", class: "tip" }));
  const lines = placed.edges.map((edge) => svg("path", { d: curve(edge.points), class: `edge ${edge.kind}`, "marker-end": "url(#tip)" }));
  for (const task of tasks) {
    const { x, y } = placed.nodes.get(task.task);
    const node = {
      box: svg("rect", { width: NODE.width, height: NODE.height, rx: 8, class: "node-box" }),
      bar: svg("rect", { width: 5, height: NODE.height - 16, x: 6, y: 8, rx: 2.5, class: "node-bar" }),
      id: text(18, 20, "node-id"), state: text(NODE.width - 9, 20, "node-state", "end"), title: text(18, 37, "node-title"), who: text(18, 53, "node-who"),
      tip: svg("title"),
    };
    node.element = svg("g", { transform: `translate(${x} ${y})`, class: "node", "data-task": task.task }, node.tip, node.box, node.bar, node.id, node.state, node.title, node.who);
    node.element.addEventListener("click", () => choose(task.task));
    nodes.set(task.task, node);
  }
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${placed.width} ${placed.height}`, width: placed.width, height: placed.height, "aria-hidden": "true" },
    svg("defs", {}, tip), ...lines, ...[...nodes.values()].map((node) => node.element),
  );
  element.replaceChildren(picture);
  return nodes;
}

function fill(node, task, worker, chosen) {
  node.element.dataset.tone = tone(task.state);
  node.element.dataset.state = task.state;
  node.element.classList.toggle("chosen", chosen);
  say(node.id, cut(task.task, 15));
  say(node.state, `${SIGNS[tone(task.state)]} ${plain(task.state)}`);
  say(node.title, cut(task.title, TITLE_CHARS));
  say(node.who, cut(who(task, worker), WHO_CHARS));
  say(node.tip, `${task.title}${task.why ? `\n${task.why}` : ""}`);
}

function who(task, worker) {
  const rounds = task.round > 1 || task.kind === "review" ? `round ${task.round} of ${task.max_rounds}` : "";
  const works = worker ? `${worker.agent}${worker.activity === "unknown" ? "" : ` ${worker.activity}`}` : "";
  const kind = task.kind === "review" ? `judges ${task.reviews}` : "";
  return [works, rounds, works || rounds ? "" : kind].filter(Boolean).join(" · ");
}

function curve(points) {
  return points.reduce((path, [x, y], at) => {
    if (at === 0) return `M${x} ${y}`;
    const [fromX, fromY] = points[at - 1];
    if (at % 2 === 0) return `${path}L${x} ${y}`; // straight through the column that it passes
    const bend = (x - fromX) / 2;
    return `${path}C${fromX + bend} ${fromY} ${x - bend} ${y} ${x} ${y}`;
  }, "");
}

function text(x, y, name, anchor = null) {
  return svg("text", { x, y, class: name, "text-anchor": anchor });
}

function say(node, words) {
  const clean = shown(words);
  if (node.textContent !== clean) node.textContent = clean;
}

function cut(words, most) {
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}
