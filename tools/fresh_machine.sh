#!/usr/bin/env bash
# Proves that Eddy builds on a machine with nothing on it: makes a minimal Debian with debootstrap,
# copies this checkout in and runs `./eddy-dev build` there.
#
# Usage: tools/fresh_machine.sh [--test] [--keep] [--packages] [bookworm|trixie]
#   --test      run `./eddy-dev test --quick` afterwards
#   --packages  install the packages of build and test only, to see that their names resolve
#   --keep      leave the system behind to look around in
# MIRROR names another Debian mirror. Needs root and the package debootstrap.

set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

release=bookworm command=(./eddy-dev build) keep=0
for argument in "$@"; do
    case $argument in
        --test) command=(sh -c './eddy-dev build && ./eddy-dev test --quick') ;;
        --packages) command=(./eddy-dev install) ;;
        --keep) keep=1 ;;
        bookworm | trixie) release=$argument ;;
        *) sed -n 's/^# \{0,1\}//; 2,9p' "$0" >&2; exit 2 ;;
    esac
done
[[ $EUID -eq 0 ]] || { echo "fresh_machine.sh: debootstrap and mount need root" >&2; exit 1; }

# A mount namespace of its own: whatever happens, no mount is left behind on this machine, and
# removing the system cannot reach through one into /dev.
if [[ -z ${EDDY_FRESH_NAMESPACE:-} ]]; then
    EDDY_FRESH_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child "$PWD/tools/fresh_machine.sh" "$@"
fi

root=$(mktemp -d "/tmp/eddy-$release.XXXXXX")
finish() {
    umount -R "$root/proc" "$root/dev" 2>/dev/null || true
    if [[ $keep -eq 1 ]]; then
        echo "The system is kept in $root"
    else
        rm -rf --one-file-system "$root"
    fi
}
trap finish EXIT

echo "Making a minimal $release in $root"
debootstrap --variant=minbase "$release" "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2; exit 1; }
rm -f "$root.log"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"

# What git would take, committed or not.
mkdir "$root/eddy"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    # A file that is deleted but not yet committed as such is still listed.
    if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
done | tar --null --files-from=- -cf - | tar -xf - -C "$root/eddy"

chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    sh -c 'cd /eddy && exec "$@"' sh "${command[@]}"
