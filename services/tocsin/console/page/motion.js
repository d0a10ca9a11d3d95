// Rows that change places: the focus stays where it is, and the eye can follow.

const ROWS_MOVED_MAX = 120; // beyond it measuring costs more than the movement tells
const MOVE_MS = 260;

const still = matchMedia("(prefers-reduced-motion: reduce)");

// Brings the children of `list` into the order of `wanted`.
export function arrange(list, wanted) {
  const now = [...list.children];
  if (now.length === wanted.length && now.every((element, at) => element === wanted[at])) return;
  const moves = !still.matches && now.length > 0 && now.length <= ROWS_MOVED_MAX && document.visibilityState === "visible";
  const before = moves ? new Map(now.map((element) => [element, element.getBoundingClientRect().top])) : null;
  const held = list.contains(document.activeElement) ? document.activeElement : null;
  wanted.forEach((element, at) => {
    const here = list.children[at];
    if (here === element) return;
    // moveBefore keeps the focus, where browsers have it.
    if (list.moveBefore && element.parentElement === list) list.moveBefore(element, here ?? null);
    else list.insertBefore(element, here ?? null);
  });
  if (held && document.activeElement !== held) held.focus({ preventScroll: true });
  if (!before) return;
  for (const element of wanted) {
    const from = before.get(element);
    if (from === undefined) continue;
    const by = from - element.getBoundingClientRect().top;
    if (by) element.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: MOVE_MS, easing: "ease-out" });
  }
}
