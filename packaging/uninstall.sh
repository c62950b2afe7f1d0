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
    case $file in */) ;; *) rm -f "$prefix/$file" ;; esac
done <"$here/files"
# Folders that the installation made, the innermost first, where they are empty now.
folders=$(sed -n '/\/$/p' "$here/files" | sort -r)
rm -f "$here/files" "$here/uninstall.sh"
printf '%s\n' "$folders" | while IFS= read -r folder; do
    [ -z "$folder" ] || rmdir "$prefix/$folder" 2>/dev/null || true
done
echo "Eddy is removed from $prefix"
