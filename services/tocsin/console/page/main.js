// The frame: session, the live list behind every view, the tab, keys, and which view is shown.

import { get, onSessionLost } from "./api.js";
import { Board } from "./board.js";
import { showConnection, streamIs } from "./connection.js";
import { el, setText } from "./dom.js";
import { help, listen } from "./keys.js";
import { login, loginView } from "./login.js";
import { recall, remember } from "./memory.js";
import { Moves } from "./moves.js";
import { noticeButton, showNotices } from "./notices.js";
import { openPalette } from "./palette.js";
import { Stream } from "./stream.js";
import { themeButton } from "./theme.js";
import { showInTab } from "./title.js";
import { viewAt, VIEWS } from "./views.js";

const TOAST_MS = 4_000;
const ASK_MS = 3 * 3_600_000; // a session is renewed by being asked for, long before it is over
const main = document.getElementById("main");
const board = new Board();
let current = null;
let shown = { end: () => {} };

const stream = new Stream({
  hear: (name, data) => (name === "moved" ? moves.hear(data.topics) : board.hear(name, data)),
  opened: () => moves.opened(),
  state: (state) => {
    // Another console may answer now, of another version.
    if (streamIs(state)) ask();
    if (state === "cut") board.forgetMarks();
    showConnection(board);
  },
  // Nobody can see why an EventSource has failed: ask, so that a session that is over is told as such.
  failed: () => ask(),
});

const moves = new Moves((topics) => stream.watch(topics));

const frame = {
  board,
  moves,
  session: null,
  sort: recall("sort", "smart"),
  setSort(sort) {
    frame.sort = sort;
    remember("sort", sort);
    board.beginAnew();
    stream.open(sort);
  },
  // To another view, or elsewhere in this one.
  go(path) {
    if (path !== location.pathname) history.pushState(null, "", path);
    return show();
  },
  // Said to screen readers; `seen`: shown for a moment as well.
  announce(text, seen = false) {
    setText(document.getElementById("announcer"), text);
    if (!seen) return;
    const toast = el("p", { class: "toast", "aria-hidden": "true", text });
    document.body.append(toast);
    setTimeout(() => toast.remove(), TOAST_MS);
  },
};

board.addEventListener("changed", () => {
  showConnection(board);
  showInTab(board, current?.name ?? "Worktrees");
});
board.addEventListener("promoted", ({ detail }) => {
  frame.announce(detail.map((row) => `${row.name} needs you: ${row.reason}`).join(". "));
});

async function show() {
  const view = viewAt(location.pathname) ?? VIEWS[0];
  if (view === current && view === shown.view && shown.at?.(location.pathname)) return;
  current = view;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === view.path) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on narrow screens the names stand in one line that scrolls
    } else link.removeAttribute("aria-current");
  }
  const module = await view.load();
  if (view !== current) return;
  shown.end();
  main.replaceChildren();
  const made = module.mount(main, frame);
  shown = { view, ...(typeof made === "function" ? { end: made } : made) };
  showInTab(board, view.name);
}

function links() {
  const nav = document.getElementById("nav");
  nav.replaceChildren(...VIEWS.map((view) => el("a", { href: view.path, text: view.name })));
  nav.hidden = VIEWS.length < 2;
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='/']") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button || !viewAt(link.pathname)) return;
    event.preventDefault();
    frame.go(link.pathname).then(() => {
      // Where the link is gone with its page, a screen reader begins to read here, as after any link.
      if (main.contains(document.activeElement)) return;
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    });
  });
  addEventListener("popstate", () => {
    if (frame.session) show();
  });
}

function tools() {
  document.getElementById("tools").replaceChildren(
    el("button", { type: "button", class: "tool wide", title: "Go to a worktree (Ctrl+K)", onclick: () => openPalette(frame) }, el("span", { text: "Go to" }), el("kbd", { text: "Ctrl K" })),
    el("button", { type: "button", class: "tool", title: "Keys", "aria-label": "Keys", text: "?", onclick: help }),
    noticeButton(frame),
    themeButton(),
  );
}

// Is there still a session, and is the console of the version that this page came with?
async function ask() {
  const session = await get("/api/session").catch(() => null);
  if (!session || !frame.session || session.version === frame.session.version || document.getElementById("reload")) return;
  document.getElementById("tools").prepend(
    el("button", { id: "reload", type: "button", class: "tool wide new", text: `Reload for ${session.version}`, onclick: () => location.reload() }),
  );
}

function leave(refused) {
  frame.session = null;
  stream.close();
  shown.end();
  shown = { end: () => {} };
  current = null;
  main.replaceChildren(loginView(refused));
  document.body.dataset.connection = "out";
}

async function enter() {
  try {
    frame.session = await login();
  } catch (refused) {
    leave(refused);
    return;
  }
  tools();
  await show();
  stream.open(frame.sort);
}

links();
listen(frame);
showNotices(board);
setInterval(ask, ASK_MS);
onSessionLost(() => {
  if (frame.session) leave({ status: 401, code: "no_session", next: [] });
});
// Somebody may log in in another tab, or by an address that this tab is sent to.
addEventListener("hashchange", enter);
addEventListener("focus", () => {
  if (!frame.session) enter();
});
enter();
