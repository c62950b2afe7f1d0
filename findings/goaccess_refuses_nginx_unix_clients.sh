#!/usr/bin/env bash
# goaccess 1.7 (Debian 12) refuses each line that nginx 1.22.1 writes of a client of a Unix socket.
#
# A good guess: nginx's "combined" is the format that goaccess calls COMBINED, so goaccess reads every line of it.
# Behaviour: nginx has no address of such a client and writes `unix:` as $remote_addr. goaccess takes the host for a
#   malformed address, and a file that has only such lines ends it with status 1 and without a report. With
#   --no-ip-validation it counts them.
# Output seen (2026-11-29):
#   unix: - - [29/Nov/2026:05:52:31 +0000] "GET / HTTP/1.1" 200 4 "-" "curl/7.88.1"
#   without --no-ip-validation: status 1, "Token 'unix:' doesn't match specifier '%h'", no report
#   with it: status 0, 1 valid request, 0 failed ones
#
# Fails if that changes. Needs Debian 12's apt with the package lists, dpkg, curl and python3.

set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
trap '[[ ! -e $folder/nginx.pid ]] || kill "$(<"$folder/nginx.pid")"; rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -q goaccess=1:1.7-1 'nginx=1.22.1-9+deb12u*' >/dev/null 2>&1
for package in ./*.deb; do dpkg -x "$package" root; done
root/usr/bin/goaccess --version | grep -F 'GoAccess - 1.7.'
root/usr/sbin/nginx -v 2>&1 | grep -F 'nginx/1.22.1'

mkdir site logs
echo hi! >site/index.html
cat >nginx.conf <<END
pid $folder/nginx.pid;
error_log $folder/logs/error.log;
events {}
http {
    access_log $folder/logs/access.log combined;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    server { listen unix:$folder/web.sock; root $folder/site; }
}
END
root/usr/sbin/nginx -e "$folder/logs/error.log" -c "$folder/nginx.conf"
curl -sf --unix-socket web.sock http://site/ | grep -qx 'hi!'
for ((i = 0; i < 100; ++i)); do [[ -s logs/access.log ]] && break; sleep 0.1; done
cat logs/access.log
grep -qE '^unix: - - \[.*\] "GET / HTTP/1.1" 200 4 "-" "curl/' logs/access.log

: >empty.conf
read_log() { root/usr/bin/goaccess -p empty.conf --log-format=COMBINED -o "$1" "${@:2}" logs/access.log >said 2>&1; }

status=0
read_log refused.json || status=$?
[[ $status -eq 1 && ! -s refused.json ]] || { echo "changed: status $status" >&2; cat said >&2; exit 1; }
grep -aF "unix:" said

read_log taken.json --no-ip-validation
python3 - <<'END'
import json
general = json.load(open("taken.json"))["general"]
assert (general["valid_requests"], general["failed_requests"]) == (1, 0), general
print("with --no-ip-validation:", general["valid_requests"], "valid,", general["failed_requests"], "failed")
END
