#!/usr/bin/env python3
"""Tests of each flag of each command by its effect: none is accepted and ignored.

The flags are read from the program's own help. A flag that no test here claims fails the last test. The options of
types are those of type_options_test.py.
"""

import json
import os
import re
import select
import signal
import subprocess

import harness
from flag_effects import CLAIMED, FlagTest, effect_of, flags_in
from stream_daemon_flags import *  # noqa: F403, its test cases
from harness import all_of, connect, eventually, free_port, line_of, read_line


def ask_cache(port, text):
    """Sends an inline command and returns the first line of the reply."""
    with connect(port) as client:
        client.sendall(text.encode() + b"\r\n")
        return read_line(client)


@harness.on_each_backend
class DaemonFlags(FlagTest):
    @effect_of("daemon", "state", "name", "loops")
    def test_state_name_and_loops(self):
        folder = self.folder()
        elsewhere = os.path.join(folder, "elsewhere")
        daemon = self.daemon(folder=folder, flags=["--state", elsewhere, "--name", "box",
                                                   "--loops", "3"])
        self.assertTrue(os.path.isdir(os.path.join(elsewhere, "runtimes")))
        facts = daemon.request("GET", "/v1/daemon")[1]
        self.assertEqual((facts["name"], facts["loops"], facts["state"]), ("box", 3, elsewhere))
        self.assertEqual(sorted(t for t in daemon.thread_names() if t.startswith("eddy-loop")),
                         ["eddy-loop-0", "eddy-loop-1", "eddy-loop-2"])
        for i in range(3):
            self.create(daemon, "server", f"r{i}")
        self.assertEqual({r["loop"] for r in daemon.list().values()}, {0, 1, 2})

    @effect_of("daemon", "io-backend")
    def test_backend(self):
        daemon = self.daemon()
        facts = daemon.request("GET", "/v1/daemon")[1]
        self.assertEqual(facts["io_backend"], self.backend)

    @effect_of("daemon", "socket-group")
    def test_socket_group(self):
        daemon = self.daemon(flags=["--socket-group", str(os.getegid())])
        made = os.stat(daemon.socket)
        self.assertEqual((made.st_gid, made.st_mode & 0o777), (os.getegid(), 0o660))

    @effect_of("daemon", "sqpoll", "ring-entries")
    def test_ring(self):
        if self.backend != "uring":
            for flags in (["--sqpoll"], ["--ring-entries", "2048"]):
                refused = harness.Daemon(folder=self.folder(), backend=self.backend).run("daemon", "--io-backend", "epoll", *flags)
                self.assert_refused(refused, 1, flags[0] + " is for io_uring")
            return
        daemon = self.daemon(flags=["--sqpoll", "--ring-entries", "2048", "--loops", "2"])
        self.create(daemon, "server")
        self.assertEqual(sum(name.startswith("iou-sqp") for name in daemon.thread_names()), 2)
        masks, folder = set(), f"/proc/{daemon.process.pid}/fdinfo"
        for each in os.listdir(folder):
            with open(os.path.join(folder, each), encoding="ascii") as file:
                masks.update(re.findall(r"SqMask:\s+(\w+)", file.read()))
        self.assertEqual(masks, {"0x7ff"})
        for entries in ("0", "1023", "32769", "x"):
            self.assert_refused(harness.Daemon(folder=self.folder()).run("daemon", "--ring-entries", entries), 1, "1024 to 32768")

    @effect_of("daemon", "max-runtimes")
    def test_max_runtimes(self):
        daemon = self.daemon(flags=["--max-runtimes", "2"])
        for name in ("a", "b"):
            self.create(daemon, "server", name)
        refused = daemon.run("create", "server", "c", "--port", str(free_port()))
        self.assert_refused(refused, 1, "there are 2 runtimes, which is the limit")
        self.assertIn("--max-runtimes", refused.err)
        for number in ("0", "1000001", "x"):
            self.assert_refused(harness.Daemon(folder=self.folder()).run("daemon", "--max-runtimes", number), 1, "1 to 1000000")

    @effect_of("daemon", "metrics-port")
    def test_metrics_port(self):
        port = free_port()
        self.daemon(flags=["--metrics-port", str(port)])
        with connect(port) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            self.assertIn(b"eddy_uptime_seconds", all_of(client))

    @effect_of("daemon", "drain")
    def test_drain(self):
        daemon = self.daemon(flags=["--drain", "1ms"])
        port = self.create(daemon, "cache")
        with connect(port) as stuck:
            stuck.sendall(b"*1\r\n$4\r\nPI")
            eventually(lambda: daemon.json("stats", "r")["bytes_in"] == 10, "the half arrived")
            daemon.must("stop", "r")
            self.assertEqual(stuck.recv(1), b"")

    @effect_of("daemon", "cluster", "advertise", "label")
    def test_cluster(self):
        # The rest is in cluster_test.py.
        daemon = self.daemon(flags=["--name", "a", "--cluster", self.folder(), "--advertise", "db.example", "--label", "spare"])
        eventually(lambda: daemon.json("cluster", "ls")["joined"], "it is a member")
        member = daemon.json("cluster", "ls")["members"][0]
        self.assertEqual((member["name"], member["host"], member["label"]), ("a", "db.example", "spare"))

    @effect_of("daemon", "upgrade", "with", "upgrade-timeout")
    def test_daemon_upgrade(self):
        daemon = self.daemon()
        hung = os.path.join(self.folder(), "hung")
        with open(hung, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec sleep 1000\n")
        os.chmod(hung, 0o755)
        self.assert_refused(daemon.run("daemon", "--upgrade", "--with", hung, "--upgrade-timeout", "300ms"), 1,
                            "not upgraded", "has not answered for 0.3 s")
        self.assert_refused(daemon.run("daemon", "--with", hung), 1, "--with goes with --upgrade")
        self.assert_refused(daemon.run("daemon", "--upgrade", "--name", "x"), 1, "--name has no effect with --upgrade")

    @effect_of("daemon", "log-level")
    def test_log_level(self):
        chatty = self.daemon(flags=["--log-level", "info"])
        silent = self.daemon(flags=["--log-level", "error"])
        for daemon in (chatty, silent):
            self.create(daemon, "server")
        self.assertIn("started on", chatty.read_log())
        self.assertNotIn("started on", silent.read_log())


class CommandFlags(FlagTest):
    @effect_of("create", "start", "owner", "group")
    def test_create(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        self.assertEqual(daemon.show("a")["status"], "created")
        daemon.must("create", "server", "b", "-p", str(free_port()), "--start", "--owner", "a",
                    "--group", "g")
        shown = daemon.show("b")
        self.assertEqual((shown["status"], shown["owner"], shown["group"]), ("running", "a", "g"))
        self.assert_refused(daemon.run("create", "server", "c", "-p", "1", "-o", "nobody"), 1, "nobody")

    @effect_of("add", "name", "start", "owner", "group", "on-parent-stop")
    @effect_of("attach", "pid", "owner", "group", "on-parent-stop")
    def test_add_and_attach(self):
        daemon = self.daemon()
        port = self.create(daemon, "server", "a")
        daemon.must("add", "sleep", "--name", "p", "--start", "--owner", "a", "--group", "g", "--on-parent-stop", "keep",
                    "--", "1000")
        shown = daemon.show("p")
        self.assertEqual((shown["status"], shown["owner"], shown["group"], shown["on_parent_stop"]), ("running", "a", "g", "keep"))
        daemon.must("add", "sleep", "--", "1000")
        self.assertEqual(daemon.show("sleep")["status"], "created")
        daemon.must("attach", "web", "x", str(port), "--owner", "a", "--group", "g", "--on-parent-stop", "remove")
        shown = daemon.show("x")
        self.assertEqual((shown["status"], shown["owner"], shown["group"], shown["on_parent_stop"]), ("running", "a", "g", "remove"))
        # The rest is in program_test.py.
        self.assert_refused(daemon.run("attach", "web", "y", str(port), "--pid", "1"), 1, "first process")

    @effect_of("edit", "owner", "group", "unset")
    def test_edit(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        daemon.must("create", "server", "b", "-p", str(free_port()), "--rate-limit", "5")
        daemon.must("edit", "b", "--owner", "a", "--group", "g", "--unset", "--rate-limit")
        shown = daemon.show("b")
        self.assertEqual((shown["owner"], shown["group"]), ("a", "g"))
        self.assertNotIn("rate_limit", shown["options"])
        daemon.must("edit", "b", "--owner", "", "--group=")
        shown = daemon.show("b")
        self.assertEqual((shown["owner"], shown["group"]), ("", ""))

    @effect_of("edit", "dry-run", "live-only")
    def test_edits_that_would_restart(self):
        daemon = self.daemon(flags=["--drain", "1500ms"])
        port = self.create(daemon, "server")
        with connect(port) as client:
            self.assertEqual(daemon.must("edit", "r", "--max-line", "100", "--dry-run"),
                             "changing --max-line would restart r: it would serve new clients at once; those that it has "
                             "may finish for up to 1 s\n")
            self.assertEqual(daemon.must("edit", "r", "--max-connections", "5", "--dry-run"),
                             "r would change while running\n")
            refused = daemon.run("edit", "r", "--max-line", "100", "--max-connections", "5", "--live-only")
            self.assert_refused(refused, 1, "--max-line cannot change without a restart")
            self.assertEqual(daemon.must("edit", "r", "--max-connections", "6", "--live-only"),
                             "r changed while running\n")
            client.sendall(b"hello\n")  # it serves on
            self.assertEqual({name: daemon.show("r")["options"].get(name) for name in ("max_line", "max_connections")},
                             {"max_line": None, "max_connections": 6})

    @effect_of("edit", "discard-keys")
    @effect_of("reload", "discard-keys")
    def test_discard_keys(self):
        # The rest is in keeping_test.py.
        daemon, disk = self.daemon(), self.folder()
        port = self.create(daemon, "cache", "other", "--dir", disk)
        self.assertEqual(ask_cache(port, "SET theirs 1"), "+OK")
        daemon.must("stop", "other")
        port = self.create(daemon, "cache")
        self.assertEqual(ask_cache(port, "SET ours 1"), "+OK")
        self.assert_refused(daemon.run("edit", "r", "--dir", disk), 1, "--discard-keys")
        daemon.must("edit", "r", "--dir", disk, "--discard-keys")
        self.assertEqual(ask_cache(port, "EXISTS theirs"), ":1")
        self.assertEqual(ask_cache(port, "EXISTS ours"), ":0")
        daemon.must("edit", "r", "--unset", "dir")
        daemon.must("reload", "r")
        self.assertEqual(ask_cache(port, "EXISTS theirs"), ":1")
        daemon.must("reload", "r", "--discard-keys")
        self.assertEqual(ask_cache(port, "EXISTS theirs"), ":0")

    @effect_of("stop", "force")
    @effect_of("remove", "force")
    def test_stop_and_remove_what_cannot_save(self):
        # The rest is in keeping_test.py.
        daemon, disk = self.daemon(), self.folder()
        port = self.create(daemon, "cache", "r", "--dir", disk)
        os.mkdir(os.path.join(disk, "dump.rdb.tmp"))
        for command, done in (("stop", "stopped"), ("remove", "removed")):
            self.assertEqual(ask_cache(port, "SET k v"), "+OK")
            self.assert_refused(daemon.run(command, "r"), 2, "was not stopped")
            self.assertEqual(daemon.must(command, "--force", "r"), f"r {done}\n")
            if command == "stop":
                daemon.must("start", "r")

    @effect_of("ls", "quiet", "format", "wide")
    @effect_of("ps", "quiet", "format", "wide")
    def test_ls_and_ps(self):
        daemon = self.daemon()
        self.create(daemon, "server")
        for command in ("ls", "ps"):
            self.assertEqual(daemon.must(command, "--quiet"), "r\n")
            self.assertEqual(daemon.must(command, "--format", "<{type}>"), "<server>\n")
            self.assertIn("OWNER", daemon.must(command, "--wide"))

    @effect_of("top", "sort", "once", "interval", "all")
    @effect_of("stats", "details")
    def test_top_and_tables(self):
        # The rest is in top_test.py.
        daemon = self.daemon()
        self.create(daemon, "cache", "a")
        self.create(daemon, "server", "b")
        self.assertEqual(len(daemon.must("stats", "*").splitlines()), 3)
        self.assertIn("keys    ", daemon.must("stats", "*", "--details"))
        shown = daemon.must("top", "--once", "--interval", "50ms", "--sort", "type").splitlines()
        self.assertEqual([line.split()[0] for line in shown], ["NAME", "a", "b"])
        daemon.must("stop", "b")
        self.assertEqual(len(daemon.must("top", "--once", "--interval", "50ms").splitlines()), 2)
        self.assertEqual(len(daemon.must("top", "--once", "--interval", "50ms", "--all").splitlines()), 3)

    @effect_of("stats", "follow", "watch", "interval")
    def test_stats_again_and_again(self):
        daemon = self.daemon()
        self.create(daemon, "cache", "r", "--maxmemory", "4M")
        self.assertRegex(daemon.must("stats", "r"), r"\n  maxmemory bytes +4\.0 MiB\n")
        self.assert_refused(daemon.run("stats", "r", "--interval", "1s"), 1, "--follow")
        for flags, pattern in (((), rb"^r \(cache, running\)"), (("--watch",), rb"^r \(cache"), (("--json",), rb'^\{.*"uptime_s":')):
            shown = subprocess.Popen([harness.BINARY, "stats", "r", "--follow", "--interval", "50ms", *flags],
                                     env=daemon.environment(), stdout=subprocess.PIPE, bufsize=0)
            self.addCleanup(shown.stdout.close)
            self.addCleanup(shown.wait)
            self.addCleanup(shown.kill)
            for _ in range(2):
                while not re.search(pattern, line_of(shown)):
                    pass
        daemon.must("remove", "r")
        self.assertEqual(shown.wait(harness.DEADLINE_S), 1, "there is nothing to show any more")

    @effect_of("logs", "follow", "lines", "since")
    def test_logs(self):
        daemon = self.daemon()
        self.create(daemon, "server")
        self.assertEqual(len(daemon.must("logs", "r", "--lines", "1").splitlines()), 1)
        every = daemon.must("logs", "r")
        for since in ("1h", "2026-01-01", every[:23]):
            self.assertEqual(daemon.must("logs", "r", "--since", since), every)
        self.assertEqual(daemon.must("logs", "r", "--since", "2199-01-01T00:00"), "")
        self.assertEqual(len(daemon.must("logs", "r", "--since", "1h", "-n", "1").splitlines()), 1)
        self.assert_refused(daemon.run("logs", "r", "--since", "yesterday"), 1, "10m", "2026-11-21T21:22:04")
        follower = subprocess.Popen([harness.BINARY, "logs", "r", "--follow", "--lines", "0"],
                                    env=daemon.environment(), stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(follower.stdout.close)
        eventually(lambda: daemon.metric("eddy_control_connections") == 2, "it follows")
        daemon.must("stop", "r")
        self.assertIn(b"stopped", line_of(follower))
        follower.send_signal(signal.SIGINT)
        follower.wait(harness.DEADLINE_S)

    @effect_of("events", "since", "until", "filter", "format", "follow", "no-follow")
    @effect_of("wait", "for", "timeout")
    def test_events_and_wait(self):
        # The rest is in events_test.py.
        daemon = self.daemon()
        self.create(daemon, "server")
        self.assertEqual(daemon.must("events", "--no-follow", "--format", "{event} {name}"), "created r\nstarted r\n")
        self.assertEqual(daemon.must("events", "--no-follow", "--filter", "event=started", "--since", "1h",
                                     "--format", "{name}"), "r\n")
        self.assertEqual(daemon.must("events", "--follow", "--until", "2020-01-01"), "")
        self.assertEqual(daemon.must("wait", "r", "--for", "running"), "r running\n")
        self.assert_refused(daemon.run("wait", "r", "--timeout", "20ms"), 1, "still")

    @effect_of("ls", "filter", "all")
    @effect_of("ps", "filter", "all")
    @effect_of("create", "on-parent-stop")
    @effect_of("edit", "on-parent-stop")
    @effect_of("stop", "yes")
    @effect_of("remove", "yes")
    @effect_of("owner", "clear")
    @effect_of("restart", "discard-keys")
    @effect_of("logs", "timestamps")
    def test_owners_and_lists(self):
        # The rest is in names_test.py.
        daemon = self.daemon()
        port = self.create(daemon, "cache")
        self.create(daemon, "server", "r2", "-o", "r", "--on-parent-stop", "keep")
        self.assertEqual(ask_cache(port, "SET k v"), "+OK")
        daemon.must("restart", "r")
        self.assertEqual(ask_cache(port, "EXISTS k"), ":1")
        daemon.must("restart", "r", "--discard-keys")
        self.assertEqual(ask_cache(port, "EXISTS k"), ":0")
        daemon.must("stop", "r", "--yes")
        self.assertEqual(daemon.must("ls", "-q", "--filter", "status=running"), "r2\n")
        self.assertEqual(daemon.must("ps", "-q", "--all", "--filter", "type=cache"), "r\n")
        self.assertRegex(daemon.must("logs", "r", "--timestamps", "-n", "1"), r"^20\S+Z stopped\n$")
        daemon.must("edit", "r2", "--on-parent-stop", "stop")
        daemon.must("owner", "r2", "--clear")
        daemon.must("remove", "--yes", "r")
        self.assertEqual(list(daemon.list()), ["r2"])

    @effect_of("start", "interactive")
    def test_start_interactive(self):
        daemon = self.daemon()
        port = free_port()
        for name in ("r", "r2"):
            daemon.must("create", "server", name, "-p", str(port if name == "r" else 0), "--log-traffic")
        self.assert_refused(daemon.run("start", "-i", "r", "r2"), 1, "for one runtime")
        self.assert_refused(daemon.run("start", "-i", "r*"), 1, "means 2")
        self.assertEqual(daemon.json("ps"), [])
        attached = subprocess.Popen([harness.BINARY, "start", "r", "--interactive"], env=daemon.environment(),
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(attached.stdout.close)
        self.addCleanup(attached.kill)
        self.assertIn(b"r started", line_of(attached))

        def is_shown():  # what happens before it follows is not
            connect(port).close()
            return select.select([attached.stdout], [], [], 0.2)[0]
        eventually(is_shown, "it follows")
        with connect(port) as client:
            client.sendall(b"a first line\n")
            while b"a first line" not in (line := line_of(attached)):
                self.assertTrue(line, "connections and messages are shown")
            attached.stdin.write(b"from the terminal\nand the end")
            self.assertEqual(read_line(client), "from the terminal")
            client.sendall(b"from a client\n")
            while b"from a client" not in (line := line_of(attached)):
                self.assertTrue(line, "the message is shown")
            attached.stdin.close()
            self.assertEqual(read_line(client), "and the end")
        self.assertEqual(attached.wait(harness.DEADLINE_S), 0)
        self.assertEqual(daemon.show("r")["status"], "running", "it goes on running")

    @effect_of("send", "whole")
    def test_send_whole(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "r", "-p", str(port), "-s")
        with connect(port) as client:
            eventually(lambda: daemon.show("r")["connections"] == 1, "it is connected")
            self.assertEqual(daemon.must("send", "r", "--whole", stdin="two\nlines\n"), "delivered to 1\n")
            self.assertEqual([read_line(client), read_line(client)], ["two", "lines"])
        self.assert_refused(daemon.run("send", "r", "text", "--whole"), 1, "--whole is for standard input")

    @effect_of("db", "raw", "no-raw", "stdin", "database", "resp3", "user", "password", "ca", "cert", "key")
    def test_db(self):
        # The rest, and users and TLS, are in db_test.py.
        daemon = self.daemon()
        daemon.must("create", "cache", "r", "-p", str(free_port()), "-s")
        daemon.must("db", "-n", "2", "-x", "r", "set", "k", stdin="a value")
        self.assertEqual(daemon.must("db", "-n", "2", "--raw", "r", "get", "k"), "a value\n")
        self.assertEqual(daemon.must("db", "-n", "2", "--no-raw", "r", "get", "k"), '"a value"\n')
        self.assertEqual(daemon.must("db", "-3", "--no-raw", "r", "config", "get", "port")[:2], "1#")
        self.assert_refused(daemon.run("db", "--user", "x", "--password", "y", "r", "ping"), 1, "WRONGPASS")
        self.assertEqual(daemon.must("db", "--ca", "/nowhere", "r", "ping"), "PONG\n")

    @effect_of("console", "port", "close")
    def test_console(self):
        # Its guard is in console_test.py.
        daemon, port = self.daemon(), free_port()
        self.assertTrue(daemon.must("console", "-p", str(port)).startswith(f"http://127.0.0.1:{port}/#"))
        connect(port).close()
        self.assertEqual(json.loads(daemon.must("console", "--json"))["port"], port)
        daemon.must("console", "--close")
        with self.assertRaises(ConnectionRefusedError):
            connect(port)

    @effect_of("up", "file", "stack", "yes", "adopt", "dry-run", "no-start", "watch")
    @effect_of("down", "file", "stack", "yes", "dry-run")
    @effect_of("diff", "file", "stack", "adopt")
    @effect_of("validate", "file", "stack")
    @effect_of("export", "stack")
    def test_stacks(self):
        # Watching is in stack_test.py.
        daemon = self.daemon()
        path = os.path.join(self.folder(), "x.toml")
        text = f"[server.a]\nport = {free_port()}\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.assertIn("other: 1 runtimes", daemon.must("validate", "-f", path, "--stack", "other"))
        self.assertIn("other: would be: 1 created", daemon.must("up", "-n", "--file", path, "--stack", "other"))
        self.assertEqual(daemon.list(), {})
        daemon.must("up", "-f", path, "--stack", "other", "--no-start")
        self.assertEqual(daemon.show("a")["status"], "created")
        self.assertEqual(daemon.show("a")["stack"], "other")
        self.assertEqual(daemon.run("diff", "-f", path, "--stack", "other").status, 1, "it is to run")
        daemon.must("up", "-f", path, "--stack", "other")
        self.assertEqual(daemon.run("diff", "-f", path, "--stack", "other").status, 0)
        self.assert_refused(daemon.run("diff", "-f", path), 2, "--adopt")
        self.assertEqual(daemon.run("diff", "-f", path, "--adopt").status, 1)
        self.assertIn("stack: \"other\" -> \"x\"", daemon.must("up", "-f", path, "--adopt"))
        self.assertIn("stack = \"mine\"", daemon.must("export", "--stack", "mine"))
        self.assertIn("would be: 1 removed", daemon.must("down", "-n", "--stack", "x"))
        self.assert_refused(daemon.run("down", "-f", path), 1, "--yes")
        daemon.must("down", "-f", path, "-y")
        self.assertEqual(daemon.list(), {})
        self.assert_refused(daemon.run("up", "-f", path, "-n", "--watch"), 1, "no --dry-run")

    def test_json_of_every_command(self):
        daemon = self.daemon()
        port = str(free_port())
        for words in (["create", "server", "a", "-p", port], ["start", "a"], ["reload", "a"], ["restart", "a"],
                      ["owner", "a"], ["rename", "a", "a"], ["wait", "a", "--for", "running"],
                      ["send", "a", "x"], ["ls"], ["ps"], ["show", "a"], ["stats", "a"],
                      ["edit", "a", "--max-connections", "5"], ["version"], ["stop", "a"],
                      ["remove", "a"]):
            json.loads(daemon.must(*words, "--json"))
            if words[0] not in ("create", "remove"):
                json.loads(daemon.must("--json", *words))

    def test_socket_and_help_of_every_command(self):
        daemon = self.daemon()
        for command in self.commands(daemon):
            self.assertIn(f"Usage: eddy {command}", daemon.must(command, "--help"))
            if command in ("up", "down", "diff"):
                folder = self.folder()
                with open(os.path.join(folder, "eddy.toml"), "w", encoding="utf-8") as file:
                    file.write("stack = \"x\"\n[server.a]\nport = 0\n")
                self.assert_refused(daemon.run(command, folder, "--socket", "/nowhere/s.sock"), 2, "/nowhere/s.sock")
            elif command == "cluster":
                for child in (["ls"], ["ps"], ["group"], ["show", "a"], ["stats"], ["watch"]):
                    self.assertIn(f"Usage: eddy cluster {child[0]}", daemon.must("cluster", child[0], "--help"))
                    self.assert_refused(daemon.run("cluster", *child, "--socket", "/nowhere/s.sock"), 2, "/nowhere/s.sock")
            elif command not in ("daemon", "stream-daemon", "bench", "lua", "version", "validate", "completion"):
                result = daemon.run(command, *(["a", "b"] if command == "rename" else ["a"] if command not in ("ls", "ps", "events", "console", "top") else []),
                                    *(["cache"] if command == "create" else []),
                                    "--socket", "/nowhere/s.sock")
                if command == "add":
                    result = daemon.run("add", "sh", "--socket", "/nowhere/s.sock")
                if command == "create":
                    result = daemon.run("create", "cache", "a", "--socket", "/nowhere/s.sock")
                self.assert_refused(result, 2, "/nowhere/s.sock")

    def commands(self, daemon):
        overview = daemon.must("help")
        listed = overview.split("Commands:")[1].split("Types of runtime:")[0]
        return re.findall(r"^  ([\w-]+)", listed, re.M)

    def test_no_letter_means_two_things(self):
        daemon = self.daemon()
        for each in daemon.request("GET", "/v1/types")[1]["types"]:
            text = daemon.must("help", "create", each["name"])
            letters = re.findall(r"^ +-(\w), --", text, re.M)
            self.assertEqual(len(letters), len(set(letters)), letters)

    def test_zz_every_flag_was_walked(self):
        daemon = self.daemon()
        there = set()
        for command in self.commands(daemon):
            if command != "bench":
                # The options of a program are those of its type.
                text = daemon.must("help", command).split("Flags of the program:")[0]
                there.update((command, flag) for flag in flags_in(text))
        self.assertEqual(there - CLAIMED, set(), "these flags need a test of their effect here, under @effect_of")
        self.assertEqual(CLAIMED - there, set(), "these flags are tested but do not exist")


if __name__ == "__main__":
    harness.main()
