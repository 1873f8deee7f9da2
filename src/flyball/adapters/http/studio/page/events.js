// Following a loop: server-sent events over fetch (EventSource sends no token), from where one was, for as long as it
// takes. A connection that is lost is made again, with the id of the last event: nothing is lost or comes twice.

import { Problem, headers, loop, problemOf, server, wait } from "./api.js";
import { QUIET, heard } from "./pulse.js";

const SHORTEST = 500;
const LONGEST = 8_000;
const MOST = 2; // so of those six, the others of the page have some; and a second window has
const INSTEAD = 2_000;
const HIDDEN = 3_000; // a browser has six connections for a server, for all of its tabs: who does not look needs none

/** Those who have a connection, the one that came last at the end: who comes when there are too many takes the oldest's. */
const connected = [];

/**
 * Follow a loop until it is over, or the signal says so. `told(name, data)` is called with each event; a loop that is
 * over when one comes tells nothing. Who has no connection is told "look" now and then, and says whether it is over.
 */
export async function follow(id, { after = "", told, signal }) {
  let last = after;
  let pause = SHORTEST;
  let displaced = false;
  while (!signal.aborted) {
    await looked(signal);
    if (signal.aborted) return;
    if (displaced && connected.length >= MOST) {
      if (told("look", null)) return;
      await wait(INSTEAD, signal).catch(() => undefined);
      continue;
    }
    displaced = false;
    const mine = new AbortController();
    const leave = () => mine.abort();
    signal.addEventListener("abort", leave, { once: true });
    const place = { leave: () => ((displaced = true), leave()) };
    if (connected.length >= MOST) connected.shift().leave();
    connected.push(place);
    try {
      const over = await once(id, last, (name, data, number) => {
        last = number || last;
        pause = SHORTEST;
        told(name, data);
      }, mine.signal);
      if (over) return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status && error.status !== 503 && error.status !== 429) throw error;
    } finally {
      signal.removeEventListener("abort", leave);
      if (connected.includes(place)) connected.splice(connected.indexOf(place), 1);
    }
    if (document.hidden || displaced) continue;
    server.dispatchEvent(new CustomEvent("stream", { detail: false }));
    await wait(pause * (0.75 + Math.random() / 2), signal).catch(() => undefined);
    pause = Math.min(pause * 2, LONGEST);
  }
}

/** Wait until somebody looks at the page. */
function looked(signal) {
  if (!document.hidden) return undefined;
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done, { once: true });
  });
}

async function once(id, last, told, signal) {
  const quiet = new AbortController();
  const stop = () => quiet.abort();
  signal.addEventListener("abort", stop, { once: true });
  let beats = 0;
  const beat = () => ++beats >= QUIET && stop();
  server.addEventListener("beat", beat);
  let away;
  const turned = () => {
    clearTimeout(away);
    if (document.hidden) away = setTimeout(stop, HIDDEN);
  };
  document.addEventListener("visibilitychange", turned);
  try {
    const answer = await fetch(loop(id, "stream"), {
      headers: headers({ Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) }),
      signal: quiet.signal,
    });
    if (answer.status === 204) return true;
    if (!answer.ok) throw await problemOf(answer);
    server.dispatchEvent(new CustomEvent("stream", { detail: true }));
    const parser = new Parser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return false;
      beats = 0;
      heard();
      for (const { name, data, number } of parser.take(value)) {
        told(name, JSON.parse(data), number);
        if (name === "over" || name === "problem") return true;
      }
    }
  } finally {
    server.removeEventListener("beat", beat);
    clearTimeout(away);
    document.removeEventListener("visibilitychange", turned);
    signal.removeEventListener("abort", stop);
    quiet.abort();
  }
}

/** Reads server-sent events from text that comes in any pieces. */
export class Parser {
  #parts = [];
  #event = { name: "message", data: [], number: "" };

  * take(text) {
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      this.#parts.push(text.slice(from, at));
      from = at + 1;
      const line = this.#parts.join("");
      this.#parts = [];
      const event = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) yield event;
    }
    if (from < text.length) this.#parts.push(text.slice(from));
  }

  #line(line) {
    if (line === "") {
      const { name, data, number } = this.#event;
      this.#event = { name: "message", data: [], number: "" };
      return data.length ? { name, data: data.join("\n"), number } : null;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event.name = value;
    else if (field === "data") this.#event.data.push(value);
    else if (field === "id") this.#event.number = value;
    return null;
  }
}
