#!/usr/bin/env bash
# Builds the image pausebed:VERSION: a static program in an otherwise empty image.
#   docker/build.sh [PROFILE [FILE [--no-image]]]
# The profile is `quick`, as for tests, or `dist`, with link-time optimisation. FILE gets the program.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-quick}"
context="$(mktemp -d)"
trap 'rm -r "$context"' EXIT
# Link the C library statically, because the image contains only the program. Only the final link differs, so compiled
# libraries are reused. The dynamically linked program is restored afterwards. Equal functions are linked once.
program="${CARGO_TARGET_DIR:-target}/$profile/pausebed"
cargo rustc --profile "$profile" --package topo --bin pausebed -- \
  -Ctarget-feature=+crt-static -Cstrip=symbols \
  -Clink-arg=-Wl,--icf=all -Clink-arg=-Wl,-z,pack-relative-relocs
cp "$program" docker/Dockerfile "$context"
cargo build --profile "$profile" --package topo --bin pausebed
[ -z "${2:-}" ] || cp "$context/pausebed" "$2"
[ "${3:-}" != "--no-image" ] || exit 0
version="$("$context/pausebed" --version | cut -d' ' -f2)"
docker build --quiet --tag "pausebed:$version" "$context"
echo "pausebed:$version"
