// graphql-ws, the reference client of graphql-transport-ws.
import assert from "node:assert/strict";
import {createClient} from "graphql-ws";
import WebSocket from "ws";
import {CAPTURED, CHANGED, PROJECT, capture, pause, serve, step, take, within} from "./streams.mjs";

let service = await serve();
const options = () => ({
  connectionParams: () => ({Authorization: `Bearer ${service.token}`}),
  url: service.http.replace("http", "ws"),
  webSocketImpl: WebSocket,
});
const retry = {retryAttempts: 50, retryWait: () => pause(200), shouldRetry: () => true};
const client = createClient({...options(), ...retry, lazy: false});
const closing = (overrides) =>
  within(
    new Promise((resolve) => {
      const on = {closed: resolve};
      createClient({...options(), lazy: false, on, onNonLazyError: () => {}, retryAttempts: 0, ...overrides});
    }),
    "closing",
  );
const bodies = (answers) => answers.map(({events_captured: {body}}) => body.text);
console.log("graphql-ws");

await step("events that another process captures arrive", async () => {
  capture("first");
  const events = client.iterate({query: CAPTURED, variables: {after: 0}});
  assert.deepEqual(bodies(await take(events, 1, "first")), ["first"]);
  capture("第二");
  assert.deepEqual(bodies(await take(events, 1, "second")), ["第二"]);
  await events.return();
});

await step("a position gives what is behind it", async () => {
  const events = client.iterate({query: CAPTURED, variables: {after: 1}});
  const [{events_captured: {position}}] = await take(events, 1, "resumed");
  assert.equal(position, 2);
  await events.return();
});

await step("several subscriptions share the socket, and a cancelled one is silent", async () => {
  const heard = {};
  const listen = (session) => {
    heard[session] = [];
    return client.subscribe(
      {query: CAPTURED, variables: {after: 2, session}},
      {complete: () => {}, error: (error) => heard[session].push(error), next: ({data}) => heard[session].push(data)},
    );
  };
  const ends = ["one", "two", "three"].map(listen);
  const changes = client.iterate({query: CHANGED, variables: {after: 0}});
  for (const name of ["one", "two", "three"]) capture(name, {session_id: name});
  capture("tea is free", {kind: "decision", meta: {action: "record"}, session_id: "one"});
  const [{status_changed: [change]}] = await take(changes, 1, "status");
  assert.deepEqual([change.from, change.to], [null, "active"]);
  for (let i = 0; heard.two.length < 1; i += 1) {
    assert.ok(i < 100, JSON.stringify(heard));
    await pause(100);
  }
  ends[1]();
  capture("unheard", {session_id: "two"});
  capture("last", {session_id: "one"});
  for (let i = 0; heard.one.length < 3; i += 1) {
    assert.ok(i < 100, JSON.stringify(heard));
    await pause(100);
  }
  assert.deepEqual(Object.values(heard).map(bodies), [["one", "tea is free", "last"], ["two"], ["three"]]);
  ends[0]();
  ends[2]();
  await changes.return();
});

await step("a query and a mutation are answered", async () => {
  const event = {body: "by socket", kind: "user_message", origin: "socket", project: PROJECT, session_id: "s1"};
  const query = "mutation ($events: [EventInput!]!) { capture(events: $events) { accepted } }";
  const [written] = await take(client.iterate({query, variables: {events: [event]}}), 1, "mutation");
  assert.deepEqual(written, {capture: {accepted: 1}});
  const asked = client.iterate({query: "{ stats { events } }"});
  const [{stats}] = await take(asked, 1, "query");
  assert.ok(stats.events >= 8);
  assert.ok((await within(asked.next(), "end of the query")).done);
});

await step("what is not valid is an error of its operation only", async () => {
  for (const query of ["subscription { nothing }", "subscription {", "{ nothing }"]) {
    await assert.rejects(within(client.iterate({query}).next(), query), (errors) => errors[0].message.length > 0);
  }
  await take(client.iterate({query: "{ __typename }"}), 1, "after errors");
});

await step("a wrong token, no token and another subprotocol are closed with their codes", async () => {
  const wrong = await closing({connectionParams: {Authorization: "Bearer wrong"}});
  const none = await closing({connectionParams: {}});
  class Other extends WebSocket {
    constructor(url) {
      super(url, []);
    }
  }
  const other = await closing({webSocketImpl: Other});
  assert.deepEqual([wrong.code, none.code, other.code], [4403, 4403, 4406]);
});

await step("a subscription outlives a restart of the service, without gap or repeat", async () => {
  const payload = {query: CAPTURED, variables: {after: 0}};
  const got = [];
  let arrived = () => {};
  const end = client.subscribe(payload, {
    complete: () => {},
    error: (error) => assert.fail(JSON.stringify(error)),
    next: ({data: {events_captured: {position, body}}}) => {
      got.push([position, body.text]);
      payload.variables.after = position; // the client sends its payload again when it is connected again
      arrived();
    },
  });
  const until = (body) =>
    within(
      new Promise((resolve) => {
        arrived = () => got.some(([, text]) => text === body) && resolve();
        arrived();
      }),
      body,
    );
  await until("by socket");
  await service.stop();
  capture("while it was away");
  service = await serve(service.port);
  await until("while it was away");
  capture("after the restart");
  await until("after the restart");
  assert.deepEqual(got.map(([position]) => position), Array.from(got, (_, i) => i + 1));
  end();
});

await client.dispose();
await service.stop();
