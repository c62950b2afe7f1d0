"""Fixtures of the tests of the whole program: a daemon of a test's own, the command line, the control API, and waits
for conditions. Standard library alone.

Every daemon has its own socket, state and ports, so that tests run side by side. Nothing sleeps for a
guessed time: eventually() asks again until a deadline that only a broken program reaches.
"""

import contextlib
import functools
import http.client
import itertools
import json
import os
import random
import select
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BINARY = os.environ.get("EDDY_BINARY") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "build", "release", "eddy")

# Deadline in seconds for any step before it counts as broken; generous, for sanitizers on a busy machine.
DEADLINE_S = 60
# Limit in seconds for a program that a test runs, below ctest's limit for the whole test.
SCRIPT_TIMEOUT_S = int(os.environ.get("EDDY_SCRIPT_TIMEOUT_S", "300")) * 9 // 10


# A shell's background job ignores SIGINT, and the programs that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def eventually(condition, what="the condition", deadline_s=DEADLINE_S):
    """Asks until `condition()` is true and returns its value; fails at the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {deadline_s} s")
        time.sleep(0.02)


def line_of(process, deadline_s=DEADLINE_S):
    """The next line of a process's standard output, which must be unbuffered (bufsize=0).

    Fails when none comes, instead of waiting for ever.
    """
    if not select.select([process.stdout], [], [], deadline_s)[0]:
        raise AssertionError(f"{process.args} printed no further line within {deadline_s} s")
    return process.stdout.readline()


class Ports:
    """Ports that neither the kernel gives to others, as it does those above its own range's start, nor
    another test that runs at the same time: each process has a block of them for its life.
    """

    FIRST, BLOCK = 10_000, 200

    def __init__(self):
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as range_file:
            end = int(range_file.read().split()[0])
        if end < self.FIRST + self.BLOCK:
            end = 65_536
        blocks = list(range(self.FIRST, end - self.BLOCK + 1, self.BLOCK))
        random.shuffle(blocks)
        self.claim = socket.socket(socket.AF_UNIX)
        for start in blocks:
            with contextlib.suppress(OSError):
                # An abstract name, which goes with the process however it ends.
                self.claim.bind(f"\0eddy-ports-{start}")
                self.next = itertools.cycle(range(start, start + self.BLOCK))
                return
        raise AssertionError("other tests have all the ports")

    def free(self, kind):
        for port in itertools.islice(self.next, self.BLOCK):
            with contextlib.suppress(OSError), socket.socket(socket.AF_INET, kind) as probe:
                probe.bind(("0.0.0.0", port))
                return port
        raise AssertionError("no port of this process's block is free")


@functools.cache
def ports():
    return Ports()


def free_port(kind=socket.SOCK_STREAM):
    """A port that is free, and that is returned again only after many others."""
    return ports().free(kind)


def connect(port, timeout_s=DEADLINE_S):
    return socket.create_connection(("127.0.0.1", port), timeout=timeout_s)


def read_line(stream):
    """One line from a socket, without what ends it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = stream.recv(1)
        if not byte:
            raise AssertionError(f"the connection ended after {line!r}")
        line += byte
    return line.rstrip(b"\r\n").decode()


class Unix(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path, timeout_s=DEADLINE_S):
        super().__init__("eddy", timeout=timeout_s)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Result:
    """Result of a command line."""

    def __init__(self, process, out, err):
        self.status = process.returncode
        self.out = out
        self.err = err

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out}--- err\n{self.err}"


