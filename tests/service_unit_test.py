#!/usr/bin/env python3
"""The unit packaging/eddy.service: systemd accepts it, its sandbox is tight, and the daemon works within its system calls
and capabilities. tools/fresh_machine.sh --package starts it by a real systemd."""

import ctypes
import ctypes.util
import os
import re
import shutil
import socket
import subprocess
import unittest

import harness
from harness import BINARY, DEADLINE_S, OTHER_USER
from upgrade_test import Heir, adopt_orphans

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "packaging")
# Tenths: 2.5 of 10.
MOST_EXPOSURE = 25


def unit_text():
    with open(os.path.join(PACKAGING, "eddy.service"), encoding="utf-8") as file:
        return file.read()


def values(name):
    """All values of a setting, in order."""
    return re.findall(rf"^{name}=(.*)$", unit_text(), re.M)


needs_systemd = unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not here (apt install systemd)")


@needs_systemd
class Unit(harness.EddyTest):
    def unit(self):
        """A copy whose program is the one under test."""
        path = os.path.join(self.folder(), "eddy.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(unit_text().replace("/usr/bin/eddy", os.path.abspath(BINARY)))
        return path

    def test_systemd_accepts_it(self):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.unit()], capture_output=True, text=True,
                              check=False, timeout=DEADLINE_S)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_its_exposure_is_small(self):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                               f"--threshold={MOST_EXPOSURE}", self.unit()], capture_output=True, text=True, check=False,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Overall exposure level", done.stdout)

    def test_what_would_refuse_calls_of_the_daemon_is_off(self):
        """Filters that systemd makes of other settings than SystemCallFilter=, which Confined does not see."""
        for name in ("RestrictSUIDSGID", "MemoryDenyWriteExecute"):
            self.assertEqual(values(name), [], name)

    def test_a_reload_is_an_upgrade(self):
        """By the socket of ExecStart; the new process may become the main one by MAINPID=."""
        start, = values("ExecStart")
        self.assertEqual(values("ExecReload"), [start.split(" daemon ")[0] + " daemon --upgrade"])
        self.assertEqual((values("Type"), values("NotifyAccess")), (["notify"], ["main"]))
        with open(os.path.join(PACKAGING, "debian", "postinst"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"systemctl --system reload eddy.service.*; then\n *deb-systemd-invoke restart")
        with open(os.path.join(PACKAGING, "install.sh"), encoding="utf-8") as file:
            self.assertIn("s|/usr/bin/eddy|$prefix/bin/eddy|g;", file.read())

    def test_the_user_is_that_of_sysusers(self):
        with open(os.path.join(PACKAGING, "eddy.sysusers"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^u eddy - \"[^\"]+\" /var/lib/eddy$")
        for name, value in (("User", "eddy"), ("Group", "eddy"), ("StateDirectory", "eddy"), ("RuntimeDirectory", "eddy")):
            self.assertEqual(values(name), [value])
        if shutil.which("systemd-sysusers"):
            root = self.folder()
            os.makedirs(os.path.join(root, "etc"))
            subprocess.run(["systemd-sysusers", f"--root={root}", os.path.abspath(os.path.join(PACKAGING, "eddy.sysusers"))],
                           check=True, timeout=DEADLINE_S, capture_output=True)
            with open(os.path.join(root, "etc", "passwd"), encoding="utf-8") as file:
                self.assertRegex(file.read(), r"(?m)^eddy:")


def group_of_calls(name):
    """Names of the system calls of a group of systemd's, with its groups' own."""
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True, check=True,
                          timeout=DEADLINE_S).stdout
    found = set()
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            found |= group_of_calls(word)
        elif word and not word.startswith("#"):
            found.add(word)
    return found


def allowed_calls():
    """Calls that SystemCallFilter= of the unit allows."""
    allowed = group_of_calls("@default")
    for value in values("SystemCallFilter"):
        named = set()
        for word in value.lstrip("~").split():
            named |= group_of_calls(word) if word.startswith("@") else {word}
        allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed


class Filter:
    """A filter of system calls by libseccomp, which systemd brings, for the process that calls load()."""

    EPERM = 1
    ALLOW, DENY = 0x7FFF0000, 0x00050000 | EPERM

    def __init__(self, calls):
        self.library = ctypes.CDLL("libseccomp.so.2")
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(self.DENY))
        for name in calls:
            number = self.library.seccomp_syscall_resolve_name(name.encode())
            if number >= 0:
                self.library.seccomp_rule_add_array(self.context, self.ALLOW, number, 0, None)

    def load(self):
        if self.library.seccomp_load(self.context) != 0:
            os.write(2, b"seccomp_load failed\n")
            os._exit(99)


def has_libseccomp():
    try:
        ctypes.CDLL("libseccomp.so.2")
        return True
    except OSError:
        return False


def low_port():
    """A free port that only CAP_NET_BIND_SERVICE opens."""
    for port in range(1023, 600, -1):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise AssertionError("no port is free")


