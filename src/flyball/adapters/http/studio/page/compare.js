// Two loops side by side: how they stand, and what is different in what came of them.

import { get, loop } from "./api.js";
import { fill, h } from "./dom.js";
import { money, seconds, short, tokens } from "./format.js";
import { showLoop } from "./loop.js";
import { isOver, wordsOf } from "./stages.js";
import { textDiff } from "./turn.js";

async function compareAnswers(place, one, other) {
  const said = (id) => get(loop(id, "response")).then((told) => told.content, () => "");
  const [before, after] = await Promise.all([said(one), said(other)]);
  fill(place, h("details", { open: true },
    h("summary", null, before === after ? "The answers are the same" : "The first answer, with what is gone and what is new in the second"),
    textDiff(before, after)));
}

export function showCompare(root, one, other) {
  const table = h("div", { class: "differences" });
  const places = [h("div", null), h("div", null)];
  fill(root, h("div", { class: "compare" },
    h("header", { class: "head" }, h("h1", null, "Side by side")), table, h("div", { class: "two" }, places)));
  const shown = [one, other].map((id, number) => showLoop(places[number], id, { compact: true, whenShown: () => tell() }));
  const answers = h("div", null);
  const tell = () => {
    const [a, b] = shown.map((each) => each.watched?.summary);
    if (!a || !b) return;
    const rows = [
      ["loop", short(a.loop_id), short(b.loop_id)],
      ["stage", wordsOf(a.stage), wordsOf(b.stage)],
      ["model", a.model, b.model],
      ["turns", String(a.turns), String(b.turns)],
      ["took", seconds(a.updated_at - a.started_at), seconds(b.updated_at - b.started_at)],
      ["tokens", tokens(a.usage), tokens(b.usage)],
      ["cost", money(a.cost), money(b.cost)],
      ["tool calls", String(a.usage?.tool_calls ?? 0), String(b.usage?.tool_calls ?? 0)],
    ].filter(([, x, y]) => x || y);
    fill(table,
      h("table", null, h("tbody", null, rows.map(([name, x, y]) =>
        h("tr", { class: x === y ? "" : "differs" }, h("th", { scope: "row" }, name), h("td", null, x), h("td", null, y))))),
      answers);
    if (isOver(a.stage) && isOver(b.stage) && !answers.firstChild) compareAnswers(answers, one, other);
  };
  return () => shown.forEach((each) => each.end());
}
