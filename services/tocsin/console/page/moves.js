// What the page shows beside the list. The console says when one of its topics has moved; what it has become is asked for.

export class Moves {
  #parts = new Map();
  #due = false;

  // `tell(topics)`: what the stream has to watch from now on.
  constructor(tell) {
    this.tell = tell;
  }

  // `moved()` is called whenever one of `topics` has moved, or may have. Returns what ends that.
  watch(topics, moved) {
    const part = {};
    this.#parts.set(part, { topics: new Set(topics), moved });
    this.#changed();
    return () => {
      this.#parts.delete(part);
      this.#changed();
    };
  }

  hear(topics) {
    for (const part of this.#parts.values()) if (topics.some((topic) => part.topics.has(topic))) part.moved();
  }

  // The stream stands anew: nobody knows what was said in between.
  opened() {
    for (const part of this.#parts.values()) part.moved();
  }

  // One view goes and another comes: the stream is told once.
  #changed() {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      this.tell([...new Set([...this.#parts.values()].flatMap((part) => [...part.topics]))].sort());
    });
  }
}
