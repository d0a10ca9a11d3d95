// What this browser remembers. Storage may be forbidden or full; then everything works, and is forgotten with the page.

const PREFIX = "tocsin.";

export function recall(name, otherwise = null) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // See above.
  }
}
