#!/usr/bin/env bash
# Runs each fuzz target for SECONDS (default 60), one after another; exit code 1 on a finding.
#   ./fuzz.sh [--fast] [SECONDS] [TARGET…]
# --fast leaves out the address sanitizer: several times as many executions, of code that has almost no unsafe block.
# Installs missing tools: a nightly toolchain (with rustup) and cargo-fuzz (with cargo).
# Each target that has run adds a line to tests/ledgers/pausebed-fuzz.ledger: target, commit, tree of the commit, result.
set -euo pipefail
cd "$(dirname "$0")"
sanitizer="address"
[ "${1:-}" != "--fast" ] || { sanitizer="none"; shift; }
seconds="${1:-60}"
case "$seconds" in '' | *[!0-9]*)
  echo "usage: ./fuzz.sh [--fast] [SECONDS] [TARGET…]" >&2
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
# The two ways to build would replace each other's files.
base="$(realpath -m "${CARGO_TARGET_DIR:-fuzz/target}")"
export CARGO_TARGET_DIR="$base/$sanitizer"
flags=(--features targets --sanitizer "$sanitizer")
cargo +nightly fuzz build "${flags[@]}"

# New inputs are kept outside the repository, so that its corpus stays small.
work="$base/fuzzing"
failed=0
total=0
commit="$(git describe --always --abbrev=12 --exclude='*' --dirty=+)"
tree="$(git rev-parse --short=16 'HEAD^{tree}')"
for target in "${targets[@]}"; do
  mkdir -p "$work/$target" "$work/findings/$target"
  log="$work/$target.log"
  outcome="good"
  cargo +nightly fuzz run "${flags[@]}" "$target" "$work/$target" "fuzz/corpus/$target" -- \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$work/findings/$target/" >"$log" 2>&1 || outcome="FOUND SOMETHING: $log"
  executions="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)"
  printf '%-15s %12s executions  %s\n' "$target" "${executions:-?}" "$outcome"
  total=$((total + ${executions:-0}))
  result="${executions:-0} executions, $seconds s, sanitizer $sanitizer"
  [ "$outcome" = good ] || {
    failed=1
    what="$(grep -m 1 -A 1 -E "panicked|ERROR|BINGO" "$log" | tr '\n\t' '  ')"
    echo "$what"
    result="FOUND $what: $result"
  }
  printf '%s\t%s\t%s\t%s\n' "$target" "$commit" "$tree" "$result" >>tests/ledgers/pausebed-fuzz.ledger
done
printf '%-15s %12s executions\n' "all" "$total"
exit "$failed"
