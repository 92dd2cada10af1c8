#!/usr/bin/env bash
# Tests reports and the live page in a real browser: makes runs of the papers' experiments, takes screenshots, and
# compares some of them with approved pictures (tests/seeing/golden).
#   tests/seeing/run.sh FOLDER          writes packages, runs and screenshots to FOLDER; PAUSEBED names another program
#   tests/seeing/run.sh FOLDER --slow   also tests the live page for ten minutes
# Needs chromium, node and npm. Exit code 0 if all checks pass, 77 if a program is missing.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
[ $# -eq 1 ] || [ "${2:-}" = "--slow" ] || { echo "usage: tests/seeing/run.sh FOLDER [--slow]"; exit 2; }
for tool in node npm "${CHROMIUM:-chromium}"; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
mkdir -p "$1"
folder="$(cd "$1" && pwd)"

pausebed="${PAUSEBED:-}"
if [ -z "$pausebed" ]; then
  (cd "$root" && cargo build --profile quick --package pausebed --bin pausebed)
  pausebed="${CARGO_TARGET_DIR:-$root/target}/quick/pausebed"
fi
[ -d "$folder/node_modules/axe-core" ] || npm install --silent --no-fund --no-audit --prefix "$folder" playwright-core axe-core

# A run and its baseline are compared if they are made together.
runs() { # runs FILE...: scenario files below topo/scenarios
  local files=() file
  for file in "$@"; do files+=("$root/topo/scenarios/$file.toml"); done
  "$pausebed" run "${files[@]}" --out "$folder/runs" >"$folder/run.log" 2>&1 || [ $? -eq 1 ]
}
runs pfister/case4-none pfister/case4-ib-cca
runs rrcc/burst-none rrcc/burst-rr-cc
runs zhb/case5-none zhb/case5-bcn
runs dcqcn/gpu9-pfc dcqcn/gpu9-dcqcn
runs ar/t1-cm ar/t1-ar
# So many adapters that one row shows a leaf.
"$pausebed" run "$root/topo/scenarios/rrcc/large/fat1024-mix-none.toml" --out "$folder/runs/fat1024-mix-none" >"$folder/run.log" 2>&1 || [ $? -eq 1 ]

cd "$folder"
failed=0
node "$here/report.mjs" shots runs/*/report.html || failed=$?
node "$here/numbers.mjs" "$pausebed" shots runs/*case4*/report.html runs/*gpu9-dcqcn/report.html runs/*t1-ar/report.html || failed=$?
node "$here/figures.mjs" "$pausebed" shots runs/case4-ib-cca:runs/case4-none runs/burst-rr-cc:runs/burst-none \
  runs/case5-bcn:runs/case5-none runs/gpu9-dcqcn:runs/gpu9-pfc runs/t1-ar:runs/t1-cm runs/case4-none || failed=$?
node "$here/goldens.mjs" shots runs/*case4-ib-cca/report.html || [ $? -eq 77 ] || failed=1
node "$here/live.mjs" "$pausebed" shots || failed=$?
large="$root/topo/scenarios/pfister/large/fat128x8-case4-none.toml"
node "$here/cost.mjs" "$pausebed" "$large" runs/*case4-ib-cca/report.html || failed=$?
if [ "${2:-}" = "--slow" ]; then node "$here/soak.mjs" "$pausebed" "$large" || failed=$?; fi
echo "screenshots: $folder/shots"
exit "$failed"
