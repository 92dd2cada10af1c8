// What pages cost in a real browser (seeing.md 13): opening a report, following a run of 128 nodes ten times a
// second. The run is made first and told again at that pace, so that its own work is not in the figures. It prints
// them and judges none: they are those of this host at this moment.
//
//   node tests/seeing/cost.mjs PAUSEBED SCENARIO PAGE...   (run.sh does it)
import { createServer } from "node:http";
import { resolve, basename, dirname } from "node:path";
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium, executablePath, gone, skip, start } from "./common.mjs";

const [pausebed, scenario, ...pages] = process.argv.slice(2);
if (!pausebed || !scenario) skip("usage: cost.mjs PAUSEBED SCENARIO PAGE...");
const SECONDS = 30, RATE = 10, TIMES = 5;
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

for (const file of pages) {
  const [paints, readies] = [[], []];
  for (let n = 0; n < TIMES; n++) {
    const context = await browser.newContext({ offline: true, viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.goto(pathToFileURL(resolve(file)).href);
    await page.waitForSelector("body[data-ready]");
    readies.push(await page.evaluate(() => performance.now()));
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
    await context.close();
  }
  console.log(`${basename(dirname(resolve(file)))}: ${(statSync(file).size / 1e6).toFixed(2)} MB, first paint ${median(paints).toFixed(0)} ms, ready ${median(readies).toFixed(0)} ms (medians of ${TIMES})`);
}

// The run, as the page's server has it when enough of it is over.
const bins = SECONDS * RATE + 60;
const served = start(pausebed, ["serve", scenario, "--listen", "127.0.0.1:0", "--set", 'run.sample="50 mtu"']);
const from = (await served.address).replace(/\/$/, "");
const get = async (path) => Buffer.from(await (await fetch(from + path)).arrayBuffer());
let columns;
do {
  await new Promise((go) => setTimeout(go, 500));
  columns = await get("/api/columns?from=0");
} while (columns.readUInt32LE(4) < bins);
const [page, run] = [await get("/"), JSON.parse(await get("/api/run"))];
await gone(served.child);
const wide = columns.readUInt32LE(8), stride = 8 + 2 * wide;
const row = (n) => columns.subarray(12 + n * stride, 12 + (n + 1) * stride);

// It is told again, ten bins a second.
const server = createServer((request, answer) => {
  const path = request.url.split("?")[0];
  if (path === "/") return answer.end(page);
  if (path === "/api/columns") {
    const none = Buffer.alloc(12);
    none.writeUInt32LE(wide, 8);
    return answer.end(none);
  }
  answer.writeHead(200, { "Content-Type": "text/event-stream" });
  const tell = (event, id, data) => answer.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
  tell("hello", 0, { ...run, bins: 0 });
  let n = 0;
  const beat = setInterval(() => {
    if (n >= bins) return clearInterval(beat);
    const end = Number(row(n).readBigUInt64LE(0));
    tell("bin", n, { end, row: row(n).subarray(8).toString("base64") });
    tell("tick", ++n, { t: Math.round(end / run.tau_ps), phase: "replayed", trees: [], held: 0, late: null, lost: 0 });
  }, 1000 / RATE);
  request.on("close", () => clearInterval(beat));
}).listen(0, "127.0.0.1");
await new Promise((go) => server.on("listening", go));
{
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const told = await page.context().newCDPSession(page);
  await told.send("Performance.enable");
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => Number(document.body.dataset.bins) > 20);
  const read = async () => Object.fromEntries((await told.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  const count = () => page.evaluate(() => Number(document.body.dataset.bins));
  const before = await read(), first = await count();
  await page.waitForTimeout(SECONDS * 1000);
  const after = await read(), last = await count();
  const share = (name) => `${((100 * (after[name] - before[name])) / (after.Timestamp - before.Timestamp)).toFixed(1)} %`;
  const heap = ({ JSHeapUsedSize }) => (JSHeapUsedSize / 1e6).toFixed(1);
  console.log(`live page, ${wide} outputs, ${((last - first) / SECONDS).toFixed(1)} bins/s: main thread ${share("TaskDuration")}, script ${share("ScriptDuration")}, style ${share("RecalcStyleDuration")}, layout ${share("LayoutDuration")}, heap ${heap(before)} then ${heap(after)} MB`);
}
await browser.close();
server.closeAllConnections();
server.close();
