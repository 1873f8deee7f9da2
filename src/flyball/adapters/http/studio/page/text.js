// Text from models, tools and journals, made fit to be looked at. It never becomes HTML: all of it ends in text
// nodes (dom.js). What would be invisible there, or would turn the order of what stands around it, is made visible.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

const NAMES = {
  0x200e: "LRM", 0x200f: "RLM", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
  0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0x200b: "ZWSP", 0xfeff: "BOM", 0x2028: "LS", 0x2029: "PS",
};

function seen(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  // Joiners are part of many a script, and of emoji.
  if (code === 0x200c || code === 0x200d) return character;
  return `\u27e6${NAMES[code] ?? code.toString(16).toUpperCase().padStart(4, "0")}\u27e7`;
}

export function harmless(text) {
  return String(text).replace(/\r\n?/g, "\n").replace(UNSEEN, seen);
}

export function cut(text, most) {
  const all = String(text);
  return all.length <= most ? all : `${all.slice(0, most - 1)}…`;
}

export function oneLine(text, most) {
  return cut(String(text).slice(0, most * 20).replace(/\s+/g, " ").trim(), most);
}

/** JSON as people read it; what is none stays as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  if (value.length > 1_000_000 || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}
