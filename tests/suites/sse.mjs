// graphql-sse, the reference client of GraphQL over Server-Sent Events; one request a subscription.
import assert from "node:assert/strict";
import {createClient} from "graphql-sse";
import {CAPTURED, CHANGED, capture, pause, serve, step, take, within} from "./streams.mjs";

let service = await serve();
const make = (overrides = {}) =>
  createClient({
    headers: () => ({Authorization: `Bearer ${service.token}`}),
    retry: () => pause(200),
    retryAttempts: 50,
    singleConnection: false,
    url: service.http,
    ...overrides,
  });
const client = make();
const bodies = (answers) => answers.map(({events_captured: {body}}) => body.text);
console.log("graphql-sse");

await step("events that another process captures arrive", async () => {
  capture("first");
  const events = client.iterate({query: CAPTURED, variables: {after: 0}});
  assert.deepEqual(bodies(await take(events, 1, "first")), ["first"]);
  capture("第二\nline");
  assert.deepEqual(bodies(await take(events, 1, "second")), ["第二\nline"]);
  await events.return();
});

await step("a position gives what is behind it, and status changes come too", async () => {
  const events = client.iterate({query: CAPTURED, variables: {after: 1}});
  const changes = client.iterate({query: CHANGED, variables: {after: 0}});
  const [{events_captured: {position}}] = await take(events, 1, "resumed");
  assert.equal(position, 2);
  capture("tea is free", {kind: "decision", meta: {action: "record"}});
  const [{status_changed: [change]}] = await take(changes, 1, "status");
  assert.deepEqual([change.from, change.to], [null, "active"]);
  await events.return();
  await changes.return();
});

await step("a query and a mutation are answered", async () => {
  const event = '{session_id: "s1", kind: "user_message", origin: "sse", body: "by stream", project: "/srv/cafe"}';
  const written = client.iterate({query: `mutation { capture(events: [${event}]) { accepted } }`});
  assert.deepEqual(await take(written, 1, "mutation"), [{capture: {accepted: 1}}]);
  assert.ok((await within(written.next(), "end of the mutation")).done);
  const [{stats}] = await take(client.iterate({query: "{ stats { events } }"}), 1, "query");
  assert.ok(stats.events >= 4);
});

await step("what is not valid is an answer with errors", async () => {
  for (const query of ["subscription { nothing }", "subscription {", "{ nothing }"]) {
    const {value} = await within(client.iterate({query}).next(), query);
    assert.ok(value.errors[0].message.length > 0);
    assert.ok(!("data" in value));
  }
});

await step("a wrong token is refused", async () => {
  const stranger = make({headers: {Authorization: "Bearer wrong"}, retryAttempts: 0});
  const refused = within(stranger.iterate({query: CAPTURED}).next(), "refusal");
  await assert.rejects(refused, (error) => error.response.status === 401);
});

await step("the mode of one connection for all is declined", async () => {
  const single = make({lazy: false, onNonLazyError: () => {}, retryAttempts: 0, singleConnection: true});
  const refused = within(single.iterate({query: CAPTURED}).next(), "refusal");
  await assert.rejects(refused, (error) => error.response.status === 405);
  single.dispose();
});

await step("a subscription goes on after a restart of the service, without gap or repeat", async () => {
  const got = [];
  const follow = async (last) => {
    while (!got.some(([, body]) => body === last)) {
      const after = got.at(-1)?.[0] ?? 0;
      const events = client.iterate({query: CAPTURED, variables: {after}});
      try {
        for (;;) {
          const [{events_captured: {position, body}}] = await take(events, 1, last);
          got.push([position, body.text]);
          if (body.text === last) break;
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
      }
      await events.return();
    }
  };
  await follow("by stream");
  await service.stop();
  capture("while it was away");
  service = await serve(service.port);
  await follow("while it was away");
  capture("after the restart");
  await follow("after the restart");
  assert.deepEqual(got.map(([position]) => position), Array.from(got, (_, i) => i + 1));
});

client.dispose();
await service.stop();
