#!/bin/sh
# Installs gimlet from a release: fetches the archive for this machine, checks its SHA-256 and puts the programs into a folder.
#
#   GIMLET_FROM      address of the page of releases
#   GIMLET_VERSION   the version [default: the newest release]
#   GIMLET_BIN_DIR   where the programs go [default: ~/.local/bin]
#
# CI tries the script with an archive on its own disk. It was not tried with a release on the network.
set -eu

fail() {
  echo "error: $1" >&2
  [ $# -lt 2 ] || echo "hint: $2" >&2
  exit 1
}

from=${GIMLET_FROM:-}
[ -n "$from" ] || fail "it is not said where the releases are" "GIMLET_FROM=https://github.com/OWNER/gimlet/releases"
into=${GIMLET_BIN_DIR:-$HOME/.local/bin}
command -v curl >/dev/null || fail "curl is not installed"
command -v sha256sum >/dev/null || fail "sha256sum is not installed"
case $(uname -s) in
  Linux) ;;
  Darwin) fail "there is no release for macOS" "cargo install gimlet-agent; macOS is untested" ;;
  *) fail "there is no release for $(uname -s)" "on Windows use WSL" ;;
esac
case $(uname -m) in
  x86_64 | aarch64) ;;
  *) fail "there is no release for $(uname -m)" "cargo install gimlet-agent" ;;
esac

version=${GIMLET_VERSION:-}
if [ -z "$version" ]; then
  page=$(curl --fail --silent --show-error --location --output /dev/null --write-out '%{url_effective}' "$from/latest") ||
    fail "cannot find the newest release at $from" "name one with GIMLET_VERSION"
  version=${page##*/v}
fi
name=gimlet-$version-$(uname -m)-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$name.tar.gz" "$name.tar.gz.sha256"; do
  curl --fail --silent --show-error --location --output "$work/$file" "$from/download/v$version/$file" ||
    fail "cannot fetch $file of version $version from $from"
done
(cd "$work" && sha256sum --check --status "$name.tar.gz.sha256") ||
  fail "the archive is not the one that was released: its SHA-256 differs" "nothing was installed; fetch it again"
tar -x -z -f "$work/$name.tar.gz" -C "$work"
mkdir -p "$into"
# A program that is running cannot be written to, but it can be replaced.
for program in gimlet-jail gimlet; do
  cp "$work/$name/$program" "$into/.$program.new"
  chmod 755 "$into/.$program.new"
  mv -f "$into/.$program.new" "$into/$program"
done
"$into/gimlet" --version
case :$PATH: in
  *:"$into":*) ;;
  *) echo "hint: add $into to your PATH" ;;
esac
