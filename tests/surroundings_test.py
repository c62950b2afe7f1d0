#!/usr/bin/env python3
"""A daemon whose surroundings misbehave: its log is not read, signals come by mistake, files take its paths, its
log's disk is full, clients send what would drive a terminal."""

import fcntl
import os
import signal
import subprocess
import unittest

import harness
from harness import BINARY, connect, eventually, free_port, read_line


@harness.on_each_backend
class Output(harness.EddyTest):
    def test_a_log_that_is_not_read_stops_nothing(self):
        folder = self.folder()
        daemon = harness.Daemon(self.backend, folder)
        process = subprocess.Popen(daemon.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=daemon.environment(), bufsize=0)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        size = fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        eventually(lambda: os.path.exists(daemon.socket), "the socket is there")
        # Each line of the log has more than 50 bytes: twice as many as the pipe holds.
        for _ in range(size // 25):
            self.assertEqual(daemon.request("POST", "/v1/daemon/reload")[0], 200)
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        self.assertEqual(daemon.list()["a"]["status"], "running")
        process.terminate()
        self.assertEqual(process.wait(harness.DEADLINE_S), 0)


@harness.on_each_backend
class Signals(harness.EddyTest):
    def test_a_signal_without_a_meaning_ends_nothing(self):
        daemon = self.daemon()
        numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO,
                   signal.SIGPIPE, signal.SIGXFSZ, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMIN + 3,
                   signal.SIGRTMAX, signal.SIGHUP]
        for number in numbers:
            daemon.signal(number)
            self.assertEqual(daemon.list(), {}, number)
        self.assertEqual(daemon.stop(), 0)


@harness.on_each_backend
class SocketFiles(harness.EddyTest):
    def test_a_stopped_runtime_removes_its_own_socket_alone(self):
        daemon = self.daemon()
        folder = self.folder()
        path = os.path.join(folder, "u.sock")
        for kind in ("server", "cache"):
            daemon.must("create", kind, kind, "--unix", path, "-s")
            os.unlink(path)
            with open(path, "w", encoding="ascii") as file:
                file.write("precious")
            daemon.must("stop", kind)
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), "precious")
            os.unlink(path)
            daemon.must("start", kind)
            self.assertTrue(os.path.exists(path))
            daemon.must("stop", kind)
            self.assertFalse(os.path.exists(path))

    def test_a_daemons_end_leaves_the_next_ones_socket(self):
        first = self.daemon()
        os.unlink(first.socket)
        second = harness.Daemon(self.backend, first.folder, state=os.path.join(self.folder(), "state"))
        second.own_folder = False
        second.start()
        self.addCleanup(second.stop)
        self.assertEqual(first.stop(), 0)
        self.assertEqual(second.list(), {})
        self.assertEqual(second.stop(), 0)
        self.assertFalse(os.path.exists(second.socket))

    def test_a_socket_of_a_killed_daemon_is_replaced_and_a_living_ones_is_not(self):
        first = self.daemon()
        other = harness.Daemon(self.backend, first.folder, state=os.path.join(self.folder(), "state"))
        other.own_folder = False
        self.assert_does_not_start(other, f"another daemon .pid {first.pid}. listens on")
        self.assertEqual(first.list(), {})
        first.kill()
        self.assertTrue(os.path.exists(first.socket))
        other.start()
        self.addCleanup(other.stop)
        self.assertEqual(other.list(), {})

    def test_a_lock_that_is_a_link_is_not_followed(self):
        folder = self.folder()
        precious = os.path.join(folder, "precious")
        with open(precious, "w", encoding="ascii") as file:
            file.write("precious")
        os.mkdir(os.path.join(folder, "state"))
        os.symlink(precious, os.path.join(folder, "state", "lock"))
        daemon = harness.Daemon(self.backend, folder)
        self.assert_does_not_start(daemon, "lock is a symbolic link")
        self.assertEqual(os.path.getsize(precious), 8)


