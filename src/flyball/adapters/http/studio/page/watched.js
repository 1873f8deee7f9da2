// A loop that is looked at: what the server says of it, asked for again whenever something has happened in it.

import { get, loop, patiently, server } from "./api.js";
import { Answer } from "./answer.js";
import { follow } from "./events.js";
import { isOver } from "./stages.js";

const SOON = 60;
const EVERY = 5_000;

export class Watched {
  /** `changed(what)` is called with "all" when something was recorded, and with "answer" for a piece of an answer. */
  constructor(id, changed, signal, { again = true } = {}) {
    this.id = id;
    this.again = again;
    this.changed = changed;
    this.signal = signal;
    this.answer = new Answer();
    this.summary = null;
    this.steps = [];
    this.waiting = [];
    this.flow = null;
    this.took = 0;
  }

  async run() {
    const { length } = await patiently(() => get(`${loop(this.id, "events")}?limit=1`, this.signal), this.signal);
    await patiently(() => this.refresh(), this.signal);
    let after = String(length);
    while (!this.signal.aborted) {
      await follow(this.id, {
        after,
        signal: this.signal,
        told: (name, data) => {
          after = this.told(name, data, after);
          return isOver(this.summary.stage);
        },
      });
      await this.refresh();
      if (this.signal.aborted || !this.again) return;
      await this.reopened();
    }
  }

  /** Wait until a loop that was over is tried again: somebody may have it so, here or elsewhere. */
  async reopened() {
    while (!this.signal.aborted && isOver(this.summary.stage)) {
      await new Promise((resolve) => {
        server.addEventListener("acted", resolve, { once: true });
        this.signal.addEventListener("abort", resolve, { once: true });
        setTimeout(resolve, EVERY);
      });
      if (!this.signal.aborted && document.visibilityState === "visible") await this.refresh();
    }
  }

  told(name, data, after) {
    if (name === "look") {
      this.soon();
      return after;
    }
    if (name === "piece") {
      if (this.answer.take(data)) this.changed("answer");
      return after;
    }
    if (name !== "event") return after;
    // What was answered is recorded; what another process had begun to answer is not told any further.
    if (["model_answered", "model_failed", "resumed", "reopened", "forked"].includes(data.event.event)) this.answer.clear();
    this.soon();
    return String(data.number);
  }

  /** Ask again in a moment: events come in bursts, and large loops take their time; so does a server that was away. */
  soon() {
    this.timer ??= setTimeout(async () => {
      this.timer = undefined;
      await this.refresh();
    }, Math.max(SOON, Math.min(this.took * 3, EVERY)));
  }

  async refresh() {
    const began = performance.now();
    try {
      const [summary, course, waiting] = await Promise.all(
        ["", "course", "waiting"].map((what) => get(loop(this.id, what), this.signal)));
      this.summary = summary;
      this.steps = course.steps;
      this.waiting = waiting.calls;
      if (summary.kind === "flow") this.flow = (await get(loop(this.id, "diagram"), this.signal)).flow;
      if (isOver(summary.stage)) this.answer.clear();
      this.changed("all");
    } catch (error) {
      if (error.name !== "AbortError" && !this.summary) throw error;
    }
    this.took = performance.now() - began;
  }
}
