#!/usr/bin/env bash
# Runs each fuzz target for SECONDS (default 60), one after another; exit code 1 on a finding.
#   ./fuzz.sh [SECONDS] [TARGET…]
# Installs missing tools: a nightly toolchain (with rustup) and cargo-fuzz (with cargo).
set -euo pipefail
cd "$(dirname "$0")"
seconds="${1:-60}"
case "$seconds" in '' | *[!0-9]*)
  echo "usage: ./fuzz.sh [SECONDS] [TARGET…]" >&2
  exit 2
  ;;
esac
[ "$#" -eq 0 ] || shift

rustc +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked

targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
  for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
cargo +nightly fuzz build --features targets

# New inputs are kept outside the repository, so that its corpus stays small.
work="${CARGO_TARGET_DIR:-fuzz/target}/fuzzing"
failed=0
total=0
for target in "${targets[@]}"; do
  mkdir -p "$work/$target" "$work/findings/$target"
  log="$work/$target.log"
  outcome="good"
  cargo +nightly fuzz run --features targets "$target" "$work/$target" "fuzz/corpus/$target" -- \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$work/findings/$target/" >"$log" 2>&1 || outcome="FOUND SOMETHING: $log"
  executions="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)"
  printf '%-12s %12s executions  %s\n' "$target" "${executions:-?}" "$outcome"
  total=$((total + ${executions:-0}))
  [ "$outcome" = good ] || { failed=1; grep -m 3 -E "panicked|ERROR|BINGO" "$log" || true; }
done
printf '%-12s %12s executions\n' "all" "$total"
exit "$failed"
