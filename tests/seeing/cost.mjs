// Cost of pages in a real browser (docs/spec/seeing.md 13): opening a report, and following a run of 128 nodes at ten bins
// a second. The run is recorded first and replayed at that pace, so that its own cost is not included. The script prints
// the figures without limits, because they depend on the host.
//
//   node tests/seeing/cost.mjs PAUSEBED SCENARIO PAGE...   (called by run.sh)
import { resolve, basename, dirname } from "node:path";
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium, executablePath, skip } from "./common.mjs";
import { meter, record, tell } from "./replay.mjs";

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

// The live page with ten bins a second.
const told = await tell(await record(pausebed, scenario, SECONDS * RATE + 60), RATE);
{
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const { read } = await meter(page);
  await page.goto(told.address);
  await page.waitForFunction(() => Number(document.body.dataset.bins) > 20);
  const count = () => page.evaluate(() => Number(document.body.dataset.bins));
  const before = await read(), first = await count();
  await page.waitForTimeout(SECONDS * 1000);
  const after = await read(), last = await count();
  const share = (name) => `${((100 * (after[name] - before[name])) / (after.Timestamp - before.Timestamp)).toFixed(1)} %`;
  console.log(`live page, ${await page.locator("path[data-e]").count()} outputs, ${((last - first) / SECONDS).toFixed(1)} bins/s: main thread ${share("TaskDuration")}, script ${share("ScriptDuration")}, style ${share("RecalcStyleDuration")}, layout ${share("LayoutDuration")}`);
}
await browser.close();
told.close();
