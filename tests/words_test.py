#!/usr/bin/env python3
"""Words that users try: secrets from files, errors of TLS, examples of each type, `eddy db` over TLS."""

import os
import subprocess

import harness
from flag_effects import FlagTest
from harness import free_port


ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Words(FlagTest):
    def written(self, name, text):
        path = os.path.join(self.folder(), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_secrets_come_from_files(self):
        daemon = self.daemon()
        password = self.written("password", "a secret\n")
        parameters = self.written("parameters", "# of the cache\nrequirepass hidden-word\nslowlog-max-len 7\n")
        port = self.create(daemon, "cache", "db", "--config-file", parameters)
        self.assertEqual(daemon.run("db", "--password", "hidden-word", "db", "ping").out, "PONG\n")
        self.assertEqual(daemon.run("db", "--password", "hidden-word", "db", "config", "get", "slowlog-max-len").out,
                         "slowlog-max-len\n7\n")
        daemon.must("create", "cache", "copy", "-p", str(free_port()), "--replicate", f"127.0.0.1:{port}",
                    "--replicate-password-file", self.written("p", "hidden-word\n"), "-s")
        harness.eventually(lambda: "master_link_status:up" in daemon.must("db", "copy", "info", "replication"), "it copies")
        daemon.must("edit", "copy", "--replicate-password-file", password)
        with open(os.path.join(daemon.state, "runtimes", "copy.json"), encoding="utf-8") as file:
            self.assertIn('"a secret"', file.read())
        self.assertNotIn("a secret", daemon.must("show", "copy"))
        daemon.must("create", "cache", "third", "-p", str(free_port()), "--config-file", "-", stdin="requirepass x\n")
        self.assertIn("requirepass", daemon.show("third")["options"]["config"])
        for flags, texts in ((["--config-file", "/nowhere"], ["--config-file", "/nowhere"]),
                             (["--config-file", self.written("e", "\n")], ["is empty"]),
                             (["--port-file", "/nowhere"], ["no flag --port-file"])):
            self.assert_refused(daemon.run("create", "cache", "x", *flags), 1, *texts)
        text = daemon.must("help", "create", "cache")
        self.assertIn("--replicate-password-file FILE, --config-file FILE", text)

    @harness.needs("tls")
    def test_errors_of_tls_name_the_flag_and_the_file(self):
        daemon = self.daemon()
        made, garbage = harness.Certificates(self.folder()), self.written("garbage.pem", "garbage\n")
        other = made.renewed("other")[1]
        for flags, text in ((["--cert", garbage, "--key", made.key], f'--cert "{garbage}" holds no usable certificate'),
                            (["--cert", made.cert, "--key", garbage], f'--key "{garbage}" cannot be used'),
                            (["--cert", made.cert, "--key", other], f'--key "{other}" does not belong'),
                            (["--cert", made.cert, "--key", made.key, "--ca", garbage], f'"{garbage}" holds no usable certificate')):
            for kind, more in (("cache", []), ("http", ["--root", self.folder()]), ("server", [])):
                refused = daemon.run("create", kind, "x", "-p", str(free_port()), "--tls", *flags, *more, "-s")
                self.assert_refused(refused, 1, text)
                self.assertNotIn("tls://", refused.err)
                daemon.must("remove", "x")

    @harness.needs("tls")
    def test_db_reaches_a_cache_with_tls(self):
        daemon = self.daemon()
        made = harness.Certificates(self.folder())
        self.create(daemon, "cache", "db", "--tls", "--cert", made.cert, "--key", made.key)
        self.assertEqual(daemon.must("db", "--ca", made.ca, "db", "ping"), "PONG\n")
        self.assert_refused(daemon.run("db", "db", "ping"), 2, "certificate")

    def test_each_type_has_examples(self):
        daemon = self.daemon()
        for each in daemon.request("GET", "/v1/types")[1]["types"]:
            text = daemon.must("help", "create", each["name"]).split("\nExamples:\n")
            self.assertEqual(len(text), 2, each["name"])
            lines = [line for line in text[1].splitlines() if line.startswith("  eddy ")]
            self.assertGreaterEqual(len(lines), 2, each["name"])
            for line in lines:
                # Its flags are there: what is missing is a file or a server, or nothing.
                done = subprocess.run(["sh", "-c", line.strip().replace("eddy ", f"'{harness.BINARY}' ", 1).removesuffix(" -s")],
                                      env=daemon.environment(), cwd=self.folder(), capture_output=True, check=False)
                self.assertNotIn(b"there is no flag", done.stderr, line)
                self.assertNotIn(b"unknown option", done.stderr, line)

    def test_the_package_describes_each_type(self):
        words = {"cache": "caches", "server": "servers", "client": "clients", "http": "HTTP sites", "proxy": "proxies",
                 "stream": "streams of", "program": "programs that", "external": "processes of others"}
        types = {each["name"] for each in self.daemon().request("GET", "/v1/types")[1]["types"]}
        self.assertEqual(set(words), types)
        with open(os.path.join(ROOT, "cmake", "EddyPackage.cmake"), encoding="utf-8") as file:
            text = file.read().partition("PROGRAM_DESCRIPTION")[2].partition(")\n")[0]
        for word in words.values():
            self.assertIn(word, text.replace("\n", " "))

    def test_did_you_mean(self):
        daemon = self.daemon()
        self.create(daemon, "cache", "db")
        for words, text in ((["create", "cache", "x", "--evict", "lru"], "did you mean --eviction?"),
                            (["ls", "--forma", "json"], "did you mean --format?"),
                            (["renam", "db", "x"], "did you mean `eddy rename`?"),
                            (["wai", "db"], "did you mean `eddy wait`?"),
                            (["event"], "did you mean `eddy events`?")):
            self.assert_refused(daemon.run(*words), 1, text)
        for words in (["logs", "--tail", "5", "-t", "db"], ["ls", "-a", "--format", "{name}"], ["rename", "db", "x"],
                      ["wait", "x", "--for", "running"]):
            daemon.must(*words)

    def test_unset(self):
        daemon = self.daemon()
        self.create(daemon, "server", "a", "-g", "web")
        self.assert_refused(daemon.run("edit", "a", "--unset", "nonsense"), 1, "nonsense")
        self.assert_refused(daemon.run("edit", "a", "--unset", "max-conections"), 1, "did you mean --max-connections?")
        daemon.must("edit", "a", "--unset", "group")
        self.assertEqual(daemon.show("a")["group"], "")


if __name__ == "__main__":
    harness.main()
