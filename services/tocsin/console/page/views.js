// Every view of the page: its address, its name, and the module that is it.
//
// A view's module has `mount(main, frame)`, which fills `main` and returns a function that ends it. `frame` is made in main.js:
// board (the live list), session, announce(text, seen), and the helpers of api.js, dom.js and dialog.js are there to import.

export const VIEWS = [{ path: "/", name: "Worktrees", load: () => import("./views/worktrees.js") }];

export function viewAt(path) {
  return VIEWS.find((view) => view.path === path) ?? VIEWS.find((view) => view.path !== "/" && path.startsWith(`${view.path}/`)) ?? null;
}
