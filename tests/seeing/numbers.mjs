// A report's picture shows at each time the values of ports.csv, which this script computes independently. Names with
// markup stay text, and labels do not overlap (docs/spec/seeing.md 14.4, 14.8).
//
//   node tests/seeing/numbers.mjs PAUSEBED OUT PAGE...     (called by run.sh; each PAGE is in its run directory)
//
// Exit codes as in report.mjs.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { check, chromium, executablePath, failed, passed, skip } from "./common.mjs";

const [pausebed, out, ...pages] = process.argv.slice(2);
if (!out || pages.length === 0) skip("usage: numbers.mjs PAUSEBED OUT PAGE...");
mkdirSync(out, { recursive: true });
// An output counts as held from this share of a bin on (docs/spec/seeing.md 3.7).
const HELD = 0.1;
// Length of a bar at line rate, in units of the picture (pixels at scale 1).
const BAR = 78;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function open(file, hash = "") {
  const context = await browser.newContext({ offline: true, viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
  await page.goto(pathToFileURL(resolve(file)).href + hash);
  await page.waitForSelector("body[data-ready]", { timeout: 10_000 });
  await page.waitForTimeout(100);
  return { context, page, faults };
}

// ports.csv as rows of numbers; the port stays text.
function table(folder) {
  const [head, ...lines] = readFileSync(join(folder, "ports.csv"), "utf8").trim().split("\n");
  const names = head.split(",");
  return lines.map((line) => Object.fromEntries(line.split(",").map((v, n) => [names[n], names[n] === "port" ? v : Number(v)])));
}

// The values of the bin at a time: outputs held, sources held, and each adapter's received share of line rate.
function moment(rows, topology, ps) {
  const rates = new Map();
  for (const { a, b, rate } of topology.links) for (const end of [a, b]) rates.set(end, rate);
  const adapters = new Set(topology.nodes.filter((node) => node.kind === "nic").map((node) => node.name));
  const nodeOf = (port) => port.slice(0, port.lastIndexOf(":"));
  const line = new Map();
  for (const [port, rate] of rates) line.set(nodeOf(port), (line.get(nodeOf(port)) ?? 0) + rate);
  const held = new Map(), received = new Map();
  for (const row of rows.filter(({ t_ps, dt_ps }) => t_ps <= ps && ps < t_ps + dt_ps)) {
    const node = nodeOf(row.port);
    held.set(row.port, Math.max(held.get(row.port) ?? 0, row.hold_ps / row.dt_ps));
    received.set(node, (received.get(node) ?? 0) + row.rx_bytes * 8e12 / row.dt_ps / line.get(node));
  }
  const standing = [...held].filter(([, share]) => share >= HELD).map(([port]) => nodeOf(port));
  return { held: standing.length, sources: standing.filter((node) => adapters.has(node)).length, received };
}

for (const file of pages) {
  const folder = dirname(resolve(file)), name = basename(folder);
  const [run, topology] = ["run.json", "topology.json"].map((part) => JSON.parse(readFileSync(join(folder, part), "utf8")));
  const rows = table(folder);
  const greatest = run.saturation.trees[0];
  const last = run.grid.bins * run.grid.dt_ps;
  const times = [0.03, 0.3, 0.6, 0.9].map((share) => share * last).concat(greatest ? [greatest.size_at_ps] : []);
  for (const time of times) {
    // The middle of a bin, so that rounding to whole τ in the address selects the same bin.
    const ps = (Math.floor(time / run.grid.dt_ps) + 0.5) * run.grid.dt_ps;
    const t = Math.round(ps / run.tau_ps), where = `${name} at ${t} τ`;
    const { held, sources, received } = moment(rows, topology, ps);
    const { context, page, faults } = await open(file, `#t=${t}`);
    const said = async (key) => Number(await page.locator(`#c1 [data-k='1.${key}']`).textContent());
    check(`${where}: as many outputs are held as in ports.csv`, (await said("held")) === held, `${await said("held")}, ${held}`);
    check(`${where}: as many sources`, (await said("sheld")) === sources, `${await said("sheld")}, ${sources}`);
    const bars = await page.locator("#f1 rect[data-x]").evaluateAll((all) => all.map((bar) => [Number(bar.dataset.x), Number(bar.getAttribute("width"))]));
    const far = bars.map(([node, wide]) => [topology.nodes[node].name, wide, BAR * Math.min(received.get(topology.nodes[node].name) ?? 0, 1.06)]);
    const wrong = far.filter(([, wide, due]) => Math.abs(wide - due) > 1);
    check(`${where}: ${bars.length} bars are as long as what was received`, bars.length > 0 && wrong.length === 0, wrong.slice(0, 3).join("; "));
    if (time === greatest?.size_at_ps) {
      const ringed = await page.evaluate(() => {
        const { outputs } = JSON.parse(document.getElementById("pb-meta").textContent);
        return [...document.querySelectorAll("#f1 g.root:not([hidden])")].flatMap((ring) => ring.dataset.r.split(" ")).map((output) => outputs[output][0]);
      });
      check(`${where}: the ring is at the root that run.json names`, ringed.includes(greatest.root), `${ringed}, not ${greatest.root}`);
    }
    check(`${where}: no fault`, faults.length === 0, faults.join("; "));
    await context.close();
  }
}

// A run directory as another program could write it: its four adapters have hostile names. A scenario file refuses such
// node names, but accepts them for itself and its phases.
const hostile = ["<b onmouseover=alert(1)>&\"'</script>", "שלום עולם \u202e right to left", "🦀🧪🔌 emoji 🏳️‍🌈", "n".repeat(200)];
const scenario = `schema = 1
name = ${JSON.stringify("</title><img src=x onerror=alert(1)> " + "long ".repeat(40))}
[run]
duration = "2000 mtu"
[fabric]
technology = "infiniband"
link = { rate = "8 Gbps", delay = "0.125 mtu" }
switch = { buffer = "36 mtu" }
nodes = [${[0, 1, 2, 3].map((n) => `{ name = "host${n}", kind = "nic" }, `).join("")}{ name = "s0", kind = "switch" }, { name = "s1", kind = "switch" }]
links = [${[0, 1, 2, 3].map((n) => `{ a = "host${n}:1", b = "s${n >> 1}:${1 + (n & 1)}" }, `).join("")}{ a = "s0:3", b = "s1:3" }]
[scheme]
kind = "none"
${[["host0", "host3"], ["host2", "host3"], ["host1", "host2"]].map(([from, to]) => `[[traffic]]
name = "${from}"
from = "${from}"
to = "${to}"
load = 0.9
arrivals = "poisson"
size = "2048 B"
`).join("")}
${[0, 3].map((n) => `[[phase]]
name = ${JSON.stringify(hostile[n])}
start = "${n * 300} mtu"
`).join("")}`;
const [place, source] = [join(out, "hostile"), join(out, "hostile.toml")];
writeFileSync(source, scenario);
execFileSync(pausebed, ["run", source, "--out", place], { stdio: ["ignore", "ignore", "inherit"] });
const renamed = (text) => text.replace(/\bhost([0-3])\b/g, (_, n) => hostile[n]);
for (const file of readdirSync(place)) {
  const path = join(place, file), text = readFileSync(path, "utf8");
  const strings = (line) => JSON.stringify(JSON.parse(line), (_, value) => (typeof value === "string" ? renamed(value) : value));
  const cell = (text) => (text === renamed(text) ? text : `"${renamed(text).replaceAll('"', '""')}"`);
  if (file.endsWith(".json")) writeFileSync(path, strings(text));
  if (file.endsWith(".jsonl")) writeFileSync(path, text.replace(/.+/g, strings));
  if (file.endsWith(".csv")) writeFileSync(path, text.replace(/[^,\n]+/g, cell));
}
execFileSync(pausebed, ["report", place], { stdio: ["ignore", "ignore", "inherit"] });
for (const width of [1440, 390]) {
  const { context, page, faults } = await open(join(place, "report.html"));
  await page.setViewportSize({ width, height: 900 });
  const where = `names of any kind, ${width}`;
  check(`${where}: no fault`, faults.length === 0, faults.join("; "));
  check(`${where}: no element of theirs`, (await page.locator("main img, [onmouseover], [onerror]").count()) === 0);
  check(`${where}: they are there`, (await page.locator("body").innerText()).includes("<b onmouseover"));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(`${where}: nothing is wider than the page`, wide <= 0, `${wide} px`);
  // Labels at the ends of lines and labels of phases must not overlap others.
  const met = await page.evaluate(() => ["#figure g.own text:first-child, #figure text.note", "#figure text.when"].flatMap((which) => {
    const boxes = [...document.querySelectorAll(which)].map((el) => [el.textContent, el.getBBox()]);
    return boxes.flatMap(([one, a], n) => boxes.slice(n + 1).filter(([, b]) =>
      a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height).map(([other]) => `${one} / ${other}`));
  }));
  check(`${where}: no label stands on another`, met.length === 0, met.join("; "));
  const beyond = await page.evaluate(() => {
    const { right } = document.getElementById("figure").getBoundingClientRect();
    return [...document.querySelectorAll("#figure text")].filter((text) => text.getBoundingClientRect().right > right + 1).map((text) => text.textContent);
  });
  check(`${where}: every label ends inside the figure`, beyond.length === 0, beyond.join("; "));
  await page.screenshot({ path: join(out, `hostile-${width}.png`), fullPage: true });
  await context.close();
}
await browser.close();
failed.forEach((line) => console.log("FAILED " + line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
