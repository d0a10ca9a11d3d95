// One Run: what waits for somebody, the picture of its Tasks, the same as a table, and the Task that is chosen.

import { questionAction, gateAction } from "./actions.js";
import { since } from "./since.js";
import { get, Refused } from "./api.js";
import { el, setText } from "./dom.js";
import { graph } from "./graph.js";
import { More, rowsOf } from "./more.js";
import { link, parts, pathOf } from "./places.js";
import { sheet } from "./sheet.js";
import { replaceKept, table } from "./table.js";
import { taskPanel } from "./task.js";
import { chip, counts } from "./words.js";

const DRAWN_MAX = 200; // Tasks in the picture and the table at first: more than a person reads at a glance

export function oneRun(main, frame, path) {
  const [run, first] = parts(path);
  let chosen = first ?? null;
  let last = null;
  const facts = el("div", { class: "facts" });
  const needs = el("section", { class: "needs", "aria-labelledby": "needs-title", hidden: true });
  const picture = graph(frame, (task) => pathOf("runs", `${run}.${task}`));
  const panel = taskPanel(frame, run, () => page.again());
  panel.begin(chosen);
  const tasks = table(
    `Tasks of ${run}`,
    [
      { name: "Task", cell: (row) => link("runs", `${run}.${row.task}`, row.task) },
      { name: "State", cell: (row) => chip(row.state) },
      { name: "Title", cell: (row) => [row.title, row.why ? el("span", { class: "soft", text: row.why }) : null], wide: true },
      { name: "Needs", cell: (row) => row.deps.join(", ") || "nothing" },
      { name: "Round", cell: (row) => `${row.round} of ${row.max_rounds}` },
      { name: "Who works", cell: (row) => row.worker ? [link("workers", row.worker.dispatch, row.worker.agent), " ", row.worker.activity] : "nobody" },
      { name: "Changed", cell: (row) => since(frame, row.updated_ms) },
    ],
    (row) => row.task,
  );
  const more = new More(() => page.again(), DRAWN_MAX);

  async function load() {
    const [told, rows, fleet, gates, box] = await Promise.all([
      get(`/api/runs/${encodeURIComponent(run)}`),
      rowsOf(`/api/runs/${encodeURIComponent(run)}/tasks`, {}, more.wanted),
      rowsOf("/api/workers", { run }, 100),
      get(`/api/runs/${encodeURIComponent(run)}/gates`),
      get(`/api/mail/${encodeURIComponent(`run:${run}`)}`, { limit: 1 }).catch(without),
    ]);
    const task = chosen && (await get(`/api/runs/${encodeURIComponent(run)}/tasks/${encodeURIComponent(chosen)}`).catch(without));
    return { run: told.run, tasks: rows, workers: fleet.rows, gates: gates.rows, box, task };
  }

  function show(told) {
    last = told;
    const workers = new Map(told.workers.filter((row) => row.current).map((row) => [row.task, row]));
    showFacts(facts, told.run, frame);
    showNeeds(needs, told, frame, run, () => page.again());
    picture.show(told.tasks.rows, workers, chosen);
    // What moves with every look (ages) is no part of a row.
    const brief = (row) => row && { dispatch: row.dispatch, agent: row.agent, activity: row.activity };
    tasks.show(told.tasks.rows.map((row) => ({ ...row, worker: brief(workers.get(row.task)) })));
    more.show(told.tasks);
    none.hidden = told.tasks.rows.length > 0;
    if (told.task?.refused) panel.refuse(told.task.refused);
    else if (told.task?.task.task === chosen) panel.show(told.task);
  }

  const none = el("p", { class: "soft", text: "No Task yet.", hidden: true });
  const page = sheet(main, frame, {
    title: [el("span", { text: "Run " }), el("span", { class: "id", text: run })],
    aside: el("p", { class: "small elsewhere" }, link("workers", run, "Workers"), " · ", link("mail", run, "Mail"), " · ", link("wakes", run, "Wakes"), " · ", link("custody", run, "Custody")),
    content: [
      facts, needs,
      el("div", { class: "run-columns" }, el("section", { class: "run-main", "aria-label": "Tasks" }, picture.element, tasks.element, none, more.element), panel.element),
    ],
    topics: [`run:${run}`, `mail:${run}`, `custody:${run}`],
    load, show,
  });

  return {
    end: page.end,
    at(to) {
      const [other, task] = parts(to);
      if (other !== run) return false;
      const before = chosen;
      chosen = task ?? null;
      panel.begin(chosen);
      if (last) show({ ...last, task: null });
      // Who chose it reads on there, and who closes it is back where they were.
      if (chosen !== null) panel.focus();
      else tasks.element.querySelector(`[data-key="${CSS.escape(before)}"] a`)?.focus();
      page.again();
      return true;
    },
  };
}

// A part that cannot be told does not take the rest with it.
function without(refused) {
  if (!(refused instanceof Refused)) throw refused;
  return { refused };
}

function showFacts(box, run, frame) {
  const owner = run.coordinator;
  const place = owner?.pane ? ` in pane ${owner.pane}` : "";
  const line = owner ? `Coordinator ${owner.name}${place}, generation ${run.generation}.` : "Nobody coordinates it.";
  const said = JSON.stringify(run);
  if (box.dataset.said === said) return;
  box.dataset.said = said;
  replaceKept(box, [
    el("p", { class: "objective" }, chip(run.state), el("span", { text: run.objective })),
    run.why ? el("p", { class: "soft", text: run.why }) : null,
    el("p", { class: "soft" }, el("span", { text: `${counts(run.tasks)}. ${run.unsettled} of at most ${run.workers_max} attempts under way. ${line} Changed ` }), since(frame, run.updated_ms), " ago."),
    run.restored ? el("p", { class: "soft", text: "Its log was lost once and refilled from the view." }) : null,
  ].filter(Boolean));
}

// Gates and questions: what somebody has to answer before it goes on.
function showNeeds(box, told, frame, run, after) {
  const gates = told.gates.filter((gate) => gate.open);
  const { questions = [], refused = null } = told.box;
  const silent = refused && refused.code !== "not_found"; // a Run of this very moment has no mailbox yet
  const said = JSON.stringify([gates, questions, silent]);
  if (box.dataset.said === said) return;
  box.dataset.said = said;
  const items = [
    ...gates.map((gate) => need(frame, `Gate on ${gate.task}, put to ${gate.to === "person" ? "a person" : "the coordinator"}`, gate.question, gate.options, gate.opened_ms, gateAction(frame, run, gate, after))),
    ...questions.map((question) => need(frame, `${question.dispatch} asks`, question.text, question.options, question.at_ms, questionAction(frame, question, after))),
  ];
  box.hidden = items.length === 0 && !silent;
  replaceKept(box, [
    el("h2", { id: "needs-title", text: items.length === 1 ? "One answer is awaited" : `${items.length} answers are awaited` }),
    ...(silent ? [el("p", { text: `Whether a worker asks something is not known: ${refused.message}.` })] : []),
    el("ul", {}, ...items),
  ]);
}

export function need(frame, from, text, options, at, button) {
  return el(
    "li",
    { class: "need" },
    el("p", { class: "soft" }, el("span", { text: `${from}, for ` }), since(frame, at)),
    el("p", { class: "question", text }),
    options.length ? el("p", { class: "soft", text: `Offered: ${options.join(" · ")}` }) : null,
    button ? el("p", { class: "actions" }, button) : null,
  );
}
