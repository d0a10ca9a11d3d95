// The list as it was last said, and where its rows stand on the screen.

const SETTLE_MS = 3_000; // as `tocsin watch`: rows keep their places for so long, but for those that begin to need a person
export const NEEDS_YOU = 1;
export const CLASSES = { 1: "needs you", 2: "done", 3: "working", 4: "idle" };

export class Board extends EventTarget {
  rows = new Map();
  order = []; // as said
  shown = []; // as it stands on the screen
  facts = null; // of the whole list; null: no list yet
  none = null; // why there is no list
  awaySince = null; // the bus
  marks = {}; // the person's own, by worktree
  skew = 0; // the console's clock minus ours, in milliseconds
  #timer = 0;
  #anew = false;

  // Hears one event of the stream.
  hear(name, data) {
    this.skew = data.now - Date.now();
    if (name === "beat") return;
    if (name === "bus") this.awaySince = data.away_since;
    else if (name === "none") this.none = data;
    else if (name === "marks") this.#mark(data);
    else if (name === "notice") return this.#say("notice", data);
    else this.#take(name, data);
    this.#say("changed");
  }

  // Marks come anew with each stream.
  forgetMarks() {
    this.marks = {};
  }

  // The next list comes under an order that somebody has just chosen: its rows go to their places at once.
  beginAnew() {
    this.#anew = true;
  }

  now() {
    return Date.now() + this.skew;
  }

  counts() {
    const counts = { 1: 0, 2: 0, 3: 0, 4: 0 };
    for (const row of this.rows.values()) counts[row.class] += 1;
    return counts;
  }

  list() {
    return this.shown.map((id) => this.rows.get(id));
  }

  #take(name, data) {
    const first = this.facts === null;
    const anew = this.#anew;
    this.#anew = false;
    const before = new Map(this.rows);
    this.facts = data;
    this.none = null;
    if (name === "list") {
      this.rows = new Map(data.worktrees.map((row) => [row.id, row]));
      this.order = data.worktrees.map((row) => row.id);
    } else {
      for (const id of data.removed) this.rows.delete(id);
      for (const row of data.changed) this.rows.set(row.id, row);
      if (data.order) this.order = data.order;
    }
    const promoted = first ? [] : this.order.filter((id) => this.#isPromoted(before.get(id), this.rows.get(id)));
    this.#place(before, promoted, first || anew);
    if (promoted.length) this.#say("promoted", promoted.map((id) => this.rows.get(id)));
  }

  #mark(data) {
    this.marks = data.marks;
    if (!data.order) return;
    this.order = data.order;
    this.#settle(); // somebody has just marked it, and looks at it
  }

  #isPromoted(before, after) {
    return after.class === NEEDS_YOU && before?.class !== NEEDS_YOU;
  }

  #place(before, promoted, atOnce) {
    const same = before.size === this.rows.size && this.order.every((id) => before.has(id));
    if (atOnce || !same) return this.#settle();
    const rank = new Map(this.order.map((id, at) => [id, at]));
    for (const id of promoted) {
      this.shown.splice(this.shown.indexOf(id), 1);
      const above = this.shown.findIndex((other) => rank.get(other) > rank.get(id));
      this.shown.splice(above < 0 ? this.shown.length : above, 0, id);
    }
    if (this.shown.every((id, at) => id === this.order[at])) this.#cancel();
    else if (!this.#timer) {
      this.#timer = setTimeout(() => {
        this.#settle();
        this.#say("changed");
      }, SETTLE_MS);
    }
  }

  #settle() {
    this.#cancel();
    this.shown = [...this.order];
  }

  #cancel() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  #say(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
