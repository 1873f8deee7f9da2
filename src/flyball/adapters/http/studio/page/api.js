// The server: what is asked of it, with the user's token where it wants one.

import { heard, server, whileThere } from "./pulse.js";

export { server };

const KEY = "flyball-token";

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

/** Use a token, with nothing in it that none has: a browser sends no request with such a header, and tells nobody why. */
export function useToken(given) {
  const text = given.replace(/[^!-~]/g, "");
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

/** A problem that the server told, or that there is none to tell: `status` is 0 where it was not reached. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? document.title ?? "something went wrong");
    this.status = status;
    this.code = document.code ?? "";
    this.document = document;
  }
}

export function headers(more = {}) {
  const known = token();
  return known ? { ...more, Authorization: `Bearer ${known}` } : more;
}

function reached(well) {
  server.dispatchEvent(new CustomEvent("reached", { detail: well }));
}

export async function problemOf(answer) {
  let document = {};
  try {
    document = await answer.json();
  } catch {
    document = { detail: `the server answered ${answer.status}` };
  }
  if (answer.status === 401) server.dispatchEvent(new Event("token"));
  if (answer.status === 403) server.dispatchEvent(new Event("forbidden"));
  return new Problem(answer.status, document);
}

const PATIENCE = 20_000;

async function ask(method, path, body, signal) {
  try {
    const ends = [AbortSignal.timeout(PATIENCE), signal, method === "GET" && whileThere()].filter(Boolean);
    const answer = await fetch(path, {
      method,
      signal: AbortSignal.any(ends),
      headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    heard();
    reached(true);
    if (!answer.ok) throw await problemOf(answer);
    return answer.status === 204 ? null : await answer.json();
  } catch (error) {
    if (signal?.aborted || error instanceof Problem) throw error;
    reached(false);
    throw new Problem(0, { detail: "the server is not reached" });
  }
}

export const get = (path, signal) => ask("GET", path, undefined, signal);

export async function post(path, body, signal) {
  const answer = await ask("POST", path, body, signal);
  server.dispatchEvent(new Event("acted"));
  return answer;
}

/** A name as it stands in a path. Browsers take dots alone for steps of it: the API takes a ~ before them. */
export function named(name) {
  return encodeURIComponent(/^~*\.\.?$/.test(name) ? `~${name}` : name);
}

/** The path of a loop, or of something of it. */
export function loop(id, what = "") {
  return `/api/loops/${named(id)}${what && `/${what}`}`;
}

/** A query of what is filled in. */
export function query(values) {
  const filled = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null && value !== false);
  const text = new URLSearchParams(filled).toString();
  return text && `?${text}`;
}

/** Do something that asks the server, again and again while that is not there. */
export async function patiently(work, signal) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 5_000)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Problem) || ![0, 429, 503].includes(error.status)) throw error;
    }
    await wait(pause, signal);
  }
}

export function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
