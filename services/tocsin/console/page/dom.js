// Making elements. Text enters the page through textContent alone, so no name, branch or reason can become markup.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = shown(value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Changes text only where it differs: what a screen reader or a selection holds stays.
export function setText(node, text) {
  const clean = shown(text);
  if (node.textContent !== clean) node.textContent = clean;
}

// Controls and overrides of the writing direction: a branch may be called anything, and must not disturb its row.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function shown(text) {
  return String(text).replace(INVISIBLE, "\ufffd");
}

// A command to be copied.
export function copyable(command) {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${command}`, text: "Copy" });
  button.addEventListener("click", async () => {
    button.textContent = (await copy(command)) ? "Copied" : "Press Ctrl+C";
  });
  return el("span", { class: "command" }, el("code", { text: command }), button);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
