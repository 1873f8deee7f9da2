// Talking with an agent. Each message is a loop of its own, of one session: it goes on whoever looks, and the journal
// has all that was said, so that the conversation is there again after a reload.

import { get, loop, named, patiently, post, query, server } from "./api.js";
import { waitingCard } from "./actions.js";
import { block, fill, h, say } from "./dom.js";
import { money, seconds, short, tokens } from "./format.js";
import { markdown } from "./markdown.js";
import { attempt, badge, problem } from "./parts.js";
import { unready } from "./ready.js";
import { isOver, kindOf } from "./stages.js";
import { oneLine } from "./text.js";
import { Watched } from "./watched.js";

const MOST = 100;
const MOST_SHOWN = 20_000;

export function newSession() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function showChat(root, agent, session) {
  const ending = new AbortController();
  const chat = new Chat(agent, session, ending.signal);
  fill(root, chat.element);
  chat.begin().catch((error) => {
    if (!ending.signal.aborted) fill(root, problem(error));
  });
  return () => ending.abort();
}

class Chat {
  constructor(agent, session, signal) {
    this.agent = agent;
    this.session = session;
    this.signal = signal;
    this.turns = [];
    this.agents = h("select", { "aria-label": "Agent" });
    this.agents.addEventListener("change", () => (location.hash = `#/chat/${encodeURIComponent(this.agents.value)}/${newSession()}`));
    this.about = h("p", { class: "facts" });
    this.said = h("div", { class: "said", role: "log", "aria-live": "polite" });
    this.words = h("textarea", { rows: "1", placeholder: "Say something", "aria-label": "Message", enterkeyhint: "send", spellcheck: "true" });
    this.words.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.form.requestSubmit();
      }
    });
    this.hint = h("p", { class: "hint", role: "status" });
    this.words.addEventListener("input", () => say(this.hint, ""));
    this.form = h("form", { class: "composer" }, this.words, h("button", { type: "submit", class: "primary" }, "Send"));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.element = h("div", { class: "chat" },
      h("header", { class: "head" }, h("div", { class: "line" }, h("h1", null, "Chat with "), this.agents), this.about), this.said, this.hint, this.form);
  }

  async begin() {
    const { agents } = await patiently(() => get("/api/agents", this.signal), this.signal);
    fill(this.agents, agents.map((one) => h("option", { value: one.name, selected: one.name === this.agent }, one.name)));
    const card = agents.find((one) => one.name === this.agent);
    if (!card) throw new Error(`there is no agent ${this.agent} here`);
    const tools = card.tools.map((one) => one.name).join(", ");
    say(this.about, [card.description, card.model, tools && `tools: ${tools}`].filter(Boolean).join(" · "));
    const { loops } = await get(`/api/loops${query({ session_id: this.session, roots_only: true, limit: MOST })}`, this.signal);
    for (const one of loops.reverse()) this.add(one.prompt, one.loop_id, one);
    if (!loops.length) fill(this.said, h("p", { class: "empty" }, `Say something to ${this.agent}.`));
    this.words.focus();
  }

  add(prompt, id, stands = { stage: "running" }) {
    this.said.querySelector(".empty")?.remove();
    const turn = new Turn(prompt, id, stands, this.signal, () => this.scroll());
    this.turns.push(turn);
    this.said.append(turn.element);
    this.scroll(true);
  }

  /** Stay at the end, unless the user has gone to look at something above. */
  scroll(always = false) {
    const place = document.scrollingElement;
    if (always || place.scrollHeight - place.scrollTop - place.clientHeight < 200) place.scrollTo(0, place.scrollHeight);
  }

  async send() {
    const text = this.words.value.trim();
    if (!text) return;
    // What is said goes on from the answer before it: that is waited for, and nothing that was written is lost.
    if (this.sending || this.turns.some((turn) => !isOver(turn.stands.stage))) {
      say(this.hint, "Not sent yet: an answer is under way. Send it once that is there, or cancel the answer in its loop.");
      return;
    }
    say(this.hint, "");
    this.words.value = "";
    // The server knows what was said: it goes on from the last exchange in which the model said something.
    const after = this.turns.findLast((turn) => turn.answered)?.id;
    // Said again after a failure, it has the same id: it may have arrived after all, and is taken once.
    const loop_id = this.unsent?.text === text && this.unsent.after === after ? this.unsent.loop_id : newSession();
    this.unsent = { text, after, loop_id };
    const where = `/api/agents/${named(this.agent)}/loops${query({ loop_id, after })}`;
    const messages = [{ role: "user", content: text }];
    this.sending = true;
    const begun = await attempt(() => post(where, { messages, session_id: this.session }));
    this.sending = false;
    if (begun) {
      this.unsent = undefined;
      this.add(text, begun.loop_id);
    } else if (!this.words.value) this.words.value = text;
  }
}

