#!/usr/bin/env python3
"""Sites: `eddy create http` as its users meet it, with curl."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import unittest.mock

import harness
from harness import connect, eventually, free_port


def curl(*words):
    return subprocess.run(["curl", "-sS", "--max-time", "60", *words], capture_output=True, timeout=120)


@harness.on_each_backend
class Site(harness.EddyTest):
    def setUp(self):
        if not shutil.which("curl"):
            self.skipTest("there is no curl")
        self.root = self.folder()
        self.write("index.html", b"<h1>hello</h1>\n")
        self.running = self.daemon()
        self.port = free_port()

    def write(self, name, content):
        with open(os.path.join(self.root, name), "wb") as file:
            file.write(content)

    def create(self, *flags):
        self.running.must("create", "http", "site", "-p", str(self.port), "--root", self.root, *flags, "-s")

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def status(self, path, *flags):
        return curl("-o", "/dev/null", "-w", "%{http_code}", "--path-as-is", *flags, self.url(path)).stdout.decode()

    def test_serves_a_folder_to_curl(self):
        large = os.urandom(5_000_000)
        self.write("large.bin", large)
        self.create()
        got = curl("-i", self.url("/"))
        self.assertIn(b"\r\nContent-Type: text/html; charset=utf-8\r\n", got.stdout)
        self.assertTrue(got.stdout.endswith(b"\r\n\r\n<h1>hello</h1>\n"))
        self.assertEqual(curl(self.url("/large.bin")).stdout, large)
        self.assertEqual(self.status("/missing"), "404")
        self.assertEqual(self.status("/", "-X", "DELETE"), "405")
        both = curl(self.url("/index.html"), self.url("/"), "-w", "%{num_connects}\n")
        self.assertEqual(both.stdout, b"<h1>hello</h1>\n1\n<h1>hello</h1>\n0\n")

    def test_takes_the_folder_as_the_user_sees_it(self):
        made = subprocess.run([harness.BINARY, "create", "http", "site", "-p", str(self.port), "--root",
                               os.path.basename(self.root), "-s"], cwd=os.path.dirname(self.root),
                              env=self.running.environment(), capture_output=True, timeout=60, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.status("/"), "200")

    def test_serves_nothing_outside_its_folder(self):
        beside = self.root + "-beside"
        os.mkdir(beside)
        self.addCleanup(shutil.rmtree, beside)
        with open(os.path.join(beside, "secret"), "wb") as file:
            file.write(b"secret")
        os.symlink(os.path.join(beside, "secret"), os.path.join(self.root, "link"))
        os.mkfifo(os.path.join(self.root, "fifo"))
        name = os.path.basename(beside)
        self.create("--hidden")
        for path in (f"/../{name}/secret", f"/%2e%2e/{name}/secret", f"/..%2f{name}%2fsecret", f"/.%2e/{name}/secret",
                     f"/x/../../{name}/secret", f"//{beside}/secret", "/link", "/fifo", "/index.html%00",
                     f"/..\\{name}\\secret", "/index.html/"):
            with self.subTest(path):
                self.assertIn(self.status(path), ("404", "400", "403"))

    def test_an_answer_before_the_end_of_an_upload_arrives(self):
        self.create()
        lost = []
        for size in (1 << 20, 12 << 20):
            for _ in range(30):
                client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.DEADLINE_S)
                try:
                    client.request("POST", "/", body=bytes(size))
                    self.assertIn(client.getresponse().status, (405, 413))
                except OSError as failure:
                    lost.append(f"{size} bytes: {failure!r}")
                finally:
                    client.close()
        self.assertEqual(lost, [])
        with connect(self.port) as raw:  # reads after its last byte
            raw.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6000000\r\n\r\n" + bytes(6_000_000))
            self.assertRegex(harness.all_of(raw), rb"^HTTP/1.1 (405|413) ")

    def test_says_what_is_missing(self):
        for flags, text in (((), "--root DIR"), (("--root", "/no/such/folder"), "No such file or directory"),
                            (("--root", os.path.join(self.root, "index.html")), "Not a directory")):
            refused = self.running.run("create", "http", "x", "-p", str(self.port), *flags, "-s")
            self.assertNotEqual(refused.status, 0)
            self.assertIn(text, refused.err)
            self.running.run("remove", "x")

    def test_writes_an_access_log_and_metrics(self):
        log = os.path.join(self.folder(), "access.log")
        self.create("--access-log", log, "--access-format", "json")
        for path in ("/", "/", "/missing"):
            self.status(path)
        self.running.must("stop", "site")
        with open(log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([(line["target"], line["status"]) for line in lines],
                         [("/", 200), ("/", 200), ("/missing", 404)])
        self.assertIn("curl", lines[0]["user_agent"])
        self.running.must("start", "site")
        self.status("/")
        shown = curl("--unix-socket", self.running.socket, "http://eddy/metrics").stdout.decode()
        self.assertIn('eddy_http_requests_total{runtime="site",type="http",code="2xx"} 1', shown)
        self.assertIn('eddy_http_request_seconds_count{runtime="site",type="http"} 1', shown)

    def read_by_goaccess(self, log, log_format, *flags):
        """The result of goaccess(1) for a log: its summary, and the hosts, requests and agents that it has found."""
        if shutil.which("goaccess") is None:
            self.skipTest("goaccess is not installed (Debian's package of that name)")
        report = os.path.join(self.folder(), "report.json")
        read = subprocess.run(["goaccess", log, f"--log-format={log_format}", "--no-global-config", "--no-progress",
                               *flags, "-o", report],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, text=True)
        self.assertEqual(read.returncode, 0, read)
        with open(report, encoding="utf-8") as file:
            made = json.load(file)
        self.assertEqual(made["general"]["failed_requests"], 0, made["general"])
        return made["general"]["valid_requests"], {panel: {each["data"] for each in made[panel]["data"]}
                                                   for panel in ("hosts", "requests", "not_found")}

    def test_goaccess_reads_each_line_of_its_access_log(self):
        for log_format in ("common", "combined"):
            with self.subTest(log_format):
                log = os.path.join(self.folder(), "access.log")
                self.create("--access-log", log, "--access-format", log_format)
                self.status("/", "-A", 'a "quoted" \\ agent', "-e", "http://x/?q=\"")
                self.status("/missing")
                for what in (b"GET / HT", b"GET / HTTP/2.0\r\n\r\n", b"\"'[] - - \r\n\r\n"):
                    with connect(self.port) as odd:
                        odd.sendall(what)
                        odd.shutdown(socket.SHUT_WR)
                        self.assertTrue(odd.recv(1))
                self.running.must("stop", "site")
                lines, found = self.read_by_goaccess(log, log_format.upper())
                self.assertEqual(lines, 5)
                self.assertEqual(found["hosts"], {"127.0.0.1"})
                self.assertIn("/", found["requests"])
                self.assertIn("/missing", found["not_found"])
                self.running.must("remove", "site")

    def test_goaccess_reads_the_log_of_a_unix_socket_without_its_check_of_addresses(self):
        log, path = os.path.join(self.folder(), "access.log"), os.path.join(self.folder(), "s")
        self.running.must("create", "http", "site", "--unix", path, "--root", self.root, "--access-log", log, "-s")
        curl("--unix-socket", path, "http://x/")
        self.running.must("stop", "site")
        lines, found = self.read_by_goaccess(log, "COMMON", "--no-ip-validation")
        self.assertEqual((lines, found["hosts"]), (1, {"unix:"}))

    def test_the_access_log_names_clients_by_their_certificates(self):
        made = harness.Certificates(self.folder())
        log = os.path.join(self.folder(), "access.log")
        created = self.running.run("create", "http", "site", "-p", str(self.port), "--root", self.root, "--access-log",
                                   log, "--tls", "--cert", made.cert, "--key", made.key, "--ca", made.ca,
                                   "--client-auth", "optional", "-s")
        if "does not have" in created.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(created.status, 0, created)
        for own in (True, False):
            with made.connect(self.port, own) as client:
                client.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(client.recv(1))
        self.running.must("stop", "site")
        with open(log, encoding="ascii") as file:
            self.assertEqual([line.split()[:3] for line in file],
                             [["127.0.0.1", "-", "CN=client"], ["127.0.0.1", "-", "-"]])

    def test_the_access_log_has_the_time_zone_of_the_daemon(self):
        log = os.path.join(self.folder(), "access.log")
        with unittest.mock.patch.dict(os.environ, TZ="<+0545>-5:45"):
            running = self.daemon()
        running.must("create", "http", "site", "-p", str(self.port), "--root", self.root, "--access-log", log, "-s")
        self.status("/")
        running.must("stop", "site")
        with open(log, encoding="ascii") as file:
            self.assertRegex(file.read(), r"^127\.0\.0\.1 - - \[[^]]+ \+0545\] ")

    def test_compresses_for_curl(self):
        small = b"<p>a line of text</p>\n" * 200
        large = b"".join(b"%d squared is %d\n" % (i, i * i) for i in range(200_000))
        self.write("small.html", small)
        self.write("large.txt", large)
        self.write("noise.bin", os.urandom(100_000))
        self.write("before.txt", b"x" * 5000)
        subprocess.run(["gzip", "-k", os.path.join(self.root, "before.txt")], check=True)
        self.create("--compress", "--cache", "1M")
        features = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout
        codings = ["gzip", "deflate"] + [name for name in ("br", "zstd") if {"br": "brotli"}.get(name, name) in features]
        for path, content in (("/small.html", small), ("/large.txt", large)):
            for coding in codings:
                with self.subTest(path=path, coding=coding):
                    got = curl("--compressed", "-H", f"Accept-Encoding: {coding}", "-D", "/dev/stderr",
                               "-w", "\n%{size_download}", self.url(path))
                    body, size = got.stdout.rsplit(b"\n", 1)
                    self.assertEqual(body, content)
                    self.assertLess(int(size), len(content) // 2)
                    self.assertIn(f"Content-Encoding: {coding}\r\n".encode(), got.stderr)
                    self.assertIn(b"Vary: Accept-Encoding\r\n", got.stderr)
            self.assertEqual(curl(self.url(path)).stdout, content)
            self.assertEqual(curl("--compressed", self.url(path)).stdout, content)
        self.assertNotIn(b"Content-Encoding", curl("--compressed", "-I", self.url("/noise.bin")).stdout)
        ready = curl("--compressed", "-i", "-H", "Accept-Encoding: zstd;q=0.5, gzip", self.url("/before.txt")).stdout
        self.assertIn(b'-gzip"\r\n', ready, "the tag of the file that was compressed before")
        self.running.must("edit", "site", "--unset", "compress")
        self.assertNotIn(b"Content-Encoding", curl("--compressed", "-i", self.url("/small.html")).stdout)

    def test_an_edit_says_before_a_restart_what_it_means_for_clients(self):
        self.create()
        said = self.running.run("edit", "site", "--root", self.folder())
        self.assertEqual(said.err, "eddy: changing --root restarts site: it serves new clients at once; those that it "
                                   "has may finish for up to 600 s\n")
        self.assertIn("restarts for --root: it serves new clients at once; those that it has may finish for up to 10m",
                      self.running.must("logs", "site"))

    def test_changes_options_while_it_serves(self):
        self.create()
        first = connect(self.port)
        first.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(first.recv(9).startswith(b"HTTP/1.1"))
        self.running.must("edit", "site", "--max-connections", "1")
        eventually(lambda: self.status("/") == "503", "the site is full")
        first.close()
        eventually(lambda: self.status("/") == "200", "it is not full any more")
        self.write("start.html", b"start")
        self.running.must("edit", "site", "--index", "start.html")
        self.assertEqual(curl(self.url("/")).stdout, b"start")

    def test_survives_raw_nonsense(self):
        self.create()
        for text in (b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" + b"x" * 200,
                     b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     b"GET / HTTP/1.1\nHost: x\n\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"x" * 100_000):
            with self.subTest(text[:40]), connect(self.port) as peer:
                with_error = b""
                try:
                    peer.sendall(text)
                    peer.shutdown(socket.SHUT_WR)
                    while more := peer.recv(65536):
                        with_error += more
                except OSError:
                    pass  # it may have closed while more was sent
                self.assertRegex(with_error[:13], rb"HTTP/1\.1 (4|5)\d\d|^$")
        self.assertEqual(self.status("/"), "200")


if __name__ == "__main__":
    harness.main()
