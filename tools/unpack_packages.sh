#!/usr/bin/env bash
# Unpacker of Debian packages, into a folder and without installing them: rivals in versions that this system's apt does
# not have, and the sources of packages (.orig.tar.*).
#
# Usage: tools/unpack_packages.sh FOLDER debian|ubuntu PATH SHA256 [PATH SHA256...]
#
# PATH is below the archive of that distribution (see archive_mirror.sh). Does nothing when FOLDER is there.
# Otherwise all of it is fetched and checked first, so that FOLDER is whole or not there.
set -euo pipefail

[[ $# -ge 4 && $(($# % 2)) -eq 0 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 distribution=$2
shift 2
[[ ! -d $folder ]] || exit 0

mirror=$("$(dirname "$0")/archive_mirror.sh" "$distribution")
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
# apt's own downloader knows the proxies of its configuration.
fetch() {
    local helper=/usr/lib/apt/apt-helper
    if [[ -x $helper ]]; then
        "$helper" -o APT::Sandbox::User=root -o Acquire::http::Timeout=60 \
            -o Acquire::https::Timeout=60 -qq download-file "$1" "$2" "SHA256:$3" >&2
    else
        curl -fsSL --max-time 60 -o "$2" "$1"
    fi
}
while [[ $# -gt 0 ]]; do
    fetch "$mirror/$1" "$work/package" "$2"
    echo "$2  $work/package" | sha256sum --check --quiet - >&2
    case $1 in
        *.deb) dpkg-deb -x "$work/package" "$work/whole" ;;
        *) mkdir -p "$work/whole" && tar -xf "$work/package" -C "$work/whole" ;;
    esac
    rm "$work/package"
    shift 2
done
mv -T "$work/whole" "$folder"
