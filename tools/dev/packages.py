"""Packages of Debian and Ubuntu that the commands need."""

import glob
import os
import re

from dev.processes import is_installed, succeeds

CLANG = "19"

BUILD = (
    "cmake", "ninja-build", "pkgconf", "ccache", f"clang-{CLANG}", f"lld-{CLANG}", f"llvm-{CLANG}",
    "liburing-dev", "libc-ares-dev", "libssl-dev", "zlib1g-dev", "libbrotli-dev", "libzstd-dev",
    "libluajit-5.1-dev", "libfmt-dev", "libedit-dev", "libkainjow-mustache-dev",
    "nlohmann-json3-dev", "libtomlplusplus-dev")
TEST = (
    "python3", "libgtest-dev", "libgmock-dev", "librapidcheck-dev", f"libclang-rt-{CLANG}-dev",
    f"clang-format-{CLANG}", "redis-server", "redis-tools", "netcat-openbsd", "curl", "openssl",
    "doxygen", "python3-redis", "libhiredis-dev", "iproute2", "libfaketime", "postgresql",
    "lua-sql-postgres", "lua-sql-sqlite3", "memcached", "haproxy", "nginx", "libnginx-mod-stream", "systemd",
    "lintian", "zsh", "fish", "mandoc")
# Not of every system: a second HTTP parser to compare with, a browser, slow HTTP clients, a
# language that hands clients over, a reader of access logs, a second database, the store of clusters.
TEST_OPTIONAL = ("node-llhttp", "chromium", "slowhttptest", "php-cli", "goaccess", "mariadb-server-core",
                 "mariadb-client-core", "lua-sql-mysql", "etcd-server")
# Fetch and build the client libraries that no distribution has in a fresh version.
CLIENTS = ("python3-venv", "nodejs", "npm", "golang-go", "maven", "default-jdk-headless", "cargo")
BENCH = ("libbenchmark-dev", "libasio-dev", "libboost-dev", "libuv1-dev", "python3", "memcached")
# Rivals and a load of the benchmark of HTTP, which goes without the missing ones.
BENCH_OPTIONAL = ("nginx-light", "h2o", "wrk")
LINT = (f"clang-tidy-{CLANG}", "python3")
# For cpack, which asks for the libraries that a program needs, and for the archive.
PACKAGING = ("file", "dpkg-dev", "binutils")
# The library's users have other compilers: the first that apt knows. Debian 12 has none of these.
COMPILERS = ("g++-14", "g++-13")

# The Java module's.
LEAST_JAVA = 17


def is_known(package):
    """True if apt has it."""
    return succeeds(["apt-cache", "show", package])


def test():
    return [*TEST, *filter(is_known, TEST_OPTIONAL), *java()]


def bench():
    return [*BENCH, *filter(is_known, BENCH_OPTIONAL)]


def compiler():
    """The newest other compiler that apt has, or None."""
    # A name that apt lacks is a pattern to it: g++-14 would be clang-14 and others.
    patterns = {name: "^" + name.replace("+", r"\+") + "$" for name in COMPILERS}
    return next((name for name, pattern in patterns.items() if is_known(pattern)), None)


def java():
    """For the Java module's tests, where they are not installed otherwise."""
    homes = [*sorted(glob.glob("/usr/lib/jvm/*")), os.environ.get("JAVA_HOME", "")]
    missing = []
    if not any(java_version(home) >= LEAST_JAVA for home in homes):
        missing.append("default-jdk-headless")
    if not is_installed("mvn"):
        missing.append("maven")
    return missing


def java_version(home):
    """The major version of a JDK's folder, or 0."""
    if not os.access(f"{home}/bin/javac", os.X_OK):
        return 0
    try:
        with open(f"{home}/release", encoding="utf-8", errors="replace") as file:
            found = re.search(r'^JAVA_VERSION="([0-9]+)', file.read(), re.M)
    except OSError:
        return 0
    return int(found[1]) if found else 0
