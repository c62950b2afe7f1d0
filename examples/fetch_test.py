#!/usr/bin/env python3
"""Fetches from Python's http.server with the client fetch.cpp: coded content, redirects, proxies of the environment.

Usage: fetch_test.py PROGRAM
"""

import gzip
import http.server
import os
import subprocess
import sys
import threading
import unittest
import zlib

from programs import DEADLINE_S, free_port

PROGRAM = None
PAGE = b"a page of another server\n" * 4000


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Proxy-Authorization")))
        coding, body = {
            "/gzip": ("gzip", gzip.compress(PAGE)),
            "/deflate": ("deflate", zlib.compress(PAGE)),
            "/raw": ("deflate", zlib.compress(PAGE)[2:-4]),
            "/damaged": ("gzip", gzip.compress(PAGE)[:-20]),
        }.get(self.path, (None, PAGE))
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "gzip#there")
        if coding:
            self.send_header("Content-Encoding", coding)
        if self.path == "/until-close":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Fetch(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.seen = []
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def fetch(self, *urls, **variables):
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return subprocess.run([PROGRAM, *urls], env={**clean, **variables}, capture_output=True, timeout=DEADLINE_S)

    def test_decodes_what_the_server_codes(self):
        for path in ("/plain", "/gzip", "/deflate", "/raw", "/until-close"):
            with self.subTest(path):
                done = self.fetch(self.url + path)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(done.stdout, b"200 %s\n%s" % ((self.url + path).encode(), PAGE))
        done = self.fetch(self.url + "/damaged")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"/damaged: ", done.stderr)

    def test_follows_redirects(self):
        done = self.fetch(self.url + "/moved")
        self.assertEqual(done.stdout, b"200 %s/gzip\n%s" % (self.url.encode(), PAGE), done.stderr)
        self.assertEqual([path for path, _ in self.server.seen], ["/moved", "/gzip"])

    def test_fetches_many_at_a_time(self):
        done = self.fetch(*(f"{self.url}/{i}" for i in range(100)))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.count(PAGE), 100)

    def test_takes_proxies_from_the_environment(self):
        proxy = self.url.replace("//", "//me:pw@")
        done = self.fetch("http://no.such.host/x", http_proxy=proxy)
        self.assertEqual(done.stdout, b"200 http://no.such.host/x\n" + PAGE, done.stderr)
        self.assertEqual(self.server.seen, [("http://no.such.host/x", "Basic bWU6cHc=")])
        nowhere = f"http://127.0.0.1:{free_port()}"
        self.assertEqual(self.fetch(self.url + "/x", http_proxy=nowhere).returncode, 1)
        self.assertEqual(self.fetch(self.url + "/x", http_proxy=nowhere, NO_PROXY="127.0.0.1").returncode, 0)
        self.assertEqual(self.fetch(self.url + "/x", HTTP_PROXY=nowhere).returncode, 0, "CGI has a client's field there")

    def test_names_the_url_that_failed(self):
        done = self.fetch(f"http://127.0.0.1:{free_port()}/", "ftp://a/")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"Connection refused", done.stderr)
        self.assertIn(b"ftp://a/: ", done.stderr)
        self.assertIn(b"usage: fetch URL", self.fetch().stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
