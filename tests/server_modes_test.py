#!/usr/bin/env python3
"""Modes of a server through the whole program: the master, its password, and commands to a cache."""

import json
import os
import shutil
import sys
import unittest

import harness
from harness import connect, eventually, free_port, read_line
from server_web_test import TEXT, Web

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "examples"))
from programs import Browser  # noqa: E402

PASSWORD = "open sesame"

# Scripts in the page itself are forbidden.
PAGE = """<!doctype html><title>room</title>
<meta http-equiv="Content-Security-Policy" content="script-src 'self'; connect-src 'self'">
<body><p id="said"></p><script src="/page.js"></script></body>"""
SCRIPT = """document.addEventListener('DOMContentLoaded', () => {
    eddy.addEventListener('message', event => { said.textContent += event.data + '|'; });
    eddy.send('from the page');
});"""


def metric(daemon, name):
    """Value of a metric of the runtime room."""
    for line in daemon.request("GET", "/metrics")[1].splitlines():
        if line.startswith(name + "{") and 'runtime="room"' in line:
            return float(line.split()[-1])
    raise AssertionError(f"there is no metric {name}")


@harness.on_each_backend
class Modes(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()
        self.port = free_port()

    def create(self, *flags):
        self.running.must("create", "server", "room", "-p", str(self.port), *flags, "-s")

    def client(self):
        before = self.running.list()["room"]["connections"]
        made = connect(self.port)
        self.addCleanup(made.close)
        eventually(lambda: self.running.list()["room"]["connections"] > before, "it is connected")
        return made

    def say(self, client, text):
        client.sendall(text.encode() + b"\n")

    def password_file(self):
        path = os.path.join(self.folder(), "password")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PASSWORD + "\n")
        return path

    def test_in_and_out(self):
        self.create("--mode", "in")
        a, b = self.client(), self.client()
        self.say(a, "for the journal")
        eventually(lambda: "for the journal" in self.running.must("logs", "room"), "it is there")
        refused = self.running.run("send", "room", "x")
        self.assertIn("only receives", refused.err)
        self.running.must("edit", "room", "--mode", "out")
        self.say(a, "dropped")
        self.running.must("send", "room", "news")
        for each in (a, b):
            self.assertEqual(read_line(each), "news")
        self.running.must("edit", "room", "--mode", "inout")
        self.say(a, "hello")
        self.assertEqual(read_line(b), "hello")

    def test_master(self):
        path = self.password_file()
        self.create("--mode", "master", "--master-password-file", path, "--master-forward", "--threads", "2")
        raws = [self.client() for _ in range(3)]
        web = Web(self.client())
        self.say(raws[0], "master wrong")
        self.assertEqual(read_line(raws[0]), "master: denied")
        web.send(TEXT, b"master " + PASSWORD.encode())
        self.assertEqual(web.receive(), (TEXT, b"master: ok"))
        self.assertEqual(metric(self.running, "eddy_server_master"), 1)
        self.assertEqual(metric(self.running, "eddy_server_master_claims_refused_total"), 1)
        self.say(raws[1], "hello")
        kind, text = web.receive()
        self.assertRegex(text.decode(), r"^\[\d+\] hello$")
        web.send(TEXT, b"to all")
        for each in raws:
            self.assertEqual(read_line(each), "to all")
        # It is claimable once the master has left, also after a live edit and a restart.
        web.over.close()
        eventually(lambda: metric(self.running, "eddy_server_master") == 0, "the master has left")
        self.running.must("edit", "room", "--unset", "master-forward")
        self.say(raws[2], "master " + PASSWORD)
        self.assertEqual(read_line(raws[2]), "master: ok")
        self.assertEqual(self.running.stop(), 0)
        self.running.start()
        again = self.client()
        self.say(again, "master " + PASSWORD)
        self.assertEqual(read_line(again), "master: ok")

    def test_the_password_is_shown_nowhere(self):
        self.create("--mode", "master", "--master-password", PASSWORD)
        client = self.client()
        self.say(client, "master " + PASSWORD)
        self.assertEqual(read_line(client), "master: ok")
        for command in (("show", "room"), ("ls", "--json"), ("stats", "room"), ("logs", "room")):
            self.assertNotIn(PASSWORD, self.running.must(*command))
        self.assertNotIn(PASSWORD, json.dumps(self.running.request("GET", "/v1/runtimes/room")[1]))

    def test_the_password_of_the_environment(self):
        refused = self.running.run("create", "server", "room", "-p", str(self.port), "--mode", "master", "-s")
        self.assertIn("EDDY_MASTER_PASSWORD", refused.err)
        self.assertEqual(self.running.stop(), 0)
        os.environ["EDDY_MASTER_PASSWORD"] = PASSWORD
        self.addCleanup(os.environ.pop, "EDDY_MASTER_PASSWORD")
        self.running.start()
        self.create("--mode", "master")
        client = self.client()
        self.say(client, "master " + PASSWORD)
        self.assertEqual(read_line(client), "master: ok")

    def test_a_guessing_peer_is_locked_out(self):
        self.create("--mode", "master", "--master-password", PASSWORD)
        client = self.client()
        for _ in range(5):
            self.say(client, "master guess")
            self.assertEqual(read_line(client), "master: denied")
        other = self.client()
        self.say(other, "master " + PASSWORD)
        self.assertIn("too many wrong passwords", read_line(other))
        self.assertIn("wrong password of the master", self.running.must("logs", "room"))

    def test_commands_to_a_cache(self):
        self.create("--cache", "db", "--threads", "2")
        raw, web = self.client(), Web(self.client())
        self.say(raw, "cache get k")
        self.assertEqual(read_line(raw), 'error: there is no running cache "db"')
        cache_port = free_port()
        self.running.must("create", "cache", "db", "-p", str(cache_port), "-s")
        self.say(raw, "cache set k v")
        self.assertEqual(read_line(raw), "ok")
        web.send(TEXT, b"cache get k")
        self.assertEqual(web.receive(), (TEXT, b"v"))
        self.say(raw, "cache mset a 1 b 2\ncache mget a b none\nhello")
        self.assertEqual([read_line(raw) for _ in range(5)], ["ok", "1", "2", "nil", "end"])
        self.assertEqual(web.receive(), (TEXT, b"hello"))
        self.say(raw, "cache shutdown")
        self.assertIn("not for clients of a server", read_line(raw))
        self.running.must("stop", "db")
        self.say(raw, "cache get k")
        self.assertIn("error: ", read_line(raw))
        self.running.must("start", "db")
        self.say(raw, "cache ping")
        line = read_line(raw)
        self.assertTrue(line == "PONG" or line.startswith("error: the connection"), line)
        self.running.must("edit", "room", "--unset", "cache")
        self.say(raw, "cache get k")
        self.assertEqual(web.receive(), (TEXT, b"cache get k"))


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium (apt: chromium)")
class Pages(harness.EddyTest):
    def test_a_page_gets_a_websocket_and_gets_it_again(self):
        root, port, running = self.folder(), free_port(), self.daemon()
        for name, text in (("index.html", PAGE), ("page.js", SCRIPT)):
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        running.must("create", "server", "room", "-p", str(port), "--http", root, "--http-inject", "-s")

        def client():
            before = running.list()["room"]["connections"]
            made = connect(port)
            self.addCleanup(made.close)
            eventually(lambda: running.list()["room"]["connections"] > before, "it is connected")
            return made

        raw = client()
        with Browser(f"http://127.0.0.1:{port}/") as page:
            self.assertEqual(read_line(raw), "from the page")
            raw.sendall(b"hello\n")
            eventually(lambda: page.evaluate("said.textContent") == "hello|", "the page has the message")
            running.must("stop", "room")
            running.must("start", "room")
            eventually(lambda: metric(running, "eddy_server_websocket_clients") == 1, "the page has connected again")
            running.must("send", "room", "again")
            eventually(lambda: page.evaluate("said.textContent") == "hello|again|", "the page has the message")


if __name__ == "__main__":
    harness.main()
