// Starts GraphiQL with the project's own documents as tabs, and says what to do when it cannot ask.
/* global GraphiQL, React, ReactDOM */

import * as documents from "/graphql/documents.js";
import {RESPONSE, chinese, headers, keepToken, post, takeToken, token, translate} from "/graphql/access.js";

const EVENTS = "text/event-stream";
const START = chinese ? "# 在此输入查询；按 Ctrl+Enter 运行。左上角打开文档。\n" : "# Type a query here; Ctrl+Enter runs it. The docs open at the top left.\n";
const at = (id) => document.getElementById(id);

// Each state: what is wrong, what to do (`…` in backticks is a command), what the button says, and whether a token is asked for.
const STATES = {
  missing: {
    en: ["The service wants the owner's token.", "Run `graphsvc ui` and open the address it prints, or paste what the file `token` in the home holds.", "Go on"],
    zh: ["服务需要所有者的令牌。", "运行 `graphsvc ui` 并打开它给出的地址，或者粘贴主目录中 `token` 文件的内容。", "继续"],
    asks: true,
  },
  wrong: {
    en: ["The service does not accept this token.", "It belongs to another home or an older service. Run `graphsvc ui` and open the address it prints, or paste the token.", "Go on"],
    zh: ["服务不接受此令牌。", "它属于另一个主目录或旧的服务。运行 `graphsvc ui` 并打开它给出的地址，或者粘贴令牌。", "继续"],
    asks: true,
  },
  gone: {
    en: ["The service does not answer.", "Start it with `graphsvc serve`. What you typed stays here.", "Try again"],
    zh: ["服务没有应答。", "用 `graphsvc serve` 启动它。您输入的内容会保留。", "重试"],
    asks: false,
  },
  broken: {
    en: ["GraphiQL did not load.", "Load the page again; if that does not help, install graphsvc again.", "Load again"],
    zh: ["GraphiQL 没有加载成功。", "请重新加载页面；如果仍然失败，请重新安装 graphsvc。", "重新加载"],
    asks: false,
  },
};

let state = "";
let root = null;

function show(name) {
  state = name;
  at("access").hidden = name === "";
  if (name === "") return;
  const {asks, ...said} = STATES[name];
  const [what, how, again] = chinese ? said.zh : said.en;
  at("what").textContent = what;
  at("how").replaceChildren(...how.split("`").map((part, index) => {
    if (index % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  }));
  at("again").textContent = again;
  at("given").hidden = !asks;
  if (asks && root === null) at("token").focus();
}

// Send one question; what the service says about access is shown above, whoever asked.
async function send(question, wanted, own, signal) {
  const given = headers(wanted, own);
  let response;
  try {
    response = await post(question, given, signal);
  } catch (error) {
    if (!signal?.aborted) show("gone");
    throw error;
  }
  const refused = token() === "" ? "missing" : "wrong";
  show(response.status === 401 ? refused : "");
  return response;
}

// The data of each event of a stream: `event: next` carries a result, `event: complete` ends it.
async function* results(stream) {
  let rest = "";
  for await (const chunk of chunks(stream)) {
    const events = `${rest}${chunk}`.split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const lines = event.split(/\r?\n/).map((line) => /^(event|data): ?(.*)$/.exec(line)).filter(Boolean);
      const of = (name) => lines.filter((line) => line[1] === name).map((line) => line[2]).join("\n");
      if (of("event") === "complete") return;
      if (of("event") === "next") yield JSON.parse(of("data"));
    }
  }
  throw new Error(chinese ? "服务中断了此订阅。" : "The service ended the subscription early.");
}

async function* chunks(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

function subscribe(question, own) {
  return {
    subscribe(observer) {
      const stop = new AbortController();
      follow(question, own, observer, stop.signal).catch((error) => {
        if (!stop.signal.aborted) observer.error(error);
      });
      return {unsubscribe: () => stop.abort()};
    },
  };
}

async function follow(question, own, observer, signal) {
  const response = await send(question, EVENTS, own, signal);
  if (response.headers.get("Content-Type")?.startsWith(EVENTS)) {
    for await (const result of results(response.body)) observer.next(result);
  } else {
    observer.next(await response.json());
  }
  observer.complete();
}

// GraphiQL takes a moment to notice another operation, so what it says about the document may be about the one before.
function operations(document) {
  try {
    return GraphiQL.GraphQL.parse(document).definitions.filter((one) => one.kind === "OperationDefinition");
  } catch {
    return []; // the service says what is wrong with it
  }
}

async function fetcher({query, variables, operationName}, {headers: own} = {}) {
  const found = operations(query);
  const named = found.find((one) => one.name?.value === operationName);
  const question = {query, variables, operationName: named && operationName};
  if ((named ?? found[0])?.operation === "subscription") return subscribe(question, own);
  return (await send(question, RESPONSE, own)).json();
}

// What was typed lives as long as this browser tab, as the token does: it may quote what is remembered.
const PREFIX = "graphiql:";
const kept = () => Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));
const storage = {
  getItem: (key) => sessionStorage.getItem(key),
  setItem: (key, value) => sessionStorage.setItem(key, value),
  removeItem: (key) => sessionStorage.removeItem(key),
  clear: () => kept().forEach((key) => sessionStorage.removeItem(key)),
  get length() { return kept().length; },
};

async function start() {
  if (typeof GraphiQL === "undefined" || typeof ReactDOM === "undefined") return show("broken");
  if (token() === "") return show("missing");
  try {
    if ((await send({query: "{ __typename }"}, RESPONSE)).status === 401) return;
    open(await documents.load());
  } catch {
    show("gone");
  }
}

function open(found) {
  root?.unmount();
  root = ReactDOM.createRoot(at("graphiql"));
  const list = documents.plugin(found);
  const defaultTabs = found.map(documents.tab);
  // GraphiQL has the variables of the first tab from what it kept, not from the tab.
  if (storage.getItem(`${PREFIX}tabState`) === null) storage.setItem(`${PREFIX}variables`, defaultTabs[0]?.variables ?? "");
  const logo = React.createElement(GraphiQL.Logo, null, "graphsvc");
  root.render(React.createElement(GraphiQL, {
    fetcher, storage, defaultQuery: START, shouldPersistHeaders: false, inputValueDeprecation: true,
    defaultTabs, plugins: [list], visiblePlugin: list, defaultEditorToolsVisibility: "variables",
  }, logo));
}

translate({token: "令牌"});
takeToken();
at("access").addEventListener("submit", (event) => {
  event.preventDefault();
  if (state === "broken") return location.reload();
  if (STATES[state]?.asks) keepToken(at("token").value);
  at("token").value = "";
  start();
});
window.addEventListener("hashchange", () => { if (takeToken()) start(); });
start();