@harness.on_each_backend
class Texts(harness.EddyTest):
    HOSTILE = "\u009b2J \u202eevil \u2066 größe".encode() + b" \x9b31m \xff"
    SHOWN = "\\xc2\\x9b2J \\xe2\\x80\\xaeevil \\xe2\\x81\\xa6 größe \\x9b31m \\xff"

    def test_what_clients_send_cannot_drive_a_terminal(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "a", "-p", str(port), "-b", "-s")
        with connect(port) as client:
            client.sendall(self.HOSTILE + b"\n")
            eventually(lambda: "größe" in daemon.must("logs", "a"), "the line is there")
        self.assertIn(self.SHOWN, daemon.must("logs", "a"))
        self.assertIn(self.SHOWN.replace("\\", "\\\\"), daemon.must("--json", "logs", "a"))

    def test_what_a_cache_holds_cannot_drive_a_terminal(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "c", "-p", str(port), "-s")
        self.assertIn('"\\u009b2J\\u202e"', daemon.must("--json", "db", "c", "ECHO", "\u009b2J\u202e"))
        shown = daemon.run("db", "c", "\u009b2J")
        self.assertEqual(shown.status, 1)
        self.assertNotIn("\u009b", shown.err)
        shown = daemon.must("db", "--no-raw", "c", "EVAL", "return {ok='\u009b2J'}", "0")
        self.assertNotIn("\u009b", shown)

    def test_what_a_user_types_cannot_drive_a_terminal(self):
        daemon = self.daemon()
        for words in (("create", "server", "\u009b2J"), ("create", "\u009b2J", "a"), ("\u009b2J",),
                      ("show", "\u009b2J"), ("logs", "\u009b2J"), ("ls", "--format", "{\u009b2J}"),
                      ("create", "server", "a", "-p", "\u009b2J"), ("create", "server", "a", "--unix", "/\u202e/x", "-s")):
            result = daemon.run(*words)
            self.assertNotIn("\u009b", result.out + result.err, words)
            self.assertNotIn("\u202e", result.out + result.err, words)
        self.assertNotIn("\u202e", daemon.must("ls") + daemon.must("show", "a"))


class Options(harness.EddyTest):
    def test_a_time_beyond_all_clocks_is_refused_with_the_longest(self):
        daemon = self.daemon()
        for kind in ("server", "cache"):
            for time in ("9223372036s", "876601h", "106751d"):
                self.assert_refused(daemon.run("create", kind, "a", "-p", "0", "--idle-timeout", time), 1,
                                    "--idle-timeout", "from 0s to 876600h")
        port = free_port()
        daemon.must("create", "server", "a", "-p", str(port), "--idle-timeout", "876600h", "-s")
        with connect(port) as one, connect(port) as other:
            one.sendall(b"hello\n")
            self.assertEqual(read_line(other), "hello")
        done = subprocess.run([BINARY, "daemon", "--drain", "9223372036s"], capture_output=True, check=False,
                              timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"at most 876600h", done.stderr)

    def test_an_address_of_one_link_without_its_interface_is_refused(self):
        daemon = self.daemon()
        for kind in ("server", "cache"):
            daemon.must("create", kind, kind, "-p", "0", "--bind", "fe80::1")
            status, answer = daemon.request("POST", f"/v1/runtimes/{kind}/start")
            self.assertEqual(status, 400, answer)
            self.assertIn("fe80::1%eth0", answer["error"]["message"])


@harness.on_each_backend
class MessageLog(harness.EddyTest):
    def test_a_line_that_a_full_disk_has_cut_does_not_join_the_next(self):
        with harness.small_disk(os.path.join(self.folder(), "disk"), 64) as disk:
            if disk is None:
                raise unittest.SkipTest("no file system can be mounted here")
            log, filling = os.path.join(disk, "log"), os.path.join(disk, "filling")
            with open(filling, "wb") as file:
                file.write(bytes(32 * 1024))
            daemon = self.daemon()
            port = free_port()
            daemon.must("create", "server", "a", "-p", str(port), "--log", log, "-s")
            with connect(port) as client, connect(port) as reader:
                # Lines that fill no page exactly.
                line = b"x" * 999
                while "cannot append to" not in daemon.must("logs", "a"):
                    client.sendall(line + b"\n")
                    self.assertEqual(read_line(reader), line.decode())
                os.unlink(filling)
                client.sendall(b"whole\n")
                self.assertEqual(read_line(reader), "whole")

                def lines():
                    with open(log, "rb") as file:
                        return file.read().split(b"\n")
                eventually(lambda: lines()[-2:] == [b"whole", b""], "the next line stands alone")
                self.assertEqual(set(lines()), {line, b"whole", b""})
                self.assertGreater(len(lines()), 16)
            daemon.must("stop", "a")


if __name__ == "__main__":
    harness.main()
