#!/usr/bin/env python3
"""The daemon as a service: what it reports to a service manager (sd_notify), and the group of its control socket."""

import contextlib
import os
import signal
import socket
import subprocess
import time

import harness
from harness import DEADLINE_S, eventually, free_port


class Manager:
    """A service manager's socket. `lines` has all lines so far."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0"))
        self.socket.settimeout(DEADLINE_S)
        self.lines = []

    def next(self):
        """Variables of the next report."""
        text = self.socket.recv(4096).decode()
        lines = text.splitlines()
        self.lines += lines
        return dict(line.split("=", 1) for line in lines)

    def await_report(self, name):
        """The first report from now on that has the variable."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            report = self.next()
            if name in report:
                return report
        raise AssertionError(f"no {name} came: {self.lines}")


@harness.on_each_backend
class Reports(harness.EddyTest):
    def start(self, manager, **variables):
        """A daemon that is the service of that manager; the test awaits its reports."""
        daemon = harness.Daemon(self.backend)
        plain = daemon.environment
        daemon.environment = lambda: dict(plain(), NOTIFY_SOCKET=manager.name, **variables)
        self.addCleanup(daemon.__exit__)
        daemon.start()
        return daemon

    def manager(self, name=None):
        manager = Manager(name or os.path.join(self.folder(), "notify"))
        self.addCleanup(manager.socket.close)
        return manager

    def test_the_life_of_a_service(self):
        manager = self.manager()
        daemon = self.start(manager)
        self.assertIn("0 runtimes", manager.await_report("READY")["STATUS"])
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        self.assertEqual(manager.next(), {"STATUS": "Serving: 1 runtime, 1 running, 0 failed"})
        before = time.monotonic_ns() // 1000
        daemon.signal(signal.SIGHUP)
        reload = manager.next()
        self.assertEqual(reload["RELOADING"], "1")
        self.assertLessEqual(before, int(reload["MONOTONIC_USEC"]))
        self.assertLessEqual(int(reload["MONOTONIC_USEC"]), time.monotonic_ns() // 1000)
        self.assertEqual(manager.next(), {"READY": "1", "STATUS": "Serving: 1 runtime, 1 running, 0 failed"})
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(manager.next()["STOPPING"], "1")

    def test_it_is_ready_once_its_runtimes_serve(self):
        port = free_port()
        daemon = self.daemon()
        daemon.must("create", "cache", "c", "-p", str(port), "-s")
        daemon.stop()
        manager = self.manager(f"@eddy-test-notify-{os.getpid()}-{self.backend}")
        plain = daemon.environment
        daemon.environment = lambda: dict(plain(), NOTIFY_SOCKET=manager.name)
        daemon.begin()
        self.assertIn("Starting", manager.next()["STATUS"])
        self.assertIn("1 running", manager.await_report("READY")["STATUS"])
        with harness.connect(port) as client:
            client.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(client), "+PONG")

    def test_the_watchdog_is_fed_until_the_daemon_hangs(self):
        manager = self.manager()
        daemon = self.start(manager, WATCHDOG_USEC="400000")
        manager.await_report("READY")
        for _ in range(3):
            manager.await_report("WATCHDOG")
        daemon.signal(signal.SIGSTOP)
        with open(f"/proc/{daemon.pid}/stat", encoding="ascii") as stat:
            state = stat.read
            eventually(lambda: (stat.seek(0), state())[1].rsplit(")", 1)[1].split()[0] == "T", "it is stopped")
        manager.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                manager.next()
        manager.socket.settimeout(2)
        with self.assertRaises(TimeoutError):
            manager.next()
        daemon.signal(signal.SIGCONT)
        manager.socket.settimeout(DEADLINE_S)
        manager.await_report("WATCHDOG")

    def test_another_process_of_the_service_has_no_watchdog_here(self):
        manager = self.manager()
        self.start(manager, WATCHDOG_USEC="200000", WATCHDOG_PID="1")
        manager.await_report("READY")
        manager.socket.settimeout(1)
        with self.assertRaises(TimeoutError):
            manager.next()

    def test_a_start_that_fails_says_why(self):
        manager = self.manager()
        first = self.daemon()
        second = harness.Daemon(self.backend, first.folder, state=os.path.join(self.folder(), "state"))
        second.own_folder = False
        plain = second.environment
        second.environment = lambda: dict(plain(), NOTIFY_SOCKET=manager.name)
        self.assert_does_not_start(second, "another daemon")
        self.assertIn("another daemon", manager.await_report("STATUS")["STATUS"])

    def test_a_manager_that_is_gone_or_reads_nothing_stops_nothing(self):
        gone = self.manager()
        gone.socket.close()
        without = self.start(gone)
        # Each changes the status line.
        for each in ("a", "b", "c"):
            without.must("create", "server", each, "-p", "0", "-s")
        self.assertEqual(without.read_log().count("could not notify the service manager"), 1)
        silent = self.manager()
        # The queue of a socket has a few hundred reports at most.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    filler.sendto(b"FILLED=1", silent.name)
        daemon = self.start(silent)
        self.assertEqual(daemon.list(), {})
        # It comes as soon as there is room.
        silent.await_report("READY")
        self.assertEqual(daemon.stop(), 0)


