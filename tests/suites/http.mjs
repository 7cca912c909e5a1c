// The audits of GraphQL over HTTP, by the npm package graphql-http: node http.mjs URL TOKEN
// Every one must be ok; what the specification only recommends counts as much as what it requires.
import {serverAudits} from "graphql-http";

const [, , url, token] = process.argv;
const audits = 61; // a newer package may have more, and then somebody looks at them

// The same audits for clients that say more, or other things, than they must.
const clients = {
  "as the audits are written": {},
  "with the headers of a browser": {
    "accept-language": "en, zh;q=0.9",
    origin: new URL(url).origin,
    "sec-fetch-site": "same-origin",
    "user-agent": "Mozilla/5.0",
  },
  "as a session": {"graphsvc-viewer": "harbor-cafe-2026-11-05"},
};

const authorised = (headers) => (input, init = {}) => {
  const all = new Headers(headers);
  new Headers(init.headers).forEach((value, name) => all.set(name, value));
  all.set("authorization", `Bearer ${token}`);
  return fetch(input, {...init, headers: all});
};

let failed = 0;
for (const [client, headers] of Object.entries(clients)) {
  const results = [];
  for (const audit of serverAudits({url, fetchFn: authorised(headers)})) results.push(await audit.fn());
  console.log(`\n${client}`);
  for (const {id, name, status, reason} of results) {
    console.log(`  ${status.padEnd(6)} ${id}  ${name}${reason ? `\n         ${reason}` : ""}`);
  }
  const ok = results.filter(({status}) => status === "ok").length;
  console.log(`${ok} of ${results.length}`);
  if (ok !== results.length || results.length !== audits) failed += 1;
}

// Without the token nothing is told: no audit may pass by an answer that anybody gets.
const open = await fetch(url, {
  method: "POST",
  headers: {"content-type": "application/json"},
  body: JSON.stringify({query: "{ __typename }"}),
});
if (open.status !== 401) {
  console.error(`without the token the status is ${open.status}`);
  failed += 1;
}
process.exit(failed ? 1 : 0);
