// One loop: how it stands, what it waits for, its timeline, the answer as it comes, and all that was sent.

import { get, loop as path } from "./api.js";
import { actionsOf, fork, waitingCard } from "./actions.js";
import { fill, h, say } from "./dom.js";
import { Flow } from "./flow.js";
import { ago, clock, money, seconds, several, short, tokens } from "./format.js";
import { markdown } from "./markdown.js";
import { attempt, badge, button, copyable, problem, value } from "./parts.js";
import { isOver, kindOf } from "./stages.js";
import { oneLine } from "./text.js";
import { Timeline } from "./timeline.js";
import { showCall, showTurn } from "./turn.js";
import { Watched } from "./watched.js";

const TICK = 250;

/** Show a loop in a place; gives what ends that. */
export function showLoop(root, id, { compact = false, whenShown } = {}) {
  const ending = new AbortController();
  const view = new LoopView(id, compact);
  const watched = new Watched(id, (what) => {
    view.show(watched, what);
    if (what === "all") whenShown?.(watched);
  }, ending.signal);
  fill(root, h("p", { class: "empty" }, "Looking…"));
  watched.run().catch((error) => {
    if (!ending.signal.aborted) fill(root, problem(error));
  });
  view.attach = () => fill(root, view.element);
  const timer = setInterval(() => view.tick(watched), TICK);
  return { view, watched, end: () => (ending.abort(), clearInterval(timer)) };
}

class LoopView {
  constructor(id, compact) {
    this.id = id;
    this.compact = compact;
    this.title = h("h1", null);
    this.stage = h("span", null);
    this.facts = h("p", { class: "facts" });
    this.acts = h("div", { class: "row acts" });
    this.above = h("p", { class: "facts above", hidden: true });
    this.waiting = h("div", { class: "waits" });
    this.flow = new Flow();
    this.flow.element.hidden = true;
    this.timeline = new Timeline((step, place) => this.opened(step, place));
    this.live = h("pre", { class: "text live", "aria-live": "off" });
    this.answer = h("section", { class: "card answer", hidden: true });
    this.tabs = h("div", { class: "tabs", role: "tablist" });
    this.events = h("section", { class: "events", hidden: true });
    this.main = h("div", { class: "told" }, this.waiting, this.flow.element, this.timeline.element, this.answer);
    this.element = h("div", { class: compact ? "loop compact" : "loop" },
      h("header", { class: "head" },
        h("div", { class: "line" }, this.stage, h("span", { class: "who" }), copyable(id, short(id))),
        this.title, this.above, this.facts, this.acts),
      !compact && this.tabs, this.main, this.events);
    this.who = this.element.querySelector(".who");
    for (const [name, label] of [["told", "Timeline"], ["events", "Journal"]]) {
      this.tabs.append(h("button", {
        type: "button", role: "tab", "aria-selected": String(name === "told"), onclick: () => this.turnTo(name), data: { tab: name },
      }, label));
    }
  }

  turnTo(name) {
    for (const tab of this.tabs.children) tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
    this.main.hidden = name !== "told";
    this.events.hidden = name !== "events";
    if (name === "events") this.journal();
  }

  show(watched, what) {
    if (what === "answer") {
      this.streaming ??= requestAnimationFrame(() => {
        this.streaming = undefined;
        this.showAnswer(watched);
      });
      return;
    }
    if (this.attach) {
      this.attach();
      this.attach = undefined;
    }
    const one = watched.summary;
    const over = isOver(one.stage);
    this.element.className = `loop ${kindOf(one.stage)}${this.compact ? " compact" : ""}`;
    const stands = [one.stage, ...one.signals].join();
    if (this.shownStage !== stands) {
      fill(this.stage, badge(one.stage));
      fill(this.acts, actionsOf(one),
        one.kind === "agent" && button("Fork…", () => fork(this.id, 0), "", { data: { act: "fork" } }));
      this.shownStage = stands;
    }
    say(this.who, [one.agent, one.model].filter(Boolean).join(" · "));
    say(this.title, oneLine(one.prompt, 300) || "(nothing was said)");
    this.above.hidden = !one.parent_loop_id;
    if (one.parent_loop_id && !this.above.firstChild) {
      fill(this.above, "under ", h("a", { href: `#/loops/${encodeURIComponent(one.parent_loop_id)}` }, short(one.parent_loop_id)));
    }
    this.showFacts(one, over);
    this.showWaiting(watched.waiting);
    this.timeline.show(watched.steps);
    this.flow.element.hidden = !watched.flow;
    if (watched.flow) this.flow.show(watched.flow);
    this.showAnswer(watched);
    if (!this.events.hidden) this.journal();
  }

