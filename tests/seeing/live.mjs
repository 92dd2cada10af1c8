// Follows runs on the live page in a real browser (seeing.md 7, 14) and keeps screenshots.
//
//   npm install playwright-core axe-core
//   node tests/seeing/live.mjs PAUSEBED SHOTS   (CHROMIUM names the browser if it is not "chromium")
//
// Exit 0 if all holds, 1 if something does not, 77 with a reason where there is nothing to drive.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { axe, check, chromium, executablePath, failed, passed, skip } from "./common.mjs";

const [pausebed, shots] = process.argv.slice(2);
if (!pausebed || !shots) skip("usage: live.mjs PAUSEBED SHOTS");
mkdirSync(shots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "pausebed-live-"));

// Four adapters behind two switches; a phase has a name that is markup.
const hostile = "<img src=x onerror=alert(1)>";
const scenario = join(folder, "four.toml");
writeFileSync(scenario, `schema = 1
name = "four"
[run]
duration = "6000 mtu"
[fabric]
technology = "infiniband"
link = { rate = "8 Gbps", delay = "0.125 mtu" }
switch = { buffer = "36 mtu" }
nodes = [
  { name = "h0", kind = "nic" }, { name = "h1", kind = "nic" },
  { name = "h2", kind = "nic" }, { name = "h3", kind = "nic" },
  { name = "s0", kind = "switch" }, { name = "s1", kind = "switch" },
]
links = [
  { a = "h0:1", b = "s0:1" }, { a = "h1:1", b = "s0:2" }, { a = "s0:3", b = "s1:3" },
  { a = "h2:1", b = "s1:1" }, { a = "h3:1", b = "s1:2" },
]
[[traffic]]
name = "hot"
from = ["h0", "h2"]
to = "h3"
load = 0.9
arrivals = "poisson"
size = "2048 B"
[[traffic]]
name = "victim"
from = "h1"
to = "h2"
load = 0.9
arrivals = "poisson"
size = "2048 B"
[[phase]]
name = "first"
start = "0 mtu"
[[phase]]
name = ${JSON.stringify(hostile)}
start = "3000 mtu"
`);

// Starts the command and answers with it and its address.
function serve(port, seconds) {
  const child = spawn(pausebed, ["serve", scenario, "--listen", `127.0.0.1:${port}`, "--over", String(seconds)], { stdio: ["ignore", "ignore", "pipe"] });
  const address = new Promise((told, gone) => {
    let text = "";
    child.stderr.on("data", (some) => {
      text += some;
      const found = /http:\/\/\S+/.exec(text);
      if (found) told(found[0]);
    });
    child.on("exit", () => gone(new Error(`serve ended: ${text}`)));
  });
  return { child, address };
}
const gone = (child) => new Promise((done) => { if (child.exitCode !== null) done(); else { child.on("exit", done); child.kill("SIGINT"); } });

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const first = serve(0, 12);
let second;
try {
  const address = await first.address;
  const port = Number(new URL(address).port);
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: "light" });
  const faults = [], foreign = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
  page.on("request", (request) => { if (new URL(request.url()).host !== new URL(address).host) foreign.push(request.url()); });
  await page.goto(address);
  const bins = () => page.evaluate(() => Number(document.body.dataset.bins || 0));
  const until = (what, ms = 8000) => page.waitForFunction(what, null, { timeout: ms }).then(() => true, () => false);
  check("bins arrive", await until(() => Number(document.body.dataset.bins) > 5));
  const before = await bins();
  await page.waitForTimeout(1200);
  check("and go on arriving", (await bins()) > before, `${before} then ${await bins()}`);
  check("lines stand out", await until(() => document.querySelectorAll(".ways path:not(.w0)").length > 0));
  check("a root is ringed", await until(() => [...document.querySelectorAll("g.root")].some((g) => !g.hasAttribute("hidden"))));
  check("the feed tells of the phase", (await page.locator("#feed tr").count()) > 0);
  check("the caption has numbers", /\d+ of \d+ outputs wait/.test(await page.locator("#caption").textContent()));
  const drawn = await page.evaluate(() => {
    const canvas = document.getElementById("growth");
    const { data } = canvas.getContext("2d").getImageData(0, 0, Math.min(60, canvas.width), canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return colours.size;
  });
  check("the figure has grown", drawn > 3, `${drawn} colours`);
  check("a name that is markup stays text", (await page.locator("img").count()) === 0);
  for (const [theme, width] of [["light", 1440], ["dark", 1440], ["light", 390], ["dark", 390]]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(400);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(`${theme} ${width}: does not scroll sideways`, wide <= 0, `${wide} px`);
    await page.screenshot({ path: join(shots, `live-${theme}-${width}.png`), fullPage: true });
    const found = await page.evaluate(`(async () => { ${axe}; return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag22aa", "best-practice"] }); })()`);
    check(`${theme} ${width}: axe finds nothing`, found.violations.length === 0, found.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 90)}`).join("; "));
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  // Held still, the picture stays; following, it goes on.
  await page.locator("#follow").click();
  const still = await page.locator("#now").textContent();
  await page.waitForTimeout(700);
  check("held still it stays", (await page.locator("#now").textContent()) === still);
  await page.locator("#follow").click();
  // A reader that missed everything fetches it in one go.
  await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: true, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); });
  await page.waitForTimeout(1500);
  const away = await bins();
  await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: false, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); });
  await page.waitForFunction((n) => Number(document.body.dataset.bins) > n, away, { timeout: 8000 }).catch(() => {});
  const whole = await page.evaluate(() => Number(document.getElementById("time-slider").max) + 1);
  check("after a while away nothing is missing", whole === (await bins()) && whole > away, `${whole} of ${await bins()}, ${away} before`);
  check("the end is told", await until(() => document.body.dataset.over, 20000));
  check("with its verdict", /PASS|FAIL|INCONCLUSIVE/.test(await page.locator("#headline").textContent()));
  check("no error", faults.length === 0, faults.join("; "));
  check("no foreign request", foreign.length === 0, foreign.join(" "));

  // The server goes away in the middle of a run and another one begins at the same place.
  await gone(first.child);
  second = serve(port, 20);
  await second.address;
  await page.goto(address);
  check("the next run is followed", await until(() => Number(document.body.dataset.bins) > 3));
  second.child.kill("SIGKILL");
  check("a lost server is told of", await until(() => document.getElementById("line").textContent.includes("lost"), 5000));
  second = serve(port, 8);
  await second.address;
  check("and found again", await until(() => document.getElementById("line").textContent === "following" && Number(document.body.dataset.bins) > 0, 15000));
  await page.screenshot({ path: join(shots, "live-again.png") });
} catch (error) {
  failed.push(String(error));
} finally {
  await browser.close();
  await gone(first.child);
  if (second) await gone(second.child);
  rmSync(folder, { recursive: true, force: true });
}
failed.forEach((line) => console.log("FAILED " + line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
