// A dialog with a title, closed by Esc, by its button or by a click beside it; the focus goes back to where it was.

import { el } from "./dom.js";

export function dialog(title, ...content) {
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
  const box = el("dialog", { class: "box", "aria-labelledby": "dialog-title" }, el("header", {}, el("h2", { id: "dialog-title", text: title }), close), ...content);
  close.addEventListener("click", () => box.close());
  closesBeside(box);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  box.querySelector(".copy")?.focus();
  return box;
}

export function closesBeside(box) {
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
}
