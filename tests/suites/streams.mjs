// What both suites need: a service of the home in GRAPHSVC_HOME, a process that captures, and steps that can fail.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {existsSync, mkdirSync, readFileSync, rmSync} from "node:fs";

const {GRAPHSVC_HOME: home, PYTHON: python} = process.env;
export const PROJECT = "/srv/cafe";
export const CAPTURED = `subscription ($after: Long, $session: String) {
  events_captured(after: $after, session_id: $session) { position id body { text } }
}`;
export const CHANGED = "subscription ($after: Long) { status_changed(after: $after) { position id from to } }";

export async function serve(port = 0) {
  const ready = `${home}.ready.json`;
  rmSync(ready, {force: true});
  mkdirSync(home, {recursive: true, mode: 0o700});
  const args = ["-m", "graphsvc", "serve", "--port", port, "--ready-file", ready];
  const child = spawn(python, args.map(String), {stdio: "ignore"});
  process.on("exit", () => child.kill("SIGKILL"));
  for (let i = 0; !existsSync(ready); i += 1) {
    assert.ok(i < 300 && child.exitCode === null, "the service did not start");
    await pause(100);
  }
  const {url, token_file: file} = JSON.parse(readFileSync(ready, "utf8"));
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    assert.equal(await ended, 0, "the service ends well");
  };
  return {http: `${url}/graphql`, port: new URL(url).port, stop, token: readFileSync(file, "utf8").trim()};
}

let told = 0;
export function capture(body, more = {}) {
  told += 1;
  const event = {session_id: "s1", kind: "user_message", origin: `m${told}`, body, project: PROJECT, ...more};
  const {status, stderr} = spawnSync(python, ["-m", "graphsvc", "capture"], {input: JSON.stringify(event)});
  assert.equal(status, 0, String(stderr));
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function within(promise, what, seconds = 20) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing in ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// The next `count` answers of an iterator of results.
export async function take(iterator, count, what) {
  const found = [];
  for (let i = 0; i < count; i += 1) {
    const {done, value} = await within(iterator.next(), what);
    assert.ok(!done, `${what}: it ended`);
    assert.equal(value.errors, undefined, JSON.stringify(value.errors));
    found.push(value.data);
  }
  return found;
}

export async function step(name, work) {
  try {
    await work();
    console.log(`  ok  ${name}`);
  } catch (error) {
    console.error(`  FAILED  ${name}\n`, error);
    process.exit(1);
  }
}
