// Small things that several views show.

import { block, h } from "./dom.js";
import { kindOf, wordsOf } from "./stages.js";
import { harmless, pretty } from "./text.js";

export function badge(stage) {
  return h("span", { class: `badge ${kindOf(stage)}` }, wordsOf(stage));
}

function toast(text, kind = "") {
  const one = h("div", { class: `toast ${kind}` }, text);
  document.getElementById("toasts").append(one);
  setTimeout(() => one.remove(), kind === "bad" ? 9000 : 4000);
}

/** Do something that the user asked for, and tell them if it did not work. */
export async function attempt(work, done = "") {
  try {
    const result = await work();
    if (done) toast(done, "good");
    return result;
  } catch (error) {
    if (error.name !== "AbortError") toast(error.message, "bad");
    return undefined;
  }
}

export function button(label, act, kind = "", more = {}) {
  const one = h("button", { type: "button", class: kind, ...more }, label);
  one.addEventListener("click", async () => {
    one.disabled = true;
    try {
      await act();
    } finally {
      one.disabled = false;
    }
  });
  return one;
}

export function copyable(text, shown = text) {
  return h("button", {
    type: "button",
    class: "id",
    title: "Copy",
    onclick: () => navigator.clipboard?.writeText(harmless(text)).then(() => toast("copied"), () => undefined),
  }, shown);
}

/** Arguments, results: JSON as people read it. */
export function value(given) {
  return block(pretty(given), "json");
}

export function problem(error) {
  return h("section", { class: "card bad" }, h("h2", null, error.code || "It did not work"), h("p", null, error.message));
}

/** A dialog with a form; gives what was filled in, or null. */
export function dialog(title, fields, action, kind = "primary") {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => [field, input(field)]);
    const form = h("form", null,
      h("h2", null, title),
      inputs.map(([field, element]) => h("label", null, h("span", null, field.label), element)),
      h("div", { class: "row end" },
        h("button", { type: "button", class: "quiet", onclick: () => box.close() }, "Never mind"),
        h("button", { type: "submit", class: kind }, action)));
    const box = h("dialog", { "aria-label": title }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      resolve(Object.fromEntries(inputs.map(([field, element]) => [field.name, element.value])));
      box.close();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    box.addEventListener("close", () => {
      box.remove();
      resolve(null);
    });
    document.body.append(box);
    box.showModal();
  });
}

function input(field) {
  if (field.choices) {
    return h("select", { name: field.name },
      field.choices.map(([value, label]) => h("option", { value, selected: value === field.value }, label)));
  }
  if (field.lines) {
    const area = h("textarea", { name: field.name, rows: field.lines, placeholder: field.hint, required: field.required });
    area.value = field.value ?? "";
    return area;
  }
  const line = h("input", {
    name: field.name, type: field.secret ? "password" : "text", placeholder: field.hint, required: field.required, autocomplete: "off",
  });
  line.value = field.value ?? "";
  return line;
}
