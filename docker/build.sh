#!/usr/bin/env bash
# Builds the image pausebed:VERSION: a static program in an otherwise empty image.
#   docker/build.sh             profile `quick`, as for tests
#   docker/build.sh release     profile `release`, with link-time optimisation
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-quick}"
# Link the C library statically, because the image contains only the program. Only the final link differs, so compiled
# libraries are reused. The dynamically linked program is restored afterwards.
program="${CARGO_TARGET_DIR:-target}/$profile/pausebed"
cargo rustc --profile "$profile" --package topo --bin pausebed -- \
  -Ctarget-feature=+crt-static -Cstrip=symbols
version="$("$program" --version | cut -d' ' -f2)"

context="$(mktemp -d)"
trap 'rm -r "$context"' EXIT
cp "$program" docker/Dockerfile "$context"
cargo build --profile "$profile" --package topo --bin pausebed
docker build --quiet --tag "pausebed:$version" "$context"
echo "pausebed:$version"
