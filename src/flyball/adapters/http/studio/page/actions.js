// What a user says to a loop: signals, results, forks. Each is one request, and the journal says what came of it.

import { get, loop, post } from "./api.js";
import { h } from "./dom.js";
import { attempt, button, dialog, value } from "./parts.js";

const LABELS = { "go on": "Go on", resume: "Resume", retry: "Try again", pause: "Pause", feedback: "Feedback", cancel: "Cancel" };
const KINDS = { cancel: "danger", retry: "primary", resume: "primary", "go on": "primary" };

export function send(id, signal, done = "") {
  return attempt(() => post(loop(id, "signals"), signal), done);
}

export async function act(id, what) {
  if (what === "go on") return attempt(() => post(loop(id, "resume"), {}), "it goes on");
  if (what === "feedback") {
    const said = await dialog("What should it know?", [
      { name: "text", label: "Feedback", lines: 4, required: true, hint: "The model reads it with its next turn." },
    ], "Send");
    return said && send(id, { type: "feedback", text: said.text }, "it was told");
  }
  if (what === "cancel") {
    const said = await dialog("Cancel this loop?", [{ name: "text", label: "Reason, for the journal", hint: "optional" }], "Cancel it", "danger");
    return said && send(id, { type: "cancel", text: said.text });
  }
  return send(id, { type: what }, what === "pause" ? "it pauses after what it does now" : "");
}

/** What may be said to a loop: what the server says that fits, and to go on with one that nobody drives. */
export function actionsOf({ loop_id: id, stage, signals }) {
  const fits = stage === "interrupted" ? ["go on", ...signals] : signals;
  return Object.keys(LABELS).filter((what) => fits.includes(what)).map((what) => button(LABELS[what], () => act(id, what), KINDS[what] ?? "", { data: { act: what } }));
}

export async function approve(id, call) {
  return send(id, { type: "approve", call_id: call?.id }, "approved");
}

export async function reject(id, call) {
  const said = await dialog("Why not?", [
    { name: "text", label: "Reason", lines: 3, hint: "The model reads it, and may try something else." },
  ], "Reject", "danger");
  return said && send(id, { type: "reject", text: said.text, call_id: call?.id }, "rejected");
}

async function give(id, call) {
  const said = await dialog(`The result of ${call.name}`, [{ name: "content", label: "Result", lines: 5, required: true }], "Give it");
  if (!said) return undefined;
  const result = { tool_name: call.name, tool_call_id: call.id, content: said.content };
  return attempt(() => post(loop(id, "results"), { results: [result] }), "it was given");
}

/** A call that waits for somebody: what it would do, and what may be said. */
export function waitingCard({ call, wants, loop_id: id, answer }) {
  const asked = wants === "approval";
  return h("section", { class: "card waiting", role: "group", "aria-label": `${call.name} waits` },
    h("h2", null, asked ? "May it " : "It waits for the result of ", answer ? "answer so" : h("code", null, call.name), asked ? "?" : ""),
    value(call.args_json || "{}"),
    h("div", { class: "row" }, asked
      ? [button("Approve", () => approve(id, call), "primary", { data: { act: "approve" } }),
        button("Reject…", () => reject(id, call), "danger", { data: { act: "reject" } })]
      : button("Give the result…", () => give(id, call), "primary", { data: { act: "give" } })));
}

/** Fork a loop after a turn; goes to the two side by side. */
export async function fork(id, turn) {
  const models = await get("/api/models").then((found) => found.models, () => []);
  const said = await dialog(turn ? `Fork after turn ${turn}` : "Fork from the beginning", [
    { name: "prompt", label: "Prompt", lines: 3, hint: turn ? "What to say next; empty to go on as it was" : "Another prompt; empty for the same" },
    { name: "instructions", label: "Instructions", lines: 3, hint: "Others in the place of the agent's; empty for the same" },
    { name: "model", label: "Model", choices: [["", "the same"], ...models.map((one) => [one.name, one.name])] },
  ], "Fork");
  if (!said) return;
  const changed = Object.fromEntries(Object.entries(said).filter(([, text]) => text !== ""));
  const forked = await attempt(() => post(loop(id, "fork"), { turn, ...changed }));
  if (forked) location.hash = `#/compare/${encodeURIComponent(id)}/${encodeURIComponent(forked.loop_id)}`;
}
