// Where the Tasks of a Run stand in its picture. Pure: numbers in, numbers out.
//
// What depends on nothing stands in the first column, everything else one column behind the last thing that it waits for. An edge over
// several columns keeps a place of its own in each, so that it goes around Tasks and not through them.

export const NODE = { width: 196, height: 62 };
const GAP = { x: 56, y: 16 };
const THROUGH = 10; // height of the place of an edge
const MARGIN = 6;
const SWEEPS = 6;

// `tasks`: rows with `task`, `deps`, `reviews`. Returns { nodes: Map id -> {x, y}, edges: [{from, to, kind, points}], width, height }.
export function layers(tasks) {
  const known = new Map(tasks.map((task) => [task.task, task]));
  const edges = tasks.flatMap((task) => before(task).filter(([from]) => known.has(from)).map(([from, kind]) => ({ from, to: task.task, kind })));
  const depth = depths(tasks, edges);
  const columns = [];
  const put = (place) => (columns[place.column] ??= []).push(place);
  const places = new Map();
  for (const task of tasks) {
    const place = { id: task.task, column: depth.get(task.task), height: NODE.height, before: [], after: [] };
    places.set(task.task, place);
    put(place);
  }
  for (const edge of edges) {
    edge.way = [places.get(edge.from)];
    for (let column = depth.get(edge.from) + 1; column < depth.get(edge.to); column += 1) {
      const place = { id: null, column, height: THROUGH, before: [], after: [] };
      put(place);
      edge.way.push(place);
    }
    edge.way.push(places.get(edge.to));
    for (let at = 1; at < edge.way.length; at += 1) {
      edge.way[at - 1].after.push(edge.way[at]);
      edge.way[at].before.push(edge.way[at - 1]);
    }
  }
  order(columns);
  stack(columns);
  const bottom = Math.max(0, ...columns.flat().map((place) => place.y + place.height));
  const x = (column) => MARGIN + column * (NODE.width + GAP.x);
  return {
    nodes: new Map([...places].map(([id, place]) => [id, { x: x(place.column), y: place.y }])),
    edges: edges.map(({ from, to, kind, way }) => ({ from, to, kind, points: points(way, x) })),
    width: x(columns.length) - GAP.x + MARGIN,
    height: bottom + MARGIN,
  };
}

function before(task) {
  const found = task.deps.map((dep) => [dep, "needs"]);
  return task.reviews && !task.deps.includes(task.reviews) ? [...found, [task.reviews, "reviews"]] : found;
}

function depths(tasks, edges) {
  const into = new Map(tasks.map((task) => [task.task, []]));
  for (const { from, to } of edges) into.get(to).push(from);
  const depth = new Map();
  const seen = new Set();
  // By hand, not by calls: a chain of Tasks may be longer than a browser's stack.
  for (const task of tasks) {
    const open = [task.task];
    while (open.length) {
      const id = open.at(-1);
      const missing = seen.has(id) ? [] : into.get(id).filter((from) => !depth.has(from) && !seen.has(from));
      seen.add(id);
      if (missing.length) open.push(...missing);
      else {
        depth.set(id, Math.max(-1, ...into.get(id).map((from) => depth.get(from) ?? -1)) + 1);
        open.pop();
      }
    }
  }
  return depth;
}

// Each column in the order of the middle of what its places are tied to, there and back a few times.
function order(columns) {
  columns.forEach((column) => column.forEach((place, at) => (place.at = at)));
  const middle = (place, side) => (place[side].length ? place[side].reduce((sum, other) => sum + other.at, 0) / place[side].length : place.at);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const [way, side] = sweep % 2 === 0 ? [columns, "before"] : [[...columns].reverse(), "after"];
    for (const column of way) {
      column.map((place) => [middle(place, side), place]).sort((a, b) => a[0] - b[0] || a[1].at - b[1].at).forEach(([, place], at) => (place.wish = at));
      column.sort((a, b) => a.wish - b.wish);
      column.forEach((place, at) => (place.at = at));
    }
  }
}

// Heights: each column around one middle at first, then its places as near to what they are tied to as their order allows.
function stack(columns) {
  const centre = (place) => place.y + place.height / 2;
  for (const column of columns) {
    const whole = column.reduce((sum, place) => sum + place.height + GAP.y, -GAP.y);
    let y = -whole / 2;
    for (const place of column) {
      place.y = y;
      y += place.height + GAP.y;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const [way, side] = sweep % 2 === 0 ? [columns, "before"] : [[...columns].reverse(), "after"];
    for (const column of way) {
      settle(column, (place) => {
        const tied = place[side];
        return tied.length ? tied.reduce((sum, other) => sum + centre(other), 0) / tied.length - place.height / 2 : place.y;
      });
    }
  }
  const top = Math.min(...columns.flat().map((place) => place.y));
  for (const place of columns.flat()) place.y += MARGIN - top;
}

// The heights nearest to the wishes (least squares) that keep the order and the gaps: neighbours that would overlap become one block,
// which stands where its members wish on average.
function settle(column, wish) {
  let above = 0;
  const blocks = [];
  for (const place of column) {
    let block = { sum: wish(place) - above, places: [place], offsets: [above] };
    above += place.height + GAP.y;
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).places.length >= block.sum / block.places.length) {
      const upper = blocks.pop();
      block = { sum: upper.sum + block.sum, places: [...upper.places, ...block.places], offsets: [...upper.offsets, ...block.offsets] };
    }
    blocks.push(block);
  }
  for (const { sum, places, offsets } of blocks) places.forEach((place, at) => (place.y = sum / places.length + offsets[at]));
}

function points(way, x) {
  const found = [];
  way.forEach((place, at) => {
    const y = place.y + place.height / 2;
    const left = x(place.column);
    if (at > 0) found.push([left, y]);
    if (at < way.length - 1) found.push([left + NODE.width, y]);
  });
  return found;
}
