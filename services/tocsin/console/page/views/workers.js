// The fleet: who carries which attempt, who needs somebody first.

import { workerActions } from "../actions.js";
import { since } from "../since.js";
import { duration } from "../age.js";
import { get } from "../api.js";
import { copyable, el } from "../dom.js";
import { More, rowsOf } from "../more.js";
import { dispatchIn, link, parts } from "../places.js";
import { choice, empty, several, sheet } from "../sheet.js";
import { replaceKept, table } from "../table.js";
import { reported } from "../task.js";
import { chip, plain } from "../words.js";

export function mount(main, frame) {
  return several(main, (place, path) => (parts(path).length > 1 ? oneWorker(place, frame, dispatchIn(path)) : fleet(place, frame, parts(path)[0])));
}

const HUMAN = { none: "nobody", unknown: "nobody could look" };

function beat(row) {
  if (row.heartbeat === "none") return "none";
  return [duration(row.heartbeat_ms / 1000), row.heartbeat === "stale" ? " stale" : "", row.phase ? el("span", { class: "soft", text: row.phase }) : null];
}

function needed(row) {
  if (!row.attention.length) return "–";
  const words = row.attention.map(plain).join(", ");
  return row.requires_action ? el("b", { class: "asks", text: `! ${words}` }) : words;
}

function fleet(main, frame, run) {
  let which = "live";
  const actions = (row) => el("span", { class: "actions" }, ...workerActions(frame, row, () => page.again()).filter(Boolean));
  const workers = table(
    "Workers, who needs somebody first",
    [
      { name: "Dispatch", cell: (row) => [link("workers", row.dispatch), el("span", { class: "soft", text: row.title })] },
      { name: "Agent", cell: (row) => [row.agent, el("span", { class: "soft", text: row.host })] },
      { name: "State", cell: (row) => [chip(row.state), " ", since(frame, row.since_ms)] },
      { name: "Attention", cell: needed },
      { name: "Activity", cell: (row) => [row.activity, row.activity_reason ? el("span", { class: "soft", text: row.activity_reason }) : null] },
      { name: "Liveness", cell: (row) => [row.liveness, row.liveness_reason ? el("span", { class: "soft", text: row.liveness_reason }) : null] },
      { name: "Person awaited", cell: (row) => HUMAN[row.human_wait] ?? row.human_wait },
      { name: "Beat", cell: beat },
      { name: "Outcome", cell: (row) => plain(row.outcome) },
      { name: "Custody", cell: (row) => (row.custody ? link("custody", row.dispatch, plain(row.custody)) : "–") },
      { name: "Actions", cell: actions },
    ],
    (row) => row.dispatch,
  );
  const none = empty("No attempt is under way. A coordinator starts one:", copyable("tocsin worker start TASK --where new-child --agent AGENT"));
  const more = new More(() => page.again());
  const choices = choice("Workers", [["live", "Under way"], ["settled", "All"], ["failed", "Failed"]], which, (value) => {
    which = value;
    page.again();
  });
  const page = sheet(main, frame, {
    title: run ? `Workers of ${run}` : "Workers",
    about: run ? null : "Of all open Runs.",
    aside: choices,
    content: [workers.element, none, more.element],
    topics: run ? [`run:${run}`, `custody:${run}`] : ["run", "custody"],
    load: () => rowsOf("/api/workers", { ...(run && { run }), settled: which === "settled", failed: which === "failed" }, more.wanted),
    show(told) {
      workers.show(told.rows);
      none.hidden = told.rows.length > 0;
      more.show(told);
    },
  });
  return page;
}

function oneWorker(main, frame, dispatch) {
  const body = el("div", { class: "one" });
  let said = "";
  const page = sheet(main, frame, {
    title: [el("span", { text: "Worker " }), el("span", { class: "id", text: dispatch })],
    content: [body],
    topics: [`run:${dispatch.split(".")[0]}`, `custody:${dispatch.split(".")[0]}`],
    load: () => get(`/api/workers/${encodeURIComponent(dispatch)}`),
    show(told) {
      const { now, ...rest } = told;
      const words = JSON.stringify(rest);
      if (words === said) return;
      said = words;
      replaceKept(body, describe(frame, told, () => page.again()));
    },
  });
  return page;
}

function describe(frame, { worker: row, launch, brief, late_reports: late, refused }, after) {
  const run = row.run;
  const actions = workerActions(frame, row, after).filter(Boolean);
  const pairs = [
    ["Task", link("runs", `${run}.${row.task}`, `${row.task}: ${row.title}`)],
    ["Agent", `${row.agent} on ${row.host}${row.pane ? `, pane ${row.pane}` : ""}`],
    ["Works in", row.path ?? "not known yet"],
    ["Placement", [launch.placement.where, launch.placement.branch, launch.placement.base && `off ${launch.placement.base}`].filter(Boolean).join(", ")],
    ["Liveness", row.liveness + (row.liveness_reason ? `: ${row.liveness_reason}` : "")],
    ["Turn start", plain(row.turn_start)],
    ["Activity", row.activity + (row.activity_reason ? `: ${row.activity_reason}` : "")],
    ["Outcome", plain(row.outcome)],
    ["Person awaited", HUMAN[row.human_wait] ?? row.human_wait],
    ["Beat", el("span", {}, ...[beat(row)].flat().filter(Boolean))],
    ["Custody", row.custody ? link("custody", row.dispatch, plain(row.custody)) : "not known"],
    ["Mail", link("mail", row.dispatch, "its mailbox")],
  ];
  return [
    el("p", {}, chip(row.state), " ", since(frame, row.since_ms), row.why ? el("span", { text: `: ${row.why}` }) : null, row.current ? null : el("span", { class: "soft", text: " Another attempt is the current one." })),
    row.attention.length ? el("p", {}, needed(row)) : null,
    actions.length ? el("p", { class: "actions" }, ...actions) : null,
    row.next.command.length ? el("p", {}, copyable(row.next.command.join(" "))) : null,
    el("dl", { class: "pairs" }, ...pairs.flatMap(([name, content]) => [el("dt", { text: name }), el("dd", {}, content)])),
    row.report ? reported(row.report) : null,
    ...late.map((report) => el("section", {}, el("h3", { text: "A late report, kept and without effect" }), reported(report))),
    ...refused.map((one) => el("p", { class: "soft", text: `Refused ${one.what}: ${one.why} (${one.code})` })),
    el("details", {}, el("summary", { text: "Its brief" }), el("pre", { class: "prose", tabindex: "0", text: brief })),
  ].filter(Boolean);
}
