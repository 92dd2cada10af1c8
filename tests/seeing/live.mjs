// Follows runs and a lab on the live page in a real browser (docs/spec/seeing.md 7, 14) and keeps screenshots.
//
//   npm install playwright-core axe-core
//   node tests/seeing/live.mjs PAUSEBED SHOTS   (called by run.sh)
//
// Exit code 0 if all checks pass, 1 if one fails, 77 with a reason if the browser is missing.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { axe, check, chromium, executablePath, failed, gone, passed, skip, start } from "./common.mjs";

const [pausebed, shots] = process.argv.slice(2);
if (!pausebed || !shots) skip("usage: live.mjs PAUSEBED SHOTS");
mkdirSync(shots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "pausebed-live-"));

// Four adapters behind two switches; the name of a phase contains markup.
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

const serve = (port, seconds) => start(pausebed, ["serve", scenario, "--listen", `127.0.0.1:${port}`, "--over", String(seconds)]);

// Both themes, wide and narrow.
async function looked(page, name) {
  for (const [theme, width] of [["light", 1440], ["dark", 1440], ["light", 390], ["dark", 390]]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(400);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(`${name} ${theme} ${width}: does not scroll sideways`, wide <= 0, `${wide} px`);
    await page.screenshot({ path: join(shots, `${name}-${theme}-${width}.png`), fullPage: true });
    const found = await page.evaluate(`(async () => { ${axe}; return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag22aa", "best-practice"] }); })()`);
    check(`${name} ${theme} ${width}: axe finds nothing`, found.violations.length === 0, found.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 90)}`).join("; "));
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

// A lab: the page shows it, changes it with the token, and reports its end.
async function lab() {
  const env = { ...process.env, PAUSEBED_LABS: join(folder, "labs"), XDG_RUNTIME_DIR: folder };
  const command = (...words) => execFileSync(pausebed, words, { env, stdio: ["ignore", "pipe", "pipe"] }).toString();
  command("up", scenario, "--name", "seen", "--backend", "udp");
  const served = start(pausebed, ["serve", "seen", "--listen", "127.0.0.1:0"], env, 2);
  try {
    const [open, changing] = await served.address;
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: "light" });
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("dialog", (dialog) => dialog.accept());
    await page.goto(open);
    check("lab: bins arrive", await page.waitForFunction(() => Number(document.body.dataset.bins) > 3, null, { timeout: 15000 }).then(() => true, () => false));
    check("lab: without a token the page offers no changes", !(await page.locator("#acts").isVisible()));
    await page.goto(changing);
    await page.waitForFunction(() => Number(document.body.dataset.bins) > 12, null, { timeout: 15000 });
    check("lab: with the token the page offers changes", await page.locator("#acts").isVisible());
    await page.locator('[data-act="cut"]').click();
    check("lab: a port must be named", (await page.locator("#acted").textContent()) === "At which port?");
    await page.locator(".targets path").first().dispatchEvent("click");
    const port = await page.locator("#at-port").inputValue();
    check("lab: a line that is clicked is the port", /^\S+:\d+$/.test(port), port);
    await page.locator('[data-act="cut"]').click();
    const fed = (what) => page.waitForFunction((text) => document.getElementById("feed").textContent.includes(text), what, { timeout: 8000 }).then(() => true, () => false);
    check("lab: a cut is in the feed", await fed(`the cable at ${port} is cut`), await page.locator("#acted").textContent());
    await page.locator('[data-act="mend"]').click();
    check("lab: so is its mending", await fed("is mended"));
    await looked(page, "lab");
    command("down", "seen");
    check("lab: the page reports its end", await page.waitForFunction(() => document.body.dataset.over, null, { timeout: 15000 }).then(() => true, () => false));
    check("lab: no error", faults.length === 0, faults.join("; "));
    await page.close();
  } finally {
    await gone(served.child);
    command("down", "--all");
  }
}

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
  check("lines stand out", await until(() => document.querySelectorAll('.lines path:not(.w0)[d*="M"]').length > 0));
  check("a root is ringed", await until(() => [...document.querySelectorAll("g.root")].some((g) => !g.hasAttribute("hidden"))));
  check("the feed tells of the phase", (await page.locator("#feed tr").count()) > 0);
  check("the caption has numbers", /\d+ of \d+ outputs wait/.test(await page.locator("#caption").textContent()));
  const drawn = await page.evaluate(() => {
    const canvas = document.getElementById("growth");
    const { data } = canvas.getContext("2d").getImageData(0, 0, Math.min(90, canvas.width), canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return colours.size;
  });
  check("the figure has grown", drawn > 3, `${drawn} colours`);
  check("a name that is markup stays text", (await page.locator("img").count()) === 0);
  await looked(page, "live");
  // A paused picture stays; a following picture advances.
  await page.locator("#follow").click();
  // The picture that was requested last is shown.
  await page.waitForTimeout(300);
  const still = await page.locator("#now").textContent();
  await page.waitForTimeout(700);
  check("held still it stays", (await page.locator("#now").textContent()) === still);
  await page.locator("#follow").click();
  // The same with the keyboard only.
  const focus = async (id) => {
    for (let n = 0; n < 40; n++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate((id) => document.activeElement.id === id, id)) return true;
    }
    return false;
  };
  check("Tab leads to the slider", await focus("time-slider"));
  check("which is outlined", await page.evaluate(() => getComputedStyle(document.querySelector(".bar .track")).outlineStyle !== "none"));
  await page.keyboard.press("Home");
  check("Home is the first bin, held still", await until(() => document.getElementById("then").textContent.startsWith("held still")) && (await page.locator("#time-slider").inputValue()) === "0");
  await page.keyboard.press("ArrowRight");
  check("an arrow is a bin", (await page.locator("#time-slider").inputValue()) === "1");
  check("the slider's value text has the time in MTU times", /MTU times$/.test(await page.locator("#time-slider").getAttribute("aria-valuetext")));
  check("Tab leads to the button", await focus("follow"));
  await page.keyboard.press("Space");
  check("and space follows again", await until(() => document.getElementById("then").textContent.startsWith("following")));
  // A reader that missed all events fetches them in one request.
  await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: true, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); });
  await page.waitForTimeout(1500);
  const away = await bins();
  await page.evaluate(() => { Object.defineProperty(document, "hidden", { value: false, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); });
  await page.waitForFunction((n) => Number(document.body.dataset.bins) > n, away, { timeout: 8000 }).catch(() => {});
  const whole = await page.evaluate(() => Number(document.getElementById("time-slider").max) + 1);
  check("after a while away nothing is missing", whole === (await bins()) && whole > away, `${whole} of ${await bins()}, ${away} before`);
  check("the page reports the end", await until(() => document.body.dataset.over, 20000));
  check("with its verdict", /PASS|FAIL|INCONCLUSIVE/.test(await page.locator("#headline").textContent()));
  check("no error", faults.length === 0, faults.join("; "));
  check("no foreign request", foreign.length === 0, foreign.join(" "));

  // The server ends in the middle of a run and another server starts at the same address.
  await gone(first.child);
  second = serve(port, 20);
  await second.address;
  await page.goto(address);
  check("the next run is followed", await until(() => Number(document.body.dataset.bins) > 3));
  second.child.kill("SIGKILL");
  check("the page reports a lost server", await until(() => document.getElementById("line").textContent.includes("lost"), 5000));
  second = serve(port, 8);
  await second.address;
  check("and found again", await until(() => document.getElementById("line").textContent === "following" && Number(document.body.dataset.bins) > 0, 15000));
  await page.screenshot({ path: join(shots, "live-again.png") });
  await lab();
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
