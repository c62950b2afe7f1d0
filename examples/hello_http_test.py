#!/usr/bin/env python3
"""Test of the first program of docs/http.md: asks it for a greeting, and ends it as Ctrl-C does.

Usage: hello_http_test.py PROGRAM
"""

import http.client
import signal

import programs


class Hello(programs.ServerTest):
    def get(self, path):
        over = http.client.HTTPConnection("127.0.0.1", self.port, timeout=programs.DEADLINE_S)
        self.addCleanup(over.close)
        over.request("GET", path)
        got = over.getresponse()
        return got.status, got.read()

    def test_greets(self):
        self.assertEqual(self.get("/hello/Ada%20L."), (200, b"Hello, Ada L.!\n"))

    def test_answers_404_for_another_path(self):
        self.assertEqual(self.get("/nothing")[0], 404)

    def test_ends_with_a_signal(self):
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(programs.DEADLINE_S), 0)

    def test_says_that_its_port_is_taken(self):
        second = self.second_on_the_same_port()
        self.assertEqual(second.returncode, 1)
        self.assertIn(b'"tcp://127.0.0.1:%d" cannot be opened: ' % self.port, second.stderr)


if __name__ == "__main__":
    programs.main(Hello)
