// Mermaid's own parser reads what was exported: node mermaid.mjs CASES
// Each case must give the nodes and edges that went in.
import {readFileSync} from "node:fs";
import {JSDOM} from "jsdom";

const {window} = new JSDOM("");
globalThis.window = window; // Mermaid cleans labels with the DOM of a browser
globalThis.document = window.document;
const {default: mermaid} = await import("mermaid");

const fail = (number, message, ...values) => {
  console.error(`case ${number}: ${message}`, ...values);
  process.exit(1);
};

// What Mermaid keeps of an entity until it draws: a number between these marks. One with a name was written by nobody.
const lines = (number, text) =>
  text.split(/<br ?\/?>/).map((line) => {
    if (/<|ﬂ°[^°]/.test(line)) fail(number, "a label became something else", line);
    // Spaces count as HTML counts them.
    return line.replace(/ﬂ°°(\d+)¶ß/g, (_, code) => String.fromCodePoint(code)).replace(/ +/g, " ").trim();
  });

const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort();
const expected = (text) => text.replace(/ +/g, " ").trim();

const cases = JSON.parse(readFileSync(process.argv[2], "utf8"));
let nodes = 0;
let edges = 0;
for (const [number, {text, ...told}] of cases.entries()) {
  const parsed = await mermaid.parse(text).catch((error) => fail(number, "not parsed", error, text));
  if (!parsed.diagramType.startsWith("flowchart")) fail(number, "read as", parsed);
  const {db} = await mermaid.mermaidAPI.getDiagramFromText(text);
  const names = new Map([...db.getVertices().values()].map(({id, text}) => [id, lines(number, text)]));
  const read = {
    nodes: sorted([...names.values()]),
    edges: sorted(
      db.getEdges().map(({start, end, stroke, text}) => [
        names.get(start)[0], stroke === "dotted", lines(number, text), names.get(end)[0],
      ]),
    ),
  };
  const wanted = {
    nodes: sorted(told.nodes.map((node) => node.map(expected))),
    edges: sorted(told.edges.map(([from, dotted, about, to]) => [expected(from), dotted, about.map(expected), expected(to)])),
  };
  for (const part of ["nodes", "edges"]) {
    const index = Math.max(0, wanted[part].findIndex((row, at) => row !== read[part][at]));
    if (JSON.stringify(read[part]) !== JSON.stringify(wanted[part])) {
      fail(number, `other ${part}`, "\nread   ", read[part][index], "\nwritten", wanted[part][index]);
    }
  }
  nodes += read.nodes.length;
  edges += read.edges.length;
}
console.log(`${cases.length} lineages, ${nodes} nodes, ${edges} edges: Mermaid reads what was written`);
if (!edges) process.exit(1);
