#!/usr/bin/env python3
"""The examples of examples/lua that are more than a script: a chat with its page in a browser, and a hub of devices with
a login against PostgreSQL.
"""

import os
import shutil
import sys
import unittest

import harness
from harness import connect, eventually, free_port, read_line
from hooks_test import library_is_missing
from postgres import Postgres

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = os.path.join(ROOT, "examples", "lua")
sys.path.insert(0, os.path.join(ROOT, "examples"))
from programs import Browser  # noqa: E402


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium (apt: chromium)")
class Chat(harness.EddyTest):
    def enter(self, page, name, room):
        eventually(lambda: page.evaluate("document.getElementById('state').textContent") == "connected", "it is connected")
        page.evaluate(f"at('name').value = {name!r}; at('room').value = {room!r}; at('door').requestSubmit()")

    def members(self, page):
        return page.evaluate("[...at('members').children].map(each => each.textContent).join()")

    def test_two_rooms_in_two_browsers(self):
        port, running = free_port(), self.daemon()
        made = running.run("create", "server", "chat", "-p", str(port), "--http", os.path.join(EXAMPLES, "chat", "page"),
                           "--lua", os.path.join(EXAMPLES, "chat", "chat.lua"), "-s")
        if made.status != 0 and "built without scripts" in made.err:
            self.skipTest("this program was built without scripts")
        self.assertEqual(made.status, 0, made)
        url = f"http://127.0.0.1:{port}/"
        with Browser(url) as ann, Browser(url) as bob:
            self.enter(ann, "Ann", "lobby")
            self.enter(bob, "Bob", "lobby")
            for each in (ann, bob):
                eventually(lambda page=each: self.members(page) == "Ann,Bob", "both are there")
            text = "<b>1 & 2</b>"
            bob.evaluate(f"at('text').value = {text!r}; at('words').requestSubmit()")
            for each in (ann, bob):
                eventually(lambda page=each: page.evaluate("at('messages').lastChild.textContent") == "Bob" + text,
                           "both have the message, as text")
            self.enter(bob, "Bob", "attic")
            eventually(lambda: self.members(ann) == "Ann", "Bob has left")
            bob.evaluate("at('text').value = 'alone'; at('words').requestSubmit()")
            eventually(lambda: "alone" in bob.evaluate("at('messages').textContent"), "the attic has it")
            self.assertNotIn("alone", ann.evaluate("at('messages').textContent"))
            picture = os.environ.get("EDDY_SCREENSHOT")
            if picture:
                ann.screenshot(picture)
            # A script that is loaded again keeps all in their rooms; a restart is followed by the pages themselves.
            running.must("reload-lua", "chat")
            ann.evaluate("at('text').value = 'still here'; at('words').requestSubmit()")
            eventually(lambda: "still here" in ann.evaluate("at('messages').textContent"), "she is in her room")
            running.must("stop", "chat")
            running.must("start", "chat")
            eventually(lambda: self.members(ann) == "Ann", "her page has come in again")
        eventually(lambda: running.list()["chat"]["connections"] == 0, "they have gone")


class Hub(harness.EddyTest):
    def setUp(self):
        missing = library_is_missing("postgres")
        if missing:
            self.skipTest(missing)
        self.store = Postgres()
        self.addCleanup(self.store.remove)
        self.store.start()
        self.store.sql("CREATE TABLE devices (id text PRIMARY KEY, token text NOT NULL)")
        self.store.sql("CREATE TABLE readings (device text REFERENCES devices, at timestamptz DEFAULT now(), reading text NOT NULL)")
        self.store.sql("INSERT INTO devices VALUES ('pump1', 'secret1'), ('pump2', 'it''s')")
        for name, value in (("PGHOST", self.store.folder), ("PGUSER", "eddy"), ("PGDATABASE", "postgres"), ("PGPORT", "5432")):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)

    def device(self, *lines):
        """A connection, and the last answer to these lines."""
        made = connect(self.port)
        self.addCleanup(made.close)
        self.assertEqual(read_line(made), "login ID TOKEN")
        for line in lines:
            made.sendall(line.encode() + b"\n")
            answer = read_line(made)
        return made, answer

    def readings(self):
        return self.store.sql("SELECT device || ' ' || reading FROM readings ORDER BY at")

    def test_devices_log_in_report_and_are_reached(self):
        folder = os.path.join(EXAMPLES, "hub")
        self.port, running = free_port(), self.daemon()
        made = running.run("create", "server", "hub", "-p", str(self.port), "--lua", os.path.join(folder, "hub.lua"),
                           "--lua-path", folder, "--lua-unsafe", "-s")
        if made.status != 0 and "built without scripts" in made.err:
            self.skipTest("this program was built without scripts")
        self.assertEqual(made.status, 0, made)
        self.assertEqual(self.device("login pump1 wrong")[1], "unknown")
        self.assertEqual(self.device("login pump1 x'--")[1], "unknown")
        self.assertEqual(self.device("what")[1], "unknown")
        one, answer = self.device("login pump1 secret1", "21.5 C", "it's 22")
        self.assertEqual(answer, "kept")
        self.assertEqual(self.device("login pump2 it's")[1], "welcome pump2")
        self.assertEqual(self.readings(), "pump1 21.5 C\npump1 it's 22")
        running.must("send", "hub", "pump1 open the valve")
        self.assertEqual(read_line(one), "open the valve")
        self.assert_refused(running.run("send", "hub", "pump9 hello"), 2, "no such device")
        # The database goes, and comes again.
        self.store.stop()
        one.sendall(b"23 C\n")
        self.assertEqual(read_line(one), "try again later")
        self.store.start()

        def is_kept():
            one.sendall(b"24 C\n")
            return read_line(one) == "kept"

        eventually(is_kept, "readings are kept again")
        self.assertIn("pump1 24 C", self.readings())


if __name__ == "__main__":
    harness.main()
