// Time as a line of a given length. Long stretches in which nothing happened (a person was waited for, the process was
// down) are drawn short, so that what happened around them can be seen.

const GAP = 0.02;

export class Axis {
  /** `spans` are pairs of seconds, from and to. */
  constructor(spans) {
    const busy = joined(spans);
    const worked = busy.reduce((sum, [from, to]) => sum + to - from, 0);
    const long = Math.max(1, worked * 0.15);
    this.pieces = [];
    for (let i = 0; i < busy.length; i++) {
      const [from, to] = busy[i];
      this.pieces.push({ from, to, gap: false });
      const next = busy[i + 1];
      if (next && next[0] > to) this.pieces.push({ from: to, to: next[0], gap: next[0] - to > long });
    }
    const gaps = this.pieces.filter((piece) => piece.gap).length;
    const drawn = this.pieces.filter((piece) => !piece.gap).reduce((sum, piece) => sum + piece.to - piece.from, 0) || 1;
    const room = 1 - Math.min(0.4, gaps * GAP);
    const gap = gaps ? (1 - room) / gaps : 0;
    let at = 0;
    for (const piece of this.pieces) {
      piece.at = at;
      piece.width = piece.gap ? gap : ((piece.to - piece.from) / drawn) * room;
      at += piece.width;
    }
  }

  /** Where a moment is on the line, from 0 to 1. */
  place(moment) {
    if (!this.pieces.length || moment <= this.pieces[0].from) return 0;
    let [low, high] = [0, this.pieces.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.pieces[middle].to < moment) low = middle + 1;
      else high = middle;
    }
    const piece = this.pieces[low];
    const part = piece.to > piece.from ? (moment - piece.from) / (piece.to - piece.from) : 1;
    return Math.min(1, piece.at + piece.width * Math.min(1, Math.max(0, part)));
  }

  get gaps() {
    return this.pieces.filter((piece) => piece.gap);
  }
}

function joined(spans) {
  const sorted = spans.map(([from, to]) => [from, Math.max(from, to)]).sort((a, b) => a[0] - b[0]);
  const busy = [];
  for (const [from, to] of sorted) {
    const last = busy.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  return busy;
}
