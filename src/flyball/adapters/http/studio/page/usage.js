// What was used and cost: by day, agent and model.

import { get, patiently } from "./api.js";
import { fill, h } from "./dom.js";
import { count, money, tokens } from "./format.js";
import { problem } from "./parts.js";
import { wordsOf } from "./stages.js";

export function showUsage(root) {
  const ending = new AbortController();
  fill(root, h("p", { class: "empty" }, "Counting…"));
  patiently(() => get("/api/usage", ending.signal), ending.signal).then((report) => fill(root, drawn(report)), (error) => {
    if (!ending.signal.aborted) fill(root, problem(error));
  });
  return () => ending.abort();
}

function drawn(report) {
  const tables = [["By day", report.days], ["By agent", report.agents], ["By model", report.models]].filter(([, rows]) => Object.keys(rows).length);
  const { total, outcomes } = report;
  return h("div", { class: "usage" },
    h("header", { class: "head" }, h("h1", null, "Usage"), h("p", { class: "facts" }, [
      `${count(total.loops)} loops`, `${count(total.usage.requests ?? 0)} model calls`, `${tokens(total.usage) || "0"} tokens`, total.unpriced < total.loops && money(total.cost),
      total.unpriced ? `${total.unpriced} without a price` : "",
      ...Object.entries(outcomes).map(([stage, number]) => `${number} ${wordsOf(stage)}`),
    ].filter(Boolean).join(" · "))),
    tables.length ? tables.map(([name, rows]) => table(name, rows)) : h("p", { class: "empty" }, "Nothing was used yet."));
}

function table(name, rows) {
  const used = ({ usage }) => (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  const most = Math.max(1, ...Object.values(rows).map(used));
  const columns = ["", "loops", "tokens in", "tokens out", "cost", ""];
  return h("section", null, h("h2", null, name),
    h("table", null,
      h("thead", null, h("tr", null, columns.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", null, Object.entries(rows).map(([label, row]) => h("tr", null,
        h("th", { scope: "row" }, label || "(none)"),
        h("td", null, count(row.loops)), h("td", null, count(row.usage.input_tokens ?? 0)), h("td", null, count(row.usage.output_tokens ?? 0)),
        h("td", null, row.unpriced >= row.loops ? "unknown" : money(row.cost)),
        h("td", { class: "share" }, h("span", { class: "bar", style: { "--width": (used(row) / most).toFixed(4) } })))))));
}
