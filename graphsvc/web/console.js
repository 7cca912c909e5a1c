// The small page, which serves when GraphiQL was not packed: sends a document, shows the answer, lists the schema. Everything
// that comes from the service is shown as text, never as markup.

import {RESPONSE, chinese, headers, keepToken, post, takeToken, token, translate} from "/graphql/access.js";

const ZH = {
  skip: "跳到查询文档", documents: "文档", access: "访问", token: "令牌", viewer: "以此会话的身份查询",
  tokenHint: "graphsvc ui 会给出带有令牌的地址。令牌只留在此标签页。", document: "查询文档", variables: "变量（JSON）", run: "运行",
  keys: "Ctrl+Enter 运行", result: "结果", schema: "类型", find: "查找类型或字段",
};
const SAY = {
  en: {
    running: "Running…", badVariables: "The variables are no JSON object.",
    unreachable: "The service does not answer. Start it with graphsvc serve.",
    needToken: "Run graphsvc ui and open the address it prints, or enter the token under “Access”.",
    done: (status, ms) => `${status} · ${ms} ms`, fresh: "new",
  },
  zh: {
    running: "运行中…", badVariables: "变量不是 JSON 对象。", unreachable: "服务没有应答。用 graphsvc serve 启动它。",
    needToken: "请运行 graphsvc ui 并打开它给出的地址，或在“访问”中填写令牌。",
    done: (status, ms) => `${status} · ${ms} 毫秒`, fresh: "新建",
  },
};
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
fragment t on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }`;

function showToken() {
  at("token").value = token();
  at("access").open = token() === "";
}

async function send(query, variables) {
  const viewer = at("viewer").value.trim();
  const response = await post({query, variables}, headers(RESPONSE, viewer ? {"Graphsvc-Viewer": encodeURIComponent(viewer)} : {}));
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
  const shown = (variables) => JSON.stringify(variables ?? {}, null, 2);
  const found = (await response.json()).map((one) => ({...one, variables: shown(one.variables)}));
  const documents = [{name: say.fresh, text: START, variables: "{}"}, ...found];
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
    const typed = {text: at("document").value, variables: at("variables").value}; // stays in its tab
    Object.assign(documents[current], typed);
    current = tabs.indexOf(tab);
    at("document").value = documents[current].text;
    at("variables").value = documents[current].variables;
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
  if (token() === "") return;
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

translate(ZH);
takeToken();
showToken();
at("token").addEventListener("change", () => {
  keepToken(at("token").value);
  orSay(showSchema());
});
window.addEventListener("hashchange", () => {
  if (!takeToken()) return;
  showToken();
  orSay(showSchema());
});
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
