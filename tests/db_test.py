#!/usr/bin/env python3
"""`eddy db`: Redis commands from the command line, in the forms of redis-cli, with any bytes."""

import json
import os
import shutil
import subprocess
import unittest

import harness
from harness import BINARY, DEADLINE_S, eventually, free_port, line_of


class DbTest(harness.EddyTest):
    def cache(self, *flags):
        daemon = self.daemon()
        self.port = free_port()
        daemon.must("create", "cache", "c", "-p", str(self.port), "-s", *flags)
        return daemon

    def bytes_of(self, daemon, *words, stdin=b""):
        done = subprocess.run([BINARY, *words], env=daemon.environment(), input=stdin,
                              stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S)
        return done.stdout

    def test_commands_and_forms(self):
        daemon = self.cache()
        self.assertEqual(daemon.must("db", "c", "set", "greeting", "hello world"), "OK\n")
        self.assertEqual(daemon.must("db", "c", "get", "greeting"), "hello world\n")
        self.assertEqual(daemon.must("db", "--no-raw", "c", "get", "greeting"), '"hello world"\n')
        self.assertEqual(daemon.must("db", "c", "--no-raw", "ttl", "greeting"), "(integer) -1\n")
        self.assertEqual(daemon.must("db", "--no-raw", "c", "keys", "*"), '1) "greeting"\n')
        self.assertEqual(daemon.must("db", "--raw", "c", "keys", "*"), "greeting\n")
        daemon.must("db", "c", "zadd", "z", "-1.5", "a")
        self.assertEqual(daemon.must("db", "c", "zrange", "z", "-1", "-1"), "a\n")
        self.assertEqual(daemon.must("db", "c", "set", "--raw", "--json"), "OK\n")
        self.assertEqual(daemon.must("db", "c", "get", "--raw"), "--json\n")
        self.assertEqual(daemon.must("db", "c", "del", "greeting"), "1\n")
        self.assertEqual(daemon.must("db", "--no-raw", "c", "get", "greeting"), "(nil)\n")

    def test_json(self):
        daemon = self.cache()
        daemon.must("db", "c", "hset", "h", "a", "1", "b", "two")
        self.assertEqual(daemon.json("db", "c", "hgetall", "h"), {"a": "1", "b": "two"})
        self.assertEqual(daemon.json("db", "c", "hlen", "h"), 2)
        self.assertIsNone(daemon.json("db", "c", "get", "none"))
        wrong = daemon.run("db", "--json", "c", "get", "h")
        self.assertEqual(wrong.status, 1)
        self.assertIn("WRONGTYPE", json.loads(wrong.out)["error"])
        self.assertEqual(daemon.must("db", "--no-raw", "-3", "c", "hgetall", "h").split("\n")[0],
                         '1# "a" => "1"')

    def test_databases(self):
        daemon = self.cache()
        daemon.must("db", "-n", "3", "c", "set", "k", "in three")
        self.assertEqual(daemon.must("db", "c", "exists", "k"), "0\n")
        self.assertEqual(daemon.must("db", "--database", "3", "c", "get", "k"), "in three\n")

    def test_any_bytes(self):
        daemon = self.cache()
        value = bytes(range(256)) * 4096 + b"\r\n$-1\r\n"
        self.bytes_of(daemon, "db", "-x", "c", "set", "blob", stdin=value)
        self.assertEqual(daemon.must("db", "c", "strlen", "blob"), f"{len(value)}\n")
        self.assertEqual(self.bytes_of(daemon, "db", "c", "get", "blob"), value + b"\n")
        self.bytes_of(daemon, "db", "--stdin", "c", "set", "none", stdin=b"")
        self.assertEqual(daemon.must("db", "c", "strlen", "none"), "0\n")

    def test_lines_of_input(self):
        daemon = self.cache()
        lines = "set a \"x y\"\n\nget a\nrpush l 1 2\nlrange l 0 -1"
        self.assertEqual(daemon.must("db", "c", stdin=lines), "OK\nx y\n2\n1\n2\n")
        mixed = daemon.run("db", "c", stdin="nonsense\nget 'a\nget a\nquit\nget a\n")
        self.assert_refused(mixed, 1, "ERR unknown command", "quote")
        self.assertEqual(mixed.out, "x y\n")

    def test_what_is_wrong_is_said(self):
        daemon = self.cache("--mode", "readonly")
        self.assert_refused(daemon.run("db", "c", "set", "a", "1"), 1, "READONLY")
        self.assert_refused(daemon.run("db", "nobody", "ping"), 1, "nobody")
        daemon.must("stop", "c")
        self.assert_refused(daemon.run("db", "c", "ping"), 1, "eddy start c")
        daemon.must("create", "server", "s", "-p", str(free_port()), "-s")
        self.assert_refused(daemon.run("db", "s", "ping"), 1, "not a cache")
        self.assert_refused(daemon.run("db"), 1, "Usage: eddy db")
        self.assert_refused(daemon.run("db", "--raww", "c", "ping"), 1, "--raw")
        self.assert_refused(daemon.run("db", "--raw", "--no-raw", "c", "ping"), 1, "exclude")

    def test_admin_mode_lets_debug_through(self):
        daemon = self.cache("--mode", "admin")
        self.assertEqual(daemon.must("db", "c", "debug", "sleep", "0"), "OK\n")

    def test_passwords_and_users(self):
        daemon = self.cache()
        daemon.must("db", "c", "config", "set", "requirepass", "secret")
        self.assert_refused(daemon.run("db", "c", "ping"), 1, "NOAUTH", "REDISCLI_AUTH")
        self.assertEqual(daemon.must("db", "-a", "secret", "c", "ping"), "PONG\n")
        self.assertEqual(daemon.must("db", "c", "ping", env={"REDISCLI_AUTH": "secret"}), "PONG\n")
        self.assert_refused(daemon.run("db", "-a", "wrong", "c", "ping"), 1, "WRONGPASS")
        daemon.must("db", "--password", "secret", "c", "acl", "setuser", "reader", "on", ">word",
                    "~*", "+get")
        read = daemon.run("db", "--user", "reader", "-a", "word", "c", "set", "a", "1")
        self.assert_refused(read, 1, "NOPERM")

    def test_a_unix_socket(self):
        daemon = self.daemon()
        path = os.path.join(daemon.folder, "c.sock")
        daemon.must("create", "cache", "c", "--unix", path, "-s")
        self.assertEqual(daemon.must("db", "c", "ping"), "PONG\n")

    @harness.needs("tls")
    def test_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("there is no openssl to make a certificate with")
        daemon = self.daemon()
        cert, key = (os.path.join(daemon.folder, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made = daemon.run("create", "cache", "c", "-s", "--listen",
                          f"tls://127.0.0.1:{free_port()}?cert={cert}&key={key}")
        self.assertEqual(made.status, 0, made)
        self.assertEqual(daemon.must("db", "--ca", cert, "c", "ping"), "PONG\n")
        self.assertEqual(daemon.run("db", "c", "ping").status, 2, "nobody vouches for it")

    @harness.needs("tls")
    def test_tls_beside_another_port_and_alone(self):
        daemon = self.daemon()
        made = harness.Certificates(daemon.folder)
        tls = ["--tls-port", str(free_port()), "--tls-cert-file", made.cert, "--tls-key-file", made.key,
               "--tls-ca-cert-file", made.ca]
        created = daemon.run("create", "cache", "alone", *tls, "-s")
        self.assertEqual(created.status, 0, created)
        shown = ["--cert", made.client_cert, "--key", made.client_key]
        self.assertEqual(daemon.must("db", "--ca", made.ca, *shown, "alone", "ping"), "PONG\n")
        self.assertEqual(daemon.run("db", "--ca", made.ca, "alone", "ping").status, 2, "it wants a certificate")
        self.assert_refused(daemon.run("db", "--key", made.client_key, "alone", "ping"), 1, "--cert FILE")
        tls[1] = str(free_port())
        daemon.must("create", "cache", "both", "-p", str(free_port()), *tls, "-s")
        self.assertEqual(daemon.must("db", "both", "ping"), "PONG\n")

    def test_messages_go_on(self):
        daemon = self.cache()
        listening = subprocess.Popen([BINARY, "db", "c", "subscribe", "news"], bufsize=0,
                                     env=daemon.environment(), stdout=subprocess.PIPE)
        self.addCleanup(listening.stdout.close)
        self.addCleanup(listening.wait)
        self.addCleanup(listening.kill)
        self.assertEqual(line_of(listening), b"subscribe\n")
        eventually(lambda: daemon.must("db", "c", "publish", "news", "it rains") == "1\n", "it listens")
        seen = b""
        while b"it rains\n" not in seen:
            seen += line_of(listening)

    def test_the_same_as_redis_cli(self):
        if shutil.which("redis-cli") is None:
            self.skipTest("there is no redis-cli to compare with")
        daemon = self.cache()
        daemon.must("db", "c", "mset", "a", "1", "b", "two\nlines \x01 \"q\" \\ ü")
        daemon.must("db", "c", "rpush", "l", *[str(i) for i in range(12)])
        daemon.must("db", "c", "hset", "h", "f", "v")
        daemon.must("db", "c", "sadd", "s", "m")
        daemon.must("db", "c", "zadd", "z", "1.5", "m")
        daemon.must("db", "c", "xadd", "x", "1-1", "f", "v")
        for command in (["get", "a"], ["get", "b"], ["get", "none"], ["lrange", "l", "0", "-1"],
                        ["hgetall", "h"], ["smembers", "s"], ["zrange", "z", "0", "-1", "withscores"],
                        ["xrange", "x", "-", "+"], ["strlen", "a"], ["keys", "nothing*"],
                        ["xinfo", "stream", "x", "full"], ["mget", "a", "none", "b"], ["set", "a", "2"],
                        *([["eval", "return {1,{2,{3,'x'}},'y'}", "0"]] if "scripts" in harness.parts() else [])):
            for flags, own in ((["--no-raw"], ["--no-raw"]), (["--raw"], ["--raw"]),
                               (["--no-raw", "-3"], ["--no-raw", "-3"])):
                if "-3" in flags and command[0] == "xinfo":
                    continue  # maps within maps begin on the same line here
                theirs = subprocess.run(["redis-cli", "-p", str(self.port), *flags, *command],
                                        stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S)
                ours = self.bytes_of(daemon, "db", *own, "c", *command)
                if theirs.stdout.strip() or ours.strip():
                    self.assertEqual(ours, theirs.stdout, (flags, command))


if __name__ == "__main__":
    harness.main()
