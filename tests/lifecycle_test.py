#!/usr/bin/env python3
"""A runtime's life through the command line, and the daemon's: restarts, signals, a second daemon."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import unittest

import harness
from harness import connect, eventually, free_port, line_of, read_line


@harness.on_each_backend
class Lifecycle(harness.EddyTest):
    def test_from_create_to_remove(self):
        daemon = self.daemon()
        port = free_port()
        out = daemon.must("create", "server", "chat", "-p", str(port))
        self.assertIn("eddy start chat", out)
        self.assertEqual(daemon.list()["chat"]["status"], "created")
        self.assertRaises(OSError, connect, port)

        self.assertIn("started", daemon.must("start", "chat"))
        shown = daemon.list()["chat"]
        self.assertEqual((shown["status"], shown["port"]), ("running", port))
        with connect(port) as client:
            eventually(lambda: daemon.list()["chat"]["connections"] == 1, "the connection is counted")
            self.assertIn("delivered to 1", daemon.must("send", "chat", "hello", "all"))
            self.assertEqual(read_line(client), "hello all")
            self.assertIn("delivered to 1", daemon.must("send", "chat", stdin="from stdin\n"))
            self.assertEqual(read_line(client), "from stdin")
            self.assertEqual(daemon.must("send", "chat", stdin="one\n\nand the end"),
                             "3 messages sent, the last one delivered to 1\n")
            self.assertEqual([read_line(client) for _ in range(3)], ["one", "", "and the end"])
        eventually(lambda: daemon.list()["chat"]["connections"] == 0, "the connection is gone")

        self.assertIn("reloaded", daemon.must("reload", "chat"))
        with connect(port):
            pass
        daemon.must("stop", "chat")
        self.assertEqual(daemon.list()["chat"]["status"], "stopped")
        self.assertRaises(OSError, connect, port)
        daemon.must("remove", "chat")
        self.assertEqual(daemon.list(), {})
        self.assertEqual(os.listdir(os.path.join(daemon.state, "runtimes")), [])

    def test_a_client_and_its_server(self):
        daemon = self.daemon()
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(harness.DEADLINE_S)
            daemon.must("create", "client", "c", "-t", ":%d" % server.getsockname()[1], "-s")
            with server.accept()[0] as peer:
                peer.sendall(b"to the journal\n")
                eventually(lambda: "received: to the journal" in daemon.must("logs", "c"), "it is in the journal")
                shown = daemon.list()["c"]
                self.assertEqual((shown["address"], shown["connections"]), (None, 1))
                self.assertEqual(daemon.must("send", "c", "to the server"), "delivered to 1\n")
                self.assertEqual(read_line(peer), "to the server")
        self.assert_refused(daemon.run("create", "client", "other"), 1, "--target")

    def test_columns_and_forms_of_ls(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        daemon.must("create", "server", "idle", "-p", str(free_port()))
        header, first, second = daemon.must("ls").splitlines()
        self.assertEqual(header.split(), ["NAME", "TYPE", "PORT", "STATUS", "UPTIME", "CONNECTIONS", "CREATED"])
        self.assertRegex(first, rf"^db +cache +{port} +running +\d+s +0 +(just now|\d+ \w+ ago)$")
        self.assertRegex(second, r"^idle +server +\d+ +created +- ")
        header, first, _ = daemon.must("ls", "--wide").splitlines()
        self.assertEqual(header.split(), ["ID", "NAME", "TYPE", "PORT", "ADDRESS", "STATUS", "UPTIME", "CONNECTIONS", "OWNER",
                                          "GROUP", "CREATED"])
        self.assertRegex(first, rf"^[0-9a-f]{{12}} +db +cache +{port} +127.0.0.1:{port} +running +\d+s +0 +- +- +20\S+Z$")
        self.assertNotIn("\x1b", daemon.must("ls"))
        self.assertEqual(daemon.must("ps", "-q"), "db\n")
        self.assertEqual(daemon.must("ls", "--quiet"), "db\nidle\n")
        self.assertEqual(daemon.must("ls", "i*", "-q"), "idle\n")
        self.assertEqual(daemon.must("ls", "--format", "{name}={port}", "db"), f"db={port}\n")
        self.assertEqual([r["name"] for r in json.loads(daemon.must("ls", "--json"))], ["db", "idle"])
        # Also of what no runtime has now.
        self.assertEqual(daemon.must("ls", "--format", "{name} <{reason}{lost}>", "db"), "db <>\n")
        self.assert_refused(daemon.run("ls", "--format", "{nmae}"), 1, "nmae", "name", "reason")
        daemon.must("edit", "idle", "--group", "web")
        self.assertIn("GROUP", daemon.must("ls").splitlines()[0])

    def test_patterns_and_groups(self):
        daemon = self.daemon()
        for name in ("api-1", "api-2", "web"):
            daemon.must("create", "server", name, "-p", str(free_port()), "-g", name[:3])
        daemon.must("start", "api-*")
        self.assertEqual(daemon.must("ps", "-q"), "api-1\napi-2\n")
        daemon.must("stop", "api-[1]")
        self.assertEqual(daemon.must("ps", "-q"), "api-2\n")
        daemon.must("start", "@web", "api-1")
        self.assertEqual(daemon.must("ps", "-q"), "api-1\napi-2\nweb\n")
        self.assert_refused(daemon.run("stop", "nothing-*"), 1, "nothing-*", "eddy ls")
        daemon.must("remove", "*")
        self.assertEqual(daemon.list(), {})

    def test_one_failure_does_not_stop_the_rest_of_a_command(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        result = daemon.run("start", "missing", "a")
        self.assert_refused(result, 1, "missing")
        self.assertEqual(daemon.list()["a"]["status"], "running")

    def test_what_ran_runs_again_after_sigterm(self):
        folder = self.folder()
        port = free_port()
        first = self.daemon(folder=folder)
        first.must("create", "server", "on", "-p", str(port), "--max-connections", "7", "-s",
                   "-g", "web")
        first.must("create", "server", "off", "-p", str(free_port()), "-s")
        first.must("stop", "off")
        before = first.show("on")
        self.assertEqual(first.stop(), 0)
        self.assertFalse(os.path.exists(first.socket))
        second = self.daemon(folder=folder)
        self.assertEqual(second.must("ps", "-q"), "on\n")
        after = second.show("on")
        for key in ("id", "created", "options", "group", "port"):
            self.assertEqual(after[key], before[key])
        with connect(port):
            pass

    def test_what_ran_runs_again_after_kill(self):
        folder = self.folder()
        ports = [free_port() for _ in range(5)]
        first = self.daemon(folder=folder)
        for i, port in enumerate(ports):
            first.must("create", "cache" if i % 2 else "server", f"r{i}", "-p", str(port), "-s")
        first.kill()
        self.assertTrue(os.path.exists(first.socket), "a killed daemon leaves its socket")
        second = self.daemon(folder=folder)
        self.assertEqual(second.must("ps", "-q").split(), [f"r{i}" for i in range(5)])
        for port in ports:
            with connect(port):
                pass

    def test_a_second_daemon_is_refused_and_told_who_runs(self):
        daemon = self.daemon()
        same_state = subprocess.run([harness.BINARY, "daemon", "--socket", daemon.socket + "2"],
                                    env=daemon.environment(), capture_output=True, check=False,
                                    timeout=harness.DEADLINE_S)
        self.assertEqual(same_state.returncode, 2)
        self.assertIn(str(daemon.pid), same_state.stderr.decode())
        self.assertIn("--state", same_state.stderr.decode())
        self.assertEqual(same_state.stdout, b"")
        same_socket = subprocess.run([harness.BINARY, "daemon", "--state", daemon.state + "2"],
                                     env=daemon.environment(), capture_output=True, check=False,
                                     timeout=harness.DEADLINE_S)
        self.assertEqual(same_socket.returncode, 2)
        self.assertIn(str(daemon.pid), same_socket.stderr.decode())
        self.assertIn("--socket", same_socket.stderr.decode())
        self.assertEqual(daemon.list(), {}, "the first one goes on")

    def test_two_daemons_live_side_by_side(self):
        first, second = self.daemon(), self.daemon()
        first.must("create", "server", "a", "-p", str(free_port()), "-s")
        self.assertEqual(second.list(), {})

    def test_two_runtimes_on_one_port(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "first", "-p", str(port), "-s")
        self.assert_refused(daemon.run("create", "cache", "second", "-p", str(port), "-s"), 1,
                            str(port), "first")
        self.assertEqual(daemon.list()["second"]["status"], "failed")
        self.assertIn("first", daemon.list()["second"]["reason"])
        self.assert_refused(daemon.run("start", "second"), 1, "first")
        daemon.must("stop", "first")
        daemon.must("start", "second")
        self.assert_refused(daemon.run("start", "first"), 1, "second")

    def test_a_port_that_a_stranger_has(self):
        daemon = self.daemon()
        with socket.socket() as stranger:
            stranger.bind(("0.0.0.0", 0))
            stranger.listen()
            port = stranger.getsockname()[1]
            self.assert_refused(daemon.run("create", "server", "a", "-p", str(port), "-s"), 1,
                                str(port), "in use")
        daemon.must("start", "a")

    def test_a_failed_start_is_shown_everywhere(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()), "--bind", "192.0.2.1")
        result = daemon.run("start", "a")
        self.assert_refused(result, 1, "192.0.2.1")
        self.assertEqual(daemon.list()["a"]["status"], "failed")
        self.assertIn("192.0.2.1", daemon.must("logs", "a"))
        self.assertRegex(daemon.run("ls", "a").err, r"a failed: .*192\.0\.2\.1")
        self.assertRegex(daemon.must("ls", "--wide"), r"REASON\n.* failed .*192\.0\.2\.1")
        self.assertEqual(daemon.run("ls").err, "", "not below every table")

    def test_sigterm_lets_connections_finish(self):
        daemon = self.daemon(flags=["--drain", "60s"])
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        with connect(port) as busy, connect(port) as resting:
            eventually(lambda: daemon.list()["db"]["connections"] == 2, "both are there")
            busy.sendall(b"*1\r\n$4\r\nPI")
            eventually(lambda: daemon.json("stats", "db")["bytes_in"] == 10, "the half arrived")
            daemon.signal(signal.SIGTERM)
            self.assertEqual(resting.recv(1), b"", "a connection that rests is closed")
            self.assertFalse(_accepts(port), "no new connection is accepted")
            busy.sendall(b"NG\r\n")
            self.assertEqual(read_line(busy), "+PONG")
            self.assertEqual(busy.recv(1), b"", "then it is closed as well")
            self.assertEqual(daemon.wait(), 0)

    def test_a_drain_ends_with_its_time(self):
        daemon = self.daemon(flags=["--drain", "50ms"])
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        with connect(port) as stuck:
            stuck.sendall(b"*1\r\n$4\r\nPI")
            eventually(lambda: daemon.json("stats", "db")["bytes_in"] == 10, "the half arrived")
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(stuck.recv(1), b"")

    def test_a_second_sigterm_does_not_wait(self):
        daemon = self.daemon(flags=["--drain", "10m"])
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        with connect(port) as stuck:
            stuck.sendall(b"*1\r\n$4\r\nPI")
            eventually(lambda: daemon.json("stats", "db")["bytes_in"] == 10, "the half arrived")
            daemon.signal(signal.SIGTERM)
            eventually(lambda: "SIGTERM" in daemon.read_log(), "the signal is noticed")
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(), 2)
        self.assertFalse(os.path.exists(daemon.socket))

    def test_sighup_applies_what_was_changed_by_hand(self):
        daemon = self.daemon()
        old, new = free_port(), free_port()
        daemon.must("create", "server", "a", "-p", str(old), "-s")
        daemon.must("create", "server", "b", "-p", str(free_port()), "-s")
        with connect(daemon.show("b")["port"]) as undisturbed:
            eventually(lambda: daemon.list()["b"]["connections"] == 1, "it is there")
            path = os.path.join(daemon.state, "runtimes", "a.json")
            with open(path, encoding="utf-8") as file:
                record = json.load(file)
            record["options"]["port"] = new
            with open(path, "w", encoding="utf-8") as file:
                json.dump(record, file)
            daemon.signal(signal.SIGHUP)
            eventually(lambda: daemon.show("a")["port"] == new, "the port is the new one")
            with connect(new):
                pass
            self.assertFalse(_accepts(old))
            daemon.must("send", "b", "still here")
            self.assertEqual(read_line(undisturbed), "still here")

    def test_logs_show_and_follow(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        daemon.must("stop", "a")
        lines = daemon.must("logs", "a").splitlines()
        self.assertIn("created", lines[0])
        self.assertIn("stopped", lines[-1])
        self.assertEqual(daemon.must("logs", "-n", "1", "a").splitlines(), lines[-1:])
        self.assertIn('"line": ', daemon.must("--json", "logs", "a").replace('":"', '": "'))
        follower = subprocess.Popen([harness.BINARY, "logs", "-f", "-n", "1", "a"],
                                    env=daemon.environment(), stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        self.assertIn(b"stopped", line_of(follower))
        daemon.must("start", "a")
        self.assertIn(b"started", line_of(follower))
        daemon.must("remove", "a")
        rest = follower.stdout.read()
        self.assertIn(b"removed", rest)
        self.assertEqual(follower.wait(harness.DEADLINE_S), 0, "it ends with the runtime")

    def test_edit_live_restart_and_editor(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "a", "-p", str(port), "-s")
        with connect(port) as client:
            self.assertIn("while running", daemon.must("edit", "a", "--max-connections", "1"))
            eventually(lambda: daemon.list()["a"]["connections"] == 1, "it kept its client")
            client.sendall(b"x\n")
        other = free_port()
        self.assertIn("restarted", daemon.must("edit", "a", "-p", str(other)))
        with connect(other):
            pass
        self.assert_refused(daemon.run("edit", "a", "--max-conections", "5"), 1, "--max-connections")
        self.assertIn("changed", daemon.must("edit", "a", "--unset", "max-connections"))
        self.assertNotIn("max_connections", daemon.show("a")["options"])

        editor = os.path.join(self.folder(), "editor")
        with open(editor, "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\nsed -i 's/\"group\": \"\"/\"group\": \"edited\"/' \"$1\"\n")
        os.chmod(editor, 0o755)
        out = daemon.must("edit", "a", env={"EDITOR": editor, "VISUAL": ""})
        self.assertIn("changed", out)
        self.assertEqual(daemon.show("a")["group"], "edited")
        self.assertIn("nothing was changed",
                      daemon.must("edit", "a", env={"EDITOR": "true", "VISUAL": ""}))
        self.assert_refused(daemon.run("edit", "a", env={"EDITOR": "false", "VISUAL": ""}), 1,
                            "nothing was changed")

    def test_a_default_that_is_written_out_restarts_nothing(self):
        daemon = self.daemon()
        daemon.must("create", "http", "site", "-p", str(free_port()), "--root", self.folder(), "-s")
        for edit in (("--index", "index.html"), ("--unset", "index"), ("--bind", "127.0.0.1")):
            with self.subTest(edit=edit):
                self.assertIn("while running", daemon.must("edit", "site", *edit))

    def test_owned_runtimes_go_with_their_owner(self):
        daemon = self.daemon()
        daemon.must("create", "server", "boss", "-p", str(free_port()), "-s")
        daemon.must("create", "server", "child", "-p", str(free_port()), "-o", "boss", "-s")
        self.assertRegex(daemon.must("ls", "child"), r" boss +(just now|\d+ \w+ ago)\n")
        daemon.must("stop", "boss")
        self.assertEqual(daemon.list()["child"]["status"], "stopped")
        daemon.must("create", "server", "grandchild", "-p", str(free_port()), "-o", "child")
        self.assertEqual(daemon.must("remove", "boss"), "boss removed, and what it owned: child, grandchild\n")
        self.assertEqual(daemon.list(), {})

    def test_a_pattern_that_matches_an_owner_and_what_it_owns(self):
        daemon = self.daemon()
        for name, *owner in (("a",), ("ab", "-o", "a"), ("ac",)):
            daemon.must("create", "server", name, "-p", str(free_port()), *owner)
        removed = daemon.json("remove", "a*")
        self.assertEqual(removed, [{"name": "a", "owned": [{"name": "ab"}]}, {"name": "ac"}])

    def test_the_ready_line(self):
        daemon = self.daemon()
        backend = daemon.request("GET", "/v1/daemon")[1]["io_backend"]
        self.assertEqual(daemon.ready_line,
                         f"eddy daemon ready: socket {daemon.socket}, state {daemon.state}, "
                         f"io-backend {backend}, pid {daemon.pid}")
        if self.backend != "auto":
            self.assertEqual(backend, self.backend)

    def test_nothing_is_printed_but_the_ready_line(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        daemon.process.terminate()
        self.assertEqual(daemon.process.stdout.read(), b"")


def _accepts(port):
    try:
        with connect(port, timeout_s=5):
            return True
    except OSError:
        return False


class CommandLine(harness.EddyTest):
    def test_without_a_daemon(self):
        folder = self.folder()
        lonely = harness.Daemon(folder=folder)
        result = lonely.run("ls")
        self.assert_refused(result, 2, lonely.socket, "eddy daemon")
        self.assertEqual(lonely.run("version").status, 0)
        self.assertEqual(lonely.run("help").status, 0)
        self.assertEqual(lonely.run("nonsense").status, 1)

    def test_what_listens_is_no_daemon(self):
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: "
        for answer, text in ((b"220 mail.example.org ESMTP\r\n", "not an Eddy daemon"),
                             (b"", "closed the connection"),
                             (ok + b"5\r\n\r\nhe", "closed the connection"),
                             (ok + b"5\r\n\r\nhello", "no answer of Eddy's control API"),
                             (ok + b"2\r\n\r\n{}", "list of runtimes"),
                             (ok + b"15\r\n\r\n{\"runtimes\":[1]}", ""),
                             (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "500"),
                             (ok + b"99999999999\r\n\r\n" + b"x" * (65 << 20), "67108864")):
            lonely = harness.Daemon(folder=self.folder())
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.bind(lonely.socket)
                stranger.listen()
                process = subprocess.Popen([harness.BINARY, "ls"], env=lonely.environment(),
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                peer, _ = stranger.accept()
                with peer:
                    peer.recv(1000)
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        peer.sendall(answer)
                _, err = process.communicate(timeout=harness.DEADLINE_S)
            self.assertEqual(process.returncode, 2 if text else process.returncode, answer[:60])
            self.assertIn(process.returncode, (0, 1, 2))
            self.assertIn(text, err.decode())

    def test_colours_only_on_a_terminal(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        script = ["script", "-qec", f"{harness.BINARY} ls", "/dev/null"]
        if subprocess.run(["which", "script"], stdout=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("there is no script(1) to make a terminal")

        def on_terminal(**env):
            environment = dict(daemon.environment(), TERM="xterm", **env)
            environment.pop("NO_COLOR", None) if "NO_COLOR" not in env else None
            return subprocess.run(script, env=environment, capture_output=True, check=False,
                                  timeout=harness.DEADLINE_S).stdout
        self.assertIn(b"\x1b[", on_terminal())
        self.assertNotIn(b"\x1b[", on_terminal(NO_COLOR="1"))

    def test_standard_output_that_is_full_is_an_error(self):
        daemon = self.daemon()
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([harness.BINARY, "ls"], env=daemon.environment(), stdout=full,
                                    stderr=subprocess.PIPE, check=False, timeout=harness.DEADLINE_S)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"standard output", result.stderr)

    def test_a_message_that_is_too_large(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        self.assert_refused(daemon.run("send", "a", stdin="x" * (1024 * 1024 + 1)), 1, "1048576")

    def test_backends_that_do_not_exist(self):
        folder = self.folder()
        for flags, text in ((["--io-backend", "sim"], "epoll"), (["--io-backend", "x"], "epoll"),
                            (["--loops", "0"], "1 to"), (["--loops", "x"], "1 to"),
                            (["--metrics-port", "65536"], "65535"), (["--drain", "soon"], "100ms"),
                            (["--log-level", "loud"], "debug"), (["--nonsense"], "nonsense")):
            result = harness.Daemon(folder=folder).run("daemon", *flags)
            self.assert_refused(result, 1, text)


if __name__ == "__main__":
    harness.main()
