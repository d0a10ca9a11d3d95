// Addresses of the page for the things of the loop. Ids of Runs and Tasks hold no dot, so a Dispatch is three parts of a path.

import { el } from "./dom.js";

export function parts(path) {
  return path.split("/").slice(2).filter(Boolean).map(decodeURIComponent);
}

export function dispatchIn(path) {
  return parts(path).join(".");
}

// `run:<id>` or `dispatch:<id>`
export function mailboxIn(path) {
  const ids = parts(path);
  return ids.length > 1 ? `dispatch:${ids.join(".")}` : `run:${ids[0]}`;
}

export function pathOf(view, id) {
  return `/${view}/${id.split(".").map(encodeURIComponent).join("/")}`;
}

export function pathOfMailbox(view, address) {
  return pathOf(view, address.slice(address.indexOf(":") + 1));
}

export function link(view, id, text = id) {
  return el("a", { href: pathOf(view, id), class: text === id ? "id" : null, text });
}
