#!/usr/bin/env python3
"""The five daemons under one set of options: how each is built, started, observed and stopped.

Usage: daemons.py build [NAME...]           builds them below build/streaming; all without a name
       daemons.py find SOCKET               prints the process id of the daemon that listens there
       daemons.py bench NAME [WORD...]      starts one in a folder of its own, runs run-benchmark.sh NAME WORD..., stops it

Processes are ended by the ids that this program got as it started them.
"""

import contextlib
import ctypes
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.normpath(os.path.join(HERE, "../daemons"))
ROOT = os.path.normpath(os.path.join(HERE, "../../.."))
# Beside the compiler's cache where that is named, as on a build server: it outlives a checkout.
BUILT = os.path.join(os.environ.get("CCACHE_DIR") or os.path.join(ROOT, "build"), "streaming")
EDDY = os.path.abspath(os.environ.get("EDDY_BINARY") or os.path.join(ROOT, "build/release/eddy"))

NAMES = ("php", "python", "go", "rust", "eddy")
HAVE_METRICS = ("go", "rust", "eddy")
BUILD_WITHIN_S = 900
READY_WITHIN_S = 30
STOPPED_WITHIN_S = 20     # the daemons' own deadline is 10 s
RESERVED_DESCRIPTORS = 128
ACCEPTING = 1 << 16       # __SO_ACCEPTCON, as /proc/net/unix shows it
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Missing(Exception):
    """A daemon cannot be built or started here; the text says why."""


# --- Building ---------------------------------------------------------------------------------

def tool(name):
    path = shutil.which(name)
    if not path:
        raise Missing(f"there is no {name}")
    return path


def run_tool(folder, *words):
    try:
        environment = {"GOCACHE": os.path.join(BUILT, "go-cache"), **os.environ}
        done = subprocess.run([tool(words[0]), *words[1:]], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=BUILD_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise Missing(f"{words[0]} took more than {BUILD_WITHIN_S} s") from None
    if done.returncode != 0:
        raise Missing(f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-2000:]}")


def build_go():
    program = os.path.join(BUILT, "go/streaming-daemon")
    run_tool(os.path.join(SOURCES, "go"), "go", "build", "-trimpath", "-o", program, ".")
    return [program]


def build_rust():
    target = os.path.join(BUILT, "rust")
    run_tool(os.path.join(SOURCES, "rust"), "cargo", "build", "--release", "--locked", "--quiet", "--target-dir", target)
    return [os.path.join(target, "release/streaming-daemon-rs")]


def build_python():
    return [sys.executable, "-B", os.path.join(SOURCES, "python/streaming_daemon_async.py")]


def build_php():
    program = tool("php")
    loaded = subprocess.run([program, "-m"], capture_output=True, text=True).stdout.lower().split()
    for extension in ("ffi", "pcntl", "posix"):
        if extension not in loaded:
            raise Missing(f"PHP has no {extension}")
    return [program, os.path.join(SOURCES, "php/streaming_daemon.php")]


def build_eddy():
    if not os.access(EDDY, os.X_OK):
        raise Missing(f"there is no {EDDY}: run ./eddy-dev build")
    return [EDDY, "stream-daemon"]


def build(name):
    """Builds a daemon where needed; the words that start it, without options."""
    os.makedirs(BUILT, exist_ok=True)
    return {"go": build_go, "rust": build_rust, "python": build_python, "php": build_php, "eddy": build_eddy}[name]()


# --- Starting ---------------------------------------------------------------------------------

def processes_for(name, connections):
    """Number of processes with which a daemon has a descriptor for each connection. Eddy needs one."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if name == "eddy" or hard == resource.RLIM_INFINITY:
        return 1
    # The processes get unequal shares of the connections, so there is a little more room.
    return max(1, -(-connections * 105 // 100 // max(1, hard - RESERVED_DESCRIPTORS)))


def options(name, *, path, kind, connections, delay_ms, messages, processes, metrics):
    """(words, environment) of a daemon's options. `metrics` is HOST:PORT, or None for none."""
    if name == "rust":
        return [], {"DAEMON_SOCKET_PATH": path, "DAEMON_SOCKET_MODE": "0660", "DAEMON_SOCKET_TYPE": kind,
                    "DAEMON_MAX_CONNECTIONS": str(connections), "DAEMON_BACKEND_PROVIDER": "mock",
                    "DAEMON_MESSAGE_DELAY_MS": str(delay_ms), "DAEMON_MESSAGES": str(messages),
                    "DAEMON_WORKERS": str(processes), "DAEMON_METRICS_ENABLED": "true" if metrics else "false",
                    "DAEMON_METRICS_ADDR": metrics or ""}
    if name in ("php", "python"):
        return ["-s", path, "-m", "0660", "-t", kind, "-c", str(connections), "-d", str(delay_ms), "-n", str(messages),
                "-p", str(processes), "-b", "4096"], {}
    words = ["-socket", path, "-socket-mode", "0660", "-socket-type", kind, "-max-connections", str(connections),
             "-message-delay", f"{delay_ms}ms", "-messages", str(messages)]
    if metrics or name == "go":
        words += ["-metrics-addr", metrics or ""]
    return words + (["-workers", str(processes)] if name == "go" else []), {}


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening_inodes(path):
    """Inodes of the sockets that listen at a path; proc(5), /proc/net/unix, which has Eddy's under the name before the rename."""
    found = set()
    folder, name = os.path.split(path)
    names = (path, os.path.join(folder, f".{name}.eddy"))
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        next(table)
        for line in table:
            fields = line.rstrip("\n").split(None, 7)
            if len(fields) == 8 and int(fields[3], 16) & ACCEPTING and fields[7] in names:
                found.add(fields[6])
    return found


