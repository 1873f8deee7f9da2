// An answer that is under way: its parts, put together from the pieces that come.

const KIND = "stream";

export class Answer {
  constructor() {
    this.clear();
  }

  clear() {
    this.parts = [];
    this.finished = false;
  }

  /** Take a piece; true if it changed what is seen. */
  take(piece) {
    const at = piece.index;
    switch (piece[KIND]) {
      case "part_start": {
        const part = piece.part;
        this.parts[at] = { kind: part.kind, name: part.name ?? "", text: part.text ?? part.args_json ?? "" };
        return true;
      }
      case "text":
      case "thinking":
        this.parts[at] ??= { kind: piece[KIND], name: "", text: "" };
        this.parts[at].text += piece.text;
        return true;
      case "tool_call":
        this.parts[at] ??= { kind: "tool_call", name: "", text: "" };
        this.parts[at].text += piece.args_json ?? "";
        return true;
      case "restart":
        this.clear();
        return true;
      default:
        return false;
    }
  }

  get text() {
    return this.parts.filter((part) => part?.kind === "text").map((part) => part.text).join("");
  }
}
