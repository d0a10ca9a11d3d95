// Dark, light, or as the system has it.

import { el } from "./dom.js";

const ORDER = ["auto", "dark", "light"];
const WORDS = { auto: "Theme: as the system", dark: "Theme: dark", light: "Theme: light" };
const SIGNS = { auto: "◐", dark: "●", light: "○" };

function chosen() {
  return document.documentElement.dataset.theme ?? "auto";
}

function choose(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    // As plain text: theme-early.js reads it before any module runs.
    if (theme === "auto") localStorage.removeItem("tocsin.theme");
    else localStorage.setItem("tocsin.theme", theme);
  } catch {
    // It lasts as long as the page.
  }
}

export function themeButton() {
  const button = el("button", { class: "tool", type: "button" });
  const show = () => {
    button.textContent = SIGNS[chosen()];
    button.title = WORDS[chosen()];
    button.setAttribute("aria-label", WORDS[chosen()]);
  };
  button.addEventListener("click", () => {
    choose(ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
    show();
  });
  show();
  return button;
}
