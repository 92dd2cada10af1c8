#!/usr/bin/env bash
# Builds the image pausebed-prometheus:VERSION: the distribution's Prometheus in an otherwise empty image.
#   docker/prometheus.sh        from the program `prometheus` in PATH, else from the distribution's package
set -euo pipefail
cd "$(dirname "$0")/.."

context="$(mktemp -d)"
trap 'rm -r "$context"' EXIT
mkdir "$context/image"
if ! program="$(command -v prometheus)"; then
  # Unpack the package without installing it, because it would start a permanent service.
  (cd "$context" && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb unpacked)
  program="$context/unpacked/usr/bin/prometheus"
fi
cp -L "$program" "$context/image/prometheus"
# Copy the C library and its loader if the program needs them.
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
  cp -L --parents "$library" "$context/image"
done
cat >"$context/Dockerfile" <<'END'
FROM scratch
COPY image/ /
USER 65534:65534
ENTRYPOINT ["/prometheus"]
END
version="$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"/\1/p' Cargo.toml)"
docker build --quiet --tag "pausebed-prometheus:$version" "$context"
echo "pausebed-prometheus:$version"