def find(path):
    """The process that listens at a path; of several, the one that has started the others."""
    wanted = {f"socket:[{inode}]" for inode in listening_inodes(path)}
    owners = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if any(os.readlink(f"/proc/{pid}/fd/{number}") in wanted for number in os.listdir(f"/proc/{pid}/fd")):
                owners.add(int(pid))
    if not owners:
        raise Missing(f"no daemon listens on {path}")
    parents = {parent_of(pid) for pid in owners}
    # The parent of workers may have closed its own copy of the listener.
    common = [pid for pid in parents if len(owners) > 1 and all(parent_of(one) == pid or one == pid for one in owners)]
    return (common or sorted(owners))[0]


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def prepare_child(core, ending_signal):
    """For a child, before its program: ends with this process, and has the first place on its core, if it has one."""
    LIBC.prctl(PR_SET_PDEATHSIG, ending_signal)
    if core is not None:
        os.sched_setaffinity(0, {core})
        # Only root may. Where the kernel has autogroups (sched(7)), the priority counts within the session alone.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)
            with open("/proc/self/autogroup", "w", encoding="ascii") as file:
                file.write("-20")


class Daemon:
    """A daemon in a folder of its own, while a `with` lasts: `socket`, `pid`, `metrics_port`, and afterwards `peak`."""

    def __init__(self, name, command, *, kind="seqpacket", connections=1000, delay_ms=50, messages=18, processes=1,
                 core=None, limit=None, environment=None):
        self.name, self.command, self.kind, self.connections = name, command, kind, connections
        self.delay_ms, self.messages, self.processes, self.core, self.limit = delay_ms, messages, processes, core, limit
        self.environment = environment or {}
        self.process = self.peak = self.metrics_port = None

    @property
    def pid(self):
        return self.process.pid

    def prepare(self):
        """For the child, before its program."""
        prepare_child(self.core, signal.SIGTERM)
        if self.limit is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.limit, self.limit))

    def __enter__(self):
        # The kernel takes 107 bytes for a socket's path, so the folder's name is short.
        self.folder = tempfile.mkdtemp(prefix="eddy-sd-")
        self.socket = os.path.join(self.folder, "s.sock")
        self.metrics_port = free_port() if self.name in HAVE_METRICS else None
        words, environment = options(
            self.name, path=self.socket, kind=self.kind, connections=self.connections, delay_ms=self.delay_ms,
            messages=self.messages, processes=self.processes,
            metrics=self.metrics_port and f"127.0.0.1:{self.metrics_port}")
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(self.command + words, env={**os.environ, **environment, **self.environment}, cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            preexec_fn=self.prepare)
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_ready(self):
        end = time.monotonic() + READY_WITHIN_S
        while not (os.path.exists(self.socket) and listening_inodes(self.socket)):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Missing(f"{self.name} does not start: {self.log()[-2000:]}")
            time.sleep(0.01)

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        """Ends it as an operator does; its exit status. Killed when it does not end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        found = re.search(r"^Peak concurrent streams: (\d+)", self.log(), re.M)
        self.peak = int(found.group(1)) if found else None
        return self.process.returncode

    def log(self):
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
                return file.read()
        return ""


# --- Commands ---------------------------------------------------------------------------------

def cores():
    """(core of the daemon, core of the load); None each on a machine with one core."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) > 1 else (None, None)


def bench(name, words):
    """run-benchmark.sh for a daemon that this program starts and stops."""
    connections = int(words[0]) if words else 100
    delay_ms, messages = int(os.environ.get("DELAY_MS", "50")), int(os.environ.get("MESSAGES", "18"))
    kind = os.environ.get("SOCKET_TYPE", "seqpacket")
    with Daemon(name, build(name), kind=kind, connections=connections + connections // 10 + 100, delay_ms=delay_ms,
                messages=messages, processes=processes_for(name, connections), core=cores()[0]) as daemon:
        environment = dict(os.environ, SOCKET=daemon.socket, SOCKET_TYPE=kind, DAEMON_PID=str(daemon.pid),
                           METRICS_PORT=str(daemon.metrics_port or ""))
        status = subprocess.run([os.path.join(HERE, "run-benchmark.sh"), name, *words], env=environment).returncode
        ended = daemon.stop()
        print(f"Peak concurrent streams: {daemon.peak}")
        return status or abs(ended)


def main(words):
    command, rest = (words[0] if words else ""), words[1:]
    if command == "build":
        missing = 0
        for name in rest or NAMES:
            try:
                print(f"{name}: {shlex.join(build(name))}")
            except Missing as why:
                print(f"{name}: not built: {why}", file=sys.stderr)
                missing += 1
        return 1 if rest and missing else 0
    if command == "find" and len(rest) == 1:
        print(find(rest[0]))
        return 0
    if command == "bench" and rest and rest[0] in NAMES:
        return bench(rest[0], rest[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except Missing as reason:
        sys.exit(f"daemons.py: {reason}")
    except KeyboardInterrupt:
        sys.exit("daemons.py: interrupted")
