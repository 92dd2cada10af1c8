// Compares a report's first screen and its figure with approved pictures, and checks that its strokes differ under
// colour vision deficiencies (docs/spec/seeing.md 14).
//
//   node tests/seeing/goldens.mjs OUT PAGE [--keep]     (called by run.sh)
//
// --keep rewrites the pictures in tests/seeing/golden; check them before a commit. The font is fixed, because text
// causes most differences between machines. Exit codes as in report.mjs.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { check, chromium, executablePath, failed, passed, skip } from "./common.mjs";

const [out, file, keep] = process.argv.slice(2);
if (!out || !file) skip("usage: goldens.mjs OUT PAGE [--keep]");
const kept = join(dirname(fileURLToPath(import.meta.url)), "golden");
for (const folder of [out, kept]) mkdirSync(folder, { recursive: true });

const FONT = "DejaVu Sans";
// Permitted share of differing pixels. A pixel differs if one of its colours differs by more than the limit.
const [SHARE, STEP] = [0.005, 24];
// Minimum colour distance of two strokes.
const APART = 15;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text"] });
const judge = await browser.newPage();
const has = await judge.evaluate((font) => {
  const wide = (family) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `40px ${family}`;
    return pen.measureText("mmmiiiWWW").width;
  };
  return wide(`"${font}", monospace`) !== wide("monospace") || wide(`"${font}", serif`) !== wide("serif");
}, FONT);
if (!has) skip(`the font ${FONT} is not installed`);

// Share of differing pixels; 1 if the pictures have different sizes.
const difference = (one, other) => judge.evaluate(async ([pictures, step]) => {
  const points = await Promise.all(pictures.map(async (picture) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.getContext("2d").getImageData(0, 0, image.width, image.height);
  }));
  const [a, b] = points;
  if (a.width !== b.width || a.height !== b.height) return 1;
  let differ = 0;
  for (let at = 0; at < a.data.length; at += 4) {
    if ([0, 1, 2].some((colour) => Math.abs(a.data[at + colour] - b.data[at + colour]) > step)) differ += 1;
  }
  return differ / (a.width * a.height);
}, [[one, other].map((picture) => picture.toString("base64")), STEP]);

// Colour distance (CIE 1976) of each pair of strokes (hot port, run, baseline) in the picture simulated for this
// deficiency.
async function strokes(context, page, type) {
  const devtools = await context.newCDPSession(page);
  await devtools.send("Emulation.setEmulatedVisionDeficiency", { type });
  const seen = {};
  for (const stroke of ["hot", "run", "base"]) {
    await page.evaluate((stroke) => { document.body.style.background = document.documentElement.style.background = `var(--${stroke})`; }, stroke);
    const picture = await page.screenshot({ clip: { x: 200, y: 200, width: 8, height: 8 } });
    seen[stroke] = await judge.evaluate(async (picture) => {
      const image = new Image();
      image.src = `data:image/png;base64,${picture}`;
      await image.decode();
      const pen = new OffscreenCanvas(8, 8).getContext("2d");
      pen.drawImage(image, 0, 0);
      const [r, g, b] = [...pen.getImageData(4, 4, 1, 1).data].map((c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      const f = (t) => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27 * t + 16) / 116);
      const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089].map(f);
      return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
    }, picture.toString("base64"));
  }
  await devtools.send("Emulation.setEmulatedVisionDeficiency", { type: "none" });
  const apart = (one, other) => Math.hypot(...[0, 1, 2].map((n) => seen[one][n] - seen[other][n]));
  return { "hot-run": apart("hot", "run"), "hot-base": apart("hot", "base"), "run-base": apart("run", "base") };
}

for (const colorScheme of ["light", "dark"]) {
  const view = { offline: true, bypassCSP: true, viewport: { width: 1440, height: 900 }, colorScheme, reducedMotion: "reduce" };
  const context = await browser.newContext(view);
  const page = await context.newPage();
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.waitForSelector("body[data-ready]");
  await page.addStyleTag({ content: `* { font-family: "${FONT}" !important; caret-color: transparent !important }` });
  const screens = { first: () => {}, figure: () => document.getElementById("figure").scrollIntoView({ block: "start" }) };
  for (const [screen, show] of Object.entries(screens)) {
    await page.evaluate(show);
    await page.waitForTimeout(300);
    const name = `${screen}-${colorScheme}.png`;
    const seen = await page.screenshot({ path: join(out, `golden-${name}`) });
    const golden = join(kept, name);
    if (keep === "--keep") {
      writeFileSync(golden, seen);
    } else if (!existsSync(golden)) {
      check(`${name} is there to compare with`, false);
    } else {
      const share = await difference(seen, readFileSync(golden));
      console.log(`${name}: ${(share * 100).toFixed(2)} % of the points differ`);
      check(`${name} is as it was looked at`, share <= SHARE, `${(share * 100).toFixed(2)} % of the points differ`);
    }
  }
  await page.evaluate(() => document.querySelectorAll("body > *").forEach((part) => part.remove()));
  for (const type of ["none", "protanopia", "deuteranopia", "tritanopia"]) {
    const apart = await strokes(context, page, type);
    const told = Object.entries(apart).map(([pair, apart]) => `${pair} ${apart.toFixed(0)}`).join(", ");
    console.log(`${colorScheme}, ${type}: ${told}`);
    check(`${colorScheme}, ${type}: strokes are 15 apart`, Object.values(apart).every((apart) => apart >= APART), told);
  }
  await context.close();
}
// Checks the comparison itself: the pictures of the two themes must differ.
if (keep !== "--keep") {
  const [light, dark] = ["light", "dark"].map((theme) => readFileSync(join(kept, `first-${theme}.png`)));
  check("two themes differ", (await difference(light, dark)) > 0.5);
}
await browser.close();
failed.forEach((line) => console.log("FAILED " + line));
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
