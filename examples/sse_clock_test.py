#!/usr/bin/env python3
"""Test of the clock by server-sent events: reads its streams by curl and, where it is installed, by a browser.

Usage: sse_clock_test.py PROGRAM
"""

import http.client
import re
import shutil
import subprocess
import unittest

import programs


class Clock(programs.ServerTest):
    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.port, path)

    def curl(self, *words):
        """Lines of a stream that curl prints without a buffer."""
        reader = subprocess.Popen(["curl", "-sN", *words], stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        return reader.stdout

    def post(self, text):
        over = http.client.HTTPConnection("127.0.0.1", self.port, timeout=programs.DEADLINE_S)
        self.addCleanup(over.close)
        over.request("POST", "/news", text)
        got = over.getresponse()
        self.assertEqual(got.status, 201)
        return got.read().decode().strip()

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_ticks(self):
        lines = self.curl("-D", "-", self.url("/time"))
        head = [line.strip() for line in iter(lines.readline, "\n")]
        self.assertIn("Content-Type: text/event-stream", head)
        self.assertIn("Cache-Control: no-store", head)
        self.assertIn("X-Accel-Buffering: no", head)
        for _ in range(2):
            self.assertEqual(lines.readline(), "event: tick\n")
            self.assertRegex(lines.readline(), r"^data: \d\d:\d\d:\d\d\n$")
            self.assertEqual(lines.readline(), "\n")

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_news_are_replayed_behind_the_last_id(self):
        first = self.post("one")
        second = self.post("two\nlines")
        lines = self.curl("-H", "Last-Event-ID: " + first, self.url("/news"))
        got = [lines.readline() for _ in range(4)]
        self.assertEqual(got, ["id: %s\n" % second, "data: two\n", "data: lines\n", "\n"])
        third = self.post("three")
        self.assertEqual([lines.readline() for _ in range(2)], ["id: %s\n" % third, "data: three\n"])

    @unittest.skipUnless(shutil.which("chromium"), "chromium is not installed")
    def test_a_browser_shows_the_time(self):
        with programs.Browser(self.url("/")) as page:
            programs.eventually(lambda: re.fullmatch(r"\d\d:\d\d:\d\d", page.evaluate("clock.textContent")), "a tick")
            self.post("breaking")
            programs.eventually(lambda: page.evaluate("news.textContent") == "breaking", "the news")


if __name__ == "__main__":
    programs.main(Clock)