class Turn {
  constructor(prompt, id, stands, signal, moved) {
    this.id = id;
    this.stands = stands;
    this.moved = moved;
    this.steps = h("div", { class: "calls" });
    this.waits = h("div", { class: "waits" });
    const dots = h("p", { class: "hint thinking-dots" });
    const thinks = () => say(dots, unready() || "…");
    thinks();
    server.addEventListener("ready", thinks, { signal });
    this.body = h("div", { class: "body" }, dots);
    this.foot = h("footer", null);
    this.element = h("section", { class: "exchange" },
      h("article", { class: "bubble user" }, block(prompt)),
      h("article", { class: "bubble assistant" }, this.steps, this.body, this.waits, this.foot));
    this.live = h("pre", { class: "text live" });
    this.watched = new Watched(id, (what) => this.show(what), signal, { again: false });
    this.watched.run().catch((error) => fill(this.body, problem(error)));
  }

  /** Whether the model has said something in it, and is done: what is said next goes on from there. */
  get answered() {
    const { kind, stage, turns } = this.stands;
    return kind !== "flow" && isOver(stage) && (stage === "complete" || turns > 1);
  }

  show(what) {
    if (!this.watched.summary) return;
    if (what === "all") this.showAll();
    // Pieces come faster than anybody reads, or a browser draws.
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = undefined;
      this.showAnswer();
      this.moved();
    });
  }

  showAnswer() {
    const { summary, answer } = this.watched;
    const text = answer.text;
    if (!text || isOver(summary.stage)) return;
    if (this.live.parentNode !== this.body) fill(this.body, this.live);
    say(this.live, text.length > MOST_SHOWN ? `…${text.slice(-MOST_SHOWN)}` : text);
  }

  showAll() {
    const { summary, steps, waiting } = this.watched;
    this.stands = summary;
    const over = isOver(summary.stage);
    const calls = steps.filter((step) => ["tool_call", "wait", "not_run", "flow_step"].includes(step.kind));
    const key = JSON.stringify([calls, waiting]);
    if (key !== this.shown) {
      this.shown = key;
      const open = new Set([...this.steps.querySelectorAll("details[open]")].map((one) => one.dataset.call));
      fill(this.steps, calls.map((step, number) => call(step, String(number), open)));
      fill(this.waits, waiting.map(waitingCard));
    }
    fill(this.foot, over && summary.stage === "complete" ? null : badge(summary.stage), " ",
      h("a", { href: `#/loops/${encodeURIComponent(this.id)}` }, short(this.id)), " ",
      [over && seconds(summary.updated_at - summary.started_at), tokens(summary.usage), money(summary.cost)].filter(Boolean).join(" · "));
    if (over && this.told !== summary.updated_at) {
      this.told = summary.updated_at;
      this.tell(summary);
    }
  }

  async tell(summary) {
    try {
      const response = await get(loop(this.id, "response"));
      fill(this.body, response.content ? markdown(response.content) : h("p", { class: "hint" }, "Nothing was said."));
    } catch (error) {
      if (kindOf(summary.stage) === "complete") fill(this.body, block(summary.answer));
      else fill(this.body, h("p", { class: "bad" }, `${error.code} ${error.message}`));
    }
    this.moved();
  }
}

function call(step, key, open) {
  const state = step.took === null ? "running" : step.ok === false ? "failed" : "ok";
  return h("details", { class: `call ${state}`, data: { call: key }, open: open.has(key) },
    h("summary", null, h("b", null, oneLine(step.what, 60)), " ", h("small", null, step.took === null ? "under way" : seconds(step.took))),
    block(step.about));
}
