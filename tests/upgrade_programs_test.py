#!/usr/bin/env python3
"""Upgrades of the daemon beside programs: what it runs, what it watches, and their sockets."""

import http.client
import json
import os
import socket
import sys
import threading

import harness
from harness import connect, eventually
from program_test import DATAGRAM_SERVER, NOTIFIER, SERVER, is_alive
from upgrade_test import UpgradeTest, running


def is_served(port):
    try:
        connect(port).close()
        return True
    except ConnectionRefusedError:
        return False


@harness.on_each_backend
class ProgramTest(UpgradeTest):
    """Programs end with the daemon that has started them, so the new one starts them again."""

    def add(self, name, script, *flags):
        self.running.must("add", "sh", "--name", name, "-s", "-w", self.folder(), *flags, "--", "-c", script)

    def pid(self, name):
        detail = eventually(lambda: self.running.show(name).get("detail", ""), f"a process of {name}")
        return int(detail.split()[1].rstrip(","))

    def test_none_is_doubled(self):
        self.add("job", "mkdir lock || { echo doubled; exit 1; }; trap 'sleep 0.1; rmdir lock; exit' TERM; echo runs; "
                        "while :; do sleep 0.02; done")
        self.running.must("add", "sleep", "--name", "idle", "--", "1000")
        for count in range(1, 4):
            eventually(lambda: self.running.must("logs", "job").count("out: runs") == count, "it runs")
            before = self.pid("job")
            report = self.upgrade()
            self.assertEqual(report["again"], ["job"])
            self.assertFalse(is_alive(before))
            self.assertTrue(is_alive(self.pid("job")))
        self.await_end_of_before()
        self.assertTrue(is_alive(self.pid("job")))
        self.assertNotIn("doubled", self.running.must("logs", "job"))
        self.assertNotEqual(self.running.show("idle")["status"], "running")

    def test_no_datagram_is_refused(self):
        path = os.path.join(self.folder(), "server.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(DATAGRAM_SERVER)
        self.running.must("add", sys.executable, "--name", "dns", "-s", "--listen", "udp://:0", "--", path)
        port = self.running.show("dns")["port"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(harness.DEADLINE_S)
            client.connect(("127.0.0.1", port))
            pids = set()
            for _ in range(3):
                client.send(b"x")
                pids.add(client.recv(2000))
                self.upgrade()
            client.send(b"x")
            pids.add(client.recv(2000))
            self.assertEqual(len(pids), 4, "each daemon has its own process")
        self.assertEqual(self.running.show("dns")["port"], port)

    def test_sockets_refuse_nobody(self):
        path = os.path.join(self.folder(), "server.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(SERVER)
        file = os.path.join(self.folder(), "s")
        self.running.must("add", sys.executable, "--name", "web", "-s", "--listen", ":0", "--", path)
        self.running.must("add", sys.executable, "--name", "local", "-s", "--listen", f"unix://{file}", "--", path)
        port = self.running.show("web")["port"]

        def talk(number, _):
            with socket.socket(socket.AF_UNIX if number % 2 else socket.AF_INET) as peer:
                peer.settimeout(harness.DEADLINE_S)
                peer.connect(file if number % 2 else ("127.0.0.1", port))
                try:
                    if (got := harness.all_of(peer)) not in (b"hello\n", b""):
                        raise AssertionError(got)
                except ConnectionResetError:
                    pass  # one that the program before had accepted

        self.upgrade_under(talk)
        self.await_end_of_before()
        self.assertEqual(self.running.show("web")["port"], port)
        connect(port).close()
        self.running.must("stop", "local")
        self.assertFalse(os.path.exists(file), "the file is the new daemon's")

    def test_one_that_needs_a_cache_for_its_start(self):
        port = self.port("cache", "db")
        path = os.path.join(self.folder(), "job.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(NOTIFIER.replace("with socket", "with socket.create_connection(('127.0.0.1', %d)) as db:\n"
                                        "    db.sendall(b'PING\\r\\n')\n    assert db.recv(7)\nwith socket" % port, 1))
        self.running.must("add", sys.executable, "--name", "job", "-s", "--notify", "--", path)
        self.assertEqual(self.upgrade()["again"], ["job"])
        self.await_end_of_before()
        self.assertEqual(self.running.show("job")["status"], "running")

    def fail_late(self, *flags):
        """An upgrade that fails once programs have stopped; returns its message."""
        path = os.path.join(self.folder(), "script.lua")
        with open(path, "w", encoding="ascii") as file:
            file.write("function on_connect(client) end\n")
        self.running.must("create", "client", "to", "--target", f":{harness.free_port()}", "-s", "--lua", path)
        with open(path, "w", encoding="ascii") as file:
            file.write("function on_connect(client\n")
        error = self.running.run("daemon", "--upgrade", *flags).err
        self.assertIn('not upgraded: "to" cannot be started', error)
        self.assertIn('"to" could not be started again', error)
        self.assertEqual(error.count("could not be started again"), 1, error)
        return error

    def test_a_failed_upgrade_starts_them_again(self):
        self.add("job", "trap 'exit' TERM; echo runs; while :; do sleep 0.02; done")
        before = self.pid("job")
        self.fail_late()
        self.assertNotEqual(self.pid("job"), before)
        self.assertFalse(is_alive(before))
        self.assertEqual(self.running.show("job")["status"], "running")

    def test_processes_of_others_are_watched_on(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self.running.must("attach", "web", "other", str(listener.getsockname()[1]))
            self.upgrade()
            self.await_end_of_before()
            self.assertEqual(self.running.show("other")["status"], "running")

    def end_during(self, code, upgrade):
        """Adds a program, and a server that it owns, begins an upgrade with a new daemon that waits, and ends the program
        for good by itself. Returns how it is shown then, and what `upgrade` has returned."""
        folder = self.folder()
        runs, end, begun, go = (os.path.join(folder, each) for each in ("runs", "end", "begun", "go"))
        self.add("job", f"echo run >> {runs}; while [ ! -e {end} ]; do sleep 0.02; done; exit {code}",
                 "--listen", f"unix://{folder}/s")
        self.port("server", "owned", "--owner", "job")
        program = self.script(f"echo > {begun}; while [ ! -e {go} ]; do sleep 0.02; done; exec '{harness.BINARY}' \"$@\"\n")
        results = []
        thread = threading.Thread(target=lambda: results.append(upgrade("--with", program)))
        thread.start()
        try:
            eventually(lambda: os.path.exists(begun), "the new daemon")
            with open(end, "w", encoding="ascii"):
                pass
            eventually(lambda: f"exited with status {code}" in self.running.must("logs", "job"), "its end")
        finally:
            with open(go, "w", encoding="ascii"):
                pass
            thread.join(harness.DEADLINE_S)
        self.assertEqual(len(results), 1, "the upgrade")
        self.await_end_of_before()
        shown = eventually(lambda: (got := self.running.show("job"))["status"] != "running" and got, "it has ended")
        eventually(lambda: self.running.show("owned")["status"] == "stopped", "what it owned has stopped")
        self.assertFalse(os.path.exists(os.path.join(folder, "s")), "its socket has ended, too")

        def stored():
            with open(os.path.join(self.running.state, "runtimes", "job.json"), encoding="utf-8") as file:
                return json.load(file)["running"]

        eventually(lambda: not stored(), "its end is stored")
        with open(runs, encoding="ascii") as file:
            self.assertEqual(file.read(), "run\n")
        return shown, results[0]

    def test_one_that_ends_meanwhile_is_not_run_again(self):
        shown, report = self.end_during(0, self.upgrade)
        self.assertEqual(report["again"], [])
        self.assertEqual((shown["status"], shown["detail"]), ("stopped", "exited with status 0"))

    def test_one_that_fails_meanwhile_is_not_run_again(self):
        shown, _ = self.end_during(3, self.upgrade)
        self.assertEqual((shown["status"], shown["reason"]), ("failed", "exited with status 3"))

    def test_one_that_ends_within_a_failed_upgrade_is_not_run_again(self):
        shown, _ = self.end_during(0, self.fail_late)
        self.assertEqual((shown["status"], shown["detail"]), ("stopped", "exited with status 0"))

    def test_one_that_fails_within_a_failed_upgrade_is_not_run_again(self):
        shown, _ = self.end_during(3, self.fail_late)
        self.assertEqual((shown["status"], shown["reason"]), ("failed", "exited with status 3"))

    def add_server(self):
        """A program that opens its port itself, two ways of watching it, and the port."""
        port = harness.free_port()
        self.running.must("add", sys.executable, "--name", "web", "-s", "-w", self.folder(), "--stop-timeout", "1s", "--",
                          "-m", "http.server", "--bind", "127.0.0.1", str(port))
        eventually(lambda: is_served(port), "it serves")
        self.running.must("attach", "http", "a-port", str(port))
        self.running.must("attach", "http", "a-process", str(port), "--pid", str(self.pid("web")))
        return port

    def await_served(self, port):
        eventually(lambda: is_served(port), "the program serves again")
        eventually(lambda: self.running.show("a-port")["status"] == "running", "its port is seen again")
        ended = eventually(lambda: (got := self.running.show("a-process"))["status"] == "failed" and got, "the end is seen")
        self.assertIn("process", ended["reason"])

    def test_a_program_whose_port_is_watched(self):
        port = self.add_server()
        self.assertEqual(sorted(self.upgrade()["again"]), ["a-port", "a-process", "web"])
        self.await_served(port)
        self.await_end_of_before()

    def test_a_failed_upgrade_watches_them_again(self):
        port = self.add_server()
        self.fail_late()
        self.await_served(port)
        self.assertEqual(self.running.show("web")["status"], "running")


if __name__ == "__main__":
    harness.main()
