// Run in the page: server-sent events are read however they are cut, and differences add up to both sides.
async () => {
  const { Parser } = await import("/studio/events.js");
  const { diff, words } = await import("/studio/diff.js");
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const stream = ": hello\n\nid: 1\nevent: event\ndata: {\"a\":1}\n\n"
    + "id: 2\r\nevent: piece\r\ndata: x\r\ndata: y\r\n\r\ndata: z\n\n";
  const whole = JSON.stringify([...new Parser().take(stream)]);
  const items = () => Array.from({ length: random(30) }, () => random(4));
  let wrong = 0;
  for (let round = 0; round < 300; round++) {
    const parser = new Parser();
    const got = [];
    for (let at = 0, to; at < stream.length; at = to) {
      to = at + 1 + random(9);
      got.push(...parser.take(stream.slice(at, to)));
    }
    if (JSON.stringify(got) !== whole) wrong++;
    const [one, two] = [items(), items()];
    const parts = diff(one, two);
    const side = (kind) => parts.filter((part) => part.kind === "same" || part.kind === kind).flatMap((part) => part.items);
    if (JSON.stringify(side("gone")) !== JSON.stringify(one)) wrong++;
    if (JSON.stringify(side("new")) !== JSON.stringify(two)) wrong++;
  }
  return [wrong, JSON.parse(whole).length, words("a b").length];
}
