// Doing something: a dialog that names what will happen, one request for one intention, and the answer as it comes.
//
// Nothing on the page changes before the service has answered. A request that had no answer may have been taken: it is sent again
// under the same id, with the same words, until somebody answers.

import { post, Refused } from "./api.js";
import { dialog } from "./dialog.js";
import { el } from "./dom.js";
import { steps } from "./follow.js";

const ID_BYTES = 8;

export function may(frame) {
  return frame.session.scope === "command";
}

export function newRequest() {
  return `q${[...crypto.getRandomValues(new Uint8Array(ID_BYTES))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

// A button that opens the dialog of an action.
export function actionButton(frame, text, does, open) {
  return el("button", { type: "button", class: "action", "data-does": does, "aria-label": `${text}: ${does.slice(does.indexOf(" ") + 1)}`, text, onclick: open });
}

// `says`: what will happen, a paragraph each. `fields`: see field(). `path`, `body(values)`: the request without its id.
// `verb`: the button. `done`: said when it is done. `after()`: what has to be asked anew.
export function act(frame, { title, says, fields = [], path, body, verb, done, after = () => {} }) {
  const inputs = fields.map(field);
  const answer = el("div", { class: "answer", role: "alert" });
  const send = el("button", { type: "submit", class: "action strong", text: verb });
  const cancel = el("button", { type: "button", class: "action", text: "Leave it", onclick: () => box.close() });
  const form = el(
    "form",
    { class: "act", novalidate: true, onsubmit: submit },
    ...says.map((text) => el("p", { text })),
    ...inputs.map((input) => input.element),
    answer,
    el("p", { class: "actions" }, send, cancel),
  );
  const box = dialog(title, form);
  (inputs[0]?.focus ?? (() => cancel.focus()))();
  let request = newRequest();
  let asked = null; // what was sent under that id
  let unknown = false; // whether that was taken
  let sending = false;

  async function submit(event) {
    event.preventDefault();
    if (sending) return;
    const missing = inputs.find((input) => input.problem());
    if (missing) {
      answer.replaceChildren(el("p", { text: missing.problem() }));
      missing.focus();
      return;
    }
    if (!unknown) intend(body(Object.fromEntries(inputs.map((input) => [input.name, input.value()]))));
    sending = true;
    send.disabled = true;
    answer.replaceChildren(el("p", { text: "Sent; waiting for the answer." }));
    try {
      await post(path, { ...asked, request });
      frame.announce(done, true);
      box.close();
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      show(refused);
    } finally {
      sending = false;
      send.disabled = false;
      after();
    }
  }

  // Other words than were refused before are another intention.
  function intend(wanted) {
    if (asked !== null && JSON.stringify(asked) !== JSON.stringify(wanted)) request = newRequest();
    asked = wanted;
  }

  function show(refused) {
    unknown = refused.status === 0 || refused.status >= 500 || refused.code === "unavailable";
    for (const input of inputs) input.hold(unknown);
    send.textContent = unknown ? "Ask again" : verb;
    const told = unknown
      ? `No answer: ${refused.message}. It may have been taken. Asking again means the same one, never a second.`
      : `Refused: ${refused.message}`;
    answer.replaceChildren(el("p", {}, el("span", { text: told }), " ", el("code", { text: refused.code })), ...steps(refused.next));
  }
}

let numbers = 0;

// `kind`: `text` (several lines), `line`, `choice` (with `options`: [value, text]) or `check`. `needed`: what to say when it is empty.
function field({ name, label, kind = "text", options = [], needed = null, value = "", offers = [] }) {
  const id = `field-${numbers++}`;
  if (kind === "check") {
    const input = el("input", { id, type: "checkbox", checked: value === true });
    const element = el("p", { class: "field check" }, input, el("label", { for: id, text: label }));
    return { name, element, value: () => input.checked, problem: () => null, focus: () => input.focus(), hold: (held) => (input.disabled = held) };
  }
  if (kind === "choice") {
    const inputs = options.map(([option, text], at) => el("input", { id: `${id}-${at}`, type: "radio", name: id, value: option, checked: option === value }));
    const lines = options.map(([, text], at) => el("p", { class: "check" }, inputs[at], el("label", { for: `${id}-${at}`, text })));
    const chosen = () => inputs.find((input) => input.checked);
    const element = el("fieldset", { class: "field choice" }, el("legend", { text: label }), ...lines);
    return {
      name, element, value: () => chosen()?.value ?? null, problem: () => (needed && !chosen() ? needed : null),
      focus: () => (chosen() ?? inputs[0]).focus(), hold: (held) => inputs.forEach((input) => (input.disabled = held)),
    };
  }
  const input = kind === "line" ? el("input", { id, type: "text", value }) : el("textarea", { id, rows: 3 });
  if (kind !== "line") input.value = value;
  const quick = offers.map((offer) => el("button", { type: "button", class: "copy offer", text: offer, onclick: () => (input.value = offer) }));
  const element = el("div", { class: "field" }, el("label", { for: id, text: label }), quick.length ? el("p", { class: "offers" }, ...quick) : null, input);
  return {
    name, element, value: () => input.value.trim(), problem: () => (needed && !input.value.trim() ? needed : null), focus: () => input.focus(),
    hold: (held) => [input, ...quick].forEach((one) => (one.disabled = held)),
  };
}
