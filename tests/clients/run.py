#!/usr/bin/env python3
"""Runner of the Redis clients that people use: drives Eddy's cache with each, through its ordinary flow.

Usage: tests/clients/run.py [--list] [--apt] [--only eddy|redis] [NAME...]; ./eddy-dev clients calls it.

A client is a small program in its own language under tests/clients/. It gets the server's port in
EDDY_CLIENT_PORT, those of all its servers in EDDY_CLIENT_PORTS, parted by spaces, and 2 or 3 in
EDDY_CLIENT_RESP, and prints a line a step:

    version 1.2.3
    ok lists
    not yet scripts: the server has no EVAL
    FAILED hashes: what went wrong

`ask restart` asks for a restart of the server on the same port; `done` comes on standard input when it is
there again. `ask end` ends the last of several servers for good, and is answered alike. Any other line
is for the log. Every program also runs against redis-server: a step that
fails there is a wrong step. Some run once more over TLS: EDDY_CLIENT_CA then names the file of the
authority whose certificate the port shows. Libraries are fetched with their own package managers in
the versions that tests/clients/ names, into build/clients/.
"""

import argparse
import atexit
import collections
import contextlib
import functools
import hashlib
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))

import harness  # noqa: E402

BUILD = os.path.join(ROOT, "build", "clients")
# Longest silence of a program before it counts as hung.
SILENCE_S = 150
# Limit for a package manager.
INSTALL_S = 1200


class Unavailable(Exception):
    """Why a client cannot be tried on this machine."""


class Broken(Exception):
    """Why a client's program cannot be tried at all, which is a failure."""


# --- The servers ----------------------------------------------------------------------------


