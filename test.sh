#!/usr/bin/env bash
# Installs what the tests need on a Debian or Ubuntu machine with a Rust toolchain, then runs all tests.
#   ./test.sh          the quick suite (a few minutes)
#   ./test.sh --slow [NAME…]   the slow suite: live runs, floods, large scenarios (more than an hour).
#                              With names it runs these tests alone; `--skip NAME` resumes without one.
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
PATH="$PATH:/usr/sbin:/sbin"
need ip iproute2
need ping iputils-ping
need iperf3 iperf3
need tcpreplay tcpreplay
need tcpdump tcpdump
need ethtool ethtool
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
libraries="$(ldconfig -p)"
library() { # library FILE PACKAGE
  [[ "$libraries" == *"$1"* ]] || missing+=("$2")
}
library libopensm.so libopensm9
library libosmvendor.so libosmvendor5
library libwrap.so libwrap0
need ibnetdiscover infiniband-diags
need ibsim ibsim-utils
docker info >/dev/null 2>&1 || need dockerd docker.io
docker compose version >/dev/null 2>&1 || need docker-compose docker-compose
module() { # module NAME PACKAGE: NAME must be importable by a python3 that the tests find
  python3 -c "import $1" 2>/dev/null || /usr/bin/python3 -c "import $1" 2>/dev/null || missing+=("$2")
}
module crcmod python3-crcmod
module scapy python3-scapy
module pytest python3-pytest
if [ "${1:-}" = "--slow" ]; then
  # A virtual environment, for the test that installs the wheel; Miri, for unsafe code.
  module ensurepip python3-venv
  cargo +nightly miri --version >/dev/null 2>&1 \
    || rustup toolchain install nightly --profile minimal --component miri --component rust-src \
    || echo "no Miri: unsafe code is not interpreted"
fi
if [ "${#missing[@]}" -gt 0 ]; then
  as_root=""
  [ "$(id -u)" -eq 0 ] || as_root="sudo"
  echo "installing: ${missing[*]}"
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq "${missing[@]}" >/dev/null
fi

engine="" folder="" unpacked=""
# Tests that are skipped append their reasons to this file (tests/skip). The list ends the output. In the quick suite, as
# root, where all programs could be had, only an option that the kernel lacks is a reason, and any other fails.
skipped="$(mktemp)" incomplete="${1:-}"
export PAUSEBED_SKIPPED="$skipped"
lacks() { # lacks WHAT: tests that need it are skipped, and that is not a failure
  echo "$1: tests with it are skipped"
  incomplete=1
}
list_skipped() {
  [ -s "$skipped" ] || return 0
  echo "skipped here:"
  LC_ALL=C sort -u "$skipped" | sed 's/^/  /'
  [ "$(id -u)" -eq 0 ] && [ -z "$incomplete" ] || return 0
  ! grep -qv '^CONFIG_' "$skipped" || { echo "root with all programs must not skip these tests"; return 1; }
}

clean_up() {
  local code=$?
  list_skipped || [ "$code" -ne 0 ] || code=1
  [ -z "$engine" ] || { kill "$engine" && wait "$engine" || true; }
  rm -rf "$skipped" ${folder:+"$folder"} ${unpacked:+"$unpacked"}
  exit "$code"
}
trap clean_up EXIT

# These packages are unpacked and not installed, because each would start a permanent service. That of OpenSM would manage
# the fabrics that this host is connected to.
unpacked="$(mktemp -d)"
PATH="$PATH:$unpacked/usr/bin:$unpacked/usr/sbin"
unpack() { # unpack COMMAND PACKAGE
  command -v "$1" >/dev/null 2>&1 && return
  (cd "$unpacked" && apt-get -qq download "$2" 2>/dev/null && dpkg-deb -x "$2"_*.deb .) \
    || lacks "no package $2"
}
unpack prometheus prometheus
unpack promtool prometheus
unpack opensm opensm

# A Docker engine for the tests in containers: a running one, else one started here and stopped after the
# tests.
if ! docker info >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
  folder="$(mktemp -d)"
  export DOCKER_HOST="unix://$folder/docker.sock"
  dockerd --host "$DOCKER_HOST" --data-root "$folder/data" --exec-root "$folder/exec" \
    --pidfile "$folder/pid" --bridge none >"$folder/log" 2>&1 &
  engine=$!
  for _ in $(seq 60); do
    docker info >/dev/null 2>&1 && break
    kill -0 "$engine" 2>/dev/null || { tail -3 "$folder/log"; engine=""; break; }
    sleep 0.5
  done
fi

# The module of Python tests is a library that no other target of Cargo builds. The quick suite is built in the same graph:
# where programs leave a core idle, it compiles tests.
targets=(--bins --lib)
[ "${1:-}" = "--slow" ] || targets+=(--tests)
cargo build --profile quick --workspace "${targets[@]}"
# The image of virtual machines, kept in the cache of this user.
"${CARGO_TARGET_DIR:-target}/quick/pausebed" vm build || lacks "no image of virtual machines"
if docker info >/dev/null 2>&1; then
  docker/build.sh
  docker/prometheus.sh || lacks "no Prometheus image"
else
  lacks "no Docker engine"
fi
[ -d "${PAUSEBED_CAPTURES:-../shared/captures}" ] || lacks "no captures of other programs"
if [ "${1:-}" = "--slow" ]; then
  cargo test --profile quick -p pausebed-tests -p proto -p pausebed-python -- --ignored --test-threads 1 "${@:2}"
else
  # For random inputs of each fuzz target.
  export PAUSEBED_FUZZ_SECONDS="${PAUSEBED_FUZZ_SECONDS:-10}"
  # Most tests wait for programs that they have started.
  export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) + 2))}"
  cargo test --profile quick --workspace --no-fail-fast
fi
