// The loops: the newest first, live, searched on the server.

import { get, query, wait } from "./api.js";
import { fill, h, say } from "./dom.js";
import { ago, money, short, tokens } from "./format.js";
import { attempt } from "./parts.js";
import { kindOf, wordsOf } from "./stages.js";
import { harmless, oneLine } from "./text.js";

const EVERY = 2_000;
const PAGE = 50;
const FILTERS = [
  ["", "All"],
  ["executing,planning,exploring,reviewing,architecting,running", "Running"],
  ["awaiting_approval,deferred", "Waiting"],
  ["paused,interrupted", "Stopped"],
  ["complete", "Complete"],
  ["failed,cancelled", "Failed"],
];

export class List {
  constructor(root) {
    this.rows = new Map();
    this.loops = [];
    this.older = [];
    this.next = "";
    this.stage = "";
    this.search = h("input", {
      type: "search", placeholder: "Search loops", "aria-label": "Search loops", spellcheck: "false", autocomplete: "off",
    });
    this.search.addEventListener("input", () => this.again());
    this.under = h("input", { type: "checkbox", id: "under" });
    this.under.addEventListener("change", () => this.again());
    this.filters = FILTERS.map(([stage, label]) => {
      const one = h("button", { type: "button", class: "chip", "aria-pressed": stage === "" }, label);
      one.addEventListener("click", () => {
        this.stage = stage;
        for (const other of this.filters) other.setAttribute("aria-pressed", String(other === one));
        this.again();
      });
      return one;
    });
    this.body = h("ol", { class: "loops" });
    this.foot = h("p", { class: "foot" });
    this.more = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.further() }, "Earlier ones");
    fill(root,
      h("div", { class: "finder" }, this.search, h("div", { class: "chips", role: "group", "aria-label": "Stage" }, this.filters),
        h("label", { class: "check", for: "under" }, this.under, "with those under others")),
      this.body, this.more, this.foot);
    this.again();
    this.run();
  }

  /** Ask anew, from the first page. */
  again() {
    this.older = [];
    this.asked?.abort();
    this.asked = new AbortController();
    const mine = this.asked;
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.refresh(mine.signal), this.search.value ? 150 : 0);
  }

  async run() {
    for (;;) {
      await wait(EVERY);
      if (document.visibilityState === "visible" && this.asked) await this.refresh(this.asked.signal);
    }
  }

  async refresh(signal) {
    try {
      const { loops, next } = await this.page("", signal);
      if (!this.older.length) this.next = next ?? "";
      const newer = new Set(loops.map((one) => one.loop_id));
      this.show([...loops, ...this.older.filter((one) => !newer.has(one.loop_id))]);
    } catch (error) {
      if (error.name !== "AbortError") say(this.foot, error.message);
    }
  }

  page(cursor, signal) {
    const asked = { text: this.search.value.trim(), stage: this.stage, roots_only: !this.under.checked, limit: PAGE, cursor };
    return get(`/api/loops${query(asked)}`, signal);
  }

  /** Those before: they are asked for once, and only the newest again and again. */
  async further() {
    const found = await attempt(() => this.page(this.next, this.asked.signal));
    if (!found) return;
    this.older = [...this.loops, ...found.loops];
    this.next = found.next ?? "";
    this.show(this.older);
  }

  show(loops) {
    this.loops = loops;
    const kept = new Set(loops.map((one) => one.loop_id));
    for (const [id, row] of this.rows) {
      if (!kept.has(id)) {
        row.element.remove();
        this.rows.delete(id);
      }
    }
    let at = this.body.firstElementChild;
    for (const one of loops) {
      let row = this.rows.get(one.loop_id);
      if (!row) this.rows.set(one.loop_id, (row = new Row(one.loop_id)));
      row.show(one);
      if (row.element === at) at = at.nextElementSibling;
      else this.body.insertBefore(row.element, at);
    }
    this.more.hidden = !this.next;
    const asked = this.search.value.trim() || this.stage;
    say(this.foot, loops.length ? "" : asked ? "No loop is like that." : "Nothing has run yet. Say something to an agent.");
    this.mark(this.current);
  }

  /** Mark the loop that is open. */
  mark(id) {
    this.current = id;
    for (const [name, row] of this.rows) {
      if (name === id) row.link.setAttribute("aria-current", "page");
      else row.link.removeAttribute("aria-current");
    }
  }

  /** The loop after, or before, the one that is open. */
  beside(step) {
    const at = this.loops.findIndex((one) => one.loop_id === this.current);
    const to = this.loops[at < 0 ? 0 : at + step];
    if (to) {
      location.hash = `#/loops/${encodeURIComponent(to.loop_id)}`;
      this.rows.get(to.loop_id)?.element.scrollIntoView({ block: "nearest" });
    }
  }
}

class Row {
  constructor(id) {
    this.prompt = h("span", { class: "prompt" });
    this.stage = h("span", { class: "stage" });
    this.about = h("span", { class: "about" });
    this.link = h("a", { href: `#/loops/${encodeURIComponent(id)}` },
      h("span", { class: "dot" }), h("span", { class: "lines" }, this.prompt, this.about), this.stage);
    this.element = h("li", null, this.link);
  }

  show(one) {
    const kind = kindOf(one.stage);
    this.link.className = kind;
    say(this.prompt, oneLine(one.prompt, 160) || "(nothing was said)");
    const used = [one.agent, ago(one.updated_at), tokens(one.usage), money(one.cost)].filter(Boolean);
    say(this.about, oneLine(used.join(" · "), 120));
    say(this.stage, kind === "running" || kind === "complete" ? "" : wordsOf(one.stage));
    this.link.setAttribute("title", harmless(`${short(one.loop_id)}: ${wordsOf(one.stage)}`.slice(0, 200)));
  }
}
