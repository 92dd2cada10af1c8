#!/usr/bin/env bash
# Installs what the tests need on a Debian or Ubuntu machine with a Rust toolchain, then runs all tests.
#   ./test.sh          everything that fits in a few minutes
#   ./test.sh --slow   the long proofs: live runs, floods, large suites (an hour and more)
set -euo pipefail
cd "$(dirname "$0")"

need() { # need COMMAND PACKAGE
  command -v "$1" >/dev/null 2>&1 && return
  missing+=("$2")
}
missing=()
need tshark tshark
need cc gcc
need taskset util-linux
need ip iproute2
need ping iputils-ping
need iperf3 iperf3
need tcpreplay tcpreplay
need tcpdump tcpdump
module() { # module NAME PACKAGE: of a python3 that the tests find
  python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null || missing+=("$2")
}
module crcmod python3-crcmod
module scapy python3-scapy
if [ "${#missing[@]}" -gt 0 ]; then
  as_root=""
  [ "$(id -u)" -eq 0 ] || as_root="sudo"
  echo "installing: ${missing[*]}"
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq "${missing[@]}" >/dev/null
fi

cargo build --profile quick --bins
if [ "${1:-}" = "--slow" ]; then
  exec cargo test --profile quick -p pausebed-tests -- --ignored --test-threads 1
fi
cargo test --profile quick --workspace
