"""Rivals in versions that not every system's apt has: unpacked below build/rivals, not installed.

They come from the mirror of apt's configuration, or from the ones named by
EDDY_DEBIAN_MIRROR and EDDY_UBUNTU_MIRROR.
"""

import os

from dev.output import warn
from dev.processes import foreground, output_of, succeeds

ASIO = ("build/rivals/asio-1.30.2", "debian", (
    ("pool/main/a/asio/libasio-dev_1.30.2-1_all.deb",
     "6661df94512655bfed7ee7a304b71f7d3494e023d7f4622d6f95622b76620768"),))
VALKEY_8 = ("build/rivals/valkey-8.0.1", "debian", (
    ("pool/main/v/valkey/valkey-tools_8.0.1+dfsg1-1~bpo12+1_amd64.deb",
     "d2c2ea67642fa9571a07138b80ae52ebe566311c952aef25a39c1d5050697853"),
    ("pool/main/v/valkey/valkey-server_8.0.1+dfsg1-1~bpo12+1_amd64.deb",
     "986d97e75766d9b18c56159dd904337ec0a1222977235cad7ba56ddc4fd856eb")))
VALKEY_7_2 = ("build/rivals/valkey-7.2.14", "ubuntu", (
    ("pool/main/g/glibc/libc6_2.39-0ubuntu8_amd64.deb",
     "af36c7ac770770fe3d3c10e85d6bc538e76e57570ba7db7d397fb9f654783ef3"),
    ("pool/universe/v/valkey/valkey-tools_7.2.14+dfsg1-0ubuntu0.1_amd64.deb",
     "0681293d0126743021da1f8d8e4c28c008703a4e0eee31bd15236817101fbef0"),
    ("pool/universe/v/valkey/valkey-server_7.2.14+dfsg1-0ubuntu0.1_amd64.deb",
     "50367c50c8817613ccdfd21ab89d22cb7f1e34700fe96f00f72c82d8ccd40ac0")))
# Starts a program with the C library that it was linked with.
STARTER = """\
#!/bin/sh
here=$(dirname "$0")
exec "$here/{library}/ld-linux-x86-64.so.2" --library-path "$here/{library}:/{library}" \
"$here/usr/bin/valkey-{name}" "$@"
"""
MISSING = "cannot be fetched, or does not run here; what is compared with it is skipped."
LIBRARY = "usr/lib/x86_64-linux-gnu"


def _unpack(rival):
    folder, distribution, files = rival
    return foreground(["tools/unpack_packages.sh", folder, distribution,
                       *(word for file in files for word in file)]) == 0


def _is_amd64():
    return output_of(["dpkg", "--print-architecture"]).strip() == "amd64"


def asio():
    """The folder of the newest Asio in Debian, headers alone; without a network libasio-dev's."""
    if _unpack(ASIO):
        return os.path.abspath(f"{ASIO[0]}/usr/include")
    warn("Asio 1.30 cannot be fetched; the rival is the one of libasio-dev.")
    return "/usr/include"


def valkey_8():
    """Valkey 8 of bookworm-backports, which needs no library that redis-server does not need.

    Tests and benchmarks find it in EDDY_VALKEY, and go without it where it cannot be had.
    """
    server = os.path.abspath(f"{VALKEY_8[0]}/usr/bin/valkey-server")
    # Errors of the loader are shown.
    if _is_amd64() and _unpack(VALKEY_8) and succeeds([server, "--version"], stderr=None):
        os.environ["EDDY_VALKEY"] = server
    else:
        warn(f"Valkey 8 {MISSING}")


def redis_7_2():
    """Redis 7.2, of which no Debian has a package: Valkey 7.2 of Ubuntu 24.04, its other name.

    Tests compare with its replies. They find it in EDDY_REDIS_7_2, beside its redis-cli, and go
    without it where it cannot be had.
    """
    folder = VALKEY_7_2[0]
    if _is_amd64() and _unpack(VALKEY_7_2):
        for name in ("server", "cli"):
            path = f"{folder}/redis-{name}"
            with open(path, "w", encoding="ascii") as file:
                file.write(STARTER.format(library=LIBRARY, name=name))
            os.chmod(path, os.stat(path).st_mode | 0o111)
    server = os.path.abspath(f"{folder}/redis-server")
    if succeeds([server, "--version"]):
        os.environ["EDDY_REDIS_7_2"] = server
    else:
        warn(f"Redis 7.2 (Valkey's) {MISSING}")
