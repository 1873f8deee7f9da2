// A loop's steps, each with its bar on one line of time. Rows that are not changed are not touched; of very many, the
// last are shown, and the others for who asks.

import { Axis } from "./axis.js";
import { fill, h, say } from "./dom.js";
import { clock, count, seconds, several, tokens } from "./format.js";
import { oneLine } from "./text.js";

const SHOWN = 300;
const ICONS = {
  model_call: "◆", tool_call: "▸", wait: "⧖", not_run: "▹", flow_step: "▪", check: "↺", signal: "✦", child: "↳", child_ended: "↲",
  resumed: "⏵", retried: "↻", forked: "⑂", end: "●",
};
const WORDS = { model_call: "model call", tool_call: "tool call", flow_step: "step", child_ended: "loop below ended" };

export class Timeline {
  /** `opened(step, place)` fills a place under a row that was opened. */
  constructor(opened) {
    this.opened = opened;
    this.rows = [];
    this.steps = [];
    this.from = 0;
    this.earlier = h("button", { type: "button", class: "quiet earlier", hidden: true });
    this.earlier.addEventListener("click", () => {
      this.from = Math.max(0, this.from - SHOWN);
      this.draw(true);
    });
    this.scale = h("div", { class: "scale" });
    this.body = h("ol", { class: "steps" });
    this.element = h("section", { class: "timeline", "aria-label": "Timeline" }, this.earlier, this.scale, this.body);
  }

  show(steps) {
    const grown = steps.length !== this.steps.length;
    this.steps = steps;
    if (grown && steps.length - this.from > 2 * SHOWN) this.from = steps.length - SHOWN;
    this.draw(false);
  }

  /** Time passes: what is under way grows. */
  tick() {
    if (this.steps.some((step) => step.took === null)) this.draw(false);
  }

  draw(anew) {
    const now = Date.now() / 1000;
    const shown = this.steps.slice(this.from);
    const spans = shown.map((step) => [step.at, step.took === null ? Math.max(now, step.at) : step.at + step.took]);
    const axis = new Axis(spans);
    if (anew) {
      this.rows = [];
      fill(this.body);
    }
    this.earlier.hidden = this.from === 0;
    say(this.earlier, `${several(this.from, "earlier step")}`);
    shown.forEach((step, number) => {
      let row = this.rows[number];
      if (!row || row.number !== this.from + number) {
        if (row) for (const old of this.rows.splice(number)) old.element.remove();
        row = new Row(this.from + number, this.opened);
        this.rows[number] = row;
        this.body.append(row.element);
      }
      row.show(step, axis, now);
    });
    for (const old of this.rows.splice(shown.length)) old.element.remove();
    const whole = spans.length ? Math.max(...spans.map((span) => span[1])) - spans[0][0] : 0;
    const gaps = axis.gaps.length;
    say(this.scale, shown.length ? `${seconds(whole)}${gaps ? `, ${several(gaps, "long wait")} drawn short` : ""}` : "");
  }
}

class Row {
  constructor(number, opened) {
    this.number = number;
    this.icon = h("span", { class: "icon", "aria-hidden": "true" });
    this.what = h("span", { class: "what" });
    this.about = h("span", { class: "about" });
    this.bar = h("span", { class: "bar" });
    this.used = h("span", { class: "used" });
    this.took = h("span", { class: "took" });
    this.head = h("button", { type: "button", class: "step", "aria-expanded": "false" },
      this.icon, h("span", { class: "words" }, this.what, this.about), h("span", { class: "track" }, this.bar), this.used, this.took);
    this.place = h("div", { class: "inside", hidden: true });
    this.element = h("li", null, this.head, this.place);
    this.head.addEventListener("click", () => {
      const open = this.place.hidden;
      this.place.hidden = !open;
      this.head.setAttribute("aria-expanded", String(open));
      if (open) opened(this.step, this.place);
    });
    this.opened = opened;
  }

  show(step, axis, now) {
    const changed = !this.step || JSON.stringify(step) !== JSON.stringify(this.step);
    const ended = this.step && this.step.took === null && step.took !== null;
    this.step = step;
    const running = step.took === null;
    const took = running ? Math.max(0, now - step.at) : step.took;
    if (changed) {
      this.element.className = `${step.kind} ${running ? "running" : step.ok === false ? "failed" : "ok"}`;
      say(this.icon, ICONS[step.kind] ?? "·");
      say(this.what, oneLine(step.what, 80));
      say(this.about, oneLine(step.about, 200));
      this.head.setAttribute("title", `${WORDS[step.kind] ?? step.kind.replaceAll("_", " ")}, ${clock(step.at)}`);
      say(this.used, tokens(step.usage) || (step.usage?.requests ? `${count(step.usage.requests)} req` : ""));
      if (ended && !this.place.hidden) this.opened(step, this.place);
    }
    say(this.took, step.took === 0 ? "" : seconds(took));
    const [from, to] = [axis.place(step.at), axis.place(step.at + took)];
    this.bar.style.setProperty("--from", from.toFixed(4));
    this.bar.style.setProperty("--width", Math.max(0, to - from).toFixed(4));
  }
}
