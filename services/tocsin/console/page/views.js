// Every view of the page: its address, its name, and the module that is it.
//
// A view's module has `mount(main, frame)`, which fills `main` and returns a function that ends it, or `{ end, at }`: `at(path)` goes
// to another address of the same view and says whether it could. `frame` is made in main.js: board (the live list), moves (what else
// has moved), session, go(path), announce(text, seen), and the helpers of api.js, dom.js and dialog.js are there to import.

export const VIEWS = [
  { path: "/", name: "Worktrees", load: () => import("./views/worktrees.js") },
  { path: "/runs", name: "Runs", load: () => import("./views/runs.js") },
  { path: "/workers", name: "Workers", load: () => import("./views/workers.js") },
  { path: "/mail", name: "Mail", load: () => import("./views/mail.js") },
  { path: "/wakes", name: "Wakes", load: () => import("./views/wakes.js") },
  { path: "/custody", name: "Custody", load: () => import("./views/custody.js") },
  { path: "/audit", name: "Audit", load: () => import("./views/audit.js") },
];

export function viewAt(path) {
  return VIEWS.find((view) => view.path === path) ?? VIEWS.find((view) => view.path !== "/" && path.startsWith(`${view.path}/`)) ?? null;
}
