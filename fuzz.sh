#!/usr/bin/env bash
# Runs each fuzz target for SECONDS (default 60), one after another; exit code 1 on a finding.
#   ./fuzz.sh [--fast] [SECONDS] [TARGET…]
# --fast makes random inputs without coverage and without the address sanitizer: ten times as many executions, which begin at
# what earlier runs without it have found.
# Installs missing tools: a nightly toolchain (with rustup) and cargo-fuzz (with cargo).
# Each target prints a line: target, executions, outcome.
set -euo pipefail
cd "$(dirname "$0")"
mode="guided, address sanitizer"
[ "${1:-}" != "--fast" ] || { mode="random"; shift; }
seconds="${1:-60}"
case "$seconds" in '' | *[!0-9]*)
  echo "usage: ./fuzz.sh [--fast] [SECONDS] [TARGET…]" >&2
  exit 2
  ;;
esac
[ "$#" -eq 0 ] || shift

targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
  for file in proving/fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
base="$(realpath -m "${CARGO_TARGET_DIR:-proving/fuzz/target}")"
# The two ways to build would replace each other's files.
export CARGO_TARGET_DIR="$base/${mode%%,*}"
if [ "$mode" = random ]; then
  cargo build --release --manifest-path proving/fuzz/Cargo.toml --example mutate
else
  rustc +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
  cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
  cargo +nightly fuzz build --fuzz-dir proving/fuzz --features targets
fi
search() { # search TARGET FOLDER…
  if [ "$mode" = random ]; then
    "$CARGO_TARGET_DIR/release/examples/mutate" "$seconds" "$@"
  else
    cargo +nightly fuzz run --fuzz-dir proving/fuzz --features targets "$@" -- -max_total_time="$seconds" -timeout=10 \
      -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -artifact_prefix="$work/findings/$1/"
  fi
}

# New inputs are kept outside the repository, so that its corpus stays small.
work="$base/fuzzing"
failed=0
total=0
for target in "${targets[@]}"; do
  mkdir -p "$work/$target" "$work/findings/$target"
  log="$work/$target.log"
  outcome="good"
  search "$target" "$work/$target" "proving/fuzz/corpus/$target" >"$log" 2>&1 || outcome="FOUND SOMETHING: $log"
  executions="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)"
  printf '%-15s %12s executions  %s\n' "$target" "${executions:-?}" "$outcome"
  total=$((total + ${executions:-0}))
  [ "$outcome" = good ] || {
    failed=1
    grep -m 1 -A 1 -E "panicked|ERROR|BINGO" "$log" || true
  }
done
printf '%-15s %12s executions\n' "all" "$total"
exit "$failed"
