// The page: what stands at the top, which view is shown, and whether the server is there.

import { get, server, useToken } from "./api.js";
import { newSession, showChat } from "./chat.js";
import { showCompare } from "./compare.js";
import { fill, h, say } from "./dom.js";
import { help, listen, press } from "./keys.js";
import { List } from "./list.js";
import { showLoop } from "./loop.js";
import { attempt, button, dialog, problem } from "./parts.js";
import { showUsage } from "./usage.js";

const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
const state = h("span", { class: "connection", role: "status" });
const list = new List(document.getElementById("side"));
let end = () => undefined;

function theme(step = 0) {
  const at = THEMES.indexOf(localStorage.getItem("flyball-theme") ?? "auto");
  const name = THEMES[(Math.max(0, at) + step) % THEMES.length];
  localStorage.setItem("flyball-theme", name);
  document.documentElement.dataset.theme = name;
  return name;
}

async function chat() {
  const { agents } = (await attempt(() => get("/api/agents"))) ?? { agents: [] };
  if (agents.length) location.hash = `#/chat/${encodeURIComponent(agents[0].name)}/${newSession()}`;
}

function top() {
  const themed = button("◐", () => themed.setAttribute("title", `Theme: ${theme(1)}`), "quiet round", { "aria-label": "Dark or light", title: "Dark or light" });
  fill(document.getElementById("top"),
    h("a", { class: "brand", href: "#/" }, h("span", { class: "mark", "aria-hidden": "true" }), "flyball"),
    h("nav", null, h("a", { href: "#/" }, "Loops"), button("Chat", chat, "link"), h("a", { href: "#/usage" }, "Usage")),
    state, themed, button("?", help, "quiet round", { "aria-label": "Keys", title: "Keys" }));
}

const views = {
  "": () => {
    fill(main, h("div", { class: "welcome" }, h("span", { class: "mark large", "aria-hidden": "true" }), h("h1", null, "Pick a loop"),
      h("p", null, "or ", button("talk with an agent", chat, "link"), ". Press ", h("kbd", null, "?"), " for keys.")));
    return () => undefined;
  },
  loops: (id) => {
    const shown = showLoop(main, id);
    list.mark(id);
    return shown.end;
  },
  compare: (one, other) => showCompare(main, one, other),
  chat: (agent, session) => showChat(main, agent, session ?? newSession()),
  usage: () => showUsage(main),
};

function route() {
  end();
  const [name, ...values] = location.hash.replace(/^#\/?/, "").split("/");
  document.body.dataset.view = name || "loops-only";
  list.mark("");
  for (const link of document.querySelectorAll("#top nav a")) {
    const here = link.getAttribute("href") === `#/${name === "loops" || name === "compare" ? "" : name}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    end = (views[name] ?? views[""])(...values.map(decodeURIComponent));
  } catch (error) {
    fill(main, problem(error));
    end = () => undefined;
  }
  window.scrollTo(0, 0);
}

let asking = false;
server.addEventListener("token", async () => {
  if (asking) return;
  asking = true;
  const said = await dialog("This server asks for a token", [
    { name: "token", label: "Token", secret: true, required: true, hint: "fly_…" },
  ], "Come in");
  asking = false;
  if (!said) return;
  useToken(said.token.trim());
  list.again();
  route();
});

function connected(well, what = "") {
  state.className = `connection ${well ? "well" : "lost"}`;
  say(state, well ? "" : what);
}
server.addEventListener("reached", (event) => connected(event.detail, "connection lost: trying again"));
server.addEventListener("stream", (event) => connected(event.detail, "connection lost: trying again"));

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
  d: () => theme(1),
  t: () => document.querySelector('#main [role="tab"][aria-selected="false"]')?.click(),
  Escape: () => (location.hash = "#/"),
});
addEventListener("hashchange", route);
route();
