// The live page of 128 nodes over ten minutes, ten bins a second: its memory does not grow (docs/spec/seeing.md 14).
//
//   node tests/seeing/soak.mjs PAUSEBED SCENARIO [MINUTES]   (called by run.sh FOLDER --slow)
//
// Exit code 0 if all checks pass, 1 if one fails, 77 with a reason if the browser is missing.
import { check, chromium, executablePath, failed, passed, skip } from "./common.mjs";
import { meter, record, tell } from "./replay.mjs";

const [pausebed, scenario, length = "10"] = process.argv.slice(2);
if (!pausebed || !scenario) skip("usage: soak.mjs PAUSEBED SCENARIO [MINUTES]");
const RATE = 10, MINUTES = Number(length);

const told = await tell(await record(pausebed, scenario, 400), RATE);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const faults = [];
page.on("pageerror", (error) => faults.push(String(error)));
page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
const { collected } = await meter(page);
await page.goto(told.address);
const minutes = [];
for (let minute = 1; minute <= MINUTES; minute++) {
  await page.waitForTimeout(60000);
  const { JSHeapUsedSize, Nodes, JSEventListeners } = await collected();
  minutes.push({ heap: JSHeapUsedSize, nodes: Nodes, listeners: JSEventListeners });
  console.log(`minute ${minute}: heap ${(JSHeapUsedSize / 1e6).toFixed(2)} MB, ${Nodes} nodes, ${JSEventListeners} listeners`);
}
const bins = await page.evaluate(() => Number(document.body.dataset.bins));
check("bins arrived all the while", bins > 0.8 * MINUTES * 60 * RATE, String(bins));
// The history is full after 1024 bins and the feed after 200 lines; ten minutes do not fill the feed.
const [from, to] = [minutes[Math.min(2, minutes.length - 1)], minutes[minutes.length - 1]];
check("the heap does not grow", to.heap < 1.1 * from.heap, `${from.heap} then ${to.heap}`);
check("nor what listens", to.listeners === from.listeners, `${from.listeners} then ${to.listeners}`);
check("no error", faults.length === 0, faults.join("; "));
await browser.close();
told.close();
failed.forEach((line) => console.log("FAILED " + line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
