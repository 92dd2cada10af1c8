// Shared by the browser tests: start of the browser, the accessibility check (axe), the count of checks, and the
// program that serves pages.
//
//   npm install playwright-core axe-core      (in any folder on NODE_PATH, or the current folder)
//
// CHROMIUM names the browser if it is not "chromium".
import { createRequire } from "node:module";
import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";

// Exit code 77: the browser or a package is missing.
export function skip(why) {
  console.log(`SKIPPED: ${why}`);
  process.exit(77);
}

const require = createRequire(join(process.cwd(), "here.js"));
export let chromium, axe, executablePath;
try {
  ({ chromium } = require("playwright-core"));
  axe = require("axe-core").source;
} catch {
  skip("playwright-core and axe-core are not installed");
}
try {
  executablePath = process.env.CHROMIUM || execFileSync("which", ["chromium"]).toString().trim();
} catch {
  skip("no chromium here");
}

export let passed = 0;
export const failed = [];
export function check(name, holds, detail = "") {
  if (holds) passed += 1;
  else failed.push(`${name} ${detail}`);
}

// Starts a command that serves pages; returns the process and its addresses.
export function start(pausebed, words, env = process.env, addresses = 1) {
  const child = spawn(pausebed, words, { stdio: ["ignore", "ignore", "pipe"], env });
  const address = new Promise((told, gone) => {
    let text = "";
    child.stderr.on("data", (some) => {
      text += some;
      const found = text.match(/http:\/\/\S+/g) || [];
      if (found.length >= addresses) told(addresses === 1 ? found[0] : found);
    });
    child.on("exit", () => gone(new Error(`${words.join(" ")} ended: ${text}`)));
  });
  return { child, address };
}
// Ends the process if it is running.
export const gone = (child) => new Promise((done) => {
  if (child.exitCode !== null || child.signalCode !== null) return done();
  child.on("exit", done);
  child.kill("SIGINT");
});
