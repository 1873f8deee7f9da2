// Elements from plain values. The only way by which anything gets onto the page: text goes into text nodes, made
// harmless, and attributes are named here one by one. There is no markup in strings anywhere.

import { harmless } from "./text.js";

const ATTRIBUTES = new Set([
  "href", "type", "name", "value", "placeholder", "title", "role", "for", "id", "rows", "min", "max", "open", "tabindex",
  "autocomplete", "spellcheck", "maxlength", "rel", "colspan", "scope", "enterkeyhint", "list", "selected", "checked",
]);

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "class") element.setAttribute("class", value);
  else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name.startsWith("aria-")) element.setAttribute(name, harmless(value));
  else if (name === "data") Object.assign(element.dataset, value);
  else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
  else if (name === "disabled" || name === "hidden" || name === "required") element[name] = Boolean(value);
  else if (name === "href") {
    // Only places on this server: no scheme can come in with a name.
    const to = String(value);
    if (!to.startsWith("#") && !to.startsWith("/")) throw new Error(`a link goes nowhere else: ${to}`);
    element.setAttribute("href", to);
  } else if (ATTRIBUTES.has(name)) element.setAttribute(name, value === true ? "" : harmless(value));
  else throw new Error(`there is no attribute ${name} here`);
}

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(harmless(child)));
  }
}

/** An element: h("button", {class: "primary", onclick: go}, "Go on"). */
export function h(tag, attributes, ...children) {
  return make(document.createElement(tag), attributes, children);
}

/** Put something else in an element's place inside. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Change text only where it is another: what a user has selected stays selected. */
export function say(element, text) {
  const clean = harmless(text);
  if (element.textContent !== clean) element.textContent = clean;
}

const FIRST = 20_000;
const MORE = 200_000;

/** A block of text, however long it is: so much of it, and more for who asks. */
export function block(text, kind = "text") {
  const all = String(text ?? "");
  const body = h("pre", { class: kind, tabindex: "0" }, all.slice(0, FIRST));
  if (all.length <= FIRST) return body;
  let shown = FIRST;
  const more = h("button", { class: "quiet", type: "button" });
  const label = () => say(more, `${(all.length - shown).toLocaleString("en")} characters more`);
  more.addEventListener("click", () => {
    body.append(document.createTextNode(harmless(all.slice(shown, shown + MORE))));
    shown = Math.min(shown + MORE, all.length);
    if (shown === all.length) more.remove();
    else label();
  });
  label();
  return h("div", { class: "long" }, body, more);
}
