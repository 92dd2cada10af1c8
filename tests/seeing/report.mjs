// Drives report.html in a real browser (docs/spec/seeing.md 14) and keeps screenshots.
//
//   npm install playwright-core axe-core      (in any folder on NODE_PATH, or the current folder)
//   node tests/seeing/report.mjs OUT PAGE...  (CHROMIUM names the browser if it is not "chromium")
//
// Exit code 0 if all checks pass, 1 if one fails, 77 with a reason if the browser is missing.
import { mkdirSync, readFileSync } from "node:fs";
import { resolve, basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { axe, check, chromium, executablePath, failed, passed, skip } from "./common.mjs";

const [out, ...pages] = process.argv.slice(2);
if (!out || pages.length === 0) skip("usage: report.mjs OUT PAGE...");
mkdirSync(out, { recursive: true });

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function open(file, options, hash = "") {
  const context = await browser.newContext({ offline: true, ...options });
  const page = await context.newPage();
  const faults = [], requests = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") faults.push(message.text()); });
  page.on("request", (request) => requests.push(request.url()));
  const begin = Date.now();
  await page.goto(pathToFileURL(resolve(file)).href + hash);
  if (options.javaScriptEnabled !== false) await page.waitForSelector("body[data-ready]", { timeout: 5000 });
  return { context, page, faults, requests, took: Date.now() - begin };
}

// The buttons of figures save self-contained pictures in the light theme, and tables.
async function saved(page, name) {
  await page.evaluate(() => { document.documentElement.dataset.theme = "dark"; });
  const requests = [];
  page.on("request", (request) => { if (!request.url().startsWith("blob:")) requests.push(request.url()); });
  for (const place of await page.locator(".save").all()) {
    const figure = await place.getAttribute("data-save");
    for (const button of await place.locator("button").all()) {
      const box = await button.boundingBox();
      const what = await button.textContent();
      check(`${name}: ${figure} ${what} is large enough to be met`, box?.width >= 24 && box.height >= 24, JSON.stringify(box));
      await button.focus();
      const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
      const file = join(out, `${name}-${download.suggestedFilename()}`);
      await download.saveAs(file);
      const text = readFileSync(file, "utf8");
      if (what === "CSV") {
        const rows = text.trimEnd().split("\n").map((row) => row.replace(/"([^"]|"")*"/g, "").split(",").length);
        check(`${name}: ${figure} has a table`, rows.length > 1 && rows.every((row) => row === rows[0]), `${rows.length} rows`);
        continue;
      }
      const told = await page.evaluate((text) => {
        const picture = new DOMParser().parseFromString(text, "image/svg+xml");
        return { broken: !!picture.querySelector("parsererror"), root: picture.documentElement.localName, title: picture.querySelector("title")?.textContent, lines: picture.querySelectorAll("path, rect").length };
      }, text);
      const leans = /var\(|href=|url\(|https?:(?!\/\/www\.w3\.org\/2000\/svg")/.exec(text)?.[0];
      // The picture of one port has a background, a frame or zero line, its curve and the cursor.
      check(`${name}: ${figure} is a picture that stands alone`, told.root === "svg" && !told.broken && told.title && told.lines >= 4 && !leans, JSON.stringify({ ...told, leans }));
      check(`${name}: ${figure} is light`, text.includes(".paper{fill:#ffffff}"));
    }
  }
  check(`${name}: saving sends no request`, requests.length === 0, requests.join(" "));
}

for (const file of pages) {
  const name = basename(dirname(resolve(file)));
  for (const theme of ["light", "dark"]) {
    for (const width of [1440, 800, 390]) {
      const where = `${name} ${theme} ${width}`;
      const view = { viewport: { width, height: 900 }, colorScheme: theme };
      const { context, page, faults, requests, took } = await open(file, view);
      check(`${where}: no error`, faults.length === 0, faults.join("; "));
      check(`${where}: one request`, requests.length === 1, requests.join(" "));
      check(`${where}: ready within 2 s`, took < 2000, `${took} ms`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`${where}: does not scroll sideways`, wide <= 0, `${wide} px`);
      await page.screenshot({ path: join(out, `${name}-${theme}-${width}.png`) });
      await page.screenshot({ path: join(out, `${name}-${theme}-${width}-full.png`), fullPage: true });
      // The page's content security policy blocks injected scripts, so axe is evaluated through the debugger.
      const found = await page.evaluate(`(async () => { ${axe}; return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag22aa", "best-practice"] }); })()`);
      const told = found.violations.map((v) => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 90)}`);
      check(`${where}: axe finds nothing`, told.length === 0, "\n    " + told.join("\n    "));
      await context.close();
    }
  }
  {
    const { context, page } = await open(file, { javaScriptEnabled: false, viewport: { width: 1440, height: 900 } });
    for (const what of ["h1", "svg.fabric", "#figure", "#expectations table", "h3"]) {
      check(`${name} without script: ${what}`, await page.locator(what).first().isVisible());
    }
    check(`${name} without script: no dead control`, !(await page.locator("footer.bar").isVisible()) && !(await page.locator(".save button").first().isVisible()));
    await context.close();
  }
  {
    // A4 with Chromium's default margins, printed from the dark theme.
    const [WIDE, HIGH] = [718, 1047];
    const { context, page } = await open(file, { viewport: { width: WIDE, height: HIGH }, colorScheme: "dark" });
    await page.evaluate(() => { document.documentElement.dataset.theme = "dark"; });
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.pdf({ path: join(out, `${name}.pdf`), format: "A4" });
    check(`${name} printed: no controls`, !(await page.locator("footer.bar").isVisible()) && !(await page.locator("#theme").isVisible()) && !(await page.locator(".save").first().isVisible()));
    check(`${name} printed: dark ink`, await page.evaluate(() => getComputedStyle(document.body).color.match(/\d+/g).every((part) => part < 100)));
    const cut = await page.evaluate(([wide, high]) => {
      const told = [];
      for (const el of document.querySelectorAll(".pane svg, .card, figure, .badge")) {
        const { width, height, right } = el.getBoundingClientRect();
        if (width === 0) continue;
        const kept = el.closest(".pane, .card, figure, .verdict");
        const whole = getComputedStyle(kept).breakInside === "avoid";
        if (!whole || height > high || right > wide + 1) told.push(`${el.id || el.className.baseVal || el.className}: ${width.toFixed(0)} x ${height.toFixed(0)}, ${whole ? "kept" : "cut"}`);
      }
      return told;
    }, [WIDE, HIGH]);
    check(`${name} printed: every figure is on one page`, cut.length === 0, cut.join("; "));
    await context.close();
  }
  {
    const { context, page, faults } = await open(file, { viewport: { width: 1440, height: 900 }, colorScheme: "light" });
    const top = async (what) => (await page.locator(what).first().boundingBox())?.y ?? 1e9;
    for (const what of [".badge", "h1", ".cards", "svg.fabric"]) {
      check(`${name}: ${what} is on the first screen`, (await top(what)) < 800);
    }
    const now = () => page.locator("#now").textContent();
    await page.waitForTimeout(50);
    const at = await now();
    await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(60);
    check(`${name}: an arrow moves the cursor`, (await now()) !== at, await now());
    await page.keyboard.press("Home");
    await page.waitForTimeout(60);
    const held = await page.locator("[data-k='1.held']").first().textContent().catch(() => "0");
    const standing = await page.locator("#f1 .ways path:not(.w0)").count();
    check(`${name}: as many lines stand out in the first bin as are held, and some more`, standing >= Number(held) && (Number(held) > 0 || standing === 0), `${held} held, ${standing} stand out`);
    await page.keyboard.press("End");
    await page.waitForTimeout(60);
    const figure = await page.locator("svg.pointer").first();
    await page.evaluate(() => document.getElementById("figure").scrollIntoView({ block: "start" }));
    const box = await figure.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.waitForTimeout(60);
    const [bin, last] = await page.locator("#time-slider").evaluate((slider) => [slider.value, slider.max].map(Number));
    check(`${name}: the pointer on the figure moves the slider`, Math.abs(bin - last / 2) < Math.max(1, 0.02 * last), `${bin} of ${last}`);
    const view = () => page.locator("#figure svg.t").first().getAttribute("viewBox");
    const whole = await view();
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 5 });
    await page.mouse.up();
    check(`${name}: dragging zooms`, (await view()) !== whole, await view());
    const small = page.locator(".multiples svg.t").first();
    check(`${name}: every figure zooms`, (await small.getAttribute("viewBox")).split(" ")[0] !== "0");
    await page.screenshot({ path: join(out, `${name}-zoomed.png`) });
    await page.keyboard.press("Escape");
    check(`${name}: Esc shows all again`, (await view()).split(" ")[2] === whole.split(" ")[2]);
    if (await page.locator("#heat").count()) {
      await page.locator("#heat").evaluate((details) => { details.open = true; });
      const map = page.locator("svg.heat").last();
      await map.scrollIntoViewIfNeeded();
      const { x, y, width, height } = await map.boundingBox();
      const said = [];
      for (const place of [0.02, 0.98]) {
        await page.mouse.move(x + width * 0.3, y + height * place);
        await page.waitForTimeout(60);
        said.push(await page.locator("#cell").textContent());
      }
      check(`${name}: a row of the heat map has a name and a value`, said[0] !== said[1] && said.every((text) => / received (\d\.\d\d|–) with /.test(text)), said.join("; "));
      await map.screenshot({ path: join(out, `${name}-heat.png`) });
    }
    await page.keyboard.press("d");
    check(`${name}: d is the dark theme`, (await page.evaluate(() => document.documentElement.dataset.theme)) === "dark");
    await page.keyboard.press(" ");
    const before = await now();
    await page.waitForTimeout(400);
    check(`${name}: space plays`, (await now()) !== before);
    await page.keyboard.press(" ");
    // With the keyboard only: focus the picture, select a line, pin it and release it.
    const reached = async (what) => {
      for (let n = 0; n < 60; n++) {
        await page.keyboard.press("Tab");
        if (await page.evaluate((what) => document.activeElement.matches(what), what)) return true;
      }
      return false;
    };
    await page.evaluate(() => document.activeElement.blur());
    check(`${name}: Tab leads to the picture`, await reached(":has(> svg#f1), #f1"));
    check(`${name}: what has the focus is outlined`, await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle !== "none"));
    await page.keyboard.press("ArrowDown");
    await page.waitForTimeout(60);
    check(`${name}: an arrow names a line`, (await page.locator("#f1 .ways path.named").count()) === 1);
    await page.keyboard.press("Enter");
    await page.waitForTimeout(350);
    check(`${name}: Enter pins it`, (await page.locator("#pinned svg path.l").count()) > 0);
    await page.keyboard.press("Enter");
    // The line is highlighted under the cursor, so it starts to be held in some bin.
    const outstanding = page.locator("#f1 .ways path:not(.w0)");
    if ((await outstanding.count()) > 0) {
      await outstanding.last().dispatchEvent("click");
      const place = async (key) => { await page.keyboard.press(key); await page.waitForTimeout(60); return now(); };
      const share = async () => Number(/(\d+) % with [^,]*$/.exec(await page.locator("#named").textContent())?.[1]);
      const first = await place("Home"), always = await share();
      const [there, next, back] = [await place("]"), await place("]"), await place("[")];
      const held = await share();
      // An output that is held from the first bin on may be held in all bins.
      check(`${name}: ] leads to where the pinned line begins to be held`, (there !== first || always >= 10) && held >= 10, `${first} ${there} ${held} %`);
      check(`${name}: ] and [ lead on and back`, next === there || back === there, `${there} ${next} ${back}`);
      await page.keyboard.press("Escape");
      await place("End");
    }
    await page.locator("#f1 .ways path").last().dispatchEvent("click");
    await page.waitForTimeout(350);
    check(`${name}: a pinned line has its series`, (await page.locator("#pinned svg path.l").count()) > 0);
    check(`${name}: the fragment holds the state`, /t=\d+/.test(page.url()) && /pin=/.test(page.url()), page.url());
    const slow = await page.evaluate(async () => {
      const slider = document.getElementById("time-slider");
      const begin = performance.now();
      for (let n = 0; n < 140; n++) {
        slider.value = String((n * 7) % Number(slider.max));
        slider.dispatchEvent(new Event("input"));
        await new Promise(requestAnimationFrame);
      }
      return (performance.now() - begin) / 140;
    });
    console.log(`${name}: a step of the cursor and its frame take ${slow.toFixed(1)} ms; ${await page.evaluate(() => document.querySelectorAll("*").length)} nodes`);
    await saved(page, name);
    check(`${name}: no fault on the way`, faults.length === 0, faults.join("; "));
    await context.close();
  }
}
await browser.close();
failed.forEach((line) => console.log("FAILED " + line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
