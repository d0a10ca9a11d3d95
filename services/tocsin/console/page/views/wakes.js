// Wakes: every turn that was caused or tried, with its cause, its way and what shows that it came about.

import { clock, since } from "../since.js";
import { boxes } from "../boxes.js";
import { el, setText } from "../dom.js";
import { More, rowsOf } from "../more.js";
import { link, mailboxIn, parts } from "../places.js";
import { empty, several, sheet } from "../sheet.js";
import { replaceKept, table } from "../table.js";
import { chip, plain } from "../words.js";
import { get } from "../api.js";

const BOXES = 20;
const WAKES_MAX = 100; // as many as a mailbox keeps; its ledger has them all

export function mount(main, frame) {
  return several(main, (place, path) => (parts(path).length ? oneAccount(place, frame, mailboxIn(path)) : allAccounts(place, frame)));
}

function last(box) {
  return box?.rows[0];
}

function allAccounts(main, frame) {
  const list = table(
    "Wakes of open Runs",
    [
      { name: "Run", cell: ({ run }) => link("wakes", run.run) },
      { name: "Last hour", cell: ({ box }) => (box ? `${box.hour} of at most ${box.hour_max}` : "–") },
      { name: "Unread", cell: ({ box }) => String(box?.unread ?? "–") },
      { name: "Last wake", cell: ({ box }) => (last(box) ? chip(last(box).state) : "nobody was woken") },
      { name: "Cause", cell: ({ box }) => last(box)?.cause ?? "–" },
      { name: "Way", cell: ({ box }) => plain(last(box)?.rung ?? "–") },
      { name: "Proof", cell: ({ box }) => last(box)?.proof || "–", wide: true },
      { name: "Age", cell: ({ box }) => since(frame, last(box)?.at_ms) },
    ],
    ({ run }) => run.run,
  );
  const none = empty("No open Run, so nobody is woken.");
  const more = new More(() => page.again(), BOXES);
  const page = sheet(main, frame, {
    title: "Wakes",
    about: "A wake is a turn that Tocsin causes because mail needs somebody. Once per unread content, never into a draft.",
    content: [list.element, none, more.element],
    topics: ["mail", "run"],
    load: () => rowsOf("/api/wakes", {}, more.wanted, "after", BOXES),
    show(told) {
      list.show(told.rows);
      none.hidden = told.rows.length > 0;
      more.show(told);
    },
  });
  return page;
}

function oneAccount(main, frame, address) {
  const run = address.slice(address.indexOf(":") + 1).split(".")[0];
  const where = el("nav", { class: "where", "aria-label": "Accounts of this Run" });
  const facts = el("p", { class: "soft" });
  const list = table(
    `Wakes of ${address}, newest first`,
    [
      { name: "Wake", cell: (row) => el("span", { class: "id", text: row.wake }) },
      { name: "Time", cell: (row) => clock(row.at_ms) },
      { name: "State", cell: (row) => chip(row.state) },
      { name: "Cause", cell: (row) => row.cause ?? "–" },
      { name: "Way", cell: (row) => plain(row.rung ?? "–") },
      { name: "Messages", cell: (row) => String(row.messages.length) },
      { name: "Proof", cell: (row) => row.proof || "–", wide: true },
    ],
    (row) => row.wake,
  );
  const none = empty("It has woken nobody.");
  let saidWhere = "";
  return sheet(main, frame, {
    title: [el("span", { text: "Wakes of " }), el("span", { class: "id", text: address })],
    content: [where, facts, list.element, none],
    topics: [`mail:${run}`, `run:${run}`],
    async load() {
      const [account, fleet] = await Promise.all([get(`/api/wakes/${encodeURIComponent(address)}`, { limit: WAKES_MAX }), rowsOf("/api/workers", { run }, 50)]);
      return { account, workers: fleet.rows.filter((row) => row.current) };
    },
    show({ account, workers }) {
      const places = JSON.stringify(workers.map((row) => row.dispatch));
      if (places !== saidWhere) replaceKept(where, boxes("wakes", address, workers));
      saidWhere = places;
      setText(facts, `${account.hour} of at most ${account.hour_max} in the last hour; ${account.unread} unread.`);
      list.show(account.rows);
      none.hidden = account.rows.length > 0;
    },
  });
}
