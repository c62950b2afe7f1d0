#!/usr/bin/env python3
"""Maker of the dump files of real servers in src/cache/rdb/files, with the servers' digests of their keys.

Usage: tools/make_rdb_files.py FOLDER|PROGRAM...
  PROGRAM a redis-server or valkey-server that runs here: ./eddy-dev test unpacks Redis 8.6 (RDB 13) and
          Valkey 9.1 (VALKEY080) below build/rivals.
  FOLDER  a system, such as debootstrap(8) makes with --include=redis-server: bullseye has Redis 6.0, which writes RDB 9,
          bookworm 7.0 (RDB 10), trixie 8.0 (RDB 12). Needs root, for chroot(2).

Beside each file NAME.rdb there is NAME.keys, a line a key: its database, its name, DEBUG DIGEST-VALUE, when it ends in
milliseconds since 1970 or "-", and of a hash whose fields end "FIELD=MILLISECONDS", too. Since Redis 8 the digest of a sorted
set has its scores in fewer digits: there it is "-", and "MEMBER=SCORE" follow. Valkey's of a hash whose fields end is "-", too.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from cache_client import Client  # pylint: disable=wrong-import-position

TO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "cache", "rdb", "files")
ENDS = 4_102_444_800_000  # the year 2100
INTEGERS = [0, 1, -1, 12, 13, 127, 128, -128, -129, 255, 256, 4095, 4096, -4096, 32767, 32768, -32769, 8388607, 8388608,
            2147483647, 2147483648, -2147483649, 9223372036854775807, -9223372036854775808]


def numbered(prefix, count):
    return [f"{prefix}{i}" for i in range(count)]


def fill(client, family, version):
    """Values of all types, in all encodings that this server has for them."""
    def must(*words):
        reply = client(*words)
        if isinstance(reply, str) and reply.startswith("-"):
            raise SystemExit(f"{words}: {reply}")
        return reply

    long, repeats = "".join(numbered("l", 200)), "ab" * 500
    must("SET", "text", "value")
    must("SET", "empty", "")
    must("SET", "long", long)
    must("SET", "packed", repeats)
    for number in INTEGERS:
        must("SET", f"number:{number}", number)
    must("SET", "ends", "value", "PX", "1000")
    must("PEXPIREAT", "ends", ENDS)
    mixed = [*INTEGERS, "", "a", "b" * 63, "c" * 64, "d" * 300, "007"]
    must("RPUSH", "list", *mixed)
    must("RPUSH", "list:numbers", *INTEGERS)
    must("RPUSH", "list:long", *numbered("element", 300))
    must("RPUSH", "list:huge", "h" * 9000, "x", repeats * 9)
    must("CONFIG", "SET", "list-compress-depth", 1)
    must("RPUSH", "list:compressed", *[each * 30 for each in numbered("element", 300)])
    must("PEXPIREAT", "list", ENDS + 1)
    must("SADD", "set", "a", "b", "c")
    must("SADD", "set:mixed", *mixed)
    must("SADD", "set:large", *numbered("member", 600))
    must("SADD", "set:16", 1, -2, 300)
    must("SADD", "set:32", 1, -2, 70000)
    must("SADD", "set:64", *INTEGERS)
    must("HSET", "hash", "f", "v", "g", 12, "empty", "")
    must("HSET", "hash:large", *numbered("x", 1200))
    must("HSET", "hash:long", "f", "v" * 100)
    scores = [0, 1, -1, 1.5, -2.25, 3.141592653589793, 1e300, -1e-300, "inf", "-inf", 17179869184]
    must("ZADD", "sorted", *[word for i, score in enumerate(scores) for word in (score, f"m{i}")])
    must("ZADD", "sorted:large", *[word for i in range(300) for word in (i * 1.25 - 99, f"member{i}")])
    must("XADD", "stream", "5-1", "f", "v")
    for i in range(250):
        must("XADD", "stream:large", f"{1000 + i // 3}-{i % 3}", "a", i, "b", "x" * (i % 40))
    for i in range(0, 250, 7):
        must("XDEL", "stream:large", f"{1000 + i // 3}-{i % 3}")
    must("XADD", "stream:large", "2000-0", "other", "fields", "than", "before", "and", "more")
    must("XGROUP", "CREATE", "stream:large", "g", "1010-0")
    must("XGROUP", "CREATE", "stream:large", "idle", "$")
    must("XREADGROUP", "GROUP", "g", "one", "COUNT", 5, "STREAMS", "stream:large", ">")
    must("XREADGROUP", "GROUP", "g", "two", "COUNT", 3, "STREAMS", "stream:large", ">")
    must("XACK", "stream:large", "g", "1011-0")
    must("XGROUP", "CREATE", "stream:empty", "g", "$", "MKSTREAM")
    if version[0] >= 7:
        must("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)")
    if version[0] >= 8:
        must("HSET", "hash:ends", "a", 1, "b", "text", "c", 3)
        must("HPEXPIREAT", "hash:ends", ENDS, "FIELDS", 2, "a", "b")
        must("HSET", "hash:ends:large", *numbered("x", 1200))
        must("HPEXPIREAT", "hash:ends:large", ENDS + 7, "FIELDS", 2, "x0", "x100")
    if family == "redis" and version >= (8, 6):
        for identity in ("first", "second", "first"):
            must("XADD", "stream:producers", "IDMP", "producer", identity, "*", "f", identity)
        must("XADD", "stream:producers", "IDMPAUTO", "other", "*", "f", "v")
    must("SELECT", 9)
    must("SET", "ninth", "value")
    # Usage counters are written for this key alone: the file holds the counters of the policy at its writing.
    must("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")


def tell(client, file, family, version):
    for database in range(16):
        client("SELECT", database)
        for key in sorted(client("KEYS", "*")):
            name = key.decode()
            digest, = client("DEBUG", "DIGEST-VALUE", name)
            ends = {"ends": ENDS, "list": ENDS + 1}.get(name, "-")
            fields = []
            if version[0] >= 8 and name.startswith("hash:ends"):
                of = [field.decode() for field in client("HKEYS", name)]
                fields = [f"{field}={at}" for field, at in
                          zip(of, client("HPEXPIRETIME", name, "FIELDS", len(of), *of)) if at >= 0]
            if family == "valkey" and fields:
                digest = "-"
            if version[0] >= 8 and name == "sorted":
                pairs = iter(client("ZRANGE", name, 0, -1, "WITHSCORES"))
                digest, fields = "-", [f"{member.decode()}={score.decode()}" for member, score in zip(pairs, pairs)]
            print(database, name, digest.removeprefix("+"), ends, *fields, file=file)


@contextlib.contextmanager
def folder_of(system):
    """The command that starts the server, and its folder as it and as this program see it."""
    if os.path.isfile(system):
        with tempfile.TemporaryDirectory() as folder:
            yield [system], folder, folder
    else:
        yield ["chroot", system, "redis-server"], "/tmp", os.path.join(system, "tmp")


def make(system):
    with folder_of(system) as (command, its, folder):
        told = subprocess.run([*command, "--version"], stdout=subprocess.PIPE, check=True).stdout
        family = "valkey" if told.startswith(b"Valkey") else "redis"
        version = tuple(int(part) for part in re.search(rb"v=(\d+)\.(\d+)\.(\d+)", told).groups())
        name = os.path.join(TO, f"{family}-{version[0]}.{version[1]}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        made = os.path.join(folder, "made.rdb")
        with contextlib.suppress(FileNotFoundError):
            os.remove(made)
        more = ["--enable-debug-command", "yes"] if version[0] >= 7 else []
        server = subprocess.Popen([*command, "--port", str(port), "--dir", its, "--save", "",
                                   "--dbfilename", "made.rdb", *more], stdout=subprocess.DEVNULL)
        try:
            while True:
                try:
                    client = Client(port)
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            fill(client, family, version)
            if client("SAVE") != "+OK":
                raise SystemExit("SAVE failed")
            with open(name + ".keys", "w", encoding="ascii") as file:
                print(f"# {family.capitalize()} {'.'.join(map(str, version))}; made by tools/make_rdb_files.py", file=file)
                tell(client, file, family, version)
        finally:
            server.kill()
            server.wait()
        shutil.move(made, name + ".rdb")
    print(f"{name}.rdb: {os.path.getsize(name + '.rdb')} bytes")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for each in sys.argv[1:]:
        make(each)
