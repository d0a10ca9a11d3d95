// What a person may do with a Run, its workers, its mail and what is in custody. Each names what it does before it does it.

import { act, actionButton, may } from "./act.js";

const RUN = "/api/run/commands";
const MAIL = "/api/mail/commands";
const CUSTODY = "/api/custody/commands";
const HOUR_MS = 3_600_000;

const runOf = (dispatch) => dispatch.split(".")[0];
const reasonField = (needed) => ({ name: "reason", label: needed ? "Why" : "Why (may be empty)", needed });

// A button, or nothing for a session that may only look.
function button(frame, text, does, action) {
  return may(frame) ? actionButton(frame, text, does, () => act(frame, action)) : null;
}

// ---------------------------------------------------------------- workers

const SETTLED = new Set(["succeeded", "failed", "stopped", "abandoned", "superseded"]);

export function workerActions(frame, row, after) {
  if (SETTLED.has(row.state)) return [];
  const { dispatch } = row;
  const who = `${row.agent} on ${row.host ?? "a machine that is not known yet"}`;
  return [
    button(frame, "Stop", `stop ${dispatch}`, {
      title: `Stop ${dispatch}`,
      says: [
        `Ends the worker of Task ${row.task}: ${who}, with everything that it has started.`,
        "The attempt then counts as stopped. Its worktree stays until its custody is decided.",
      ],
      fields: [reasonField(null)],
      path: RUN,
      body: ({ reason }) => ({ run: runOf(dispatch), ask: { verb: "stop", dispatch, reason } }),
      verb: "Stop it", done: `${dispatch} is told to stop`, after,
    }),
    button(frame, "Abandon", `abandon ${dispatch}`, {
      title: `Abandon ${dispatch}`,
      says: [
        `Gives this attempt at Task ${row.task} up as it is, so that another may start.`,
        `Its agent (${who}) may go on running, and nothing that it reports counts any more. Releasing its custody closes it.`,
      ],
      fields: [reasonField("Say why: it stays with the attempt.")],
      path: RUN,
      body: ({ reason }) => ({ run: runOf(dispatch), ask: { verb: "abandon", dispatch, reason } }),
      verb: "Abandon it", done: `${dispatch} is abandoned`, after,
    }),
  ];
}

// ---------------------------------------------------------------- Tasks and gates

export function taskActions(frame, run, task, after) {
  if (task.state !== "reported") return [];
  const judge = (verdict, text, says, needed, done) =>
    button(frame, text, `${verdict} ${task.task}`, {
      title: `${text}: ${task.task}`,
      says,
      fields: [reasonField(needed)],
      path: RUN,
      body: ({ reason }) => ({ run, ask: { verb: "accept", task: task.task, verdict, reason } }),
      verb: text, done, after,
    });
  const by = task.accept === "gate" ? ["A gate was to decide this; your verdict is given in its place."] : [];
  const waits = task.dependents?.length ? `It unlocks ${task.dependents.join(", ")}.` : "It unlocks what depends on it.";
  return [
    judge("accept", "Accept", [`Accepts what was reported of ${task.task}. ${waits}`, ...by], null, `${task.task} is accepted`),
    judge(
      "rework", "Rework",
      [`Sends ${task.task} back for another round (${task.round} of at most ${task.max_rounds} so far). Your words go to its next worker as findings.`, ...by],
      "Say what has to change: it goes to the worker.", `${task.task} goes back`,
    ),
    judge(
      "reject", "Reject", [`Ends ${task.task} as failed. What depends on it cannot start.`, ...by],
      "Say why: it stays with the Task.", `${task.task} is rejected`,
    ),
  ];
}

export function gateAction(frame, run, gate, after) {
  return button(frame, "Answer", `answer ${gate.gate}`, {
    title: `Answer the gate on ${gate.task}`,
    says: [gate.question, "It is answered once for this round; no running worker is touched by it."],
    fields: [
      {
        name: "verdict", kind: "choice", label: "Decision", needed: "Choose a decision.",
        options: [
          ["accept", "Accept: the Task goes on"],
          ["rework", "Rework: it goes on, and your answer goes to its worker as findings"],
          ["reject", "Reject: the Task ends without a result"],
        ],
      },
      { name: "answer", label: "Answer (needed for rework and reject)", offers: gate.options },
    ],
    path: RUN,
    body: ({ verdict, answer }) => ({ run, ask: { verb: "resolve_gate", gate: gate.gate, verdict, answer } }),
    verb: "Answer it", done: `The gate on ${gate.task} is answered`, after,
  });
}

