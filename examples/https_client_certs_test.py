#!/usr/bin/env python3
"""Test of the HTTPS server that asks for certificates of clients: curl with a good one, none and a foreign one.

Usage: https_client_certs_test.py PROGRAM
"""

import os
import shutil
import subprocess
import tempfile
import unittest

import programs


@unittest.skipUnless(shutil.which("openssl") and shutil.which("curl"), "openssl or curl is not installed")
class ClientCertificates(programs.ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.make("server", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
        cls.make("authority", "/CN=Authority")
        cls.make("ada", "/CN=Ada/O=Engines", "-CA", cls.file("authority.pem"), "-CAkey", cls.file("authority.key"))
        cls.make("stranger", "/CN=Stranger")

    @classmethod
    def file(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def make(cls, name, subject, *words):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", cls.file(name + ".key"), "-out", cls.file(name + ".pem"), "-days", "2",
                        "-subj", subject, *words], check=True, capture_output=True)

    def setUp(self):
        self.port = programs.free_port()
        self.server = subprocess.Popen(
            [self.program, str(self.port), self.file("server.pem"), self.file("server.key"), self.file("authority.pem")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.client().close()

    def curl(self, *words):
        return subprocess.run(["curl", "-sS", "--cacert", self.file("server.pem"), "--connect-to",
                               "localhost:443:127.0.0.1:%d" % self.port, "https://localhost/", *words],
                              capture_output=True, text=True, timeout=programs.DEADLINE_S)

    def test_a_client_with_a_certificate(self):
        done = self.curl("--cert", self.file("ada.pem"), "--key", self.file("ada.key"))
        self.assertEqual((done.returncode, done.stdout), (0, "hello, O=Engines,CN=Ada\n"), done.stderr)

    def test_a_client_without_one(self):
        done = self.curl("-w", "%{http_code}")
        self.assertEqual((done.returncode, done.stdout), (0, "show a certificate, please\n403"), done.stderr)

    def test_a_certificate_that_no_authority_signed(self):
        done = self.curl("--cert", self.file("stranger.pem"), "--key", self.file("stranger.key"))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")

    def test_says_what_is_wrong_with_its_files(self):
        done = subprocess.run([self.program, str(programs.free_port()), "/nowhere.pem", "/nowhere.key", "/nowhere.ca"],
                              capture_output=True, text=True, timeout=programs.DEADLINE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere.pem", done.stderr)


if __name__ == "__main__":
    programs.main(ClientCertificates)
