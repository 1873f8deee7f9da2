// Whether the server is there: it counts how long nothing was heard of it, asks when that is a while, and gives up on
// what was asked before when it does not answer. It counts in beats of a page that is looked at and can draw: a page
// in the background, a machine that slept or is busy counts slowly, and blames nobody.

const BEAT = 1_000;
const ASK = 3; // beats in which nothing was heard: more often than that a page asks for its loops
const LOST = 8;
export const QUIET = 9; // beats in which a stream has said nothing: the server says something every 5 s

/** Told whenever the server wants a token, when it was reached or not, and when something was asked of it. */
export const server = new EventTarget();

let quiet = 0;
let asked = new AbortController();
let lost = new AbortController();

/** Something came from the server. */
export function heard() {
  quiet = 0;
}

/** Ends what was asked before the server was found to be silent: it is asked again. */
export function whileThere() {
  return lost.signal;
}

function beat() {
  if (document.hidden) return;
  quiet += 1;
  server.dispatchEvent(new Event("beat"));
  if (quiet % ASK === 0) ask();
  if (quiet !== LOST) return;
  server.dispatchEvent(new CustomEvent("reached", { detail: false }));
  lost.abort();
  lost = new AbortController();
}

async function ask() {
  asked.abort();
  asked = new AbortController();
  try {
    await fetch("/health", { cache: "no-store", signal: asked.signal });
    heard();
    server.dispatchEvent(new CustomEvent("reached", { detail: true }));
  } catch (error) {
    if (error.name !== "AbortError") server.dispatchEvent(new CustomEvent("reached", { detail: false }));
  }
}

export function watchServer() {
  setInterval(beat, BEAT);
}
