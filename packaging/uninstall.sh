#!/bin/sh
# Removes what install.sh has installed. State and logs stay, unless --purge removes them, too.
#
# Usage: PREFIX/share/eddy/uninstall.sh [--purge]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
prefix=$(dirname "$(dirname "$here")")
purge=no
case ${1:-} in
    "") ;;
    --purge) purge=yes ;;
    *) sed -n 's/^# \{0,1\}//; 2,4p' "$0" >&2; exit 1 ;;
esac
[ -e "$here/files" ] || { echo "uninstall.sh: run the one in PREFIX/share/eddy, where install.sh was used" >&2; exit 2; }

unit=/etc/systemd/system/eddy.service
if [ -e "$unit" ] && grep -q "^ExecStart=$prefix/bin/eddy " "$unit"; then
    [ "$(id -u)" -eq 0 ] || { echo "uninstall.sh: the service is root's to remove" >&2; exit 2; }
    if [ -d /run/systemd/system ]; then
        systemctl disable --quiet --now eddy || true
    fi
    rm -f "$unit" /etc/sysusers.d/eddy.conf
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
    if [ "$purge" = yes ]; then rm -rf /var/lib/eddy /var/log/eddy /etc/default/eddy; fi
fi
while IFS= read -r file; do
    rm -f "$prefix/$file"
    # Folders that this leaves empty.
    rmdir -p "$prefix/$(dirname "$file")" 2>/dev/null || true
done <"$here/files"
rm -f "$here/files" "$here/uninstall.sh"
rmdir -p "$here" 2>/dev/null || true
echo "Eddy is removed from $prefix"
