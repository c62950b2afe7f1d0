#!/usr/bin/env python3
"""Test of the program of docs/http.md that has forms, cookies, JSON, uploads and codings.

Usage: http_forms_test.py PROGRAM
"""

import gzip
import http.client
import json

import programs


class Forms(programs.ServerTest):
    def ask(self, method, path, body=None, **fields):
        over = http.client.HTTPConnection("127.0.0.1", self.port, timeout=programs.DEADLINE_S)
        self.addCleanup(over.close)
        over.request(method, path, body, {name.replace("_", "-"): value for name, value in fields.items()})
        got = over.getresponse()
        return got.status, got.headers, got.read()

    def test_greets_by_the_cookie_of_a_form(self):
        self.assertEqual(self.ask("GET", "/")[2], b"hello, you\n")
        status, fields, _ = self.ask("POST", "/sign-in", "name=Ada",
                                     Content_Type="application/x-www-form-urlencoded")
        self.assertEqual((status, fields["Location"]), (303, "/"))
        cookie = fields["Set-Cookie"].split(";")[0]
        self.assertEqual(self.ask("GET", "/", Cookie=cookie)[2], b"hello, Ada\n")

    def test_marks_notes_also_when_they_are_compressed(self):
        note = json.dumps({"text": "x"}).encode()
        for body, coding in (note, "identity"), (gzip.compress(note), "gzip"):
            fields = {} if coding == "identity" else {"Content_Encoding": coding}
            got = self.ask("POST", "/notes", body, Content_Type="application/json", **fields)
            self.assertEqual(json.loads(got[2]), {"text": "x", "seen": True})

    def test_refuses_what_is_no_note(self):
        typed = {"Content_Type": "application/json"}
        self.assertEqual(self.ask("POST", "/notes", "[1]", **typed)[0], 422)
        self.assertEqual(self.ask("POST", "/notes", "{", **typed)[0], 400)
        self.assertEqual(self.ask("POST", "/notes", "{}", Content_Type="text/plain")[0], 415)

    def test_counts_the_bytes_of_files(self):
        body = ('--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n12345\r\n'
                '--b\r\nContent-Disposition: form-data; name="t"\r\n\r\nno file\r\n--b--\r\n')
        got = self.ask("POST", "/files", body, Content_Type="multipart/form-data; boundary=b")
        self.assertEqual(got[2], b"5\n")

    def test_shows_a_page_of_another_server(self):
        got = self.ask("GET", "/mirror?url=http://127.0.0.1:%d/" % self.port)
        self.assertEqual(got[2], b"hello, you\n")
        self.assertEqual(self.ask("GET", "/mirror?url=nonsense")[0], 502)


if __name__ == "__main__":
    programs.main(Forms)
