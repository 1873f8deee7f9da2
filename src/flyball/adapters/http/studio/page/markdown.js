// Answers as models write them: with a little Markdown, drawn as elements. Nothing of it is a link, a picture or HTML:
// what is not known here stays as it was written.

import { block, h } from "./dom.js";

const MOST = 50_000;
const INLINE = /(`{1,4})([^`](?:.*?[^`])?)\1(?!`)|\*\*(?=\S)(.+?\S)\*\*|(?<![\w*])\*(?=[^\s*])(.*?[^\s*])\*(?![\w*])/gs;

function inline(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    parts.push(text.slice(from, match.index));
    const [whole, , code, strong, soft] = match;
    parts.push(code !== undefined ? h("code", null, code) : strong !== undefined ? h("strong", null, inline(strong)) : h("em", null, inline(soft)));
    from = match.index + whole.length;
  }
  parts.push(text.slice(from));
  return parts;
}

const FENCE = /^ {0,3}(`{3,9}|~{3,9})[ \t]{0,9}[\w+.-]{0,40}[ \t]{0,9}$/;
const HEAD = /^(#{1,6})\s+(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
const RULE = /^\s{0,3}(?:[-*_]\s*){3,}$/;
const ROW = /^\s*\|.*\|\s*$/;

/** Text as elements; what is very long stays plain. */
export function markdown(text) {
  if (text.length > MOST) return block(text);
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const found = h("div", { class: "prose" });
  let at = 0;
  const plain = [];
  const flush = () => {
    if (plain.length) found.append(h("p", null, inline(plain.splice(0).join("\n"))));
  };
  const run = (matches) => {
    const taken = [];
    while (at < lines.length && matches(lines[at])) taken.push(lines[at++]);
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = line.match(FENCE);
    if (fence) {
      flush();
      at++;
      const code = run((one) => !(one.trim().startsWith(fence[1]) && one.trim().replaceAll(fence[1][0], "") === ""));
      at++;
      found.append(h("pre", { class: "json", tabindex: "0" }, code.join("\n")));
    } else if (HEAD.test(line)) {
      flush();
      const [, marks, words] = line.match(HEAD);
      found.append(h(`h${Math.min(6, marks.length + 2)}`, null, inline(words)));
      at++;
    } else if (RULE.test(line)) {
      flush();
      found.append(h("hr", null));
      at++;
    } else if (ITEM.test(line)) {
      flush();
      found.append(list(run((one) => ITEM.test(one) || (/^\s+\S/.test(one) && !FENCE.test(one)))));
    } else if (QUOTE.test(line)) {
      flush();
      found.append(h("blockquote", null, inline(run((one) => QUOTE.test(one)).map((one) => one.match(QUOTE)[1]).join("\n"))));
    } else if (ROW.test(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[at + 1] ?? "")) {
      flush();
      found.append(table(run((one) => ROW.test(one))));
    } else {
      if (line.trim()) plain.push(line);
      else flush();
      at++;
    }
  }
  flush();
  return found;
}

function list(lines) {
  const items = [];
  for (const line of lines) {
    const item = line.match(ITEM);
    if (item) items.push({ depth: Math.min(4, Math.floor(item[1].length / 2)), mark: item[2], text: item[3] });
    else items.at(-1).text += `\n${line.trim()}`;
  }
  const ordered = /\d/.test(items[0].mark);
  return h(ordered ? "ol" : "ul", null, items.map((one) =>
    h("li", { style: { "--depth": String(one.depth) } }, h("span", { class: "mark-of" }, /\d/.test(one.mark) ? one.mark : "•"), h("span", null, inline(one.text)))));
}

function table(lines) {
  const cells = (line) => line.trim().slice(1, -1).split("|").map((one) => one.trim());
  const [head, , ...rows] = lines;
  return h("table", null, h("thead", null, h("tr", null, cells(head).map((one) => h("th", { scope: "col" }, inline(one))))),
    h("tbody", null, rows.map((row) => h("tr", null, cells(row).map((one) => h("td", null, inline(one)))))));
}
