// Whether the server can do its work: its model may be on its way to it. It is asked until it can.

import { server, wait } from "./api.js";

const EVERY = 1_000;

let reason = "";
let asking = false;

/** Why it cannot yet; empty where it can. */
export const unready = () => reason;

export async function watchReady() {
  if (asking) return;
  asking = true;
  for (let ready = false; !ready; ) {
    try {
      const answer = await fetch("/ready", { cache: "no-store", signal: AbortSignal.timeout(5 * EVERY) });
      const said = await answer.json();
      ready = answer.ok;
      tell(ready ? "" : said.reason);
    } catch {
      tell(""); // it is not reached, which is told elsewhere
    }
    if (!ready) await wait(EVERY);
  }
  asking = false;
}

function tell(said) {
  if (said === reason) return;
  reason = said;
  server.dispatchEvent(new Event("ready"));
}
