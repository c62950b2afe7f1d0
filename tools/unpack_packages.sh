#!/usr/bin/env bash
# Unpacks Debian packages into a folder, without installing them: rivals in versions that this system's
# apt does not have.
#
# Usage: tools/unpack_packages.sh FOLDER URL SHA256 [URL SHA256...]
#
# Does nothing when FOLDER is there. Otherwise all of it is fetched and checked first, so that FOLDER is
# whole or not there.
set -euo pipefail

[[ $# -ge 3 && $(($# % 2)) -eq 1 ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1
shift
[[ ! -d $folder ]] || exit 0

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
while [[ $# -gt 0 ]]; do
    curl -fsSL --max-time 60 -o "$work/package.deb" "$1"
    echo "$2  $work/package.deb" | sha256sum --check --quiet - >&2
    dpkg-deb -x "$work/package.deb" "$work/whole"
    shift 2
done
mv -T "$work/whole" "$folder"
