#!/usr/bin/env bash
# Makes the image pausebed-prometheus:VERSION: the distribution's Prometheus in an otherwise empty image.
#   docker/prometheus.sh        of the program `prometheus` in PATH, else of the distribution's package, unpacked
set -euo pipefail
cd "$(dirname "$0")/.."

context="$(mktemp -d)"
trap 'rm -r "$context"' EXIT
mkdir "$context/image"
if ! program="$(command -v prometheus)"; then
  # Unpacked and not installed: the package would start a service that stays.
  (cd "$context" && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb unpacked)
  program="$context/unpacked/usr/bin/prometheus"
fi
cp -L "$program" "$context/image/prometheus"
# The C library and its loader, where the program asks for them.
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