@needs_systemd
@harness.needs_other_user
@unittest.skipUnless(has_libseccomp(), "libseccomp.so.2 is not here (apt install libseccomp2)")
class ConfinedTest(harness.EddyTest):
    """The daemon as another user, with the unit's system calls, capabilities and limits."""

    def start(self, folder=None, calls=None, **variables):
        folder = folder or self.folder()
        os.chown(folder, OTHER_USER, OTHER_USER)
        # Where systemd has a name.
        daemon = harness.Daemon(self.backend, folder, flags=["--socket-group", str(OTHER_USER)])
        plain = daemon.command
        capability = values("AmbientCapabilities")[0].lower().removeprefix("cap_")
        self.assertEqual(values("CapabilityBoundingSet"), values("AmbientCapabilities"))
        self.assertEqual(values("NoNewPrivileges"), ["yes"])
        confine = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", f"--inh-caps=-all,+{capability}",
                   f"--ambient-caps=-all,+{capability}", f"--bounding-set=-all,+{capability}", "--no-new-privs"]
        # The filter comes after setpriv, whose calls need other ones.
        script = ("import os, sys; sys.path.insert(0, sys.argv[1]); import service_unit_test as unit\n"
                  "unit.Filter(sys.argv[2].split(',')).load(); os.execvp(sys.argv[3], sys.argv[3:])")
        names = ",".join(sorted(allowed_calls() if calls is None else calls))
        daemon.command = lambda: [*confine, "python3", "-B", "-c", script, os.path.dirname(os.path.abspath(__file__)), names,
                                  *plain()]
        environment = daemon.environment
        daemon.environment = lambda: dict(environment(), EDDY_BINARY=os.path.abspath(BINARY), **variables)
        self.addCleanup(daemon.__exit__)
        return daemon.start()


@harness.on_each_backend
class Confined(ConfinedTest):
    def test_everything_a_machine_needs_works(self):
        daemon = self.start()
        self.assertEqual(daemon.request("GET", "/v1/daemon")[1]["io_backend"], self.backend)
        port = low_port()
        daemon.must("create", "cache", "c", "-p", str(port), "--dir", daemon.state, "-s")
        with harness.connect(port) as client:
            client.sendall(b"SET a b\r\nSAVE\r\nGET a\r\n")
            self.assertEqual([harness.read_line(client) for _ in range(4)], ["+OK", "+OK", "$1", "b"])
            if "scripts" in harness.parts():
                # Enough for LuaJIT to compile the loop.
                client.sendall(b"EVAL \"local n = 0 for i = 1, 100000 do n = n + i end return n\" 0\r\n")
                self.assertEqual(harness.read_line(client), ":5000050000")
        daemon.must("create", "cache", "m", "--listen", f"shm://{daemon.folder}/m.shm", "-s")
        daemon.must("create", "proxy", "p", "-p", str(harness.free_port()), "--backend", f"tcp://localhost:{port}", "-s")
        daemon.must("create", "server", "s", "--unix", f"{daemon.folder}/u.sock", "-s")
        daemon.must("create", "stream", "h", "--handoff", f"unix://{daemon.folder}/h.sock", "--messages", "2", "-s")
        mine, theirs = socket.socketpair()
        with mine, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
            os.chmod(daemon.folder, 0o755)
            sender.connect(f"{daemon.folder}/h.sock")
            socket.send_fds(sender, [b"{}"], [theirs.fileno()])
            theirs.close()
            mine.settimeout(DEADLINE_S)
            self.assertIn(b"[DONE]", b"".join(iter(lambda: mine.recv(65536), b"")))
        site = os.path.join(daemon.folder, "site")
        os.mkdir(site)
        os.chmod(site, 0o755)
        daemon.must("create", "http", "w", "-p", str(harness.free_port()), "--root", site, "-s")
        self.assertEqual({each["status"] for each in daemon.list().values()}, {"running"})
        with harness.connect(daemon.list()["p"]["port"]) as client:
            client.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(client), "+PONG")
        limit = int(values("LimitNOFILE")[0])
        self.assertGreaterEqual(limit, 100_000)
        self.assertEqual(daemon.stop(), 0)


def confinement(pid):
    """User, capabilities, filter of system calls and limits of a process."""
    found = {}
    for name, pattern in (("status", r"^(?:Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp|Umask):.*$"), ("limits", r"^Max .*$")):
        with open(f"/proc/{pid}/{name}", encoding="ascii") as file:
            found[name] = re.findall(pattern, file.read(), re.M)
    return found


@harness.on_each_backend
class Upgraded(ConfinedTest):
    def test_the_new_process_is_confined_as_the_one_before(self):
        adopt_orphans()
        daemon = self.start()
        port = low_port()
        daemon.must("create", "cache", "c", "-p", str(port), "-s")
        before = confinement(daemon.process.pid)
        self.assertIn("NoNewPrivs:\t1", before["status"])
        report = daemon.json("daemon", "--upgrade")
        old, daemon.process = daemon.process, Heir(report["pid"], daemon.process)
        self.assertEqual(confinement(report["pid"]), before)
        daemon.must("restart", "c")
        with harness.connect(port) as client:
            client.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(client), "+PONG")
        self.assertEqual(old.wait(DEADLINE_S), 0)
        self.assertEqual(daemon.stop(), 0)


@harness.needs("io_uring")
class WithoutUring(ConfinedTest):
    """As in a container, whose filter refuses io_uring."""

    def test_epoll_takes_over_and_the_log_says_so_once(self):
        calls = {name for name in allowed_calls() if not name.startswith("io_uring")}
        daemon = self.start(calls=calls)
        self.assertEqual(daemon.request("GET", "/v1/daemon")[1]["io_backend"], "epoll")
        self.assertRegex(daemon.read_log(), "io_uring cannot be used here .Operation not permitted.: epoll takes its place")
        port = harness.free_port()
        daemon.must("create", "cache", "c", "-p", str(port), "-s")
        with harness.connect(port) as client:
            client.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(client), "+PONG")
        self.assertEqual(daemon.read_log().count("io_uring"), 1, daemon.read_log())


if __name__ == "__main__":
    harness.main()