@harness.needs_other_user
class Group(harness.EddyTest):
    """Another user is a member by its own group, by a supplementary one, or not at all."""

    GROUP = 64123

    def run_as(self, user, group, more, *words, **environment):
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
        command = ["setpriv", f"--reuid={user}", f"--regid={group}",
                   f"--groups={more}" if more else "--clear-groups", harness.BINARY, *words]
        done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=DEADLINE_S, cwd="/")
        return harness.Result(done, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def daemon_below_run(self, *flags):
        """A daemon of another user in a folder of its own, as a service has it."""
        folder = f"/run/eddy-test-{os.getpid()}"
        os.mkdir(folder, 0o755)
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", folder], check=True))
        os.chown(folder, harness.OTHER_USER, self.GROUP)
        daemon = harness.Daemon(folder=folder)
        plain = daemon.command
        daemon.command = lambda: ["setpriv", f"--reuid={harness.OTHER_USER}", f"--regid={self.GROUP}",
                                  "--clear-groups", *plain(), *flags]
        daemon.start()
        self.addCleanup(daemon.stop)
        return daemon

    def test_members_may_control_the_daemon_and_no_one_else(self):
        daemon = self.daemon_below_run("--socket-group", str(self.GROUP))
        made = os.lstat(daemon.socket)
        self.assertEqual((made.st_uid, made.st_gid, made.st_mode & 0o777), (harness.OTHER_USER, self.GROUP, 0o660))
        at = {"EDDY_SOCKET": daemon.socket}
        for group, more in ((self.GROUP, ""), (100_001, f"100002,{self.GROUP}"),
                            (100_001, ",".join(str(100_100 + i) for i in range(60)) + f",{self.GROUP}")):
            shown = self.run_as(100_000, group, more, "ls", "-q", **at)
            self.assertEqual(shown.status, 0, shown)
        self.assert_refused(self.run_as(100_000, 100_001, "100002", "ls", **at), 2, "no permission", "as root")
        # The daemon itself checks, too.
        os.chmod(daemon.socket, 0o666)
        self.assert_refused(self.run_as(100_000, 100_001, "100002", "ls", **at), 1,
                            f"user id 100000 may not control this daemon: only its own user (id {harness.OTHER_USER}), "
                            f"members of the group with id {self.GROUP}, and root may")
        self.assertEqual(daemon.list(), {})

    def test_an_abstract_socket_has_the_group_too(self):
        daemon = self.daemon_below_run("--socket-group", str(self.GROUP))
        daemon.stop()
        name = daemon.socket = f"@eddy-test-group-{os.getpid()}"
        daemon.start()
        client = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[1])\n"
                  "s.sendall(b'GET /v1/version HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(4096).decode())")
        for more, status in ((f"--groups={self.GROUP}", " 200 "), ("--clear-groups", " 403 ")):
            done = subprocess.run(["setpriv", "--reuid=100000", "--regid=100001", more, "python3", "-c", client, name[1:]],
                                  capture_output=True, text=True, check=True, timeout=DEADLINE_S)
            self.assertIn(status, done.stdout)

    def test_the_systems_daemon_is_that_of_members_without_one_of_their_own(self):
        folder = "/run/eddy"
        try:
            os.mkdir(folder, 0o755)
        except OSError as reason:
            self.skipTest(f"the system's place cannot be taken: {reason}")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", folder], check=True))
        os.chown(folder, harness.OTHER_USER, self.GROUP)
        state = self.folder()
        os.chown(state, harness.OTHER_USER, self.GROUP)
        process = subprocess.Popen(
            ["setpriv", f"--reuid={harness.OTHER_USER}", f"--regid={self.GROUP}", "--clear-groups", harness.BINARY, "daemon",
             "--socket", f"{folder}/eddy.sock", "--state", state, "--socket-group", str(self.GROUP), "--name", "system"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, cwd="/")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        harness.line_of(process)
        user = 100_000 + os.getpid() % 100_000
        self.assertEqual(self.run_as(user, self.GROUP, "", "ls", "-q").status, 0)
        self.assertIn(f"else {folder}/eddy.sock", self.run_as(user, self.GROUP, "", "help").out)
        self.assert_refused(self.run_as(user, 100_001, "", "ls"), 2, "the system's does at /run/eddy/eddy.sock", "as root")
        # Root's default is this one, too.
        self.assertEqual(self.run_as(0, 0, "", "ls", "-q").status, 0)

    def test_elsewhere_another_users_daemon_gets_nothing(self):
        folder = self.folder()
        os.chmod(folder, 0o755)
        os.chown(folder, harness.OTHER_USER, self.GROUP)
        daemon = harness.Daemon(folder=folder, flags=["--socket-group", str(self.GROUP)])
        plain = daemon.command
        daemon.command = lambda: ["setpriv", f"--reuid={harness.OTHER_USER}", f"--regid={self.GROUP}", "--clear-groups",
                                  *plain()]
        daemon.start()
        self.addCleanup(daemon.stop)
        self.assert_refused(self.run_as(100_000, self.GROUP, "", "ls", EDDY_SOCKET=daemon.socket), 2,
                            f"runs as user id {harness.OTHER_USER}, not as you", "nothing was sent to it")

    def test_a_wrong_group_is_refused(self):
        daemon = harness.Daemon(flags=["--socket-group", "no-such-group"])
        self.assert_does_not_start(daemon, 'this machine has no group "no-such-group".*groupadd --system no-such-group')
        folder = self.folder()
        os.chown(folder, harness.OTHER_USER, harness.OTHER_USER)
        daemon = harness.Daemon(folder=folder, flags=["--socket-group", str(self.GROUP)])
        plain = daemon.command
        daemon.command = lambda: harness.as_user(harness.OTHER_USER, *plain())
        self.assert_does_not_start(daemon, f"to the group {self.GROUP}: Operation not permitted.*must be root or in the group")
        self.assertFalse(os.path.exists(daemon.socket))


if __name__ == "__main__":
    harness.main()
