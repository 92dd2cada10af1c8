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
PATH="$PATH:/usr/sbin:/sbin"
need ip iproute2
need ping iputils-ping
need iperf3 iperf3
need tcpreplay tcpreplay
need tcpdump tcpdump
docker info >/dev/null 2>&1 || need dockerd docker.io
docker compose version >/dev/null 2>&1 || need docker-compose docker-compose
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

engine="" folder="" unpacked=""
clean_up() {
  [ -z "$engine" ] || { kill "$engine" && wait "$engine" || true; }
  rm -rf ${folder:+"$folder"} ${unpacked:+"$unpacked"}
}
trap clean_up EXIT

# Prometheus is unpacked and not installed: its package would start a service that stays.
if ! command -v prometheus >/dev/null 2>&1 || ! command -v promtool >/dev/null 2>&1; then
  unpacked="$(mktemp -d)"
  if (cd "$unpacked" && apt-get -qq download prometheus 2>/dev/null && dpkg-deb -x prometheus_*.deb .); then
    PATH="$unpacked/usr/bin:$PATH"
  else
    echo "no package of Prometheus: what it thinks of the metrics is not shown"
  fi
fi

# An engine for the tests in containers: the one that answers, else one of our own for as long as the
# tests last. Where neither can be had those tests say so and show nothing.
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

cargo build --profile quick --bins
if docker info >/dev/null 2>&1; then
  docker/build.sh
  docker/prometheus.sh || echo "no image of Prometheus: that it scrapes containers is not shown"
else
  echo "no Docker engine: no tests in containers"
fi
if [ "${1:-}" = "--slow" ]; then
  cargo test --profile quick -p pausebed-tests -- --ignored --test-threads 1
else
  cargo test --profile quick --workspace
fi
