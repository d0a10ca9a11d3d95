// Custody: who owns each terminal and worktree that was made, obligations first, and what is to become of them.

import { custodyActions } from "../actions.js";
import { clock, since } from "../since.js";
import { get } from "../api.js";
import { copyable, el } from "../dom.js";
import { More, rowsOf } from "../more.js";
import { dispatchIn, link, parts } from "../places.js";
import { choice, empty, several, sheet } from "../sheet.js";
import { replaceKept, table } from "../table.js";
import { chip, plain } from "../words.js";

export function mount(main, frame) {
  return several(main, (place, path) => (parts(path).length > 1 ? oneCustody(place, frame, dispatchIn(path)) : custodies(place, frame, parts(path)[0])));
}

function why(row) {
  if (row.obligation) return [el("b", { class: "asks", text: "! owed" }), " ", row.obligation];
  const until = row.until_ms ? `, until ${clock(row.until_ms)}` : row.gate ? `, until ${row.gate} has its verdict` : "";
  return `${row.why || row.worktree_why || "–"}${until}`;
}

function custodies(main, frame, run) {
  let which = "open";
  const actions = (row) => el("span", { class: "actions" }, ...custodyActions(frame, row, () => page.again()).filter(Boolean));
  const list = table(
    "Custody, what needs a decision first",
    [
      { name: "Custody", cell: (row) => link("custody", row.custody) },
      { name: "State", cell: (row) => [chip(row.state), " ", since(frame, row.since_ms)] },
      { name: "Outcome", cell: (row) => plain(row.outcome ?? "not settled") },
      { name: "Why", cell: why, wide: true },
      { name: "Terminal", cell: (row) => (row.pane ? [el("span", { class: "long", text: row.pane }), el("span", { class: "soft", text: row.host })] : "none") },
      { name: "Worktree", cell: (row) => [row.worktree ? plain(row.worktree) : "none of ours", row.path ? el("span", { class: "soft long", text: row.path }) : null] },
      { name: "Actions", cell: actions },
    ],
    (row) => row.custody,
  );
  const none = empty("No terminal or worktree is in anybody's custody.");
  const more = new More(() => page.again());
  const choices = choice("Custody", [["owed", "Owed"], ["open", "Open"], ["every", "All"]], which, (value) => {
    which = value;
    page.again();
  });
  const owed = el("p", { class: "soft" });
  const page = sheet(main, frame, {
    title: run ? `Custody of ${run}` : "Custody",
    aside: choices,
    content: [owed, list.element, none, more.element],
    topics: run ? [`custody:${run}`] : ["custody"],
    load: () => rowsOf("/api/custody", { ...(run && { run }), every: which === "every", owed: which === "owed" }, more.wanted),
    show(told) {
      owed.replaceChildren(el("span", { text: told.obligations ? `${told.obligations} still need a decision.` : "Nothing is owed." }));
      list.show(told.rows);
      none.hidden = told.rows.length > 0;
      more.show(told);
    },
  });
  return page;
}

function oneCustody(main, frame, custody) {
  const body = el("div", { class: "one" });
  let said = "";
  const page = sheet(main, frame, {
    title: [el("span", { text: "Custody of " }), el("span", { class: "id", text: custody })],
    content: [body],
    topics: [`custody:${custody.split(".")[0]}`],
    load: () => get(`/api/custody/${encodeURIComponent(custody)}`),
    show(told) {
      const words = JSON.stringify([told.row, told.history]);
      if (words !== said) replaceKept(body, describe(frame, told, () => page.again()));
      said = words;
    },
  });
  return page;
}

function describe(frame, { row, history }, after) {
  const actions = custodyActions(frame, row, after).filter(Boolean);
  const pairs = [
    ["Worker", link("workers", row.custody)],
    ["Outcome", plain(row.outcome ?? "not settled")],
    ["Terminal", row.pane ? `${row.pane} on ${row.host}${row.process ? `, pid ${row.process.pid}` : ""}` : "none"],
    ["Handed to", row.handed_to],
    ["Works in", row.path],
    ["Worktree", row.worktree ? `${plain(row.worktree)}${row.worktree_why ? `: ${row.worktree_why}` : ""}` : "none of ours"],
    ["In the trash", row.worktree === "trashed" ? `${row.trash}, until ${clock(row.worktree_until_ms)}` : null],
    ["Proof", row.proof],
    ["Output", row.archive],
  ].filter(([, text]) => text);
  return [
    el("p", {}, chip(row.state), " ", since(frame, row.since_ms), el("span", { text: ": " }), ...[why(row)].flat().map((part) => (part instanceof Node ? part : el("span", { text: part })))),
    actions.length ? el("p", { class: "actions" }, ...actions) : null,
    ...(row.next ?? []).map((step) => el("p", {}, copyable(step))),
    el("dl", { class: "pairs" }, ...pairs.flatMap(([name, content]) => [el("dt", { text: name }), el("dd", {}, content instanceof Node ? content : el("span", { text: content }))])),
    el("h2", { text: "What was decided" }),
    el("ol", { class: "history" }, ...history.map((past) => el("li", {}, since(frame, past.at_ms), el("b", { text: ` ${plain(past.what)}` }), el("span", { text: `: ${past.why} (${past.by})` })))),
  ].filter(Boolean);
}
