// Keys, for those who keep their hands there.

import { fill, h } from "./dom.js";

const KEYS = [
  ["/", "search"],
  ["j  k", "the next loop, the one before"],
  ["a", "approve what waits"],
  ["r", "reject it, with a reason"],
  ["p", "pause, or resume"],
  ["f", "fork"],
  ["c", "chat"],
  ["t", "timeline, or journal"],
  ["d", "dark, light"],
  ["?", "these keys"],
  ["Esc", "close, go back"],
];

export function listen(handlers) {
  document.addEventListener("keydown", (event) => {
    const at = event.target;
    const writing = at.matches?.("input, textarea, select") || at.isContentEditable;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && writing) at.blur();
    else if (!writing && handlers[event.key]) {
      event.preventDefault();
      handlers[event.key]();
    }
  });
}

export function help() {
  const box = h("dialog", { "aria-label": "Keys" });
  fill(box, h("h2", null, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", null, key.split("  ").map((one) => h("kbd", null, one))), h("dd", null, what)])),
    h("div", { class: "row end" }, h("button", { type: "button", onclick: () => box.close() }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

/** Press the button of the page that does something, if there is one. */
export function press(...names) {
  for (const name of names) {
    const one = document.querySelector(`#main [data-act="${name}"]:not(:disabled)`);
    if (one) return one.click();
  }
  return undefined;
}
