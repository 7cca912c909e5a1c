"use strict";
// The console page: sends a document, shows the answer, lists the schema. Nothing is loaded from elsewhere, and everything
// that comes from the service is shown as text, never as markup.

const ZH = {
  skip: "跳到查询文档", documents: "文档", access: "访问", token: "令牌", viewer: "以此会话的身份查询",
  tokenHint: "令牌在主目录的 token 文件里，只留在此标签页。", document: "查询文档", variables: "变量（JSON）", run: "运行",
  keys: "Ctrl+Enter 运行", result: "结果", schema: "类型", find: "查找类型或字段",
};
const SAY = {
  en: {
    running: "Running…", badVariables: "The variables are no JSON object.", unreachable: "The service does not answer.",
    needToken: "Open “Access” and enter the token.", done: (status, ms) => `${status} · ${ms} ms`, fresh: "new",
  },
  zh: {
    running: "运行中…", badVariables: "变量不是 JSON 对象。", unreachable: "服务没有应答。",
    needToken: "请打开“访问”并填写令牌。", done: (status, ms) => `${status} · ${ms} 毫秒`, fresh: "新建",
  },
};
const chinese = navigator.language.toLowerCase().startsWith("zh");
const say = chinese ? SAY.zh : SAY.en;
const at = (id) => document.getElementById(id);
const START = "{\n  sessions(first: 10) {\n    edges {\n      node {\n        id\n        title\n        last_at\n      }\n    }\n  }\n}\n";
const SCHEMA = `query schema {
  __schema {
    types {
      name kind description
      fields { name description args { name description type { ...t } } type { ...t } }
      inputFields { name description type { ...t } }
      enumValues { name description }
      possibleTypes { name }
    }
  }
}
fragment t on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`;

function translate() {
  if (!chinese) return;
  document.documentElement.lang = "zh-CN";
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = ZH[node.dataset.text];
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", ZH[node.dataset.label]);
}

// A fragment is never sent to a server or kept in a log. It leaves the address bar at once.
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  at("token").value = sessionStorage.getItem("token") ?? "";
  at("access").open = at("token").value === "";
  at("token").addEventListener("change", () => {
    sessionStorage.setItem("token", at("token").value.trim());
    orSay(showSchema());
  });
}

async function send(query, variables) {
  const headers = {
    "Accept": "application/graphql-response+json",
    "Content-Type": "application/json",
    "Authorization": `Bearer ${sessionStorage.getItem("token") ?? ""}`,
  };
  const viewer = at("viewer").value.trim();
  if (viewer) headers["Graphsvc-Viewer"] = encodeURIComponent(viewer);
  const response = await fetch("/graphql", {method: "POST", headers, body: JSON.stringify({query, variables})});
  return {status: response.status, text: await response.text()};
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

async function run() {
  const variables = parsed(at("variables").value.trim() || "{}");
  if (variables === null || typeof variables !== "object" || Array.isArray(variables)) {
    at("status").textContent = say.badVariables;
    at("variables").focus();
    return;
  }
  at("status").textContent = say.running;
  at("run").disabled = true;
  const begun = performance.now();
  try {
    const {status, text} = await send(at("document").value, variables);
    const value = parsed(text);
    at("result").textContent = value === null ? text : JSON.stringify(value, null, 2);
    at("status").textContent = status === 401 ? say.needToken : say.done(status, Math.round(performance.now() - begun));
    if (status === 401) at("access").open = true;
  } catch {
    at("status").textContent = say.unreachable;
  } finally {
    at("run").disabled = false;
  }
}

async function showTabs() {
  const response = await fetch("/graphql/documents.json");
  const documents = [{name: say.fresh, text: START}, ...await response.json()];
  const tabs = documents.map((one) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.textContent = one.name;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", "panel");
    tab.addEventListener("click", () => choose(tab));
    return tab;
  });
  let current = 0;
  const choose = (tab) => {
    documents[current].text = at("document").value; // what was typed stays in its tab
    current = tabs.indexOf(tab);
    at("document").value = documents[current].text;
    mark();
  };
  const mark = () => tabs.forEach((tab, index) => {
    tab.setAttribute("aria-selected", String(index === current));
    tab.tabIndex = index === current ? 0 : -1;
  });
  at("tabs").addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const next = tabs[(current + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
  at("document").value = documents[0].text;
  mark();
  at("tabs").replaceChildren(...tabs);
}

function typeName(type) {
  if (type.kind === "NON_NULL") return `${typeName(type.ofType)}!`;
  if (type.kind === "LIST") return `[${typeName(type.ofType)}]`;
  return type.name;
}

function fieldLine(field) {
  const args = (field.args ?? []).map((arg) => `${arg.name}: ${typeName(arg.type)}`).join(", ");
  return `${field.name}${args ? `(${args})` : ""}${field.type ? `: ${typeName(field.type)}` : ""}`;
}

function element(name, text, ...children) {
  const node = document.createElement(name);
  if (text) node.textContent = text;
  node.append(...children);
  return node;
}

function typeEntry(type) {
  const members = [...type.fields ?? [], ...type.inputFields ?? [], ...type.enumValues ?? [], ...type.possibleTypes ?? []];
  const lines = members.map((one) => {
    const line = element("li", "", element("code", fieldLine(one)));
    if (one.description) line.append(element("p", one.description));
    return line;
  });
  const entry = element("details", "", element("summary", type.name));
  if (type.description) entry.append(element("p", type.description));
  entry.append(element("ul", "", ...lines));
  entry.dataset.words = [type.name, ...members.map((one) => one.name)].join(" ").toLowerCase();
  return entry;
}

async function showSchema() {
  if (!sessionStorage.getItem("token")) return;
  const answer = parsed((await send(SCHEMA, {})).text);
  const types = answer?.data?.__schema?.types ?? [];
  at("types").replaceChildren(...types.filter((type) => !type.name.startsWith("__")).map(typeEntry));
  filterTypes();
}

function filterTypes() {
  const wanted = at("find").value.trim().toLowerCase();
  for (const entry of at("types").children) {
    entry.hidden = !entry.dataset.words.includes(wanted);
    entry.open = wanted !== "" && !entry.hidden;
  }
}

const orSay = (work) => work.catch(() => { at("status").textContent = say.unreachable; });

translate();
takeToken();
at("run").addEventListener("click", run);
at("find").addEventListener("input", filterTypes);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  }
});
orSay(showTabs());
orSay(showSchema());
