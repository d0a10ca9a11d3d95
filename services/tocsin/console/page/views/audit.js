// Audit: the ledger's side of each machine. Git, disk, processes and tmux are looked at by the command, on the machine itself.

import { get } from "../api.js";
import { copyable, el, setText } from "../dom.js";
import { rowsOf } from "../more.js";
import { link } from "../places.js";
import { empty, sheet } from "../sheet.js";
import { table } from "../table.js";
import { chip, plain } from "../words.js";
import { since } from "../since.js";

const OWED_SHOWN = 50;

function number(count, asks = false) {
  return count && asks ? el("b", { class: "asks", text: `! ${count}` }) : String(count);
}

export function mount(main, frame) {
  const told = el("p", { class: "soft" });
  const hosts = table(
    "Machines, by the ledger of custody",
    [
      { name: "Machine", cell: (row) => row.host ?? "not known yet" },
      { name: "Open custodies", cell: (row) => number(row.custodies) },
      { name: "Terminals", cell: (row) => number(row.terminals) },
      { name: "Worktrees", cell: (row) => number(row.worktrees) },
      { name: "Taken over by a person", cell: (row) => number(row.taken_over) },
      { name: "End not confirmed", cell: (row) => number(row.unconfirmed, true) },
      { name: "Owed", cell: (row) => number(row.obligations, true) },
    ],
    (row) => row.host ?? "",
  );
  const owed = table(
    "What is owed",
    [
      { name: "Custody", cell: (row) => link("custody", row.custody) },
      { name: "State", cell: (row) => [chip(row.state), " ", since(frame, row.since_ms)] },
      { name: "Machine", cell: (row) => row.host ?? "–" },
      { name: "Outcome", cell: (row) => plain(row.outcome ?? "not settled") },
      { name: "Why it is owed", cell: (row) => row.obligation, wide: true },
      { name: "Next", cell: (row) => (row.next?.length ? copyable(row.next[0]) : "–") },
    ],
    (row) => row.custody,
  );
  const nothing = empty("Nothing is owed: every settled worker is reused, retained or released.");
  return sheet(main, frame, {
    title: "Audit",
    content: [
      el("div", { class: "needs plain" }, el("p", { text: "Whether git, disk, processes and tmux agree with this is found out on the machine itself:" }), el("p", {}, copyable("tocsin audit"))),
      told, hosts.element, el("h2", { text: "Owed" }), owed.element, nothing,
    ],
    topics: ["custody"],
    async load() {
      const [ground, rows] = await Promise.all([get("/api/audit"), rowsOf("/api/custody", { owed: true }, OWED_SHOWN)]);
      return { ground, rows };
    },
    show({ ground, rows }) {
      const all = ground.complete ? "" : `Only the first ${ground.count} were summed up. `;
      setText(told, `${all}${ground.count} terminals and worktrees are in custody on ${ground.hosts.length} ${ground.hosts.length === 1 ? "machine" : "machines"}, by the ledger alone.`);
      hosts.show(ground.hosts);
      owed.show(rows.rows);
      nothing.hidden = rows.rows.length > 0;
    },
  }).end;
}
