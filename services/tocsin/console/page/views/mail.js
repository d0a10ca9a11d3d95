// Mail: what is unread in each Run's mailbox, what is handed out, what is asked. Looking takes nothing.

import { questionAction } from "../actions.js";
import { clock, since } from "../since.js";
import { get } from "../api.js";
import { boxes } from "../boxes.js";
import { el } from "../dom.js";
import { More, rowsOf } from "../more.js";
import { link, mailboxIn, parts, pathOf } from "../places.js";
import { need } from "../run.js";
import { choice, empty, several, sheet } from "../sheet.js";
import { replaceKept, table } from "../table.js";
import { chip } from "../words.js";

const BOXES = 20;

export function mount(main, frame) {
  return several(main, (place, path) => (parts(path).length ? oneBox(place, frame, mailboxIn(path)) : allBoxes(place, frame)));
}

function allBoxes(main, frame) {
  const list = table(
    "Mailboxes of open Runs",
    [
      { name: "Run", cell: ({ run }) => link("mail", run.run) },
      { name: "Unread", cell: ({ box }) => (box?.unread ? el("b", { text: box.unread }) : "0") },
      { name: "Questions", cell: ({ box }) => (box?.questions.length ? el("b", { class: "asks", text: `! ${box.questions.length}` }) : "0") },
      { name: "Handed out", cell: ({ box }) => (box?.delivery ? `${box.delivery.messages.length} in ${box.delivery.id}` : "nothing") },
      { name: "Newest", cell: ({ box }) => (box?.rows[0] ? [chip(box.rows[0].message.type), " ", box.rows[0].message.subject] : "no mail"), wide: true },
      { name: "Age", cell: ({ box }) => since(frame, box?.rows[0]?.message.at_ms) },
      { name: "Objective", cell: ({ run }) => run.objective, wide: true },
    ],
    ({ run }) => run.run,
  );
  const none = empty("No open Run, so there is no mailbox.");
  const more = new More(() => page.again(), BOXES);
  const page = sheet(main, frame, {
    title: "Mail",
    content: [list.element, none, more.element],
    topics: ["mail", "run"],
    load: () => rowsOf("/api/mail", {}, more.wanted, "after", BOXES),
    show(told) {
      list.show(told.rows);
      none.hidden = told.rows.length > 0;
      more.show(told);
    },
  });
  return page;
}

function oneBox(main, frame, address) {
  const run = address.slice(address.indexOf(":") + 1).split(".")[0];
  let unread = false;
  const where = el("nav", { class: "where", "aria-label": "Mailboxes of this Run" });
  const facts = el("p", { class: "soft" });
  const asked = el("section", { class: "needs", "aria-labelledby": "asked-title", hidden: true });
  const list = el("ol", { class: "messages", role: "list", "aria-label": "Messages, newest first" });
  const none = empty("No mail.");
  const more = new More(() => page.again());
  const open = new Map();
  let said = "";
  let saidAsked = "";
  let saidWhere = "";
  const page = sheet(main, frame, {
    title: [el("span", { text: "Mail of " }), el("span", { class: "id", text: address })],
    aside: choice("Messages", [["all", "All"], ["unread", "Unread"]], "all", (value) => {
      unread = value === "unread";
      page.again();
    }),
    content: [where, facts, asked, list, none, more.element],
    topics: [`mail:${run}`, `run:${run}`],
    async load() {
      const [box, fleet] = await Promise.all([
        rowsOf(`/api/mail/${encodeURIComponent(address)}`, { unread }, more.wanted, "before"),
        rowsOf("/api/workers", { run }, 50),
      ]);
      return { box, workers: fleet.rows.filter((row) => row.current) };
    },
    show({ box, workers }) {
      const places = JSON.stringify(workers.map((row) => row.dispatch));
      if (places !== saidWhere) replaceKept(where, boxes("mail", address, workers));
      saidWhere = places;
      facts.replaceChildren(...summary(box));
      const questions = JSON.stringify(box.questions);
      if (questions !== saidAsked) {
        asked.hidden = box.questions.length === 0;
        const items = box.questions.map((one) => need(frame, `${one.dispatch} asks`, one.text, one.options, one.at_ms, questionAction(frame, one, () => page.again())));
        replaceKept(asked, [el("h2", { id: "asked-title", text: box.questions.length === 1 ? "One question is open" : `${box.questions.length} questions are open` }), el("ul", {}, ...items)]);
      }
      saidAsked = questions;
      const words = JSON.stringify(box.rows);
      if (words !== said) replaceKept(list, box.rows.map((row) => message(frame, row, open)));
      said = words;
      list.hidden = box.rows.length === 0;
      none.hidden = box.rows.length > 0;
      more.show(box);
    },
  });
  return page;
}

function summary(box) {
  const words = [`${box.unread} unread of ${box.total}.`];
  if (box.shut) words.push(`Nobody reads it any more: ${box.shut}.`);
  else words.push(box.reader ? `Read by ${box.reader}.` : "Nobody has read it yet.");
  if (box.delivery) words.push(`${box.delivery.messages.length} handed out as ${box.delivery.id} and not acked; free again at ${clock(box.delivery.lease_until_ms)}.`);
  if (box.waits_until_ms) words.push(`A check is parked until ${clock(box.waits_until_ms)}.`);
  return [el("span", { text: words.join(" ") })];
}

function message(frame, { message: mail, read }, open) {
  const body = el("details", { ontoggle: () => open.set(mail.id, body.open) }, el("summary", { "data-does": `read ${mail.id}` }, head(frame, mail, read)), el("p", { class: "prose", text: mail.body || "(no text)" }), links(mail));
  body.open = open.get(mail.id) ?? false;
  return el("li", { class: read ? "message" : "message new" }, body);
}

function head(frame, mail, read) {
  return el(
    "span",
    { class: "head" },
    read ? null : el("span", { class: "mark" }, el("span", { class: "unseen", text: "unread" })),
    chip(mail.type),
    el("span", { class: "subject", text: mail.subject }),
    el("span", { class: "soft", text: mail.sender }),
    since(frame, mail.at_ms),
  );
}

function links(mail) {
  if (!mail.task || !mail.run) return null;
  return el("p", { class: "soft" }, el("a", { href: pathOf("runs", `${mail.run}.${mail.task}`), text: `Task ${mail.task}` }), mail.code ? el("span", { text: ` · ${mail.code}` }) : null);
}