// ---------------------------------------------------------------- mail

export function questionAction(frame, question, after) {
  const { id, dispatch } = question;
  return button(frame, "Answer", `answer ${id}`, {
    title: `Answer ${dispatch}`,
    says: [question.text, "The worker waits for this answer and goes on with it. A question is answered once."],
    fields: [{ name: "body", label: "Answer", needed: "Write an answer.", offers: question.options }],
    path: MAIL,
    body: ({ body }) => ({ mailbox: `dispatch:${dispatch}`, ask: { verb: "reply", question: id, body } }),
    verb: "Send the answer", done: `${dispatch} has its answer`, after,
  });
}

// ---------------------------------------------------------------- custody

const KEEPABLE = new Set(["owned", "retained", "release_unknown"]);
const RELEASABLE = new Set(["owned", "taken_over", "retained", "release_unknown"]);
const STANDS = new Set(["standing", "kept", "restored"]);

const UNTIL = [
  ["", "Until somebody decides otherwise"],
  [String(HOUR_MS), "One hour"],
  [String(8 * HOUR_MS), "Eight hours"],
  [String(24 * HOUR_MS), "One day"],
  [String(7 * 24 * HOUR_MS), "Seven days"],
];

export function custodyActions(frame, row, after) {
  const { custody } = row;
  const where = `${row.pane ?? "its terminal"} on ${row.host ?? "its machine"}`;
  const found = [];
  if (KEEPABLE.has(row.state)) {
    found.push(
      button(frame, "Retain", `retain ${custody}`, {
        title: `Retain ${custody}`,
        says: [`Keeps the worker and its terminal (${where}) as they are. Nothing closes them before that.`],
        fields: [reasonField("Say why: others will wonder why it stays."), { name: "until", kind: "choice", label: "How long", options: UNTIL, value: "" }],
        path: CUSTODY,
        body: ({ reason, until }) => ({ custody, ask: { verb: "retain", reason, until_ms: until ? frame.board.now() + Number(until) : null } }),
        verb: "Retain it", done: `${custody} is retained`, after,
      }),
    );
  }
  // The worker of an unsettled attempt is stopped or abandoned first.
  if (RELEASABLE.has(row.state) && (row.outcome || row.state === "release_unknown")) {
    const taken = row.state === "taken_over";
    found.push(
      button(frame, "Release", `release ${custody}`, {
        title: `Release ${custody}`,
        says: [
          `Ends the processes of ${where} with proof, and keeps the tail of its output.`,
          ...(taken ? ["Somebody has typed in this terminal, so it belongs to that person. Release it only when that is you, or they agree."] : []),
        ],
        fields: [
          reasonField(null),
          ...(STANDS.has(row.worktree) ? [{ name: "worktree", kind: "check", value: true, label: `Its worktree ${row.path ?? ""} goes to the trash when it is clean, merged and unused; for seven days it can be brought back` }] : []),
        ],
        path: CUSTODY,
        body: ({ reason, worktree = false }) => ({ custody, ask: { verb: "release", reason, worktree, person: taken } }),
        verb: "Release it", done: `${custody} is being released`, after,
      }),
    );
  }
  if (row.state === "released" && STANDS.has(row.worktree)) {
    found.push(
      button(frame, "Clean up", `clean up ${custody}`, {
        title: `Clean up the worktree of ${custody}`,
        says: [`Moves ${row.path} to the trash when it is clean, merged and unused; else it stays, and the reason is told. For seven days it can be brought back.`],
        path: CUSTODY,
        body: () => ({ custody, ask: { verb: "release", reason: "its worktree is not needed any more", worktree: true } }),
        verb: "Clean it up", done: `The worktree of ${custody} is being looked at`, after,
      }),
    );
  }
  if (row.worktree === "trashed") {
    found.push(
      button(frame, "Undo", `undo ${custody}`, {
        title: `Bring the worktree of ${custody} back`,
        says: [`Moves it from the trash back to ${row.path}, with its branch ${row.branch ?? ""}.`],
        path: CUSTODY,
        body: () => ({ custody, ask: { verb: "undo" } }),
        verb: "Bring it back", done: `The worktree of ${custody} is being brought back`, after,
      }),
    );
  }
  return found;
}
