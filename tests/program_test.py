#!/usr/bin/env python3
"""Programs that the daemon runs, and processes that it watches, through the whole program: restarts, sockets that refuse
no client, programs that ignore signals, fork or print without end, the daemon's own death, and what is left of secrets.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

import harness
from harness import eventually, free_port

SERVER = """
import os, socket, sys
assert os.environ["LISTEN_FDS"] == "1" and os.environ["LISTEN_PID"] == str(os.getpid())
server = socket.socket(fileno=3)
print("serves", os.environ["LISTEN_FDNAMES"], flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"hello\\n")
    client.close()
"""

DATAGRAM_SERVER = """
import os, socket
server = socket.socket(fileno=3)
assert server.type == socket.SOCK_DGRAM and server.getblocking()
# A datagram is received as it was sent: no UDP_GRO.
assert server.getsockopt(socket.IPPROTO_UDP, 104) == 0
print("serves", os.environ["LISTEN_FDS"], os.environ["LISTEN_FDNAMES"], flush=True)
while True:
    text, peer = server.recvfrom(2000)
    server.sendto(b"%d %s" % (os.getpid(), text), peer)
"""

NOTIFIER = """
import os, socket, time
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
    to.connect("\\0" + os.environ["NOTIFY_SOCKET"][1:])
    to.send(b"READY=1\\nSTATUS=warm")
time.sleep(1000)
"""

# Says READY=1 once the file "go" is there.
WAITER = """
import os, socket, time
with open("name.new", "w") as file:
    file.write(os.environ["NOTIFY_SOCKET"])
os.rename("name.new", "name")
while not os.path.exists("go"):
    time.sleep(0.02)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
    to.connect("\\0" + os.environ["NOTIFY_SOCKET"][1:])
    to.send(b"READY=1")
time.sleep(1000)
"""
FORGER = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
    to.connect("\\0" + sys.argv[1][1:])
    to.send(b"READY=1\\nSTATUS=forged")
"""