  showFacts(one, over) {
    const took = (over ? one.updated_at : Date.now() / 1000) - one.started_at;
    say(this.facts, [
      `begun ${ago(one.started_at)}`, seconds(took), one.turns ? several(one.turns, one.kind === "flow" ? "step" : "turn") : "",
      tokens(one.usage) && `${tokens(one.usage)} tokens`, money(one.cost), one.usage?.tool_calls ? several(one.usage.tool_calls, "tool call") : "",
    ].filter(Boolean).join(" · "));
    this.facts.setAttribute("title", clock(one.started_at));
  }

  showWaiting(calls) {
    const key = JSON.stringify(calls);
    if (key === this.shownCalls) return;
    this.shownCalls = key;
    fill(this.waiting, calls.map(waitingCard));
  }

  showAnswer(watched) {
    const one = watched.summary;
    if (!one) return;
    const streaming = watched.answer.parts.filter(Boolean);
    const over = isOver(one.stage);
    if (streaming.length) {
      const text = streaming.map((part) => (part.kind === "tool_call" ? `\n▸ ${part.name} ${part.text}` : part.text)).join("").trim();
      const shown = text.length > 20_000 ? `…${text.slice(-20_000)}` : text;
      if (this.answerOf !== "live") fill(this.answer, h("h2", null, "Answering"), this.live);
      this.answerOf = "live";
      say(this.live, shown);
      this.answer.hidden = false;
    } else if (over && this.answerOf !== one.updated_at) {
      this.answerOf = one.updated_at;
      this.showResponse(one);
    } else if (!over) {
      this.answer.hidden = true;
      this.answerOf = undefined;
    }
  }

  async showResponse(one) {
    this.answer.hidden = false;
    let told;
    try {
      told = await get(path(this.id, "response"));
    } catch (error) {
      told = error.document?.response ?? { content: "", error: { code: error.code, message: error.message } };
      if (!told.error) told.error = { code: error.code, message: error.message };
    }
    const structured = told.structured_output;
    fill(this.answer,
      h("h2", null, told.error ? "It failed" : "Answer"),
      told.error && h("p", { class: "bad" }, h("code", null, told.error.code ?? one.error), " ", told.error.message ?? ""),
      told.content && markdown(told.content),
      structured !== null && structured !== undefined && value(structured),
      told.validation_result && h("details", null, h("summary", null, "Checks"), value(told.validation_result)));
  }

  tick(watched) {
    if (!watched.summary || isOver(watched.summary.stage)) return;
    this.timeline.tick();
    this.showFacts(watched.summary, false);
  }

  opened(step, place) {
    if (step.kind === "model_call" && step.turn) {
      const acts = h("div", { class: "row" }, button("Fork after this turn…", () => fork(this.id, step.turn), "quiet", { data: { act: "fork-turn" } }));
      return showTurn(this.id, step.turn, place, acts);
    }
    if ((step.kind === "tool_call" || step.kind === "wait") && step.call_id) return showCall(this.id, step, place);
    return fill(place,
      h("p", null, step.about || step.what), h("p", { class: "hint" }, clock(step.at)),
      step.loop_id && h("p", null, h("a", { href: `#/loops/${encodeURIComponent(step.loop_id)}` }, "Open that loop")));
  }

  /** The journal's next events; what was read stays. */
  async journal() {
    if (this.reading) return;
    this.reading = true;
    if (!this.entries) {
      this.entries = h("ol", { class: "journal" });
      this.further = button("More events", () => this.page(), "quiet", { hidden: true });
      fill(this.events, this.entries, this.further);
    }
    if (this.further.hidden) await this.page();
    this.reading = false;
  }

  async page() {
    const after = this.entries.childElementCount;
    const page = await attempt(() => get(`${path(this.id, "events")}?after=${after}&limit=200`));
    if (!page) return;
    this.entries.append(...page.events.map(entry));
    this.further.hidden = !page.next;
  }
}

function entry({ number, event }) {
  const body = h("div", null);
  const one = h("details", null, h("summary", null, h("b", null, String(number)), " ", h("code", null, event.event), " ",
    h("small", null, clock(event.at))), body);
  one.addEventListener("toggle", () => {
    if (one.open && !body.firstChild) fill(body, value(event));
  }, { once: true });
  return h("li", null, one);
}
