// Where a loop may stand, in words.

const KINDS = {
  exploring: "running", planning: "running", architecting: "running", executing: "running", reviewing: "running",
  running: "running", awaiting_approval: "waiting", deferred: "waiting", paused: "paused", interrupted: "interrupted",
  complete: "complete", failed: "failed", cancelled: "cancelled", truncated: "failed",
};
const WORDS = { awaiting_approval: "needs approval", deferred: "waits for a result" };

export function kindOf(stage) {
  return KINDS[stage] ?? (stage ? "running" : "failed");
}

export function wordsOf(stage) {
  return WORDS[stage] ?? (stage ? stage.replaceAll("_", " ") : "unreadable");
}

export function isOver(stage) {
  return ["complete", "failed", "cancelled"].includes(kindOf(stage));
}
