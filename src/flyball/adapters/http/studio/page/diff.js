// What is the same in two sequences, and what is not: Myers' algorithm, which looks no further than it must.

const MOST = 2_000; // beyond so many changes two things are simply two

/** Gives [{kind: "same" | "gone" | "new", items}], in order. */
export function diff(before, after, equal = Object.is) {
  let head = 0;
  while (head < before.length && head < after.length && equal(before[head], after[head])) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && equal(before.at(-1 - tail), after.at(-1 - tail))) tail++;
  const parts = [];
  push(parts, "same", after.slice(0, head));
  const [old, now] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  for (const [kind, item] of middle(old, now, equal)) push(parts, kind, [item]);
  push(parts, "same", after.slice(after.length - tail));
  return parts;
}

function push(parts, kind, items) {
  if (!items.length) return;
  if (parts.at(-1)?.kind === kind) parts.at(-1).items.push(...items);
  else parts.push({ kind, items: [...items] });
}

function middle(old, now, equal) {
  const [n, m] = [old.length, now.length];
  const apart = [...old.map((item) => ["gone", item]), ...now.map((item) => ["new", item])];
  if (!n || !m) return apart;
  const most = Math.min(n + m, MOST);
  const trace = [];
  let reach = new Map([[1, 0]]);
  for (let d = 0; d <= most; d++) {
    trace.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1)) ? reach.get(k + 1) ?? 0 : (reach.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < n && y < m && equal(old[x], now[y])) [x, y] = [x + 1, y + 1];
      reach.set(k, x);
      if (x >= n && y >= m) return walked(trace, old, now, d);
    }
  }
  return apart;
}

function walked(trace, old, now, depth) {
  const steps = [];
  let [x, y] = [old.length, now.length];
  for (let d = depth; d > 0; d--) {
    const reach = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1;
    const from = reach.get(before) ?? 0;
    while (x > from && y > from - before) {
      [x, y] = [x - 1, y - 1];
      steps.push(["same", now[y]]);
    }
    [x, y] = [from, from - before];
    steps.push(down ? ["new", now[y]] : ["gone", old[x]]);
  }
  while (x > 0 && y > 0) {
    [x, y] = [x - 1, y - 1];
    steps.push(["same", now[y]]);
  }
  return steps.reverse();
}

/** A text's words, with the space between them as items of their own. */
export function words(text) {
  return String(text).slice(0, 50_000).match(/\s+|[^\s]+/g) ?? [];
}
