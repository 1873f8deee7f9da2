// The page: what stands at the top, which view is shown, and whether the server is there.

import { get, server, token, useToken } from "./api.js";
import { newSession, showChat } from "./chat.js";
import { showCompare } from "./compare.js";
import { fill, h, say } from "./dom.js";
import { help, listen, press } from "./keys.js";
import { List } from "./list.js";
import { showLoop } from "./loop.js";
import { attempt, button, dialog, problem } from "./parts.js";
import { watchServer } from "./pulse.js";
import { unready, watchReady } from "./ready.js";
import { harmless } from "./text.js";
import { showUsage } from "./usage.js";

const main = document.getElementById("main");
const state = h("span", { class: "connection", role: "status" });
const entrance = button("Token…", () => askForToken(), "quiet", { hidden: true });
const list = new List(document.getElementById("side"));
let end = () => undefined;

/** The theme that the user chose, or the other one now; where nothing may be kept, it lasts as long as the page. */
function theme(change = false) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const root = document.documentElement.dataset;
  try {
    root.theme ??= localStorage.getItem("flyball-theme") ?? "auto";
    if (change) localStorage.setItem("flyball-theme", (root.theme = (root.theme === "auto" ? dark : root.theme === "dark") ? "light" : "dark"));
  } catch {
    root.theme = change && root.theme !== "dark" ? "dark" : "light";
  }
}

async function chat() {
  const { agents } = (await attempt(() => get("/api/agents"))) ?? { agents: [] };
  if (agents.length) location.hash = `#/chat/${encodeURIComponent(agents[0].name)}/${newSession()}`;
}

function top() {
  const themed = button("◐", () => theme(true), "quiet round", { "aria-label": "Dark or light", title: "Dark or light" });
  fill(document.getElementById("top"),
    h("a", { class: "brand", href: "#/" }, h("span", { class: "mark", "aria-hidden": "true" }), "flyball"),
    h("nav", null, h("a", { href: "#/" }, "Loops"), button("Chat", chat, "link"), h("a", { href: "#/usage" }, "Usage")),
    state, entrance, themed, button("?", help, "quiet round", { "aria-label": "Keys", title: "Keys" }));
}

const views = {
  "": () => {
    fill(main, h("div", { class: "welcome" }, h("span", { class: "mark large", "aria-hidden": "true" }), h("h1", null, "Pick a loop"),
      h("p", null, "or ", button("talk with an agent", chat, "link"), ". Press ", h("kbd", null, "?"), " for keys.")));
    return () => undefined;
  },
  loops: (id) => {
    if (!id) return views[""]();
    const shown = showLoop(main, id);
    list.mark(id);
    return shown.end;
  },
  compare: (one, other) => showCompare(main, one, other),
  chat: (agent, session) => {
    if (agent && session) return showChat(main, agent, session);
    if (agent) location.replace(`#/chat/${encodeURIComponent(agent)}/${newSession()}`);
    else chat();
    return () => undefined;
  },
  usage: () => showUsage(main),
};

function route() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const before = end;
  end = () => undefined;
  before();
  const [name, ...values] = location.hash.replace(/^#\/?/, "").split("/");
  document.body.dataset.view = name || "loops-only";
  list.mark("");
  told.stream = true;
  for (const link of document.querySelectorAll("#top nav a")) {
    const here = link.getAttribute("href") === `#/${name === "loops" || name === "compare" ? "" : name}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const known = values.map(decodeURIComponent);
    document.title = harmless([known[0], name, "flyball"].filter(Boolean).join(" · ").slice(0, 100));
    end = (Object.hasOwn(views, name) ? views[name] : views[""])(...known);
  } catch (error) {
    fill(main, problem(error));
  }
  window.scrollTo(0, 0);
}

let asking = false;
let declined = false;

async function askForToken() {
  if (asking) return;
  asking = true;
  const said = await dialog(token() ? "This token is not known here, or no longer" : "This server asks for a token", [
    { name: "token", label: "Token", secret: true, required: true, hint: "fly_…" },
  ], "Come in");
  asking = false;
  declined = !said;
  if (!said) return;
  useToken(said.token);
  list.again();
  const draft = main.querySelector(".composer textarea")?.value;
  route();
  const box = main.querySelector(".composer textarea");
  if (box && draft) box.value = draft;
}

server.addEventListener("token", () => {
  entrance.hidden = false;
  if (!declined) askForToken();
});
server.addEventListener("forbidden", () => (entrance.hidden = false));

/** Whether the server was reached, and whether what is followed is: either may be lost by itself. */
const told = { server: true, stream: true };

function connected() {
  const well = told.server && told.stream;
  state.className = `connection ${!well ? "lost" : unready() ? "unready" : "well"}`;
  say(state, well ? unready() : "connection lost: trying again");
}
server.addEventListener("reached", (event) => {
  if (event.detail && !told.server) watchReady();
  told.server = event.detail;
  connected();
});
server.addEventListener("ready", connected);
server.addEventListener("stream", (event) => ((told.stream = event.detail), connected()));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

theme();
top();
listen({
  "/": () => list.search.focus(),
  "?": help,
  j: () => list.beside(1),
  k: () => list.beside(-1),
  a: () => press("approve"),
  r: () => press("reject"),
  p: () => press("pause", "resume"),
  f: () => press("fork"),
  c: chat,
  d: () => theme(true),
  t: () => document.querySelector('#main [role="tab"][aria-selected="false"]')?.click(),
  Escape: () => (location.hash = "#/"),
});
addEventListener("hashchange", route);
watchServer();
watchReady();
route();
