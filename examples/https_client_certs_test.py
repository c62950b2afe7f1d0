#!/usr/bin/env python3
"""Test of the HTTPS server that asks for certificates of clients: curl with a good one, none and a foreign one.

Usage: https_client_certs_test.py PROGRAM
"""

import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
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

    def test_takes_a_new_certificate_without_dropping_a_connection(self):
        self.make("renewed", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
        kept = {name: self.read(name) for name in ("server.pem", "server.key")}

        def connect(trusted):
            context = ssl.create_default_context(cafile=self.file(trusted))
            context.set_alpn_protocols(["h2", "http/1.1"])
            over = context.wrap_socket(self.client(), server_hostname="localhost")
            self.addCleanup(over.close)
            self.assertEqual(over.selected_alpn_protocol(), "http/1.1")
            return over

        def ask(over):
            over.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            received = b""
            while not received.endswith(b"show a certificate, please\n"):
                piece = over.recv(4096)
                self.assertTrue(piece, "the server has closed")
                received += piece

        def is_renewed():
            try:
                ask(connect("renewed.pem"))
            except ssl.SSLCertVerificationError:
                return False
            return True

        old = connect("server.pem")
        ask(old)
        try:
            for name in kept:
                shutil.copy(self.file(name.replace("server", "renewed")), self.file(name))
            self.server.send_signal(signal.SIGHUP)
            end = time.monotonic() + programs.DEADLINE_S
            while not is_renewed():
                self.assertLess(time.monotonic(), end, "the certificate stays as it was")
                time.sleep(0.05)
            ask(old)
        finally:
            for name, text in kept.items():
                with open(self.file(name), "w") as file:
                    file.write(text)

    def read(self, name):
        with open(self.file(name)) as file:
            return file.read()

    def test_says_what_is_wrong_with_its_files(self):
        done = subprocess.run([self.program, str(programs.free_port()), "/nowhere.pem", "/nowhere.key", "/nowhere.ca"],
                              capture_output=True, text=True, timeout=programs.DEADLINE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere.pem", done.stderr)


if __name__ == "__main__":
    programs.main(ClientCertificates)
