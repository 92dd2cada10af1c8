// What the tests in a browser have in common: the browser, the judge of accessibility, the count of checks.
//
//   npm install playwright-core axe-core      (anywhere; NODE_PATH or the folder it is run from finds them)
//
// CHROMIUM names the browser if it is not "chromium".
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { join } from "node:path";

// Exit 77: there is nothing to drive.
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
