// The Task that is chosen in a Run: what it is, its attempts and verdicts, and what a person can do with it.

import { taskActions, workerActions } from "./actions.js";
import { since } from "./since.js";
import { copyable, el } from "./dom.js";
import { link, pathOf } from "./places.js";
import { replaceKept } from "./table.js";
import { chip, plain } from "./words.js";

export function taskPanel(frame, run, after) {
  const element = el("aside", { class: "panel", "aria-labelledby": "task-title", hidden: true });
  let said = "";

  function show(told) {
    const now = JSON.stringify(told, (name, value) => (name === "heartbeat_ms" || name === "now" ? undefined : value));
    element.hidden = false;
    if (now === said) return;
    said = now;
    replaceKept(element, describe(frame, run, told, after));
  }

  // Another Task is chosen, or none: nothing of the one before is shown as its own.
  function begin(task) {
    said = "";
    element.hidden = task === null;
    element.replaceChildren(...(task === null ? [] : [head(run, task), el("p", { class: "soft", text: "Being asked for." })]));
  }

  function refuse(refused) {
    said = "";
    element.replaceChildren(head(run, element.querySelector("h2")?.textContent ?? ""), el("p", { text: `Nothing to show: ${refused.message}.` }));
  }

  return { element, show, begin, refuse, focus: () => element.querySelector("h2")?.focus() };
}

function head(run, task) {
  return el("header", {}, heading(task), el("a", { class: "close", href: pathOf("runs", run), "aria-label": "Close the Task", text: "×" }));
}

function heading(task) {
  return el("h2", { id: "task-title", class: "id", tabindex: "-1", "data-does": `task ${task}`, text: task });
}

function describe(frame, run, { task, workers, verdicts }, after) {
  const actions = taskActions(frame, run, task, after).filter(Boolean);
  return [
    head(run, task.task),
    el("p", { class: "task-name", text: task.title }),
    el("p", {}, chip(task.state), task.why ? el("span", { class: "soft", text: ` ${task.why}` }) : null),
    actions.length ? el("p", { class: "actions" }, ...actions) : null,
    facts(task),
    task.spec !== task.title ? el("details", {}, el("summary", { text: "What is to be done" }), el("p", { class: "prose", text: task.spec })) : null,
    task.findings ? el("section", {}, el("h3", { text: "Findings for the next round" }), el("p", { class: "prose", text: task.findings })) : null,
    task.report ? reported(task.report) : null,
    ...(verdicts.length ? [el("h3", { text: "Verdicts" }), el("ul", { class: "verdicts" }, ...verdicts.map(verdict))] : []),
    el("h3", { text: workers.length ? `Attempts (${workers.length})` : "No attempt yet" }),
    el("ul", { class: "attempts" }, ...[...workers].reverse().map((row) => attempt(frame, row, after))),
  ].filter(Boolean);
}

function facts(task) {
  const pairs = [
    ["Kind", task.reviews ? `review of ${task.reviews}` : task.kind],
    ["Accepted by", task.accept],
    ["Round", `${task.round} of at most ${task.max_rounds}`],
    ["Needs", task.deps.join(", ") || "nothing"],
    ["Needed by", task.dependents?.join(", ") || "nothing"],
    ...(task.gate ? [["Open gate", task.gate]] : []),
  ];
  return el("dl", { class: "pairs" }, ...pairs.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
}

export function reported(report) {
  return el(
    "section",
    {},
    el("h3", {}, el("span", { text: "Report: " }), chip(report.outcome)),
    el("p", { class: "prose", text: report.body }),
    report.commit ? el("p", { class: "soft" }, el("span", { text: "Commit " }), el("code", { text: report.commit })) : null,
    report.files?.length ? el("p", { class: "soft", text: `Files: ${report.files.join(", ")}` }) : null,
  );
}

function verdict(one) {
  return el("li", {}, el("b", { text: one.verdict }), el("span", { text: ` by ${one.by}, round ${one.round}${one.commit ? `, on ${one.commit.slice(0, 12)}` : ""}` }), one.findings ? el("p", { class: "prose", text: one.findings }) : null);
}

function attempt(frame, row, after) {
  const actions = workerActions(frame, row, after).filter(Boolean);
  return el(
    "li",
    {},
    el("p", {}, link("workers", row.dispatch), " ", chip(row.state)),
    el("p", { class: "soft" }, el("span", { text: `${row.agent} on ${row.host}, ${plain(row.outcome)}, since ` }), since(frame, row.since_ms), row.why ? el("span", { text: `: ${row.why}` }) : null),
    actions.length ? el("p", { class: "actions" }, ...actions) : row.next.command.length ? el("p", {}, copyable(row.next.command.join(" "))) : null,
  );
}
