// A session for the ticket in the address, or a page that says how to get one.

import { get, post } from "./api.js";
import { copyable, el } from "./dom.js";

function ticketInAddress() {
  const found = /^#ticket=(.+)$/.exec(location.hash);
  if (!found) return null;
  // It works once, but neither history nor a screenshot needs it.
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(found[1]);
}

// The session, or what stands in its way.
export async function login() {
  const ticket = ticketInAddress();
  if (ticket === null) return get("/api/session");
  try {
    return await post("/api/login", { ticket });
  } catch (refused) {
    // An old ticket is no matter to a browser that has a session.
    if (refused.code !== "bad_ticket") throw refused;
    return get("/api/session").catch(() => {
      throw refused;
    });
  }
}

const WHY = {
  no_session: "This browser has no session here yet, or it is over.",
  bad_ticket: "That address was used already, or is older than a minute.",
};

export function loginView(refused) {
  return el(
    "section",
    { class: "notice", "aria-labelledby": "login-title" },
    el("h1", { id: "login-title", text: refused.status === 401 ? "Log in from a terminal" : "The console cannot log you in now" }),
    el("p", { text: WHY[refused.code] ?? refused.message }),
    el("p", { text: "On the machine where Tocsin runs:" }),
    el("p", {}, copyable(refused.status === 401 ? "tocsin open" : "tocsin doctor")),
    el("p", { class: "small", text: "It opens this page with a ticket that works once, within a minute. Nothing has to be typed here." }),
  );
}
