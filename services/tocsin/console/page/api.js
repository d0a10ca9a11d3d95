// Asking the console. Every answer is JSON; what is refused says why and what helps.

export class Refused extends Error {
  constructor(status, body) {
    super(body.message ?? `the console answers ${status}`);
    this.status = status;
    this.code = body.code ?? "unavailable";
    this.next = body.next ?? [];
  }
}

const lost = new Set();

// Called whenever the console says that there is no session.
export function onSessionLost(callback) {
  lost.add(callback);
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch {
    throw new Refused(0, { code: "unavailable", message: "the console does not answer", next: ["tocsin doctor"] });
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  const refused = new Refused(answer.status, body);
  if (refused.code === "no_session") for (const callback of lost) callback();
  throw refused;
}

export function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return ask(query ? `${path}?${query}` : path, {});
}

export function post(path, body) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}
