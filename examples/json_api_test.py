#!/usr/bin/env python3
"""Starts the JSON API of docs/tour.md and uses it as its clients would.

Usage: json_api_test.py PROGRAM
"""

import http.client
import json

import programs


class JsonApi(programs.ServerTest):
    def ask(self, method, path, body=None):
        over = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.addCleanup(over.close)
        over.request(method, path, body)
        return over.getresponse()

    def test_echoes_the_query_as_json(self):
        got = self.ask("GET", "/echo?hello=world&a=%22%0A&e=%C3%A9&broken=%FF")
        self.assertEqual(got.status, 200)
        self.assertEqual(got.getheader("Content-Type"), "application/json")
        self.assertEqual(json.loads(got.read()), {"hello": "world", "a": "\"\n", "e": "é", "broken": "\ufffd"})

    def test_keeps_notes(self):
        made = self.ask("POST", "/notes", "remember me")
        self.assertEqual(made.status, 201)
        where = made.getheader("Location")
        self.assertEqual(json.loads(made.read()), int(where.rsplit("/")[-1]))
        self.assertEqual(self.ask("GET", where).read(), b"remember me")
        self.assertEqual(self.ask("GET", "/notes/1000").status, 404)
        self.assertEqual(self.ask("GET", "/notes/one").status, 404)

    def test_refuses_what_it_does_not_have(self):
        self.assertEqual(self.ask("GET", "/nothing").status, 404)
        wrong = self.ask("DELETE", "/echo")
        self.assertEqual(wrong.status, 405)
        self.assertEqual(wrong.getheader("Allow"), "GET, HEAD")

    def test_says_that_its_port_is_taken(self):
        second = self.second_on_the_same_port()
        self.assertEqual(second.returncode, 1)
        self.assertIn(b'"tcp://127.0.0.1:%d" cannot be opened: ' % self.port, second.stderr)


if __name__ == "__main__":
    programs.main(JsonApi)
