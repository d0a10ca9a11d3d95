// Before anything is drawn, so that a chosen theme does not flash the other one. Everything else is a module.
try {
  const chosen = localStorage.getItem("tocsin.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden: the system's theme is as good.
}
