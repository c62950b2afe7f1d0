#!/usr/bin/env python3
"""Test of the HTTPS client of docs/tutorial.md, which fetches from a server of OpenSSL's.

Usage: https_client_test.py PROGRAM. The certificate is made by the test; SSL_CERT_FILE makes the client trust it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from programs import DEADLINE_S, connect, eventually, free_port

PROGRAM = None
PAGE = b"a page, fetched in secret\n" * 4000


@unittest.skipUnless(shutil.which("openssl"), "there is no openssl to be the server")
class HttpsClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="eddy-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.certificate = os.path.join(cls.folder, "certificate.pem")
        key = os.path.join(cls.folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", key, "-out", cls.certificate, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        with open(os.path.join(cls.folder, "page.txt"), "wb") as page:
            page.write(PAGE)
        cls.port = free_port()
        cls.server = subprocess.Popen(["openssl", "s_server", "-accept", str(cls.port), "-cert", cls.certificate,
                                       "-key", key, "-WWW", "-quiet"], cwd=cls.folder, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.stop)
        eventually(lambda: connect(cls.port), "a connection to openssl s_server").close()

    @classmethod
    def stop(cls):
        cls.server.kill()
        cls.server.wait()

    def fetch(self, *words, trust=None):
        env = dict(os.environ, SSL_CERT_FILE=trust or self.certificate, SSL_CERT_DIR=self.folder)
        return subprocess.run([PROGRAM, *words], env=env, capture_output=True, timeout=DEADLINE_S)

    def test_prints_the_page(self):
        done = self.fetch("localhost", "/page.txt", str(self.port))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.0 200"), head)
        self.assertEqual(body, PAGE)

    def test_refuses_a_certificate_that_nobody_vouches_for(self):
        nobody = os.path.join(self.folder, "nobody.pem")
        open(nobody, "wb").close()
        done = self.fetch("localhost", "/page.txt", str(self.port), trust=nobody)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertNotEqual(done.stderr, b"")

    def test_refuses_a_certificate_for_another_name(self):
        done = self.fetch("127.0.0.1", "/page.txt", str(self.port))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"127.0.0.1: ", done.stderr)

    def test_says_that_nobody_listens(self):
        done = self.fetch("localhost", "/", str(free_port()))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"localhost: Connection refused", done.stderr)

    def test_tells_how_it_is_called(self):
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"usage: https_client HOST", done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
