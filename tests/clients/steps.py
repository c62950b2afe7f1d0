"""The steps of a client's program: each runs by itself and prints how it went (tests/clients/run.py)."""

import os
import socket
import ssl
import sys
import time
import traceback

PORT = int(os.environ["EDDY_CLIENT_PORT"])
RESP = int(os.environ.get("EDDY_CLIENT_RESP", "2"))
# Where the port speaks TLS: the authority's certificate.
CA = os.environ.get("EDDY_CLIENT_CA")
DEADLINE_S = 120

_failed = 0


class NotYet(Exception):
    """The server or the library lacks what a step needs."""


def say(line):
    print(line.replace("\n", " | "), flush=True)


def check(actual, expected, what=""):
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r}, but {expected!r} was due"[:2000])


def eventually(condition, what):
    end = time.monotonic() + DEADLINE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true")
        time.sleep(0.02)


def raises(kind, text, function, *args, **more):
    """Calls it; it must fail with this exception and text."""
    try:
        value = function(*args, **more)
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"{error!r} does not contain {text!r}") from error
        return error
    raise AssertionError(f"{value!r}, but {kind.__name__} was due")


def step(name, function, *args):
    global _failed
    try:
        function(*args)
        say(f"ok {name}")
    except NotYet as reason:
        say(f"not yet {name}: {reason}")
    except Exception as error:
        traceback.print_exc()
        _failed += 1
        say(f"FAILED {name}: {type(error).__name__}: {error}"[:2000])


def open_connection():
    plain = socket.create_connection(("127.0.0.1", PORT), timeout=DEADLINE_S)
    if CA is None:
        return plain
    return ssl.create_default_context(cafile=CA).wrap_socket(plain, server_hostname="127.0.0.1")


def has_command(name):
    """True if the server has the command, asked without any library; `name` may be a subcommand, as in
    "script|load"."""
    # A subcommand without arguments changes nothing; at worst the reply is an error about their number.
    question = name.replace("|", " ") if "|" in name else "COMMAND INFO " + name
    with open_connection() as connection:
        connection.sendall(question.encode() + b"\r\nQUIT\r\n")
        reply = b""
        while piece := connection.recv(65536):
            reply += piece
    return not reply.startswith((b"-ERR unknown ", b"*1\r\n*-1\r\n", b"*1\r\n$-1\r\n"))


def needs(*commands):
    """Ends the step when the server lacks one of them."""
    for command in commands:
        if not has_command(command):
            raise NotYet(f"the server has no {command.upper().replace('|', ' ')}")


def restart_server():
    say("ask restart")
    if sys.stdin.readline().strip() != "done":
        raise AssertionError("the server was not restarted")


def finish():
    sys.stdout.flush()
    sys.exit(1 if _failed else 0)
