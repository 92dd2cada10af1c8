// Records a run and replays it at a chosen pace, so that the cost of a page includes neither the run's work nor its
// pace.
import { createServer } from "node:http";
import { gone, start } from "./common.mjs";

// The page of a run and at least `count` of its bins, as sent by the page's server.
export async function record(pausebed, scenario, bins) {
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
  return { page, run, columns, bins, outputs: columns.readUInt32LE(8) };
}

// Replays the run to every page from the beginning, at `rate` bins a second, in a loop with increasing time.
export async function tell({ page, run, columns, bins, outputs }, rate) {
  const stride = 8 + 2 * outputs;
  const row = (n) => columns.subarray(12 + (n % bins) * stride, 12 + ((n % bins) + 1) * stride);
  const end = (n) => Number(row(n).readBigUInt64LE(0)) + Math.floor(n / bins) * Number(row(bins - 1).readBigUInt64LE(0));
  const server = createServer((request, answer) => {
    const path = request.url.split("?")[0];
    if (path === "/") return answer.end(page);
    if (path === "/api/columns") {
      const none = Buffer.alloc(12);
      none.writeUInt32LE(outputs, 8);
      return answer.end(none);
    }
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    const event = (kind, id, data) => answer.write(`event: ${kind}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
    event("hello", 0, { ...run, bins: 0 });
    let n = 0;
    const beat = setInterval(() => {
      event("bin", n, { end: end(n), row: row(n).subarray(8).toString("base64") });
      const t = Math.round(end(n) / run.tau_ps);
      // One note every ten seconds.
      if (n % (10 * rate) === 0) event("note", n + 1, { t, kind: "act", what: `number ${n}` });
      event("tick", ++n, { t, phase: "replayed", trees: [], held: 0, late: null, lost: 0 });
    }, 1000 / rate);
    request.on("close", () => clearInterval(beat));
  }).listen(0, "127.0.0.1");
  await new Promise((go) => server.on("listening", go));
  const close = () => { server.closeAllConnections(); server.close(); };
  return { address: `http://127.0.0.1:${server.address().port}/`, close };
}

// The browser's performance metrics of a page, by name.
export async function meter(page) {
  const told = await page.context().newCDPSession(page);
  await told.send("Performance.enable");
  const read = async () => Object.fromEntries((await told.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  // Collect garbage first, so that unused objects are not counted.
  const collected = async () => { await told.send("HeapProfiler.collectGarbage"); return read(); };
  return { read, collected };
}
