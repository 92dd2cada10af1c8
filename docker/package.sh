#!/usr/bin/env bash
# Builds what is installed, into target/package: the static program, a Debian package, the image, a wheel.
#   docker/package.sh [PROFILE]     default: dist, with link-time optimisation
# Without a Docker engine there is no image, without maturin no wheel, which are not errors.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-dist}"
target="${CARGO_TARGET_DIR:-target}"
out="$target/package"
name=pausebed
architecture="$(dpkg --print-architecture)"
rm -rf "$out"
mkdir -p "$out/root"

# The static program, as docker/build.sh builds it, with the image where there is an engine.
if docker info >/dev/null 2>&1; then
  docker/build.sh "$profile" "$out/$name"
  image=1
else
  echo "no Docker engine: no image"
  docker/build.sh "$profile" "$out/$name" --no-image
fi
program="$out/$name"
version="$("$program" --version | cut -d' ' -f2)"
[ -z "${image:-}" ] || docker save "$name:$version" | gzip -9n >"$out/${name}_${version}_image.tar.gz"
if command -v maturin >/dev/null; then
  python3 docker/notices.py pausebed-python >python/pausebed/third-party-notices
  maturin build --profile "$profile" --strip --manifest-path python/Cargo.toml --out "$out"
else
  echo "no maturin: no wheel"
fi

# These run beside it: one inside virtual machines, one loads libibverbs. So they are not static.
cargo build --profile "$profile" --package guest --package agent --bins
root="$out/root" share="$out/root/usr/share" own="$out/root/usr/lib/$name"
install -D --strip -t "$own" "$target/$profile/guestd" "$target/$profile/verbs-agent"
install -D -t "$own" "$program"
mkdir -p "$root/usr/bin"
ln -s "../lib/$name/$name" "$root/usr/bin/$name"

"$program" man "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
install -d "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
"$program" completions bash >"$share/bash-completion/completions/$name"
"$program" completions zsh >"$share/zsh/vendor-completions/_$name"
"$program" completions fish >"$share/fish/vendor_completions.d/$name.fish"
install -d "$share/$name/wireshark"
"$program" wireshark print >"$share/$name/wireshark/$name.lua"
"$program" validate --schema >"$share/$name/$name.schema.json"
cp -r topo/scenarios "$share/$name/scenarios"

doc="$share/doc/$name"
install -d "$doc"
cp -r docs README.md CHANGELOG.md ARCHITECTURE.md "$doc"
cp LICENSE-MIT "$doc/copyright"
cp LICENSE LICENSE-APACHE "$doc"
python3 docker/notices.py pausebed guest agent >"$doc/third-party-notices"
gzip -9n "$doc"/CHANGELOG.* "$doc/third-party-notices"

libc="$(objdump -T "$own/guestd" "$own/verbs-agent" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)"
install -d "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $architecture
Maintainer: the pausebed developers <pausebed@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6 (>= ${libc#GLIBC_})
Suggests: tshark, qemu-system-x86, docker.io, docker-compose
Section: net
Priority: optional
Description: laboratory for lossless networks made of real packets
 Switches and NICs are programs that exchange standard InfiniBand and RoCEv2
 frames, and obey link credits, PAUSE and PFC, live or on a virtual clock.
END
find "$root" -type d -exec chmod 755 {} +
find "$root/usr/share" "$root/DEBIAN" -type f -exec chmod 644 {} +
dpkg-deb --root-owner-group --build "$root" "$out/${name}_${version}_$architecture.deb" >/dev/null
rm -r "$root"
ls -l "$out" | awk 'NR > 1 { printf "%s  %.1f MB\n", $9, $5 / 1e6 }'
