// One turn: exactly what was sent and what came back; and what is new in it beside the turn before.

import { get, loop } from "./api.js";
import { diff, words } from "./diff.js";
import { block, fill, h } from "./dom.js";
import { seconds, several, tokens } from "./format.js";
import { value } from "./parts.js";

/** The explanation of a turn, and of the one before it if there is one. */
async function both(id, turn) {
  const [now, before] = await Promise.all([
    get(`${loop(id, "why")}?turn=${turn}`),
    turn > 1 ? get(`${loop(id, "why")}?turn=${turn - 1}`).catch(() => null) : null,
  ]);
  return [now.turns.at(-1), before?.turns.at(-1) ?? null];
}

export async function showTurn(id, number, place, actions) {
  fill(place, h("p", { class: "hint" }, "Looking…"));
  try {
    const [turn, before] = await both(id, number);
    fill(place, actions, received(turn), sent(turn, before), decided(turn));
  } catch (error) {
    fill(place, h("p", { class: "hint bad" }, error.message));
  }
}

export async function showCall(id, step, place) {
  fill(place, h("p", { class: "hint" }, "Looking…"));
  try {
    const [turn] = await both(id, step.turn);
    const call = turn.tools.find((one) => one.call_id === step.call_id);
    const asked = turn.answer?.parts.find((part) => part.kind === "tool_call" && part.id === step.call_id);
    fill(place,
      h("h3", null, "Arguments"), value(call?.arguments ?? asked?.args_json ?? ""),
      call && h("h3", null, call.error ? "Error" : "Result"), call && value(call.error ?? call.result ?? ""));
  } catch (error) {
    fill(place, h("p", { class: "hint bad" }, error.message));
  }
}

function received(turn) {
  const about = [turn.answer?.model, seconds(turn.duration), tokens(turn.answer?.usage)].filter(Boolean).join(" · ");
  const earlier = turn.earlier?.length ? `after ${several(turn.earlier.length, "attempt")} that failed` : "";
  return h("section", { class: "received" },
    h("h3", null, "Received", h("small", null, about, " ", earlier)),
    turn.answer && message(turn.answer, "new"),
    turn.partial && message(turn.partial, "gone"),
    turn.error && h("p", { class: "bad" }, `${turn.error.code ?? ""} ${turn.error.message ?? turn.error}`),
    !turn.answer && !turn.partial && !turn.error && h("p", { class: "hint" }, turn.called ? "Nothing yet." : "No model was called."));
}

function sent(turn, before) {
  if (!turn.sent) return null;
  const old = before?.sent;
  const parts = diff(old?.messages ?? [], turn.sent.messages ?? [], (a, b) => JSON.stringify(a) === JSON.stringify(b));
  const about = old ? `beside turn ${before.number}` : "";
  return h("section", { class: "sent" },
    h("h3", null, "Sent", h("small", null, several(turn.sent.messages?.length ?? 0, "message"), " ", about)),
    parts.map((part) => (old && part.kind === "same" ? folded(part.items) : part.items.map((one) => message(one, old ? part.kind : "same")))),
    beside("Tools", old?.tools, turn.sent.tools, (one) => one.name),
    beside("Settings", old?.settings, turn.sent.settings),
    turn.sent.output && h("details", null, h("summary", null, "Form of the answer"), value(turn.sent.output)));
}

function folded(messages) {
  return h("details", { class: "same" }, h("summary", null, `${several(messages.length, "message")} as before`),
    messages.map((one) => message(one, "same")));
}

function beside(title, old, now, name) {
  if (!now || (Array.isArray(now) ? !now.length : !Object.keys(now).length)) return null;
  const changed = old !== undefined && JSON.stringify(old) !== JSON.stringify(now);
  const names = Array.isArray(now) ? now.map(name).join(", ") : Object.entries(now).map(([key, one]) => `${key} ${JSON.stringify(one)}`).join(", ");
  return h("details", { class: changed ? "changed" : "" },
    h("summary", null, `${title}${changed ? " (changed)" : ""}: `, h("span", { class: "hint" }, names)), value(now));
}

export function message(one, kind) {
  return h("article", { class: `message ${one.role} ${kind}` }, h("header", null, one.role), one.parts.map(part));
}

function part(one) {
  switch (one.kind) {
    case "text":
      return block(one.text);
    case "thinking":
      return h("details", { class: "thinking" }, h("summary", null, "Thinking"), block(one.text));
    case "tool_call":
      return h("div", { class: "call" }, h("b", null, "▸ ", one.name), value(one.args_json || "{}"));
    case "tool_return":
      return h("div", { class: "return" }, h("b", null, "◂ ", one.name), value(one.content));
    default:
      return h("div", { class: "other" }, h("b", null, one.kind), value(shortened(one)));
  }
}

/** A part with data in it (a picture): what is not for reading is only counted. */
function shortened(one) {
  return Object.fromEntries(Object.entries(one).map(([key, value]) => [
    key, typeof value === "string" && value.length > 2000 ? `${value.length.toLocaleString("en")} characters` : value,
  ]));
}

function decided(turn) {
  if (!turn.decided?.length) return null;
  return h("section", null, h("h3", null, "Decided"), h("ul", { class: "plain" }, turn.decided.map((line) => h("li", null, line))));
}

/** Two texts as one, with what is gone and what is new marked. */
export function textDiff(before, after) {
  const parts = diff(words(before), words(after));
  return h("pre", { class: "text" }, parts.map((one) =>
    one.kind === "same" ? one.items.join("") : h(one.kind === "new" ? "ins" : "del", null, one.items.join(""))));
}
