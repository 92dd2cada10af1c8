#!/usr/bin/env bash
# Builds the image pausebed:VERSION: a static program and its licence notices in an image that is otherwise empty.
#   docker/build.sh [PROFILE [FILE [--no-image]]]
# The profile is `quick`, as for tests, or `dist`, with link-time optimisation. FILE gets the program.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-quick}"
context="$(mktemp -d)"
trap 'rm -r "$context"' EXIT
# Link the C library statically, because the image contains only the program. Only the final link differs, so compiled
# libraries are reused. Equal functions are linked once. Cargo keeps each link in deps/ and puts the last one in the place
# of the program; the dynamically linked one, if there is one, gets its place back.
program="${CARGO_TARGET_DIR:-target}/$profile/pausebed"
[ ! -e "$program" ] || ln -f "$program" "$program.dynamic"
cargo rustc --profile "$profile" --package pausebed --bin pausebed -- \
  -Ctarget-feature=+crt-static -Cstrip=symbols \
  -Clink-arg=-Wl,--icf=all -Clink-arg=-Wl,-z,pack-relative-relocs
mkdir --mode 755 "$context/root"
mkdir --mode 1777 "$context/root/tmp"
cp "$program" "$context/root"
cp docker/Dockerfile "$context"
python3 docker/notices.py pausebed >"$context/root/third-party-notices"
[ ! -e "$program.dynamic" ] || mv "$program.dynamic" "$program"
[ -z "${2:-}" ] || cp "$context/root/pausebed" "$2"
[ "${3:-}" != "--no-image" ] || exit 0
version="$("$context/root/pausebed" --version | cut -d' ' -f2)"
docker build --quiet --tag "pausebed:$version" "$context"
echo "pausebed:$version"
