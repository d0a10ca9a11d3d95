// The frame of a page about the loop: a title, what is not current, and content that is kept true.

import { tick } from "./since.js";
import { el } from "./dom.js";
import { follow } from "./follow.js";

// `load`, `show`, `topics`: as in follow.js. Returns { again, end }.
export function sheet(main, frame, { title, about, aside = null, content, topics, load, show }) {
  const truth = follow(frame, topics, load, show);
  const head = el("div", { class: "sheet-head" }, el("h1", {}, ...[title].flat()), about ? el("p", { class: "small", text: about }) : null, aside);
  main.replaceChildren(el("div", { class: "sheet" }, head, truth.notice, ...content));
  const stop = tick(main, frame);
  return {
    again: truth.again,
    end() {
      stop();
      truth.end();
    },
  };
}

export function empty(text, ...rest) {
  return el("section", { class: "notice", hidden: true }, el("p", { text }), ...rest);
}

// A choice between a few ways to look: radio buttons as the list's order has them.
export function choice(label, options, chosen, choose) {
  const name = `choice-${label.replaceAll(" ", "-").toLowerCase()}`;
  const inputs = options.map(([value, text]) =>
    el("label", {}, el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }), el("span", { text })),
  );
  return el("fieldset", { class: "sorts" }, el("legend", { class: "unseen", text: label }), ...inputs);
}

// A view with several addresses: `make(main, path)` builds what an address shows, and may go on to another by its own `at(path)`.
export function several(main, make) {
  let shown = make(main, location.pathname);
  return {
    at(path) {
      if (shown.at?.(path)) return true;
      shown.end();
      main.replaceChildren();
      shown = make(main, path);
      return true;
    },
    end: () => shown.end(),
  };
}
