// Keeps a part of the page true: it is asked for at once, when the console says that it has moved, and now and then, because
// what a machine shows of a worker moves without a record. Whatever comes while a question is under way is one more question.

import { Refused } from "./api.js";
import { copyable, el } from "./dom.js";

const GAP_MS = 400; // between two questions
const NUDGE_MS = 2_000; // the same, when the list has changed: that is a pane's doing, and may be a worker's
const AGAIN_MS = 15_000;
const RETRY_MS = 3_000;

// `load()` asks and returns what is shown by `show(told)`. Returns `notice` (says when what is shown is not current), `again()`, `end()`.
export function follow(frame, topics, load, show) {
  const notice = el("div", { class: "outdated", role: "status", hidden: true });
  let asking = false;
  let wanted = false;
  let ended = false;
  let askedAt = -Infinity;
  let timer = 0;
  let due = Infinity;
  let problem = "";

  async function ask() {
    clearTimeout(timer);
    asking = true;
    wanted = false;
    askedAt = performance.now();
    let next = AGAIN_MS;
    try {
      const told = await load();
      if (ended) return;
      tell(null);
      show(told);
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      if (ended) return;
      tell(refused);
      next = RETRY_MS;
    } finally {
      asking = false;
    }
    plan(wanted ? GAP_MS : next);
  }

  function tell(refused) {
    const now = refused ? `${refused.message} ${refused.next}` : "";
    if (now === problem) return;
    problem = now;
    notice.hidden = refused === null;
    notice.replaceChildren();
    if (refused) notice.append(el("p", { text: `This is not current: ${refused.message}.` }), ...steps(refused.next));
  }

  function plan(pause) {
    clearTimeout(timer);
    due = performance.now() + pause;
    // Nobody looks at a hidden page: it asks when it is looked at again.
    if (!ended && document.visibilityState === "visible") timer = setTimeout(ask, pause);
  }

  function again() {
    if (asking) wanted = true;
    else plan(Math.max(0, askedAt + GAP_MS - performance.now()));
  }

  function nudge() {
    const at = Math.max(performance.now(), askedAt + NUDGE_MS);
    if (!asking && at < due) plan(at - performance.now());
  }

  const showsWorkers = topics.some((topic) => topic.startsWith("run"));
  if (showsWorkers) frame.board.addEventListener("changed", nudge);
  const unwatch = frame.moves.watch(topics, again);
  document.addEventListener("visibilitychange", again);
  ask();
  return {
    notice,
    again,
    end() {
      ended = true;
      clearTimeout(timer);
      unwatch();
      frame.board.removeEventListener("changed", nudge);
      document.removeEventListener("visibilitychange", again);
    },
  };
}

// What helps, as a refusal says it: commands to copy, and words.
export function steps(next) {
  return next.map((step) => el("p", { class: "step" }, step.startsWith("tocsin ") ? copyable(step) : document.createTextNode(`Next: ${step}`)));
}
