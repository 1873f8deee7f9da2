// A flow, drawn: what comes after each other stands below each other, what is done at once side by side.

import { block, h } from "./dom.js";
import { seconds } from "./format.js";
import { oneLine } from "./text.js";

const WORDS = { later: "to come", running: "under way", done: "done", failed: "failed", skipped: "not needed" };
const ABOUT = { redundant: "votes", parallel: "at once", conditional: "if", planned: "planned" };

export class Flow {
  constructor() {
    this.body = h("div", { class: "flow" });
    this.element = h("section", { class: "drawing", "aria-label": "The flow" }, this.body);
    this.shown = "";
  }

  show(node) {
    const text = JSON.stringify(node);
    if (text === this.shown) return;
    this.shown = text;
    const open = new Set([...this.body.querySelectorAll("details[open]")].map((one) => one.dataset.path));
    this.body.replaceChildren(drawn(node, open, true));
  }
}

function drawn(node, open, outermost = false) {
  if (!node.steps.length) return leaf(node, open);
  if (node.steps.length === 1 && node.kind === "pipeline") return drawn(node.steps[0], open, outermost);
  const beside = node.kind === "redundant" || node.kind === "parallel";
  const steps = node.steps.map((step) => drawn(step, open));
  const inner = h("div", { class: beside ? "beside" : "below" }, beside ? steps : steps.flatMap((step, number) => (number ? [arrow(), step] : [step])));
  if (outermost) return inner;
  const label = [node.name, ABOUT[node.kind] ?? ""].filter(Boolean).join(" · ");
  return h("div", { class: `frame ${node.standing}` }, h("div", { class: "label" }, oneLine(label, 60)), inner);
}

function arrow() {
  return h("div", { class: "arrow", "aria-hidden": "true" }, "↓");
}

function leaf(node, open) {
  const again = node.attempt > 1 ? ` (try ${node.attempt})` : "";
  return h("details", { class: `leaf ${node.standing}`, data: { path: node.path }, open: open.has(node.path) },
    h("summary", null,
      h("span", { class: "name" }, oneLine(node.name || node.kind, 40)),
      h("small", null, `${node.kind} · ${WORDS[node.standing]}${again}${node.took ? ` · ${seconds(node.took)}` : ""}`),
      (node.output || node.error || node.given) && h("span", { class: "came" }, oneLine(node.error || node.output || node.given, 120))),
    node.given && [h("h3", null, "Given"), block(node.given)],
    node.output && [h("h3", null, "Gave"), block(node.output)],
    node.error && h("p", { class: "bad" }, node.error),
    node.loops.map((id) => h("a", { href: `#/loops/${encodeURIComponent(id)}` }, "The loop behind it")));
}
