#!/usr/bin/env bash
# Makes the image pausebed:VERSION: a static program in an otherwise empty image.
#   docker/build.sh             optimised as for tests
#   docker/build.sh release     with link-time optimisation
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-quick}"
# The C library goes into the program: the image holds nothing else. Only the program itself is linked in
# another way, so libraries that are built serve both; then the ordinary one is put back.
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