def is_alive(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


class Programs(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()
        self.work = self.folder()

    def file(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def add(self, name, script, *flags):
        self.running.must("add", "sh", "--name", name, "-s", "-w", self.work, *flags, "--", "-c", script)

    def shown(self, name):
        return self.running.json("show", name)

    def pid(self, name):
        """The number of the process that runs."""
        detail = eventually(lambda: self.shown(name).get("detail", ""), f"a process of {name}")
        return int(detail.split()[1].rstrip(","))

    def logs(self, name):
        return self.running.must("logs", name, "--lines", "1000")

    def await_line(self, name, line):
        eventually(lambda: line in self.logs(name), f"{line!r} in the log of {name}")

    def test_output_and_the_end_are_shown(self):
        self.add("a", "echo one; echo two >&2; pwd; exit 3")
        eventually(lambda: self.shown("a")["status"] == "failed", "the end")
        self.assertEqual(self.shown("a")["reason"], "exited with status 3")
        log = self.logs("a")
        for line in ("out: one", "err: two", "out: " + self.work):
            self.assertIn(line, log)
        self.add("b", "exit 0")
        eventually(lambda: self.shown("b")["status"] == "stopped", "the end")
        self.assertEqual(self.shown("b")["detail"], "exited with status 0")
        self.running.must("start", "b")

    def test_it_is_started_again_until_it_is_stopped(self):
        self.add("a", "sleep 1000", "--restart", "always", "--restart-delay", "10ms")
        before = self.pid("a")
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.shown("a").get("detail") and self.pid("a") != before, "another process")
        self.running.must("stop", "a")
        self.assertEqual(self.shown("a")["status"], "stopped")
        self.add("b", "exit 1", "--restart", "on-failure:2", "--restart-delay", "10ms")
        eventually(lambda: self.shown("b")["status"] == "failed", "the end of patience")
        self.assertIn("after 2 restarts", self.shown("b")["reason"])
        self.add("c", "exit 1", "--restart", "always", "--restart-delay", "1000s", "--restart-max-delay", "1000s")
        eventually(lambda: "started again in" in self.shown("c").get("reason", ""), "a pause")
        self.running.must("remove", "-f", "c")

    def test_what_ignores_signals_and_forks_ends_with_it(self):
        self.add("a", "trap '' TERM INT HUP; sleep 1000 & echo child $!; setsid sleep 1001 & "
                      "sleep 0.1; echo other $!; wait; while :; do sleep 1; done", "--stop-timeout", "100ms")
        self.await_line("a", "other ")
        words = self.logs("a").split()
        started = [int(words[words.index(word) + 1]) for word in ("child", "other")] + [self.pid("a")]
        self.assertTrue(all(is_alive(pid) for pid in started))
        self.running.must("stop", "a")
        eventually(lambda: not any(is_alive(pid) for pid in started), "the end of all")

    def test_what_its_parent_leaves_behind_ends(self):
        self.add("a", "(setsid sleep 1000 & echo left $!); exit 0")
        eventually(lambda: self.shown("a")["status"] == "stopped", "the end")
        words = self.logs("a").split()
        left = int(words[words.index("left") + 1])
        eventually(lambda: not is_alive(left), "the end of what it has left behind")

    def test_endless_output_is_bounded(self):
        self.add("a", "yes", "--log-rate", "100")
        eventually(lambda: "left out" in self.logs("a"), "a note of lines that were left out")
        self.add("b", "head -c 3000000 /dev/zero; echo; echo end")
        self.await_line("b", "out: end")
        status = f"/proc/{self.running.process.pid}/status"
        with open(status, encoding="ascii") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        self.assertLess(resident, 300_000)
        self.running.must("stop", "a")

    def test_a_killed_server_refuses_nobody(self):
        self.file("server.py", SERVER)
        self.running.must("add", sys.executable, "--name", "web", "-s", "-w", self.work, "--listen", ":0", "--restart",
                          "always", "--restart-delay", "10ms", "--", "server.py")
        self.await_line("web", "out: serves web")
        port = self.shown("web")["port"]
        refused, served, is_over = [], [], threading.Event()

        def ask():
            while not is_over.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S) as client:
                        try:
                            if client.makefile().readline():
                                served.append(1)
                        except OSError:
                            pass  # its connection was the killed server's
                except OSError as error:
                    refused.append(error)

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for each in clients:
            each.start()
        try:
            for _ in range(5):
                before, count = self.pid("web"), len(served)
                os.kill(before, signal.SIGKILL)
                eventually(lambda: len(served) > count + 20, "clients that are served again")
            # A restart by an edit and by a reload keeps the socket, too.
            self.running.must("edit", "web", "--env", "A=b")
            self.running.must("reload", "web")
            count = len(served)
            eventually(lambda: len(served) > count + 20, "clients that are served again")
        finally:
            is_over.set()
            for each in clients:
                each.join()
        self.assertEqual(refused, [])
        self.assertEqual(self.shown("web")["port"], port)

    def test_no_datagram_of_a_killed_server_is_refused(self):
        self.file("server.py", DATAGRAM_SERVER)
        self.running.must("add", sys.executable, "--name", "dns", "-s", "-w", self.work, "--listen", "udp://:0",
                          "--listen", ":0", "--restart", "always", "--restart-delay", "300ms", "--", "server.py")
        self.await_line("dns", "out: serves 2 dns:dns")
        port = self.shown("dns")["port"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(harness.DEADLINE_S)
            client.connect(("127.0.0.1", port))

            def ask(text):
                # A closed port is an error of the next call.
                client.send(text)
                pid, _, rest = client.recv(2000).partition(b" ")
                self.assertEqual(rest, text)
                return int(pid)
            before = self.pid("dns")
            self.assertEqual(ask(b"one"), before)
            os.kill(before, signal.SIGKILL)
            eventually(lambda: not is_alive(before), "its end")
            # Between the two it waits in the socket.
            after = ask(b"two")
            self.assertNotEqual(after, before)
            self.running.must("edit", "dns", "--env", "A=b")
            self.assertNotEqual(ask(b"three"), after)
            self.running.must("reload", "dns")
            ask(b"four")
            self.assertEqual(self.shown("dns")["port"], port)
        self.running.must("stop", "dns")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", port))
            refused = self.running.run("edit", "dns", "--listen", f"udp://:{port}", "--listen", f"udp://:{port}")
            self.assertIn("is given twice", refused.err)
            self.running.must("edit", "dns", "--listen", f"udp://:{port}")
            refused = self.running.run("start", "dns")
            self.assertNotEqual(refused.status, 0)
            self.assertIn(f"UDP port {port} is in use", refused.err)

    def test_ready_is_awaited(self):
        self.file("notifier.py", NOTIFIER)
        self.running.must("add", sys.executable, "--name", "a", "-s", "-w", self.work, "--notify", "--", "notifier.py")
        eventually(lambda: "warm" in self.shown("a").get("detail", ""), "its status")
        said = self.running.run("add", "sh", "--name", "b", "-s", "--notify", "--", "-c", "exit 4")
        self.assertNotEqual(said.status, 0)
        self.assertIn("before it said READY=1", said.err)

    @harness.needs_other_user
    def test_another_user_cannot_say_that_it_is_ready(self):
        self.file("waiter.py", WAITER)
        name, go = os.path.join(self.work, "name"), os.path.join(self.work, "go")
        was_told_to = []

        def add():
            self.running.must("add", sys.executable, "--name", "a", "-s", "-w", self.work, "--notify", "--", "waiter.py")
            was_told_to.append(os.path.exists(go))

        started = threading.Thread(target=add)
        started.start()
        try:
            eventually(lambda: os.path.exists(name), "the program's start")
            with open(name, encoding="ascii") as file:
                where = file.read()
            subprocess.run(harness.as_user(harness.OTHER_USER, sys.executable, "-c", FORGER, where), check=True)
        finally:
            self.file("go", "")
            started.join()
        self.assertEqual(was_told_to, [True])
        self.assertNotIn("forged", self.shown("a").get("detail", ""))

    def test_the_daemons_death_is_theirs_and_its_next_life_starts_them_once(self):
        self.add("a", "sleep 1000 & echo child $!; setsid sleep 1001 & echo other $!; wait")
        self.await_line("a", "other ")
        words = self.logs("a").split()
        old = [self.pid("a"), *(int(words[words.index(word) + 1]) for word in ("child", "other"))]
        self.running.process.kill()
        self.running.process.wait()
        eventually(lambda: not any(is_alive(pid) for pid in old), "the end of its processes")
        self.running.start()
        self.assertTrue(is_alive(self.pid("a")))
        self.assertEqual(self.shown("a")["status"], "running")
        self.assertEqual(self.running.stop(), 0)
        self.running.start()
        new = self.pid("a")
        self.assertEqual(self.running.stop(), 0)
        self.assertFalse(is_alive(new))
        self.running.start()

    def test_reload_is_a_signal_or_a_restart(self):
        self.add("a", "trap 'echo again' HUP; echo ready; while :; do sleep 0.05; done", "--reload-signal", "HUP")
        self.await_line("a", "out: ready")
        before = self.pid("a")
        self.running.must("reload", "a")
        self.await_line("a", "out: again")
        self.assertEqual(self.pid("a"), before)
        self.running.must("edit", "a", "--unset", "reload-signal")
        self.running.must("reload", "a")
        self.assertNotEqual(self.pid("a"), before)

    def test_secrets_are_hidden_and_kept_by_an_edit(self):
        self.add("a", "echo $DB_PASSWORD; sleep 1000", "--env", "DB_PASSWORD=sesame", "--env", "MODE=x")
        self.await_line("a", "out: sesame")
        self.assertEqual(self.shown("a")["options"]["env"], ["DB_PASSWORD=***", "MODE=x"])
        self.running.must("edit", "a", "--env", "DB_PASSWORD=***", "--env", "MODE=y")
        eventually(lambda: self.logs("a").count("out: sesame") == 2, "the same password")
        said = self.running.run("edit", "a", "--env", "OTHER_TOKEN=***")
        self.assertIn("write the secret itself", said.err)

    def test_unhealthy_programs_are_started_again(self):
        self.add("a", "sleep 1000", "--health-check", "exec:test ! -e sick", "--health-interval", "20ms",
                 "--health-fall", "2", "--restart", "on-failure", "--restart-delay", "10ms")
        eventually(lambda: "healthy" in self.shown("a").get("detail", ""), "a check")
        before = self.pid("a")
        self.file("sick", "")
        self.await_line("a", "unhealthy: ")
        os.unlink(os.path.join(self.work, "sick"))
        eventually(lambda: self.shown("a").get("detail") and self.pid("a") != before, "another process")
        eventually(lambda: ", healthy" in self.shown("a").get("detail", ""), "health")

    def test_a_check_that_takes_too_long_leaves_nothing_behind(self):
        left = os.path.join(self.work, "left")
        self.add("a", "sleep 1000", "--health-check", f"exec:setsid sh -c 'echo $$ >> {left}; exec sleep 1000' & wait",
                 "--health-interval", "20ms", "--health-timeout", "300ms", "--health-fall", "1000000")

        def all_left():
            with contextlib.suppress(FileNotFoundError), open(left, encoding="ascii") as file:
                return file.read().split()
            return []
        eventually(lambda: len(all_left()) >= 2, "two checks")
        first = all_left()[0]
        eventually(lambda: not is_alive(first), "the end of what the first check has left behind")
        self.assertTrue(is_alive(self.pid("a")))

    @unittest.skipUnless(harness.is_root(), "chooses another user")
    def test_a_folder_that_its_user_may_not_enter(self):
        result = self.running.run("add", "true", "--name", "shut", "-s", "-w", self.work, "--user", "nobody")
        self.assert_refused(result, 1, "Permission denied", f"to enter {self.work} (--directory)")

    def test_add_finds_programs_and_says_what_is_wrong(self):
        for words, told in ((("no-such-program",), "no program \"no-such-program\" in $PATH"),
                            ((self.file("text", "x"),), "chmod +x"), (("/no/such",), "there is no program"),
                            (("sh", "--restart", "often"), "--restart cannot be"), ((self.work,), "is a folder")):
            said = self.running.run("add", *words)
            self.assertNotEqual(said.status, 0)
            self.assertIn(told, said.err)
        if os.geteuid() == 0:
            self.running.must("add", "id", "-s", "--user", "65534:65534", "--", "-u")
            self.await_line("id", "out: 65534")


class Externals(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()

    def server(self, port):
        process = subprocess.Popen([sys.executable, "-c", "import socket, time\n"
                                    f"s = socket.create_server(('127.0.0.1', {port}))\nprint('ready', flush=True)\n"
                                    "time.sleep(1000)"], stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        harness.line_of(process)
        return process

    def test_a_process_is_watched_and_gets_no_signal(self):
        port = free_port()
        process = self.server(port)
        self.running.must("attach", "postgres", "db", str(port), "--pid", str(process.pid))
        shown = self.running.json("show", "db")
        self.assertEqual((shown["type"], shown["port"], shown["status"]), ("external", port, "running"))
        self.assertEqual(shown["detail"], f"postgres, process {process.pid}")
        said = self.running.run("stop", "db")
        self.assertIn("did not start it", said.err)
        self.running.must("start", "db")
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()
        eventually(lambda: self.running.json("show", "db")["status"] == "failed", "its end")
        self.assertIn("has ended", self.running.json("show", "db")["reason"])
        said = self.running.run("start", "db")
        self.assertIn("there is no process", said.err)

    def test_a_port_alone_is_looked_at(self):
        port = free_port()
        process = self.server(port)
        self.running.must("attach", "web", "site", str(port))
        self.running.must("edit", "site", "--interval", "20ms")
        process.kill()
        process.wait()
        eventually(lambda: "any more" in self.running.json("show", "site").get("reason", ""), "its end")
        self.running.must("remove", "-f", "site")

    def test_wrong_processes_are_refused(self):
        port = free_port()
        process = self.server(port)
        for pid, told in (("1", "first process"), (str(self.running.process.pid), "daemon's own"),
                          (str(os.getpid()), "does not listen on TCP port"), ("2147483647", "there is no process"),
                          ("0", "--pid"), ("x", "--pid")):
            said = self.running.run("attach", "web", "site" + pid, str(port), "--pid", pid)
            self.assertNotEqual(said.status, 0)
            self.assertIn(told, said.err)
        said = self.running.run("attach", "web", "site", str(free_port()))
        self.assertIn("nothing listens on", said.err)
        self.assertEqual(self.running.json("ls"), [])
        # A number that was used again: the process began at another time.
        said = self.running.run("create", "external", "again", "--port", str(port), "--pid", str(process.pid),
                                "--pid-start", "1", "-s")
        self.assertIn("was used again", said.err)
        for words in (("attach", "web", "site"), ("attach", "site", "--pid", "7")):
            self.assertIn("eddy attach TYPE NAME PORT", self.running.run(*words).err)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, for another user")
    def test_processes_of_other_users_are_refused(self):
        port = free_port()
        process = self.server(port)
        folder = self.folder()
        os.chown(folder, 65534, 65534)
        daemon = harness.Daemon(folder=folder)
        words = daemon.command()
        daemon.command = lambda: ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *words]
        self.addCleanup(daemon.stop)
        daemon.start()
        client = lambda *rest: subprocess.run(  # noqa: E731
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", harness.BINARY, *rest],
            env=daemon.environment(), capture_output=True, text=True, check=False)
        said = client("attach", "web", "site", str(port), "--pid", str(process.pid))
        self.assertIn("is another user's", said.stderr)
        said = client("add", "sleep", "-s", "--user", "root", "--", "1")
        self.assertIn("not root's", said.stderr)
        said = client("attach", "web", "site", str(port))
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    harness.main()
