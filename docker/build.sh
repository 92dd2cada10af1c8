#!/usr/bin/env bash
# Makes the image pausebed:VERSION: a static program in an otherwise empty image.
#   docker/build.sh             optimised as for tests
#   docker/build.sh release     with link-time optimisation
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-quick}"
target="$(rustc -vV | sed -n 's/^host: //p')"
# The C library goes into the program: the image holds nothing else.
RUSTFLAGS="-Ctarget-feature=+crt-static -Cstrip=symbols" \
  cargo build --profile "$profile" --target "$target" --bin pausebed
program="${CARGO_TARGET_DIR:-target}/$target/$profile/pausebed"
version="$("$program" --version | cut -d' ' -f2)"

context="$(mktemp -d)"
trap 'rm -r "$context"' EXIT
cp "$program" docker/Dockerfile "$context"
docker build --quiet --tag "pausebed:$version" "$context"
echo "pausebed:$version"
