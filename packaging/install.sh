#!/bin/sh
# Installs Eddy from this archive, for systems without Debian packages: the program, its pages, and where systemd runs the
# service. Debian and Ubuntu have a package, which apt removes again; here uninstall.sh does.
#
# Usage: ./install.sh [--prefix DIR] [--no-service]
#   --prefix DIR   /usr/local without it
#   --no-service   the files alone: no user, no service
# Needs root for a prefix that others may not write to, and for the service.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local service=yes
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?--prefix needs a folder}; shift ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --no-service) service=no ;;
        *) sed -n 's/^# \{0,1\}//; 2,9p' "$0" >&2; exit 1 ;;
    esac
    shift
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

fail() {
    echo "install.sh: $*" >&2
    exit 2
}
# The only libraries that it takes from the system.
"$here/bin/eddy" --version >/dev/null 2>&1 ||
    fail "this system cannot run bin/eddy: it is for $(cat "$here/NEEDS"). Build it here from the source instead"
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || fail "$prefix cannot be written to: run this as root, or choose another folder with --prefix"

# The list of files and of folders that were not there goes along, for uninstall.sh. A program that runs is replaced, not
# written to.
list=$prefix/share/eddy/files
folders=$(sed -n '/\/$/p' "$list" 2>/dev/null || true)
for folder in share share/eddy; do
    [ -d "$prefix/$folder" ] || folders="$folders
$folder/"
done
mkdir -p "$prefix/share/eddy"
printf '%s\n' "$folders" | sed '/^$/d' >"$list.new"
(cd "$here" && find bin share -type d) | while IFS= read -r folder; do
    [ -d "$prefix/$folder" ] || { mkdir "$prefix/$folder" && echo "$folder/" >>"$list.new"; }
done
(cd "$here" && find bin share -type f -o -type l) | while IFS= read -r file; do
    cp -P "$here/$file" "$prefix/$file.new"
    mv -f "$prefix/$file.new" "$prefix/$file"
    echo "$file" >>"$list.new"
done
cp "$here/uninstall.sh" "$prefix/share/eddy/uninstall.sh"
mv "$list.new" "$list"
echo "Installed $("$prefix/bin/eddy" --version) in $prefix"

[ "$service" = yes ] || exit 0
if [ "$(id -u)" -ne 0 ] || [ ! -d /run/systemd/system ]; then
    echo "No service was made: that takes root and a running systemd. Start a daemon with: $prefix/bin/eddy daemon"
    exit 0
fi
if command -v systemd-sysusers >/dev/null; then
    mkdir -p /etc/sysusers.d
    cp "$here/lib/sysusers.d/eddy.conf" /etc/sysusers.d/eddy.conf
    systemd-sysusers eddy.conf
elif ! id eddy >/dev/null 2>&1; then
    useradd --system --user-group --home-dir /var/lib/eddy --no-create-home --shell /sbin/nologin eddy
fi
sed -e "s|/usr/bin/eddy|$prefix/bin/eddy|g; s|file:///usr/share|file://$prefix/share|" "$here/lib/systemd/system/eddy.service" \
    >/etc/systemd/system/eddy.service
# OpenSSL in the program looks for authorities where Debian has them.
if [ ! -e /etc/default/eddy ] && [ ! -e /etc/ssl/certs/ca-certificates.crt ]; then
    for bundle in /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
        [ -e "$bundle" ] || continue
        mkdir -p /etc/default
        echo "SSL_CERT_FILE=$bundle" >/etc/default/eddy
        break
    done
fi
systemctl daemon-reload
systemctl enable --quiet eddy
# The new program takes over from one that runs, and drops no connection; one that cannot pass itself on is restarted.
if ! systemctl is-active --quiet eddy || ! systemctl reload eddy 2>/dev/null; then systemctl restart eddy; fi
echo "The service eddy runs. Its users are root and the members of the group eddy: usermod -aG eddy NAME"
