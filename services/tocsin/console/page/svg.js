// Making parts of a picture.

const NS = "http://www.w3.org/2000/svg";

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(props)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
