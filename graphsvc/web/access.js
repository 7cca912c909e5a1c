// What both pages share: the owner's token, requests to the service, and the reader's language.

export const chinese = navigator.language.toLowerCase().startsWith("zh");

// Texts stand in the page in English; `data-text` names their Chinese.
export function translate(words) {
  if (!chinese) return;
  document.documentElement.lang = "zh-CN";
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = words[node.dataset.text];
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", words[node.dataset.label]);
}

// A fragment is never sent to a server or kept in a log. It leaves the address bar at once, and the token stays in this tab.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return false;
  keepToken(given);
  history.replaceState(null, "", location.pathname);
  return true;
}

export const token = () => sessionStorage.getItem("token") ?? "";
export const keepToken = (value) => sessionStorage.setItem("token", value.trim());

// What a header cannot carry is sent percent-encoded; the service reads it so.
const carried = (value) => (/^[\x20-\x7e]*$/.test(value) ? value : encodeURIComponent(value));

// Whoever reads the page may send headers of their own, such as Graphsvc-Viewer.
export function headers(accept, own = {}) {
  const all = new Headers({"Accept": accept, "Content-Type": "application/json", "Authorization": `Bearer ${carried(token())}`});
  for (const [name, value] of Object.entries(own)) all.set(name, carried(String(value)));
  return all;
}

export const post = (question, headers, signal) =>
  fetch("/graphql", {method: "POST", headers, body: JSON.stringify(question), signal});

export const RESPONSE = "application/graphql-response+json";
