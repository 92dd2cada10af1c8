// Checks the figures that `pausebed report --figures` writes, and a page with published results beside those of a run.
//
//   node tests/seeing/figures.mjs PAUSEBED OUT DIR[:BASELINE]...     (called by run.sh; packages as in report.mjs)
//
// Every SVG is well-formed and loads nothing; in both widths each label is inside the picture and overlaps no other. Exit
// codes as in report.mjs.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { axe, check, chromium, executablePath, failed, passed, skip } from "./common.mjs";

const [pausebed, out, ...runs] = process.argv.slice(2);
if (!pausebed || !out || runs.length === 0) skip("usage: figures.mjs PAUSEBED OUT DIR[:BASELINE]...");
mkdirSync(out, { recursive: true });
// Text of 11 units must be at least 6.5 pt high in print.
const [LETTER, POINTS, INCH] = [11, 6.5, 25.4];

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const context = await browser.newContext({ offline: true, deviceScaleFactor: 2 });
const page = await context.newPage();
const requests = [];
page.on("request", (request) => requests.push(request.url()));

// Labels that are cut off, and labels that overlap.
const crowded = () => page.evaluate(() => {
  const { width, height } = document.documentElement.viewBox.baseVal;
  const words = [...document.querySelectorAll("text")].map((el) => ({ text: el.textContent, box: el.getBoundingClientRect() }));
  const shown = words.filter(({ box }) => box.width > 0);
  const told = shown.filter(({ box }) => box.left < -0.5 || box.top < -0.5 || box.right > width + 0.5 || box.bottom > height + 0.5)
    .map(({ text }) => `“${text}” is cut`);
  shown.forEach((one, at) => shown.slice(at + 1).forEach((other) => {
    const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
    const high = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
    // A line box is higher than its letters.
    if (wide > 1 && high > 4) told.push(`“${one.text}” lies on “${other.text}”`);
  }));
  return told;
});

for (const run of runs) {
  const [folder, baseline] = run.split(":");
  const name = basename(folder), to = join(out, `${name}-figures`);
  execFileSync(pausebed, ["report", folder, ...(baseline ? [baseline] : []), "--figures", to]);
  const files = readdirSync(to).sort();
  check(`${name}: there are figures`, ["fabric-85mm.svg", "over-time-178mm.svg", "every-port.csv"].every((file) => files.includes(file)), files.join(" "));
  for (const file of files.filter((file) => file.endsWith(".svg"))) {
    const where = `${name}/${file}`, text = readFileSync(join(to, file), "utf8");
    const [, wide, , units, high] = /width="(\d+)mm" height="([\d.]+)mm" viewBox="0 0 (\d+) (\d+)"/.exec(text) ?? [];
    check(`${where}: letters are large enough`, (LETTER * wide / units / INCH) * 72 >= POINTS, `${wide} mm of ${units}`);
    await page.setViewportSize({ width: Number(units), height: Number(high) });
    requests.length = 0;
    await page.goto(pathToFileURL(resolve(to, file)).href);
    check(`${where}: one request`, requests.length === 1, requests.join(" "));
    const state = await page.evaluate(([wide, high]) => {
      const el = document.documentElement;
      el.setAttribute("width", wide);
      el.setAttribute("height", high);
      return { name: el.localName, broken: !!document.querySelector("parsererror"), title: document.title, about: document.querySelector("desc")?.textContent };
    }, [units, high]);
    check(`${where}: is well-formed and says what it shows`, state.name === "svg" && !state.broken && state.title && state.about, JSON.stringify(state));
    const told = await crowded();
    check(`${where}: words have room`, told.length === 0, told.slice(0, 5).join("; "));
    await page.screenshot({ path: join(to, file.replace(".svg", ".png")) });
  }
}

// A page with points and a picture; the picture is a figure of this project.
{
  const [folder, baseline] = runs[0].split(":");
  const [picture, points, html] = ["reference.png", "reference.csv", "reference.html"].map((file) => join(out, file));
  const own = join(out, `${basename(folder)}-figures`, "completion-times-85mm.png");
  writeFileSync(picture, readFileSync(own));
  const rows = readFileSync(join(out, `${basename(folder)}-figures`, "over-time.csv"), "utf8").split("\n").slice(1);
  const [panel, run, series] = rows.find((row) => row.startsWith("received,")).split(",");
  const side = rows.filter((row) => row.startsWith(`${panel},`)).pop().split(",")[1];
  writeFileSync(points, `panel,run,series,t_tau,value\n${panel},${run},${series},100,0.5\n`);
  execFileSync(pausebed, ["report", folder, ...(baseline ? [baseline] : []), "-o", html, "--reference", points, "--reference", picture,
    "--over", `${panel},${side}`, "--calibrate", "x:0=0,804=1000", "--calibrate", "y:400=0,0=1"]);
  for (const javaScriptEnabled of [true, false]) {
    const context = await browser.newContext({ offline: true, javaScriptEnabled, viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
    await page.goto(pathToFileURL(resolve(html)).href);
    if (javaScriptEnabled) await page.waitForSelector("body[data-ready]");
    const who = javaScriptEnabled ? "with references" : "with references, without script";
    const seen = () => page.locator(".overlay").getAttribute("opacity");
    check(`${who}: the picture is beside ours`, (await page.locator("#reference").boundingBox())?.width > 100);
    check(`${who}: points are hollow`, (await page.locator("#figure .points .hole").count()) === 1);
    check(`${who}: the slider is there if it does anything`, (await page.locator("#opacity").isVisible()) === javaScriptEnabled);
    check(`${who}: the picture is over ours if a slider is`, (Number(await seen()) > 0) === javaScriptEnabled, await seen());
    if (javaScriptEnabled) {
      const at = await page.locator("#now").textContent();
      await page.locator("#opacity").focus();
      await page.keyboard.press("End");
      await page.waitForTimeout(60);
      check(`${who}: the slider lets it appear, and the cursor stays`, (await seen()) === "1" && (await page.locator("#now").textContent()) === at, await seen());
      await page.locator(".reference").scrollIntoViewIfNeeded();
      await page.screenshot({ path: join(out, "reference-page.png") });
      const found = await page.evaluate(`(async () => { ${axe}; return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag22aa", "best-practice"] }); })()`);
      check(`${who}: axe finds nothing`, found.violations.length === 0, found.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 90)}`).join("; "));
    }
    check(`${who}: no fault`, faults.length === 0, faults.join("; "));
    await context.close();
  }
}
await browser.close();
failed.forEach((line) => console.log("FAILED " + line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
