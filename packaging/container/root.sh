#!/bin/sh
# The files of a container: the program of `./eddy-dev package --tar`, glibc, certificates, a user. Makes the folders OUT/root,
# which is root's, and OUT/own, which is the daemon's.
#
# Usage: packaging/container/root.sh OUT PROGRAM
set -eu
out=$1 program=$2

mkdir -p "$out/root/usr/bin" "$out/root/etc/ssl/certs" "$out/root/usr/lib/ssl" "$out/own/var/lib/eddy" "$out/own/run/eddy" \
    "$out/own/tmp"
cp "$program" "$out/root/usr/bin/eddy"
# The loader and the libraries, at the paths that the loader has.
ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
    mkdir -p "$out/root$(dirname "$library")"
    cp -L "$library" "$out/root$library"
done
printf 'root:x:0:0:root:/:/sbin/nologin\neddy:x:65532:65532:Eddy daemon:/var/lib/eddy:/sbin/nologin\n' >"$out/root/etc/passwd"
printf 'root:x:0:\neddy:x:65532:\n' >"$out/root/etc/group"
printf 'hosts: files dns\n' >"$out/root/etc/nsswitch.conf"
cp /etc/ssl/certs/ca-certificates.crt "$out/root/etc/ssl/certs/ca-certificates.crt"
ln -sfn /etc/ssl/certs/ca-certificates.crt "$out/root/usr/lib/ssl/cert.pem"
