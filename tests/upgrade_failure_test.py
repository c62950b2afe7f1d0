#!/usr/bin/env python3
"""Upgrades of the daemon that fail: with programs that are none, that are refused, that die or never finish. A failure
changes nothing.
"""

import json
import os
import shutil
import signal
import socket
import stat
import sys
import threading

import harness
from harness import connect, eventually
from upgrade_test import UpgradeTest, command


@harness.on_each_backend
class FailedTest(UpgradeTest):
    def setUp(self):
        super().setUp()
        root = self.folder()
        with open(os.path.join(root, "f"), "wb") as file:
            file.write(b"x" * 1000)
        self.site = self.port("http", "site", "--root", root)
        self.path = os.path.join(self.folder(), "s")
        self.running.must("create", "server", "chat", "--unix", self.path, "-s")
        self.cache = self.port("cache", "keys")
        self.ask("SET", "kept", "value")

    def ask(self, *words):
        with connect(self.cache) as peer:
            peer.sendall((" ".join(words) + "\r\n").encode())
            line = harness.read_line(peer)
            return harness.read_line(peer) if line.startswith("$") else line

    def assert_goes_on(self):
        self.assertEqual(self.ask("GET", "kept"), "value")
        with connect(self.site) as peer:
            peer.sendall(b"GET /f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(b" 200 ", harness.all_of(peer))
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(self.path)
        self.assertEqual(self.running.request("GET", "/v1/daemon")[1]["pid"], self.running.pid)
        self.running.must("edit", "chat", "--max-line", "1000")
        self.running.must("edit", "chat", "--unset", "max-line")

    def fails(self, program, *texts, flags=()):
        result = self.running.run("daemon", "--upgrade", "--with", program, *flags)
        self.assert_refused(result, 1, *texts)
        self.assert_goes_on()

    def test_programs_that_are_no_daemon(self):
        self.fails(self.script("exit 3\n"), "not upgraded, and everything goes on as before", "ended with status 3")
        self.fails(self.script("kill -9 $$\n"), "ended by signal 9")
        self.fails(self.script("exec sleep 1000\n"), "has not answered for 0.5 s",
                   flags=("--upgrade-timeout", "500ms"))
        self.fails(self.script("exec 0<&-; exec sleep 1000\n"), "the other daemon is gone")
        self.fails(self.script("echo nonsense >&0; exec sleep 1000\n"), "a message of the other daemon")
        self.fails(self.script("while :; do printf '{\"alive\":true}' >&0; done\n"), "before it was ready")

    def test_a_daemon_that_is_alive_for_ever(self):
        """It says no more than that, as often as it can, and others are served meanwhile."""
        program = self.script("printf '{\"ready\":\"1\"}' >&0\nwhile :; do printf '{\"alive\":true}' >&0; done 2>/dev/null\n")
        result = []
        upgrade = threading.Thread(target=lambda: result.append(
            self.running.run("daemon", "--upgrade", "--with", program, "--upgrade-timeout", "1s")))
        upgrade.start()
        eventually(lambda: "upgrade: starts" in self.running.read_log(), "it has begun")
        while upgrade.is_alive():
            self.assertEqual(self.ask("PING"), "+PONG")
            upgrade.join(0.05)
        self.assert_refused(result[0], 1, "and has not finished in time")
        self.assert_goes_on()

    def test_programs_that_are_refused(self):
        folder = self.folder()
        path = os.path.join(folder, "program")
        result = self.running.run("daemon", "--upgrade", "--with", path)
        self.assertNotEqual(result.status, 0)
        self.assertIn("No such file", result.err)
        shutil.copy(self.script("exit 3\n"), path)
        for what, text in ((0o775, "can replace"), (0o757, "can replace"), (0o644, "cannot be executed")):
            os.chmod(path, what)
            result = self.running.run("daemon", "--upgrade", "--with", path)
            self.assertNotEqual(result.status, 0)
            self.assertIn(text, result.err)
        os.chmod(path, 0o755)
        os.chmod(folder, 0o777)
        self.assertIn("can replace", self.running.run("daemon", "--upgrade", "--with", path).err)
        os.chmod(folder, stat.S_IRWXU)
        self.assertIn("no regular file", self.running.run("daemon", "--upgrade", "--with", folder).err)
        self.assert_goes_on()

    def test_a_daemon_that_dies_on_the_way(self):
        """Programs that end at each step, by a signal that comes after so long."""
        for delay in ("0", "0.02", "0.05", "0.1", "0.2"):
            program = self.script(f"{{ sleep {delay}; kill -9 $$; }} & exec '{harness.BINARY}' \"$@\"\n")
            result = self.running.run("daemon", "--upgrade", "--with", program)
            if result.status == 0:
                break  # it was faster
            self.assertIn("not upgraded", result.err)
            self.assert_goes_on()
        else:
            return
        # It dies as a daemon does by kill -9.
        eventually(lambda: self.running.process.poll() is not None, "the end of the one before")

    def test_a_runtime_that_cannot_start_there(self):
        path = os.path.join(self.folder(), "script.lua")
        with open(path, "w", encoding="ascii") as file:
            file.write("function on_connect(client) end\n")
        port = self.port("server", "scripted", "--lua", path)
        with open(path, "w", encoding="ascii") as file:
            file.write("function on_connect(client\n")
        self.fails(harness.BINARY, "\"scripted\"", "script.lua")
        connect(port).close()

    def test_a_replaced_socket_file_is_noticed_before_anything_stops(self):
        path = os.path.join(self.folder(), "s")
        self.running.must("create", "cache", "gone", "--unix", path, "-s")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            peer.settimeout(harness.DEADLINE_S)
            self.assertEqual(command(peer, b"SET", b"k", b"v"), "+OK")
            os.unlink(path)
            with open(path, "w", encoding="ascii"):
                pass
            self.fails(harness.BINARY, "everything goes on as before", path, "eddy restart gone")
            self.assertEqual(command(peer, b"GET", b"k"), "v")
            os.unlink(path)
            self.upgrade()

    def test_keys_that_the_disk_does_not_take(self):
        if not harness.is_root():
            self.skipTest("only root can mount a small disk")
        folder = self.folder()
        with harness.small_disk(os.path.join(folder, "disk"), 1024) as disk:
            if disk is None:
                self.skipTest("no file system can be mounted here")
            self.running = self.daemon(folder=folder, state=os.path.join(disk, "state"))
            port = self.port("cache", "db")
            with connect(port) as peer:
                self.assertEqual(command(peer, b"SET", b"big", os.urandom(2 << 20)), "+OK")
                result = self.running.run("daemon", "--upgrade")
                self.assert_refused(result, 1, "everything goes on as before", '"db": its 1 keys cannot be carried over',
                                    "the disk is full", disk, "eddy stop --force db")
                self.assertNotIn("--discard-keys", result.err)
                self.assertEqual(command(peer, b"STRLEN", b"big"), f":{2 << 20}")
            self.running.must("stop", "--force", "db")
            self.upgrade()
            self.running.stop()

    def test_what_does_not_come_back_is_named(self):
        path = os.path.join(self.folder(), "s")
        self.running.must("create", "cache", "gone", "--unix", path, "-s")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            peer.settimeout(harness.DEADLINE_S)
            self.assertEqual(command(peer, b"SET", b"k", b"v"), "+OK")
        # A new daemon that lets the file be replaced once the cache has stopped.
        lines = ["import json, os, socket, sys", "channel = socket.socket(fileno=os.dup(0))", "channel.settimeout(None)",
                 "channel.send(b'{\"ready\":\"1\"}')", "while True:",
                 "    name = json.loads(channel.recv(1 << 16)).get('start')", "    if name == 'gone':",
                 f"        os.unlink({path!r})", f"        open({path!r}, 'w').close()", "        sys.exit(3)",
                 "    if name:", "        channel.send(json.dumps({'started': name}).encode())", ""]
        source = os.path.join(self.folder(), "daemon.py")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        program = self.script(f"exec '{sys.executable}' '{source}'\n")
        result = self.running.run("daemon", "--upgrade", "--with", program)
        self.assertEqual(result.status, 1, result)
        self.assertIn('"gone" could not be started again', result.err)
        self.assertNotIn("as before", result.err)
        os.unlink(path)
        self.running.must("start", "gone")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            peer.settimeout(harness.DEADLINE_S)
            self.assertEqual(command(peer, b"GET", b"k"), "v")

    def test_changes_wait_for_its_end(self):
        program = self.script("exec sleep 1000\n")
        upgrade = threading.Thread(target=self.running.run, args=("daemon", "--upgrade", "--with", program,
                                                                  "--upgrade-timeout", "3s"))
        upgrade.start()
        refused = eventually(lambda: (result := self.running.run("edit", "chat", "--max-queue", "1M")).status and result,
                             "a change is refused")
        self.assertIn("an upgrade of the daemon is under way", refused.err)
        self.assertIn("under way", self.running.run("daemon", "--upgrade").err)
        upgrade.join(harness.DEADLINE_S)
        self.assert_goes_on()

    def test_a_stop_ends_it(self):
        # Its child has the channel, too, and is not killed with it.
        program = self.script("sleep 1000\ntrue\n")
        upgrade = threading.Thread(target=self.running.run, args=("daemon", "--upgrade", "--with", program,
                                                                  "--upgrade-timeout", "10m"))
        upgrade.start()
        eventually(lambda: "upgrade: starts" in self.running.read_log(), "it has begun")
        self.running.signal(signal.SIGTERM)
        upgrade.join(harness.DEADLINE_S)
        self.assertEqual(self.running.wait(), 0)


if __name__ == "__main__":
    harness.main()