class Daemon:
    """A daemon in a folder of its own. Use it with `with`, or stop() it."""

    def __init__(self, backend="auto", folder=None, flags=(), limit_files=None, state=None):
        self.backend = backend
        self.own_folder = folder is None
        # The kernel takes 107 bytes for a socket's path, so the folder's name is short.
        self.folder = folder or tempfile.mkdtemp(prefix="eddy-")
        self.socket = os.path.join(self.folder, "s.sock")
        self.state = state or os.path.join(self.folder, "state")
        self.flags = list(flags)
        self.limit_files = limit_files
        self.process = None
        self.ready_line = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *ignored):
        status = self.stop()
        log = self.read_log() if status not in (None, 0) else ""
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        if status not in (None, 0):
            raise AssertionError(f"the daemon ended with status {status}; its log:\n{log[-20000:]}")

    def environment(self):
        return dict(os.environ, EDDY_SOCKET=self.socket, EDDY_STATE_DIR=self.state)

    def command(self):
        words = [BINARY, "daemon", "--io-backend", self.backend] + self.flags
        if self.limit_files:
            words = ["sh", "-c", f"ulimit -n {self.limit_files} && exec \"$@\"", "sh"] + words
        return words

    def start(self):
        self.begin()
        line = self._first_line()
        if not line.startswith("eddy daemon ready: "):
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the daemon said {line!r}; its log:\n{self.read_log()}")
        self.ready_line = line
        return self

    def begin(self):
        """Starts it without waiting until it is ready."""
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=self.log,
                                        env=self.environment())
        return self

    def _first_line(self):
        found = []
        reader = threading.Thread(target=lambda: found.append(self.process.stdout.readline()))
        reader.start()
        reader.join(DEADLINE_S)
        return found[0].decode().rstrip("\n") if found else "nothing in time"

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """As by kill -9."""
        self.process.kill()
        self._reap()

    def wait(self):
        """Waits for an end that was asked for already. Returns the exit status."""
        return self._reap()

    def stop(self):
        """As by SIGTERM. Returns the exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
        return self._reap()

    def _reap(self):
        try:
            status = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the daemon did not end; its log:\n{self.read_log()}")
        self.process.stdout.close()
        self.log.close()
        self.process = None
        return status

    def read_log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    # --- The command line ---

    def run(self, *words, stdin=None, env=None):
        """Runs `eddy WORDS...` against this daemon."""
        environment = self.environment()
        environment.update(env or {})
        if isinstance(stdin, str):
            stdin = stdin.encode()
        process = subprocess.Popen([BINARY, *words], env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(stdin or b"", timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"eddy {words} did not end:\n{out!r}\n{err!r}")
        return Result(process, out.decode(errors="replace"), err.decode(errors="replace"))

    def must(self, *words, **more):
        """Runs a command that must succeed; returns its output."""
        result = self.run(*words, **more)
        if result.status != 0:
            raise AssertionError(f"eddy {' '.join(words)} failed: {result}")
        return result.out

    def json(self, *words):
        return json.loads(self.must("--json", *words))

    def list(self, *words):
        """The runtimes by name, as `eddy ls --json` shows them."""
        return {each["name"]: each for each in self.json("ls", *words)}

    def show(self, name):
        return self.json("show", name)

    # --- The control API ---

    def request(self, method, target, body=None, headers=None):
        """One request on a connection of its own; returns (status, body as JSON or text)."""
        connection = Unix(self.socket)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, target, body=body, headers=headers or {})
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        connection.close()
        if "application/json" in (response.getheader("Content-Type") or ""):
            return response.status, json.loads(text)
        return response.status, text

    def raw(self):
        """A bare connection to the control socket."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(DEADLINE_S)
        connection.connect(self.socket)
        return connection

    def metric(self, name, /, **labels):
        """The value of a metric, or None."""
        status, page = self.request("GET", "/metrics")
        if status != 200:
            return None
        wanted = ",".join(f'{key}="{value}"' for key, value in labels.items())
        pattern = re.escape(name + ("{" + wanted + "}" if wanted else "")) + r" (\S+)"
        found = re.search("^" + pattern + "$", page, re.M)
        return float(found.group(1)) if found else None

    # --- The process ---

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def thread_names(self):
        names = []
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                with open(f"/proc/{self.pid}/task/{task}/comm", encoding="utf-8") as name:
                    names.append(name.read().strip())
        return names

    def resident_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def wake_ups(self):
        """Number of times that its threads have gone to sleep."""
        count = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                with open(f"/proc/{self.pid}/task/{task}/status", encoding="ascii") as status:
                    count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M).group(1))
        return count

    def cpu_ticks(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


def all_of(stream):
    """Everything that comes on a socket until its end."""
    received = b""
    while True:
        try:
            piece = stream.recv(65536)
        except ConnectionResetError:
            return received
        if not piece:
            return received
        received += piece


def backends():
    """The backends to test: EDDY_BACKEND alone, or all that this kernel has."""
    if not os.path.exists(BINARY):
        sys.exit(f"there is no program {BINARY}: build it, or set EDDY_BINARY")
    chosen = os.environ.get("EDDY_BACKEND")
    if chosen:
        return [chosen]
    folder = tempfile.mkdtemp(prefix="eddy-")
    try:
        probe = Daemon("uring", folder)
        try:
            probe.start().stop()
            return ["uring", "epoll"]
        except AssertionError as refused:
            if "backend uring cannot be used" not in str(refused):
                raise
            print("io_uring is refused here: epoll alone is tested", file=sys.stderr)
            return ["epoll"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def on_each_backend(test_case):
    """Makes a copy of a test case for each backend, in the module of the original."""
    module = sys.modules[test_case.__module__]
    for backend in backends():
        name = f"{test_case.__name__}_{backend}"
        setattr(module, name, type(name, (test_case,), {"backend": backend,
                                                        "__module__": test_case.__module__}))
    return None


class EddyTest(unittest.TestCase):
    """A test with daemons that are gone when it ends, whatever happens."""

    backend = "auto"

    def daemon(self, **options):
        daemon = Daemon(backend=options.pop("backend", self.backend), **options)
        self.addCleanup(daemon.__exit__)
        return daemon.start()

    def assert_does_not_start(self, daemon, pattern):
        """A daemon that refuses to start, with a text that has `pattern` in its log."""
        self.addCleanup(daemon.stop)  # in case it does
        with self.assertRaisesRegex(AssertionError, pattern):
            daemon.start()
        self.assertEqual(daemon.stop(), 2)

    def folder(self):
        path = tempfile.mkdtemp(prefix="eddy-")
        self.folders = [*getattr(self, "folders", []), path]
        return path

    def doCleanups(self):
        """Folders go after the daemons, whose caches save into them at the end."""
        done = super().doCleanups()
        for path in getattr(self, "folders", []):
            shutil.rmtree(path, ignore_errors=True)
        return done

    def assert_refused(self, result, status, *texts):
        self.assertEqual(result.status, status, result)
        for text in texts:
            self.assertIn(text, result.err)


def sanitized(binary=BINARY):
    """True if the program carries a sanitizer, whose memory and descriptors are not the program's."""
    with open(binary, "rb") as program:
        content = program.read()
    return b"__asan_init" in content or b"__tsan_init" in content


@functools.cache
def parts():
    """Optional parts that the program was built with: io_uring, tls, scripts."""
    return json.loads(subprocess.run([BINARY, "version", "--json"], stdout=subprocess.PIPE, check=True,
                                     timeout=DEADLINE_S).stdout)["built_with"]


def needs(part):
    """Before a test, or a class of them, that is skipped where the program was built without it."""
    return unittest.skipUnless(part in parts(), f"this program was built without {part}")


def is_root():
    return os.geteuid() == 0


OTHER_USER = 65534


def as_user(user, *words):
    """The command line that runs `words` as that user id, for root."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]


@functools.cache
def why_no_other_user():
    """Why the program cannot be run as another user here; empty where it can."""
    if not is_root():
        return "only root can become another user"
    if not shutil.which("setpriv"):
        return "there is no setpriv(1)"
    if subprocess.run(as_user(OTHER_USER, BINARY, "--version"), capture_output=True, check=False).returncode:
        return "another user cannot run the program where it lies"
    return ""


def needs_other_user(test):
    """Before a test, or a class of them, that is skipped where the program cannot be run as another user."""
    reason = why_no_other_user()
    return unittest.skipIf(reason, reason)(test)


class Certificates:
    """An authority, a server's certificate for 127.0.0.1 and a client's, in a folder: by openssl(1)."""

    def __init__(self, folder):
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("openssl is not installed")
        self.folder = folder
        self.ca, ca_key = self._path("ca.pem"), self._path("ca.key")
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", "/CN=test authority", "-keyout", ca_key, "-out", self.ca)
        self.cert, self.key = self._signed("server", ca_key)
        self.client_cert, self.client_key = self._signed("client", ca_key)

    def _path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def _run(*words):
        subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def named(self, name):
        """A server's certificate for that name alone, and its key."""
        return self._signed(name, self._path("ca.key"), f"DNS:{name}")

    def renewed(self, name):
        """One more server's certificate for 127.0.0.1, and its key."""
        return self._signed(name, self._path("ca.key"))

    def _signed(self, name, ca_key, whom="IP:127.0.0.1,DNS:localhost"):
        cert, key, request = self._path(f"{name}.pem"), self._path(f"{name}.key"), self._path(f"{name}.csr")
        self._run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                  "-keyout", key, "-out", request)
        names = self._path("names")
        with open(names, "w", encoding="utf-8") as file:
            file.write(f"subjectAltName={whom}\n")
        self._run("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
                  "-extfile", names, "-out", cert)
        return cert, key

    def context(self, own=False):
        made = ssl.create_default_context(cafile=self.ca)
        if own:
            made.load_cert_chain(self.client_cert, self.client_key)
        return made

    def connect(self, port, own=False):
        return self.context(own).wrap_socket(connect(port), server_hostname="127.0.0.1")


@contextlib.contextmanager
def small_disk(path, size_kib):
    """A file system of its own on `path`; None where it cannot be mounted."""
    os.makedirs(path, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "eddy-test", path],
                             stderr=subprocess.DEVNULL, check=False).returncode == 0
    try:
        yield path if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", path], check=False)


def main():
    signal.signal(signal.SIGTERM, lambda *ignored: sys.exit("stopped"))
    unittest.main(verbosity=2)
