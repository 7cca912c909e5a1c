// Drives one page in Chromium and asserts on what a person sees: node browser.mjs graphiql|console URL SCREENSHOTS
import assert from "node:assert/strict";
import {chromium} from "playwright-core";

const [, , page, url, shots] = process.argv;
const address = new URL(url);
const token = new URLSearchParams(address.hash.slice(1)).get("token");
const bare = `${address.origin}${address.pathname}`;
const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"]});
let passed = 0;
let seen = []; // what went wrong on the last page, for whoever reads a failure

// Open a page that must make no error, ask nobody but the service, and break no rule of its content policy.
async function visit(where, options = {}) {
  const context = await browser.newContext({viewport: {width: 1400, height: 900}, locale: "en-US", ...options});
  const tab = await context.newPage();
  const faults = seen = [];
  tab.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(message.text()); });
  tab.on("pageerror", (error) => faults.push(String(error)));
  tab.on("request", (request) => {
    if (!request.url().startsWith(address.origin) && !request.url().startsWith("data:")) faults.push(`asked ${request.url()}`);
  });
  await tab.addInitScript(() => document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`)));
  await tab.goto(where);
  return {tab, context, faults};
}

async function test(name, body) {
  try {
    await body();
  } catch (error) {
    console.error(`not ok: ${name}\n${error.stack}\n${seen.join("\n")}`);
    for (const context of browser.contexts()) {
      for (const tab of context.pages()) await tab.screenshot({path: `${shots}/failed-${page}.png`});
    }
    await browser.close();
    process.exit(1);
  }
  console.log(`ok: ${name}`);
  passed += 1;
}

const capture = (word) => `mutation keep {
  capture(events: [{session_id: "browser", kind: "user_message", origin: "${word}", body: "the ${word} is lit", project: "/srv/browser"}]) {
    accepted
  }
}`;

const secrecy = async (tab) => {
  assert.equal(tab.url(), bare, "the token left the address bar");
  const kept = await tab.evaluate(() => [JSON.stringify(localStorage), document.cookie]);
  assert.ok(!kept.join().includes(token), "the token is kept in this tab only");
  assert.ok(!(await tab.content()).includes(token), "the token is not shown");
};

const graphiql = async () => {
  const {tab, context, faults} = await visit(url);
  const answer = tab.locator(".result-window .CodeMirror-code");
  const run = async () => {
    await tab.getByRole("button", {name: /Execute query/}).click();
    await tab.waitForFunction(() => document.querySelector(".graphiql-spinner") === null);
  };
  const write = async (document) => {
    await tab.getByRole("button", {name: "Add tab"}).click();
    await tab.locator(".graphiql-query-editor .CodeMirror").click();
    await tab.keyboard.press("Control+A");
    await tab.keyboard.insertText(document);
  };

  await test("GraphiQL opens with the project's documents as tabs", async () => {
    await tab.locator(".graphiql-container").waitFor();
    const documents = await (await tab.request.get(`${bare}/documents.json`)).json();
    const names = documents.map(({text}) => /^(?:query|mutation|subscription) (\w+)/m.exec(text)[1]);
    assert.ok(names.includes("search"));
    assert.deepEqual(await tab.locator(".graphiql-tab-button").allInnerTexts(), names);
    const shown = await tab.locator(".graphiql-editor-tool .CodeMirror").first().evaluate((node) => node.CodeMirror.getValue());
    assert.deepEqual(JSON.parse(shown || null), documents[0].variables);
  });

  await test("the token is in no address, store or text of the page", () => secrecy(tab));

  await test("the list of documents leads to a tab, also to one that was closed", async () => {
    const list = tab.locator(".graphsvc-documents");
    const active = tab.locator(".graphiql-tab-active .graphiql-tab-button");
    await list.getByText("Matching lines with context").waitFor();
    await list.getByRole("button", {name: "grep"}).click();
    assert.equal(await active.innerText(), "grep");
    const before = await tab.locator(".graphiql-tab-button").count();
    await tab.locator(".graphiql-tab-active .graphiql-tab-close").click();
    await list.getByRole("button", {name: "grep"}).click();
    assert.equal(await active.innerText(), "grep");
    assert.equal(await tab.locator(".graphiql-tab-button").count(), before);
    await tab.locator(".graphiql-editor-tool").getByText("柜台").waitFor();
  });
  await tab.screenshot({path: `${shots}/graphiql-documents.png`});

  await test("a saved document runs with its variables and shows the demo", async () => {
    await tab.locator(".graphiql-tab-button", {hasText: /^search$/}).click();
    await run();
    await answer.getByText('"found"').waitFor();
    await answer.getByText(/rounding/).first().waitFor();
  });

  await test("loading again keeps the tabs and needs no token", async () => {
    const before = await tab.locator(".graphiql-tab-button").allInnerTexts();
    await tab.waitForFunction((there) => JSON.parse(sessionStorage.getItem("graphiql:tabState"))?.activeTabIndex === there, before.indexOf("search"));
    await tab.reload();
    await tab.locator(".graphiql-tab-active").getByText("search").waitFor();
    assert.deepEqual(await tab.locator(".graphiql-tab-button").allInnerTexts(), before);
    await secrecy(tab);
  });

  await test("the docs open and show types", async () => {
    await tab.getByRole("button", {name: "Show Documentation Explorer"}).click();
    const docs = tab.locator(".graphiql-doc-explorer");
    await docs.getByText("SearchResult", {exact: true}).first().waitFor();
    await docs.getByText("SearchResult", {exact: true}).first().click();
    await docs.getByText("found, degraded").waitFor();
  });
  await tab.screenshot({path: `${shots}/graphiql-light.png`});

  await test("a mutation changes the store", async () => {
    await write(capture("lighthouse"));
    await run();
    await answer.getByText('"accepted": 1').waitFor();
  });

  await test("an error of a document is shown, and is no fault of the page", async () => {
    await write("{ nothing_of_ours }");
    await run();
    await answer.getByText(/Cannot query field/).waitFor();
    faults.splice(0, faults.length, ...faults.filter((fault) => !/status of 400/.test(fault)));
  });

  await test("the settings open, and headers are not offered to be kept", async () => {
    await tab.getByRole("button", {name: "Open settings dialog"}).click();
    await tab.getByText("Adjust how the interface appears").waitFor();
    assert.equal(await tab.getByText("Persist headers").count(), 0);
    await tab.keyboard.press("Escape");
  });

  await test("nothing was asked elsewhere, no policy broken, no error made", () => assert.deepEqual(faults, []));

  await test("a service that is gone is said, and found again", async () => {
    await context.setOffline(true);
    await run();
    await tab.getByText("The service does not answer.").waitFor();
    await context.setOffline(false);
    await tab.getByRole("button", {name: "Try again"}).click();
    await tab.locator("#access").waitFor({state: "hidden"});
  });

  await test("the results of a subscription are shown as they come", async () => {
    const next = (position) => `event: next\ndata: {"data": {"position": ${position}}}\n\n`;
    await tab.route("**/graphql", async (route) => {
      if (route.request().headers().accept !== "text/event-stream") return route.continue();
      assert.match(route.request().headers().authorization, /^Bearer ./);
      return route.fulfill({contentType: "text/event-stream", body: `:\n\n${next(40)}${next(41)}event: complete\ndata:\n\n`});
    });
    await write("subscription later { events_captured { position } }");
    await run();
    await answer.getByText('"position": 41').waitFor();
  });

  await test("what is kept of it stays in the browser's tab", async () => {
    assert.equal(await tab.evaluate(() => localStorage.length), 0);
    await secrecy(tab);
  });
  await context.close();

  await test("without a token, and with a wrong one, the page says how to get one", async () => {
    for (const [where, locale, words] of [
      [bare, "en-US", "The service wants the owner's token."],
      [`${bare}#token=wrong`, "en-US", "The service does not accept this token."],
      [bare, "zh-CN", "服务需要所有者的令牌。"],
      [`${bare}#token=wrong`, "zh-CN", "服务不接受此令牌。"],
    ]) {
      const {tab, context} = await visit(where, {locale});
      await tab.getByText(words).waitFor();
      await tab.getByText("graphsvc ui").waitFor();
      await tab.screenshot({path: `${shots}/graphiql-token-${locale}.png`});
      await tab.locator("#token").fill(token);
      await tab.locator("#token").press("Enter");
      await tab.locator(".graphiql-tab").first().waitFor();
      assert.ok(await tab.locator("#access").isHidden());
      await context.close();
    }
  });

  await test("it is as readable in the dark", async () => {
    const {tab, context, faults} = await visit(url, {colorScheme: "dark"});
    await tab.locator(".graphiql-tab-button", {hasText: /^search$/}).click();
    await tab.getByRole("button", {name: /Execute query/}).click();
    await tab.locator(".result-window").getByText('"found"').waitFor();
    await tab.screenshot({path: `${shots}/graphiql-dark.png`});
    assert.deepEqual(faults, []);
    await context.close();
  });
};

const small = async () => {
  const {tab, context, faults} = await visit(url);
  await test("the small page serves when GraphiQL was not packed", async () => {
    await tab.getByRole("tab", {name: "tool/search"}).click();
    await tab.getByRole("button", {name: "Run"}).click();
    await tab.locator("#result", {hasText: '"found"'}).waitFor();
    await tab.locator("#result", {hasText: "rounding"}).waitFor();
  });
  await test("its types are listed", async () => {
    await tab.locator("#find").fill("SearchResult");
    await tab.locator("#types").getByText("found, degraded").waitFor();
  });
  await tab.screenshot({path: `${shots}/console-light.png`});
  await test("a mutation changes the store", async () => {
    await tab.locator("#document").fill(capture("breakwater"));
    await tab.locator("#variables").fill("{}");
    await tab.locator("#document").press("Control+Enter");
    await tab.locator("#result", {hasText: '"accepted": 1'}).waitFor();
  });
  await test("the token is in no address, store or text of the page", () => secrecy(tab));
  await test("nothing was asked elsewhere, no policy broken, no error made", () => assert.deepEqual(faults, []));
  await context.close();
};

await {graphiql, console: small}[page]();
await browser.close();
console.log(`${page}: ${passed} passed`);
