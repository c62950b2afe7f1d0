#!/usr/bin/env python3
"""Starts the upload server of docs/tour.md and uploads files with curl.

Usage: upload_test.py PROGRAM
"""

import os
import shutil
import subprocess
import tempfile
import unittest

import programs

MEBIBYTE = 1024 * 1024


@unittest.skipUnless(shutil.which("curl"), "curl is missing")
class Upload(programs.ServerTest):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        self.folder = os.path.join(self.place, "below", "uploads")
        os.makedirs(self.folder)
        self.arguments = [self.folder, "60"]
        super().setUp()

    def curl(self, *words):
        """The status and the body that curl gets."""
        out = os.path.join(self.place, "answer")
        run = subprocess.run(["curl", "--silent", "--show-error", "--max-time", "60", "--output", out,
                              "--write-out", "%{http_code}", *words], stdout=subprocess.PIPE,
                             timeout=programs.DEADLINE_S * 2)
        with open(out, "rb") as answer:
            return int(run.stdout), answer.read()

    def upload(self, *words):
        return self.curl(*words, f"http://127.0.0.1:{self.port}/")

    def file(self, content):
        path = os.path.join(self.place, "source")
        with open(path, "wb") as made:
            made.write(content)
        return path

    def stored(self):
        return sorted(os.listdir(self.folder))

    def resident_kib(self, which):
        with open(f"/proc/{self.server.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(which))

    def test_has_a_form(self):
        status, page = self.upload()
        self.assertEqual(status, 200)
        self.assertIn(b'enctype="multipart/form-data"', page)

    def test_stores_and_lists_files(self):
        source = self.file(b"one\r\n--two\r\n")
        status, _ = self.upload("-F", f"files=@{source};filename=a b.txt", "-F", "more=text", "-F",
                                f"files=@{source};filename=c.html;type=text/html")
        self.assertEqual(status, 303)
        self.assertEqual(self.stored(), ["a b.txt", "c.html"])
        with open(os.path.join(self.folder, "a b.txt"), "rb") as stored:
            self.assertEqual(stored.read(), b"one\r\n--two\r\n")
        status, listing = self.curl(f"http://127.0.0.1:{self.port}/files/")
        self.assertEqual(status, 200)
        self.assertIn(b'"a%20b.txt"', listing)
        status, content = self.curl(f"http://127.0.0.1:{self.port}/files/a%20b.txt")
        self.assertEqual((status, content), (200, b"one\r\n--two\r\n"))

    def test_a_large_file_takes_little_memory(self):
        source = self.file(os.urandom(50 * MEBIBYTE))
        before = self.resident_kib("VmRSS:")
        status, _ = self.upload("-F", f"files=@{source};filename=large")
        self.assertEqual(status, 303)
        if not programs.sanitized(self.program):
            self.assertLess(self.resident_kib("VmHWM:") - before, 8 * 1024)
        self.assertEqual(subprocess.run(["cmp", source, os.path.join(self.folder, "large")]).returncode, 0)

    def test_a_file_that_is_too_large_gets_413(self):
        source = self.file(bytes(61 * MEBIBYTE))
        for words in ((), ("-H", "Expect:"), ("-H", "Transfer-Encoding: chunked")):
            with self.subTest(words):
                status, _ = self.upload("-F", f"files=@{source};filename=large", *words)
                self.assertEqual(status, 413)
                self.assertEqual(self.stored(), [])

    def test_names_stay_inside_the_folder(self):
        source = self.file(b"mine")
        for name, expected in (("../../x", "x"), ("..\\\\..\\\\y", "y"), ("/etc/z", "z"), (".hidden", "hidden"), ("..", "unnamed")):
            with self.subTest(name):
                status, _ = self.upload("-F", f'files=@{source};filename="{name}"')
                self.assertEqual(status, 303)
                self.assertIn(expected, self.stored())
        self.assertEqual(sorted(os.listdir(self.place)), ["answer", "below", "source"])
        self.assertEqual(os.listdir(os.path.join(self.place, "below")), ["uploads"])

    def test_refuses_what_is_no_form(self):
        self.assertEqual(self.upload("-d", "a=b")[0], 415)
        wrong = ("-H", "Content-Type: multipart/form-data; boundary=b", "--data-binary")
        self.assertEqual(self.upload(*wrong, "no form")[0], 400)
        self.assertEqual(self.upload("-X", "PUT")[0], 405)

    def test_says_that_its_port_is_taken(self):
        second = self.second_on_the_same_port()
        self.assertEqual(second.returncode, 1)
        self.assertIn(b"port %d: " % self.port, second.stderr)


if __name__ == "__main__":
    programs.main(Upload)
