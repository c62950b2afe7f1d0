#!/usr/bin/env python3
"""Clients through the whole program: their transports, the queue while there is no connection, `eddy send` from a pipe,
and `eddy attach`, on a terminal and beside slow readers.
"""

import contextlib
import json
import os
import pty
import select
import signal
import socket
import ssl
import subprocess
import time

import harness
from harness import eventually, free_port, line_of, read_line


def listening(port=0):
    server = socket.create_server(("127.0.0.1", port))
    server.settimeout(harness.DEADLINE_S)
    return server


def accepted(server):
    peer = server.accept()[0]
    peer.settimeout(harness.DEADLINE_S)
    return peer


class Terminal:
    """A program with a terminal of its own."""

    def __init__(self, daemon, *words):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execve(harness.BINARY, [harness.BINARY, *words], daemon.environment())
        self.text = b""
        self.status = None

    def type(self, text):
        os.write(self.end, text.encode())

    def await_text(self, text):
        end = time.monotonic() + harness.DEADLINE_S
        while text.encode() not in self.text:
            if not select.select([self.end], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not come; there is {self.text!r}")
            with contextlib.suppress(OSError):  # its other end is closed
                self.text += os.read(self.end, 65536)

    def wait(self):
        """Returns the exit status, negative for a signal."""
        def is_over():
            with contextlib.suppress(OSError):
                while select.select([self.end], [], [], 0)[0] and (more := os.read(self.end, 65536)):
                    self.text += more
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return pid
        eventually(is_over, "the program ends")
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.end)


