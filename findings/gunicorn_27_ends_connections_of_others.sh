#!/usr/bin/env bash
# gunicorn 27.0.1 ends a connection that its application has handed to another process; 20.1.0 leaves it alone.
#
# A good guess: a server that is done with a client closes its descriptor, and a process that got a duplicate of it by
#   SCM_RIGHTS goes on: close(2) ends a connection only with the last descriptor. StopIteration of an application, by
#   which gunicorn leaves a request without a response, does so in version 20.1.0.
# Behaviour: before it closes, 27.0.1 calls shutdown(2), which ends the connection for all processes that have it. The
#   other process cannot write to the client any more.
# Output seen (2026-12-01):
#   gunicorn 20.1.0: the client gets b'from another process'
#   gunicorn 27.0.1: the client gets b''
#
# Fails if that changes. Needs python3 with venv, and pip's index.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >app.py <<'END'
import os
import socket


def application(environ, start_response):
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(os.environ["OTHER"])
        socket.send_fds(other, [b"x"], [environ["gunicorn.socket"].fileno()])
    raise StopIteration
END

cat >try.py <<'END'
"""Prints what a client gets of a connection that was handed over. The argument: the Python that has gunicorn."""
import contextlib
import os
import socket
import subprocess
import sys

with socket.socket(socket.AF_UNIX) as other, socket.create_server(("127.0.0.1", 0)) as web:
    other.bind("other.sock")
    other.listen()
    other.settimeout(30)
    os.set_inheritable(web.fileno(), True)
    server = subprocess.Popen(
        [sys.argv[1], "-m", "gunicorn", "--bind", f"fd://{web.fileno()}", "--log-level", "critical", "app:application"],
        env={**os.environ, "OTHER": "other.sock"}, pass_fds=[web.fileno()])
    try:
        with socket.create_connection(web.getsockname(), 30) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with other.accept()[0] as taken:
                _, (handed,), _, _ = socket.recv_fds(taken, 1, 1)
            # gunicorn is done with the client once its worker takes the next one.
            with socket.create_connection(web.getsockname(), 30) as second:
                second.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                with other.accept()[0] as taken:
                    socket.recv_fds(taken, 1, 1)
            with contextlib.suppress(BrokenPipeError):
                os.write(handed, b"from another process")
            os.close(handed)
            got = b""
            while piece := client.recv(100):
                got += piece
            print(got)
    finally:
        server.terminate()
        server.wait(30)
END

seen=""
for version in 20.1.0 27.0.1; do
    python3 -m venv "v$version"
    "v$version/bin/pip" install -q --disable-pip-version-check "gunicorn==$version" 'setuptools==75.8.0' 'packaging==24.2'
    seen+="gunicorn $version: the client gets $(PYTHONPATH=. "v$version/bin/python" try.py "$PWD/v$version/bin/python")"$'\n'
    rm -f other.sock
done
printf %s "$seen"
diff <(printf %s "$seen") - <<'END'
gunicorn 20.1.0: the client gets b'from another process'
gunicorn 27.0.1: the client gets b''
END
