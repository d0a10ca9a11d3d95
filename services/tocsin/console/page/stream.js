// The stream of the list: opened again after every cut, from the edition that is on the screen.

const SILENCE_MS_MAX = 25_000; // more than two of the console's beats
const FIRST_PAUSE_MS = 500;
const PAUSE_MS_MAX = 3_000;
const LOOK_MS = 1_000;

export class Stream {
  #source = null;
  #edition = "";
  #sort = "smart";
  #watched = "";
  #heardAt = 0;
  #pause = FIRST_PAUSE_MS;
  #timer = 0;

  // `hear(name, data)`: an event; `state("live" | "cut")`: whether the stream stands; `opened()`: it stands anew;
  // `failed()`: an attempt has failed.
  constructor({ hear, state, opened, failed }) {
    this.hear = hear;
    this.opened = opened;
    this.state = state;
    this.failed = failed;
    setInterval(() => this.#look(), LOOK_MS);
    // A laptop that wakes up, or a network that is back, need not wait out the silence.
    addEventListener("online", () => this.#again(0));
    addEventListener("visibilitychange", () => this.#look());
  }

  // Begins, or begins anew under another order.
  open(sort) {
    const before = this.#source ? this.#sort : "";
    this.#sort = sort;
    this.#edition = "";
    this.#connect(before);
  }

  // What else is shown: topics of which the console says that they have moved.
  watch(topics) {
    const watched = topics.join(",");
    if (watched === this.#watched) return;
    this.#watched = watched;
    if (this.#source !== null) this.#connect();
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #connect(before = "") {
    this.close();
    const query = new URLSearchParams({
      sort: this.#sort, ...(this.#edition && { after: this.#edition }), ...(before && { before }), ...(this.#watched && { watch: this.#watched }),
    });
    const source = new EventSource(`/api/stream?${query}`);
    this.#source = source;
    this.#heardAt = performance.now();
    source.onopen = () => {
      this.#heardAt = performance.now();
      if (source === this.#source) this.opened();
    };
    source.onerror = () => {
      if (source === this.#source) this.#again(this.#pause);
    };
    for (const name of ["list", "change", "none", "bus", "moved", "marks", "notice", "beat"]) {
      source.addEventListener(name, (event) => {
        if (source !== this.#source) return;
        this.#heardAt = performance.now();
        this.#pause = FIRST_PAUSE_MS;
        if (name === "list" || name === "change") this.#edition = event.lastEventId;
        this.state("live");
        this.hear(name, JSON.parse(event.data));
      });
    }
  }

  #again(pause) {
    if (this.#source === null) return;
    this.#source.close();
    this.state("cut");
    this.failed();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), pause);
    this.#pause = Math.min(2 * this.#pause, PAUSE_MS_MAX);
  }

  // A connection that died without a word looks the same as a quiet one: what tells them apart is the beat.
  #look() {
    if (this.#source !== null && performance.now() - this.#heardAt > SILENCE_MS_MAX) {
      this.#heardAt = performance.now();
      this.#again(0);
    }
  }
}
