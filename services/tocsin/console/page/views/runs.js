// Runs: who has something done, how far it is, and what stands still.

import { since } from "../since.js";
import { copyable, el } from "../dom.js";
import { More, rowsOf } from "../more.js";
import { link, parts } from "../places.js";
import { choice, empty, several, sheet } from "../sheet.js";
import { oneRun } from "../run.js";
import { table } from "../table.js";
import { chip, counts } from "../words.js";

export function mount(main, frame) {
  return several(main, (place, path) => (parts(path).length ? oneRun(place, frame, path) : allRuns(place, frame)));
}

function allRuns(main, frame) {
  let closed = false;
  const runs = table(
    "Runs, the latest change first",
    [
      { name: "Run", cell: (row) => link("runs", row.run) },
      { name: "State", cell: (row) => chip(row.state) },
      { name: "Objective", cell: (row) => row.objective, wide: true },
      { name: "Tasks", cell: (row) => counts(row.tasks) },
      { name: "Under way", cell: (row) => `${row.unsettled} of ${row.workers_max}` },
      { name: "Open gates", cell: (row) => (row.open_gates ? el("b", { text: row.open_gates }) : "0") },
      { name: "Coordinator", cell: (row) => row.coordinator?.name ?? "nobody" },
      { name: "Changed", cell: (row) => since(frame, row.updated_ms) },
    ],
    (row) => row.run,
  );
  const none = empty("No open Run. A coordinator makes one:", copyable("tocsin run create OBJECTIVE"));
  const more = new More(() => page.again());
  const which = choice("Runs", [["open", "Open"], ["all", "All"]], "open", (value) => {
    closed = value === "all";
    page.again();
  });
  const page = sheet(main, frame, {
    title: "Runs",
    aside: which,
    content: [runs.element, none, more.element],
    topics: ["run"],
    load: () => rowsOf("/api/runs", { closed }, more.wanted),
    show(told) {
      runs.show(told.rows);
      none.hidden = told.rows.length > 0;
      more.show(told);
    },
  });
  return page;
}