class ClientTest(harness.EddyTest):
    def create(self, daemon, target, *more):
        daemon.must("create", "client", "feed", "-t", target, "-s", *more)

    def await_stats(self, daemon, **wanted):
        eventually(lambda: wanted.items() <= daemon.json("stats", "feed").items(), f"stats have {wanted}")

    def terminal(self, daemon, *words):
        made = Terminal(daemon, *words)
        self.addCleanup(made.close)
        return made

    def attached(self, daemon, **more):
        """`eddy attach` without a terminal, that follows."""
        process = subprocess.Popen([harness.BINARY, "attach", "feed"], env=daemon.environment(), bufsize=0,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(lambda: [each.close() for each in (process.stdin, process.stdout, process.stderr)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process


@harness.on_each_backend
class Transports(ClientTest):
    def test_udp(self):
        daemon = self.daemon()
        with socket.socket(type=socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))
            server.settimeout(harness.DEADLINE_S)
            self.create(daemon, "udp://127.0.0.1:%d" % server.getsockname()[1])
            self.await_stats(daemon, connected=1)
            daemon.must("send", "feed", stdin="one\ntwo\n")
            text, peer = server.recvfrom(100)
            self.assertEqual([text, server.recv(100)], [b"one", b"two"])
            server.sendto(b"an answer", peer)
            eventually(lambda: "received: an answer" in daemon.must("logs", "feed"), "it is in the log")

    def test_unix(self):
        daemon = self.daemon()
        path = os.path.join(daemon.folder, "u")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            server.settimeout(harness.DEADLINE_S)
            self.create(daemon, "unix://" + path)
            with accepted(server) as peer:
                daemon.must("send", "feed", "hello")
                self.assertEqual(read_line(peer), "hello")

    def test_websocket_of_a_server(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "-s")
        self.create(daemon, f"ws://127.0.0.1:{port}/")
        self.await_stats(daemon, connected=1)
        with harness.connect(port) as other:
            eventually(lambda: daemon.show("chat")["connections"] == 2, "both are there")
            self.assertEqual(daemon.must("send", "feed", "over WebSocket"), "delivered to 1\n")
            self.assertEqual(read_line(other), "over WebSocket")
            other.sendall(b"from TCP\n")
            eventually(lambda: "received: from TCP" in daemon.must("logs", "feed"), "it is in the log")

    @harness.needs("tls")
    def test_tls_and_secure_websocket(self):
        daemon = self.daemon()
        made = harness.Certificates(daemon.folder)
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "--tls", "--cert", made.cert, "--key", made.key, "-s")
        for uri in (f"tls://localhost:{port}?ca={made.ca}", f"wss://localhost:{port}/#ca={made.ca}"):
            self.create(daemon, uri)
            self.await_stats(daemon, connected=1)
            trusting = ssl.create_default_context(cafile=made.ca)
            with trusting.wrap_socket(harness.connect(port), server_hostname="localhost") as other:
                eventually(lambda: daemon.show("chat")["connections"] == 2, "both are there")
                daemon.must("send", "feed", "sealed")
                self.assertEqual(read_line(other), "sealed")
            daemon.must("remove", "-f", "feed")
            eventually(lambda: daemon.show("chat")["connections"] == 0, "both are gone")
        self.create(daemon, f"wss://localhost:{port}/")
        reason = eventually(lambda: daemon.show("feed").get("reason"), "the attempt has failed")
        self.assertRegex(reason, "not connected: .*; it tries again")


@harness.on_each_backend
class Connections(ClientTest):
    def test_what_is_sent_meanwhile_waits_for_the_next_connection(self):
        daemon = self.daemon()
        with listening() as server:
            port = server.getsockname()[1]
            self.create(daemon, f":{port}")
            accepted(server).close()
        eventually(lambda: "not connected" in daemon.show("feed").get("reason", ""), "it shows why")
        self.assertEqual(daemon.must("send", "feed", "first"), "delivered to 0\n")
        daemon.must("send", "feed", stdin="".join(f"{i}\n" for i in range(100)))
        self.await_stats(daemon, connected=0, queued_messages=101)
        labels = {"runtime": "feed", "type": "client"}
        self.assertEqual(daemon.metric("eddy_client_queued_messages", **labels), 101)
        with listening(port) as server, accepted(server) as peer:
            self.assertEqual(read_line(peer), "first")
            self.assertEqual([int(read_line(peer)) for _ in range(100)], list(range(100)))
            self.await_stats(daemon, connected=1, reconnects_total=1, queued_bytes=0, dropped=0)
            self.assertNotIn("reason", daemon.show("feed"))

    def test_what_waits_goes_to_another_target(self):
        daemon = self.daemon()
        self.create(daemon, f":{free_port()}")
        daemon.must("send", "feed", stdin="".join(f"{i}\n" for i in range(100)))
        with listening() as server:
            edited = daemon.run("edit", "feed", "--target", ":%d" % server.getsockname()[1])
            self.assertEqual(edited.status, 0, edited)
            self.assertNotIn("lost", edited.out + edited.err)
            with accepted(server) as peer:
                self.assertEqual([int(read_line(peer)) for _ in range(100)], list(range(100)))
                self.await_stats(daemon, connected=1, queued_messages=0, dropped=0)
        # A restart that keeps the target, while there is no connection.
        eventually(lambda: "not connected" in daemon.show("feed").get("reason", ""), "the connection is gone")
        daemon.must("send", "feed", "still there")
        daemon.must("edit", "feed", "--framing", "raw")
        self.await_stats(daemon, queued_messages=1, dropped=0)

    def test_a_full_queue_and_the_end_of_attempts(self):
        daemon = self.daemon()
        port = free_port()
        self.create(daemon, f":{port}", "--queue", "10", "--reconnect", "1")
        eventually(lambda: "has given up" in daemon.show("feed").get("reason", ""), "it gives up")
        self.assert_refused(daemon.run("send", "feed", "x"), 2, "has given up", "eddy reload feed")
        daemon.must("edit", "feed", "--unset", "reconnect")
        self.assertEqual(daemon.must("send", "feed", "123456789"), "delivered to 0\n")
        refused = daemon.run("send", "feed", stdin="one more\nand another\n")
        self.assert_refused(refused, 2, "10 bytes wait", "line 1 and the rest of the input were not sent")
        self.assertIn("0 messages sent", refused.out)
        with listening(port) as server, accepted(server) as peer:
            self.assertEqual(read_line(peer), "123456789")
        eventually(lambda: "not connected" in daemon.show("feed").get("reason", ""), "the connection is gone")
        self.assertEqual(daemon.must("send", "feed", "lost"), "delivered to 0\n")
        self.assertIn("lost 1 message that waited for tcp://", daemon.run("stop", "feed").err)

    def test_input_that_is_none(self):
        daemon = self.daemon()
        self.create(daemon, f":{free_port()}")
        self.assertEqual(daemon.must("send", "feed", stdin=""), "0 messages sent\n")
        self.assert_refused(daemon.run("send", "other", stdin=""), 1, '"other"')
        on_terminal = self.terminal(daemon, "send", "feed")
        self.assertEqual(on_terminal.wait(), 1)
        on_terminal.await_text("there is no message")
        on_terminal.await_text("eddy attach feed")


@harness.on_each_backend
class Attached(ClientTest):
    def test_a_terminal(self):
        daemon = self.daemon()
        with listening() as server:
            daemon.must("create", "client", "feed", "-t", ":%d" % server.getsockname()[1])
            for words, key in ((("start", "-i", "feed"), "\x03"), (("attach", "feed"), "\x04")):
                terminal = self.terminal(daemon, *words)
                terminal.await_text("attached to feed")
                if words[0] == "start":
                    peer = accepted(server)
                    self.addCleanup(peer.close)
                terminal.type("from the terminal\n")
                self.assertEqual(read_line(peer), "from the terminal")
                peer.sendall(b"to the terminal \x1b[2J\n")
                terminal.await_text("to the terminal \\x1b[2J")
                terminal.type(key)
                self.assertEqual(terminal.wait(), -signal.SIGINT if key == "\x03" else 0, terminal.text)
            self.assertEqual(daemon.show("feed")["status"], "running")

    def test_a_pipe_gets_messages_as_they_are_and_news_apart(self):
        daemon = self.daemon()
        with listening() as server:
            self.create(daemon, ":%d" % server.getsockname()[1], "--journal", "no")
            peer = accepted(server)
            process = self.attached(daemon)
            process.stdin.write(b"question\n")
            self.assertEqual(read_line(peer), "question")
            peer.sendall(b"\x1b\xff answer\n")
            self.assertEqual(line_of(process), b"\x1b\xff answer\n")
            peer.close()
            while b"feed: the connection has ended" not in (text := process.stderr.readline()):
                self.assertTrue(text, "the end of the connection is shown")
            with accepted(server) as peer:
                peer.sendall(b"after that\n")
                self.assertEqual(line_of(process), b"after that\n")
                daemon.must("remove", "-f", "feed")
                self.assertEqual(process.wait(harness.DEADLINE_S), 0)

    def test_a_slow_reader_misses_messages_and_is_told_so(self):
        daemon = self.daemon()
        line, count = b"x" * 1023 + b"\n", 6000
        with listening() as server:
            self.create(daemon, ":%d" % server.getsockname()[1], "--journal", "no")
            with accepted(server) as peer:
                process = self.attached(daemon)
                process.stdin.write(b"ready\n")
                self.assertEqual(read_line(peer), "ready")
                before = daemon.resident_kib()
                peer.sendall(line * count)
                self.await_stats(daemon, messages_in=count)
                self.assertLess(daemon.resident_kib() - before, 4096, "the daemon keeps little of 6 MB")
                peer.sendall(b"the last one\n")
                received, lost = 0, 0
                while (text := line_of(process)) != b"the last one\n":
                    if text.startswith(b"... "):
                        lost += int(text.split()[1])
                        self.assertTrue(text.endswith(b" messages are lost: the reader was too slow\n"), text)
                    else:
                        received += 1
                self.assertGreater(lost, 0)
                self.assertEqual(received + lost, count)

    def test_json_and_other_types(self):
        daemon = self.daemon()
        with listening() as server:
            self.create(daemon, ":%d" % server.getsockname()[1])
            with accepted(server) as peer:
                process = subprocess.Popen([harness.BINARY, "attach", "feed", "--json"], env=daemon.environment(),
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
                self.addCleanup(process.stdout.close)
                process.stdin.write(b"ready\n")
                self.assertEqual(read_line(peer), "ready")
                peer.sendall(b'say "it"\n')
                self.assertEqual(json.loads(line_of(process)), {"message": 'say "it"'})
                process.stdin.close()
                self.assertEqual(process.wait(harness.DEADLINE_S), 0)
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "-s")
        with harness.connect(port) as client:
            eventually(lambda: daemon.show("chat")["connections"] == 1, "it is connected")
            daemon.must("attach", "chat", stdin="to all\n")
            self.assertEqual(read_line(client), "to all")
        daemon.must("create", "cache", "db", "-p", str(free_port()), "-s")
        self.assert_refused(daemon.run("attach", "db"), 1, "db is a cache; only clients and servers")
        self.assert_refused(daemon.run("attach", "none"), 1, '"none"')
        daemon.must("stop", "feed")
        self.assert_refused(daemon.run("attach", "feed"), 1, "eddy start -i feed")
        for name, status in (("chat", 400), ("feed", 409), ("none", 404)):
            self.assertEqual(daemon.request("GET", f"/v1/runtimes/{name}/messages")[0], status)


@harness.on_each_backend
@harness.needs("scripts")
class Scripted(ClientTest):
    def script(self, text):
        self.path = self.path if hasattr(self, "path") else os.path.join(self.folder(), "feed.lua")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.path

    def test_the_example(self):
        daemon = self.daemon()
        example = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples/lua/feed.lua")
        with listening() as server:
            self.create(daemon, "127.0.0.1:%d" % server.getsockname()[1], "--lua", example)
            with accepted(server) as peer:
                self.assertEqual(read_line(peer), "LOGIN feed")
                peer.sendall(b"PING\nnews\n")
                self.assertEqual(read_line(peer), "PONG")
                self.assertIn("delivered to 1", daemon.must("send", "feed", "hello"))
                self.assertRegex(read_line(peer), "^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] hello$")
                self.assertIn("delivered to 0", daemon.must("send", "feed", ""))
                eventually(lambda: "received: news" in daemon.must("logs", "feed"), "the journal has it")
                self.assertIn("script: the server says news", daemon.must("logs", "feed"))
                self.assertNotIn("PING", daemon.must("logs", "feed"))

    def test_over_udp_and_websocket(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "-s")
        script = self.script("function on_connect() self.send('here') end\n"
                             "function on_message(text) if text ~= 'again' then self.send('got ' .. text) end end")
        daemon.must("create", "client", "feed", "-t", f"ws://127.0.0.1:{port}/", "--lua", script)
        with harness.connect(port) as other:
            eventually(lambda: daemon.show("chat")["connections"] == 1, "the other client is there")
            daemon.must("start", "feed")
            self.assertEqual(read_line(other), "here")
            other.sendall(b"hello\n")
            self.assertEqual(read_line(other), "got hello")
        with socket.socket(type=socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 0))
            server.settimeout(harness.DEADLINE_S)
            daemon.must("create", "client", "other", "-t", "udp://127.0.0.1:%d" % server.getsockname()[1], "--lua", script, "-s")
            text, peer = server.recvfrom(100)
            self.assertEqual(text, b"here")
            server.sendto(b"one", peer)
            self.assertEqual(server.recv(100), b"got one")

    def test_is_loaded_again_under_the_connection(self):
        """No message is lost or doubled, and an edit of a live option keeps the script."""
        daemon = self.daemon()
        with listening() as server:
            script = self.script("function on_message(text) self.send('0 ' .. text) end")
            self.create(daemon, "127.0.0.1:%d" % server.getsockname()[1], "--lua", script)
            with accepted(server) as peer:
                for version in range(1, 30):
                    for number in range(20):
                        peer.sendall(b"%d\n" % number)
                    self.script(f"function on_message(text) self.send('{version} ' .. text) end")
                    daemon.must("reload-lua", "feed")
                    for number in range(20):
                        self.assertIn(read_line(peer), [f"{version - 1} {number}", f"{version} {number}"])
                self.script("function on_message(")
                self.assert_refused(daemon.run("reload-lua", "feed"), 1, "goes on as before", "feed.lua:1: ")
                self.script("function on_message(text) self.send('last') end")
                daemon.must("edit", "feed", "--queue", "64k")
                peer.sendall(b"x\n")
                self.assertEqual(read_line(peer), "29 x")
                daemon.must("reload", "feed")
                peer.sendall(b"x\n")
                self.assertEqual(read_line(peer), "last")
        self.assertEqual(daemon.json("stats", "feed")["connections_total"], 1)

    def test_is_refused_at_creation(self):
        daemon = self.daemon()
        made = daemon.run("create", "client", "feed", "-t", ":1", "--lua", self.script("function on_message("))
        self.assert_refused(made, 1, "--lua: feed.lua:1: ")
        self.assertFalse(daemon.list())

    def test_one_that_computes_without_end_holds_up_no_other(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        with listening() as server:
            script = self.script("function on_message(text) while true do end end\n"
                                 "function on_send(text) if text == 'loop' then while true do end end end")
            self.create(daemon, "127.0.0.1:%d" % server.getsockname()[1], "--lua", script, "--lua-time", "300ms")
            with accepted(server) as peer, harness.connect(port) as other:
                peer.sendall(b"x\n")
                for _ in range(200):
                    other.sendall(b"PING\r\n")
                    self.assertEqual(read_line(other), "+PONG")
                self.assert_refused(daemon.run("send", "feed", "loop"), 2, "on_send has failed: feed.lua:2: ")
                daemon.must("send", "feed", "hello")
                self.assertEqual(read_line(peer), "hello")
        too_long = {"runtime": "feed", "type": "client", "reason": "script_too_long"}
        eventually(lambda: daemon.metric("eddy_client_script_errors_total", **too_long) == 2, "both are counted")


if __name__ == "__main__":
    harness.main()