@functools.cache
def certificates():
    """An authority and the servers' certificate, for this run alone."""
    folder = tempfile.mkdtemp(prefix="eddy-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return harness.Certificates(folder)


@functools.cache
def require_tls():
    """Raises Unavailable when this machine's tools cannot be tried over TLS."""
    tool("openssl")
    if shutil.which("redis-cli"):
        shown = subprocess.run(["redis-cli", "--help"], capture_output=True, text=True, check=False)
        if "--tls " not in shown.stdout + shown.stderr:
            raise Unavailable("this Redis was built without TLS")


def wait_for_port(port, secure):
    def connection():
        return certificates().connect(port) if secure else socket.create_connection(("127.0.0.1", port), timeout=5)

    def answers():
        try:
            with connection() as probe:
                probe.sendall(b"PING\r\n")
                return bool(probe.recv(1))
        except OSError:
            return False
    harness.eventually(answers, f"a server on port {port}")


class EddyServer:
    """A daemon of its own with one cache."""

    name = "eddy"

    def __init__(self, secure):
        self.secure = secure

    def flags(self):
        if not self.secure:
            return ["-p", str(self.port)]
        return ["--tls-port", str(self.port), "--tls-cert-file", certificates().cert,
                "--tls-key-file", certificates().key, "--tls-auth-clients", "no"]

    def __enter__(self):
        self.port = harness.free_port()
        self.daemon = harness.Daemon(flags=["--drain", "1s"])
        self.daemon.start()
        try:
            created = self.daemon.run("create", "cache", "db", *self.flags(), "-s")
            if "does not have" in created.err:
                raise Unavailable("this eddy was built without TLS")
            if created.status != 0:
                raise AssertionError(f"the cache was not created: {created}")
            wait_for_port(self.port, self.secure)
        except BaseException:
            self.daemon.__exit__()
            raise
        return self

    def end(self):
        status = self.daemon.stop()
        if status != 0:
            raise AssertionError(f"the daemon ended with status {status}: {self.daemon.read_log()}")

    def restart(self):
        self.end()
        self.daemon.start()
        wait_for_port(self.port, self.secure)

    def __exit__(self, *ignored):
        self.daemon.__exit__(*ignored)


class RedisServer:
    """A real redis-server, to see that a program asks only for what Redis does."""

    name = "redis"

    def __init__(self, secure):
        self.secure = secure

    def flags(self):
        if not self.secure:
            return ["--port", str(self.port)]
        return ["--port", "0", "--tls-port", str(self.port), "--tls-cert-file", certificates().cert,
                "--tls-key-file", certificates().key, "--tls-ca-cert-file", certificates().ca,
                "--tls-auth-clients", "no"]

    def __enter__(self):
        self.port = harness.free_port()
        self.folder = tempfile.mkdtemp(prefix="eddy-")
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", *self.flags(), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.secure)

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(harness.DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def restart(self):
        self.end()
        self.start()

    def __exit__(self, *ignored):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


# --- The languages --------------------------------------------------------------------------


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Unavailable(f"there is no {name}")
    return path


def quietly(words, folder, log, problem):
    """Runs a step of an installation; raises a `problem` when it fails."""
    with open(log, "ab") as out:
        out.write(f"\n$ {' '.join(words)}\n".encode())
        out.flush()
        try:
            status = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    timeout=INSTALL_S, check=False).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            raise problem(f"{words[0]}: {error}") from error
    if status != 0:
        raise problem(f"`{' '.join(words)}` failed; see {os.path.relpath(log, ROOT)}")


class Language:
    """The programs of one language, copied to build/clients/<folder> and made there once."""

    def __init__(self, folder):
        self.source = os.path.join(HERE, folder)
        self.folder = os.path.join(BUILD, folder)
        self.log = os.path.join(BUILD, folder + ".log")
        self.outcome = None

    def prepare(self):
        """Raises Unavailable when this language's programs cannot be had."""
        if self.outcome is None:
            try:
                self.make()
                self.outcome = True
            except (Unavailable, Broken) as reason:
                self.outcome = reason
        if self.outcome is not True:
            raise self.outcome

    def make(self):
        self.check()
        os.makedirs(self.folder, exist_ok=True)
        with open(self.log, "wb"):
            pass
        shutil.copytree(self.source, self.folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.install()

    def once(self, manifest, action):
        """Runs `action` unless it succeeded before for the manifest as it is now."""
        with open(os.path.join(self.source, manifest), "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        stamp = os.path.join(self.folder, ".installed")
        if os.path.exists(stamp):
            with open(stamp, encoding="ascii") as file:
                if file.read() == digest:
                    return
        action()
        with open(stamp, "w", encoding="ascii") as file:
            file.write(digest)

    def check(self):
        """Raises Unavailable when a tool is missing."""

    def install(self):
        """Fetches the libraries and builds."""

    def fetch(self, *words):
        """Runs a step that needs the network."""
        quietly(list(words), self.folder, self.log, Unavailable)

    def build(self, *words):
        """Runs a step that needs no network."""
        quietly(list(words), self.folder, self.log, Broken)


class Python(Language):
    def check(self):
        tool("python3")

    def install(self):
        def fresh():
            shutil.rmtree(os.path.join(self.folder, "venv"), ignore_errors=True)
            self.fetch(sys.executable, "-m", "venv", "venv")
            self.fetch("venv/bin/pip", "install", "--quiet", "-r", "requirements.txt")
        self.once("requirements.txt", fresh)

    def command(self, program):
        return [os.path.join(self.folder, "venv/bin/python"), os.path.join(self.folder, program + ".py")]


class DebianPython(Language):
    """The redis-py of the distribution, python3-redis."""

    interpreter = "/usr/bin/python3"

    def check(self):
        if subprocess.run([self.interpreter, "-c", "import redis"], capture_output=True,
                          check=False).returncode != 0:
            raise Unavailable("there is no python3-redis")

    def make(self):
        self.check()

    def command(self, program):
        return [self.interpreter, os.path.join(self.source, program + ".py")]


class Tools(Language):
    """Programs of the package redis-tools, driven by scripts in Python's standard library."""

    def check(self):
        tool("redis-cli")
        tool("redis-benchmark")

    def make(self):
        self.check()

    def command(self, program):
        return [sys.executable, os.path.join(self.source, program + ".py")]


class C(Language):
    def check(self):
        self.compiler = next((found for found in map(shutil.which, ("cc", "clang", "clang-19", "gcc")) if found),
                             None)
        if not self.compiler:
            raise Unavailable("there is no C compiler")
        if not os.path.exists("/usr/include/hiredis/hiredis.h"):
            raise Unavailable("there is no libhiredis-dev")

    def install(self):
        self.build(self.compiler, "-std=gnu11", "-g", "-Wall", "-o", "hiredis", "hiredis.c", "-lhiredis")

    def command(self, program):
        return [os.path.join(self.folder, program)]


class Node(Language):
    def check(self):
        tool("node")
        tool("npm")

    def install(self):
        self.once("package.json", lambda: self.fetch(
            "npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error"))

    def command(self, program):
        return ["node", os.path.join(self.folder, program + ".js")]


class Go(Language):
    def check(self):
        tool("go")

    def install(self):
        os.makedirs(os.path.join(self.folder, "bin"), exist_ok=True)
        self.fetch("go", "mod", "download")
        self.build("go", "build", "-o", "bin/", "./cmd/...")

    def command(self, program):
        return [os.path.join(self.folder, "bin", program)]


class Java(Language):
    def check(self):
        tool("java")
        tool("mvn")

    def install(self):
        self.once("pom.xml", lambda: self.fetch("mvn", "--batch-mode", "--quiet", "dependency:go-offline"))
        self.build("mvn", "--batch-mode", "--quiet", "package")

    def command(self, program):
        path = os.path.join(self.folder, "target", "classes") + ":" + os.path.join(self.folder, "target", "lib", "*")
        return ["java", "-cp", path, "eddy." + program]


class Rust(Language):
    def check(self):
        tool("cargo")

    def install(self):
        self.fetch("cargo", "fetch", "--quiet", "--locked")
        self.build("cargo", "build", "--quiet", "--locked")

    def command(self, program):
        return [os.path.join(self.folder, "target", "debug", program)]


LANGUAGES = {"python": Python("python"), "debian": DebianPython("python"), "tools": Tools("tools"), "c": C("c"),
             "node": Node("node"), "go": Go("go"), "java": Java("java"), "rust": Rust("rust")}

# With `tls` the program also runs over TLS, with the newest of its protocols.
Client = collections.namedtuple("Client", "name language program protocols tls servers", defaults=(False, 1))

# Clients of ./eddy-dev test, too, are the first four: they need only packages of the distribution.
CLIENTS = [
    Client("redis-cli", "tools", "redis_cli", (2, 3), tls=True),
    Client("redis-benchmark", "tools", "redis_benchmark", (2,), tls=True),
    Client("hiredis", "c", "hiredis", (2,)),
    Client("redis-py-debian", "debian", "redis_py", (2,), tls=True),
    Client("redis-py", "python", "redis_py", (2, 3), tls=True),
    Client("django-redis", "python", "django_redis_cache", (2,)),
    Client("celery", "python", "celery_tasks", (2,)),
    Client("rq", "python", "rq_jobs", (2,)),
    Client("ioredis", "node", "ioredis", (2, 3), tls=True),
    Client("node-redis", "node", "node_redis", (2, 3), tls=True),
    Client("connect-redis", "node", "connect_redis", (2,)),
    Client("bullmq", "node", "bullmq", (2,)),
    Client("redlock", "node", "redlock", (2,), servers=3),
    Client("go-redis", "go", "go-redis", (2, 3), tls=True),
    Client("rueidis", "go", "rueidis", (2, 3), tls=True),
    Client("asynq", "go", "asynq", (2,)),
    Client("redsync", "go", "redsync", (2,), servers=3),
    Client("redis-rs", "rust", "redis-rs", (2, 3)),
    Client("jedis", "java", "JedisClient", (2, 3)),
    Client("lettuce", "java", "LettuceClient", (2, 3)),
    Client("redisson", "java", "RedissonObjects", (2,)),
]
APT_CLIENTS = [client.name for client in CLIENTS if client.language in ("tools", "c", "debian")]


# --- One client against one server ----------------------------------------------------------


class Outcome:
    def __init__(self):
        self.version = "?"
        self.ok = []
        self.not_yet = []
        self.failed = []
        self.seconds = 0


def run_client(client, servers, protocol, log):
    """Runs the program against running servers; never raises for what the program does."""
    server = servers[0]
    outcome = Outcome()
    start = time.monotonic()
    environment = dict(os.environ, EDDY_CLIENT_PORT=str(server.port), EDDY_CLIENT_RESP=str(protocol),
                       EDDY_CLIENT_PORTS=" ".join(str(each.port) for each in servers),
                       PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=HERE)
    if server.secure:
        # Node.js and Go take trusted certificates from variables of their own.
        environment.update({name: certificates().ca
                            for name in ("EDDY_CLIENT_CA", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")})
    process = subprocess.Popen(LANGUAGES[client.language].command(client.program), env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line.decode(errors="replace").rstrip("\n"))
        lines.put(None)
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while True:
            try:
                line = lines.get(timeout=SILENCE_S)
            except queue.Empty:
                outcome.failed.append(f"it said nothing for {SILENCE_S} s")
                break
            if line is None:
                break
            log.write((line + "\n").encode())
            log.flush()
            if line.startswith("ok "):
                outcome.ok.append(line[3:])
            elif line.startswith("not yet "):
                outcome.not_yet.append(line[8:])
            elif line.startswith("FAILED "):
                outcome.failed.append(line[7:])
            elif line.startswith("version "):
                outcome.version = line[8:]
            elif line in ("ask restart", "ask end"):
                if line == "ask restart":
                    server.restart()
                else:
                    servers[-1].end()
                process.stdin.write(b"done\n")
                process.stdin.flush()
    except (AssertionError, OSError) as error:
        outcome.failed.append(f"the server: {error}")
    finally:
        # A program's last line is its last output; one that lingers is an error of its own.
        try:
            process.stdin.close()
        except OSError:
            pass
        try:
            status = process.wait(30 if not outcome.failed else 5)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
            outcome.failed.append("it did not end after its last step")
        reader.join()
        process.stdout.close()
    if status != 0 and not outcome.failed:
        outcome.failed.append(f"it ended with status {status}")
    if not outcome.ok and not outcome.failed and not outcome.not_yet:
        outcome.failed.append("it did nothing")
    outcome.seconds = time.monotonic() - start
    return outcome


def try_client(client, servers):
    """The outcomes by (protocol, server's name)."""
    LANGUAGES[client.language].prepare()
    outcomes = {}
    for protocol in client.protocols:
        try_protocol(client, servers, protocol, False, outcomes)
    if client.tls:
        try:
            require_tls()
            try_protocol(client, servers, client.protocols[-1], True, outcomes)
        except Unavailable as reason:
            print(f"    {client.name} is not tried over TLS: {reason}", flush=True)
    return outcomes


def try_protocol(client, servers, protocol, secure, outcomes):
    os.makedirs(BUILD, exist_ok=True)
    form = f"{protocol} TLS" if secure else str(protocol)
    for server_type in servers:
        name = f"{client.name}-resp{form.lower().replace(' ', '-')}-{server_type.name}.log"
        path = os.path.join(BUILD, name)
        with open(path, "wb") as log, contextlib.ExitStack() as running:
            started = [running.enter_context(server_type(secure)) for _ in range(client.servers)]
            outcome = run_client(client, started, protocol, log)
        outcomes[form, server_type.name] = outcome
        for text in outcome.failed:
            print(f"    {client.name} RESP{form} against {server_type.name}: FAILED {text}"
                  f"  ({os.path.relpath(path, ROOT)})", flush=True)
        for text in outcome.not_yet:
            print(f"    {client.name} RESP{form} against {server_type.name}: not yet {text}", flush=True)


def show(rows):
    print()
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--list", action="store_true", help="the names, and end")
    parser.add_argument("--apt", action="store_true", help="those that need the distribution's packages alone")
    parser.add_argument("--only", choices=("eddy", "redis"), help="against this server alone")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these clients; else all")
    options = parser.parse_args()
    if options.list:
        print("\n".join(client.name for client in CLIENTS))
        return 0
    known = {client.name for client in CLIENTS}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no client {name}; --list names them")
    wanted = set(options.names) or (set(APT_CLIENTS) if options.apt else known)
    servers = [EddyServer, RedisServer]
    if options.only:
        servers = [server for server in servers if server.name == options.only]
    elif not shutil.which("redis-server"):
        print("There is no redis-server: nothing shows whether a failed step is a wrong one.")
        servers = [EddyServer]

    rows = [("client", "version", "RESP", "server", "ok", "failed", "not yet", "seconds")]
    passed = failed = skipped = 0
    for client in CLIENTS:
        if client.name not in wanted:
            continue
        print(f"--- {client.name}", flush=True)
        try:
            outcomes = try_client(client, servers)
        except Unavailable as reason:
            print(f"    skipped: {reason}", flush=True)
            rows.append((client.name, "-", "-", "-", "-", "-", "-", "skipped"))
            skipped += 1
            continue
        except Broken as reason:
            print(f"    FAILED: {reason}", flush=True)
            rows.append((client.name, "-", "-", "-", "-", "1", "-", "-"))
            failed += 1
            continue
        for (protocol, server), outcome in outcomes.items():
            rows.append((client.name, outcome.version, protocol, server, len(outcome.ok), len(outcome.failed),
                         len(outcome.not_yet), f"{outcome.seconds:.1f}"))
            passed += len(outcome.ok)
            failed += len(outcome.failed)
            skipped += len(outcome.not_yet)
    show(rows)
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
