#!/usr/bin/env python3
"""HTTP proxies in front of real backends: sites, Python's server, nginx and TLS; backends that die under load, requests
that a proxy must not hand on, and a browser."""

import collections
import contextlib
import hashlib
import http.client
import http.server
import os
import random
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
import unittest

import harness
from harness import DEADLINE_S, all_of, connect, eventually, free_port
from shm_client import ShmClient

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "examples"))
from programs import Browser  # noqa: E402

if not shutil.which("chromium"):
    print("skipped: there is no chromium (apt: chromium)", file=sys.stderr)


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers each request with its own name, the target and the content."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = f"{self.server.name} {self.path} ".encode() + content
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *ignored):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Program:
    """Such a server in a process of its own, which can be killed."""

    def __init__(self, name, port=0, host="127.0.0.1"):
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", name, str(port), host], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def serve(name, port, host):
    server = Server((host, int(port)), Echo)
    server.name = name
    print(server.server_address[1], flush=True)
    server.serve_forever()


class NameServer:
    """Answers queries for IPv4 addresses from a dict, with a TTL of a second (RFC 1035)."""

    def __init__(self):
        self.addresses = {}  # lists by name
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.is_over = False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            query, client = self.socket.recvfrom(512)
            if self.is_over:
                return
            self.socket.sendto(self._answer(query), client)

    def end(self):
        # It wakes the thread, and a closed socket does not.
        self.is_over = True
        self.socket.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        question = query[12:at + 5]
        known = self.addresses.get(".".join(labels).lower())
        found = known or [] if question[-4:-2] == b"\0\1" else []
        records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(each) for each in found)
        code = 3 if known is None else 0  # no such name
        return query[:2] + bytes([0x81, 0x80 | code, 0, 1, 0, len(found), 0, 0, 0, 0]) + question + records


class Recorder:
    """A backend that answers each connection's bytes with one response, and keeps them."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.seen = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                peer = self.listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        text = b""
        with peer:
            peer.settimeout(DEADLINE_S)
            while True:
                try:
                    got = peer.recv(65536)
                except OSError:
                    return
                if not got:
                    return
                text += got
                self.seen.append(got)
                if b"\r\n\r\n" in text:
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    text = b""


class HttpProxyTest(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()

    def proxy(self, backend, *flags, name="gw"):
        port = free_port()
        self.running.must("create", "proxy", name, "-p", str(port), "--protocol", "http", "--backend", str(backend), "-s",
                          *flags)
        return port

    def program(self, name, port=0, host="127.0.0.1"):
        made = Program(name, port, host)
        self.addCleanup(made.kill)
        return made

    def site(self, files, *flags, name="site"):
        root = os.path.join(self.folder(), name)
        os.mkdir(root)
        for file, content in files.items():
            with open(os.path.join(root, file), "wb") as out:
                out.write(content)
        port = free_port()
        self.running.must("create", "http", name, "-p", str(port), "--root", root, "-s", *flags)
        return port

    def counter(self, name, backend):
        return self.running.metric(f"eddy_proxy_{name}", runtime="gw", type="proxy", backend=backend)


def get(port, target="/", method="GET", body=None, headers=None):
    over = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        over.request(method, target, body, headers or {})
        answer = over.getresponse()
        return answer.status, answer.read()
    finally:
        over.close()


@harness.on_each_backend
class Forwarding(HttpProxyTest):
    def test_a_site_and_a_program_share_a_port(self):
        self.site({"index.html": b"hello"})
        other = self.program("other")
        port = self.proxy(f"site,:{other.port}")
        seen = collections.Counter(get(port)[1] for _ in range(10))
        self.assertEqual(seen, {b"hello": 5, b"other / ": 5})

    def test_backends_follow_their_runtimes(self):
        port = self.proxy("site")
        self.assertEqual(get(port)[0], 503)
        self.site({"index.html": b"hello"})
        eventually(lambda: get(port) == (200, b"hello"), "the site is found")
        self.running.must("stop", "site")
        eventually(lambda: get(port)[0] == 503, "the site is gone")
        self.running.must("edit", "site", "-p", str(free_port()))
        self.running.must("start", "site")
        eventually(lambda: get(port) == (200, b"hello"), "the site is found at its new port")

    def test_a_group_is_all_of_its_runtimes(self):
        self.site({"index.html": b"one"}, "--group", "web", name="one")
        port = self.proxy("@web")
        self.assertEqual(get(port), (200, b"one"))
        self.site({"index.html": b"two"}, "--group", "web", name="two")
        seen = collections.Counter()
        eventually(lambda: seen.update([get(port)[1]]) or len(seen) == 2, "the new one gets requests")
        self.running.must("stop", "one")
        eventually(lambda: {get(port)[1] for _ in range(4)} == {b"two"}, "the stopped one gets none")

    def test_a_drained_group_gets_no_requests(self):
        self.site({"index.html": b"one"}, "--group", "web", name="one")
        self.site({"index.html": b"two"}, "--group", "web", name="two")
        self.site({"index.html": b"three"}, name="three")
        port = self.proxy("@web,three")
        self.running.must("edit", "gw", "--drain-backend", "@web")
        eventually(lambda: {get(port)[1] for _ in range(6)} == {b"three"}, "the group gets none")
        self.assertEqual(self.counter("backend_drained", "one"), 1)
        self.running.must("edit", "gw", "--unset", "drain-backend")
        eventually(lambda: len({get(port)[1] for _ in range(6)}) == 3, "it gets requests again")

    def test_a_proxy_without_a_backend_that_serves_is_degraded(self):
        program = self.program("api")
        port = self.proxy(f":{program.port}")
        self.assertEqual(get(port)[0], 200)
        self.assertEqual(self.running.metric("eddy_runtime_degraded", runtime="gw", type="proxy"), 0)
        program.kill()
        for _ in range(4):
            self.assertEqual(get(port)[0], 503)
        self.assertIn("fails its clients", self.running.list()["gw"]["reason"])
        self.assertEqual(self.running.metric("eddy_runtime_degraded", runtime="gw", type="proxy"), 1)
        self.program("api", program.port)
        eventually(lambda: get(port)[0] == 200, "it is back")
        self.assertNotIn("reason", self.running.list()["gw"])

    def test_a_stop_of_the_daemon_under_load_makes_no_error(self):
        self.site({"index.html": b"x" * 100})
        port = self.proxy("site")
        statuses = collections.Counter()
        done = threading.Event()
        self.addCleanup(done.set)

        def load():
            while not done.is_set():
                try:
                    statuses[get(port)[0]] += 1
                except (OSError, http.client.HTTPException):  # the proxy is gone
                    return
        clients = [threading.Thread(target=load) for _ in range(8)]
        for each in clients:
            each.start()
        eventually(lambda: statuses[200] > 200, "they are served")
        self.assertEqual(self.running.stop(), 0)
        done.set()
        for each in clients:
            each.join(DEADLINE_S)
        self.assertEqual(set(statuses), {200})

    def test_addresses_of_a_name_follow_its_name_server(self):
        names = NameServer()
        self.addCleanup(names.end)
        one = self.program("one")
        two = self.program("two", one.port, "127.0.0.2")
        names.addresses["api.test"] = ["127.0.0.1"]
        port = self.proxy(f"api.test:{two.port}", "--resolver", f"127.0.0.1:{names.port}")
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        self.addCleanup(kept.close)
        answers = []

        def ask():
            kept.request("GET", "/")
            answers.append(kept.getresponse().read())
            return answers[-1]

        self.assertEqual(ask(), b"one / ")
        names.addresses["api.test"] = ["127.0.0.2"]
        eventually(lambda: ask() == b"two / ", "the new address is used")
        names.addresses.clear()
        eventually(lambda: "backend name api.test cannot be looked up" in self.running.must("logs", "gw"), "it is said")
        self.assertEqual(ask(), b"two / ", "the last address stays")
        names.addresses["api.test"] = ["127.0.0.1", "127.0.0.2"]
        eventually(lambda: {ask() for _ in range(4)} == {b"one / ", b"two / "}, "both are used")
        self.assertLessEqual(set(answers), {b"one / ", b"two / "}, "no request failed")
        self.assertEqual(self.counter("backend_up", f"tcp://api.test:{two.port}/127.0.0.2"), 1)

    def test_content_of_any_size_arrives_whole_at_its_own_client(self):
        back = self.program("b")
        port = self.proxy(f":{back.port}", "--threads", "2")
        failures = []

        def talk(seed):
            dice = random.Random(seed)
            over = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
            for i in range(15):
                content = dice.randbytes(dice.choice((0, 10, 5_000, 100_000, 1_000_000)))
                over.request("POST", f"/{seed}/{i}", content)
                got = over.getresponse().read()
                if got != f"b /{seed}/{i} ".encode() + content:
                    failures.append((seed, i, len(content), hashlib.sha256(got).hexdigest()))
            over.close()
        clients = [threading.Thread(target=talk, args=(seed,)) for seed in range(20)]
        for each in clients:
            each.start()
        for each in clients:
            each.join(6 * DEADLINE_S)
        self.assertEqual(failures, [])

    def test_a_backend_that_dies_under_load_costs_no_request(self):
        backends = [self.program(f"b{i}") for i in range(3)]
        port = self.proxy(",".join(f":{each.port}" for each in backends))
        bad = []
        seen = collections.Counter()
        done = threading.Event()
        self.addCleanup(done.set)

        def load():
            while not done.is_set():
                status, content = get(port)
                seen[content] += 1
                if status != 200:
                    bad.append((status, content))
        clients = [threading.Thread(target=load) for _ in range(8)]
        for each in clients:
            each.start()
        eventually(lambda: len(seen) == 3, "all get requests")
        backends[0].kill()
        eventually(lambda: self.counter("backend_up", f"tcp://127.0.0.1:{backends[0].port}") == 0, "it is out")
        before = seen[b"b0 / "]
        eventually(lambda: sum(seen.values()) > before + 300, "the others go on")
        self.assertLessEqual(seen[b"b0 / "], before + 8)
        self.program("b0", backends[0].port)
        eventually(lambda: seen[b"b0 / "] > before + 20, "it is used again")
        done.set()
        for each in clients:
            each.join(DEADLINE_S)
        self.assertEqual(bad, [])
        self.assertIn("is down", self.running.must("logs", "gw"))
        self.assertIn("is up again", self.running.must("logs", "gw"))

    def test_edits_under_load_lose_no_request(self):
        one, two = self.program("one"), self.program("two")
        port = self.proxy(f":{one.port}")
        bad = []
        done = threading.Event()
        self.addCleanup(done.set)

        def load():
            over = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
            while not done.is_set():
                try:
                    over.request("GET", "/")
                    answer = over.getresponse()
                    if answer.status != 200 or not answer.read():
                        bad.append(answer.status)
                    if answer.getheader("Connection") == "close":
                        over.close()
                except OSError as error:
                    bad.append(error)
                    over.close()
        clients = [threading.Thread(target=load) for _ in range(6)]
        for each in clients:
            each.start()
        for i in range(12):
            self.running.must("edit", "gw", "--backend", f":{(two if i % 2 else one).port}")
            self.running.must("edit", "gw", "--max-header", f"{17 + i}KiB")  # a restart
        done.set()
        for each in clients:
            each.join(DEADLINE_S)
        self.assertEqual(bad, [])

    @harness.needs("tls")
    def test_certificates_replaced_under_load_cut_no_client(self):
        made = harness.Certificates(self.folder())
        back = self.program("b")
        cert, key = (os.path.join(self.folder(), name) for name in ("site.pem", "site.key"))
        shutil.copy(made.cert, cert)
        shutil.copy(made.key, key)
        port = self.proxy(f":{back.port}", "--threads", "2", "--tls", "--cert", cert, "--key", key)
        trusting = made.context()
        bad, counts = [], collections.Counter()
        done = threading.Event()
        self.addCleanup(done.set)

        def load(is_kept):
            over = None
            while not done.is_set():
                try:
                    over = over or http.client.HTTPSConnection("127.0.0.1", port, timeout=DEADLINE_S, context=trusting)
                    over.request("GET", "/")
                    answer = over.getresponse()
                    if answer.status != 200 or answer.read() != b"b / " or answer.will_close:
                        bad.append(answer.status)
                    counts[is_kept] += 1
                    if not is_kept:
                        over.close()
                except OSError as error:
                    bad.append(error)
                    over.close()
            over.close()

        def served():
            with made.connect(port) as client:
                return client.getpeercert()["serialNumber"]
        clients = [threading.Thread(target=load, args=(i % 2 == 0,)) for i in range(6)]
        for each in clients:
            each.start()
        seen = {served()}
        for i in range(10):
            new_cert, new_key = made.renewed(f"renewed{i}")
            os.replace(new_key, key)
            os.replace(new_cert, cert)
            before = counts.copy()
            self.running.must("reload", "gw")
            # All threads have it: connections are dealt to them in turn.
            new = {served() for _ in range(4)}
            self.assertEqual(len(new), 1)
            self.assertTrue(new.isdisjoint(seen), "it is the new one")
            seen |= new
            eventually(lambda before=before: all(counts[kind] > before[kind] for kind in (True, False)), "load goes on")
        done.set()
        for each in clients:
            each.join(DEADLINE_S)
        self.assertEqual(bad, [])


class Mistakes(HttpProxyTest):
    def test_what_would_be_lost_in_silence_is_refused(self):
        self.site({"a": b"a"})
        self.proxy("site")
        flags = ["create", "proxy", "x", "-p", str(free_port()), "--protocol", "http"]
        for words, said in (([*flags, "--backend", ":7000", "--backend", ":7001"], "given twice"),
                            ([*flags, "--backend", "10.0.0.1"], "10.0.0.1:PORT"),
                            ([*flags, "--backend", "http://a:80"], "--protocol http"),
                            ([*flags, "--route", "/api/*=:7000"], "without *"),
                            ([*flags, "--route", "*/api=:7000"], "*.NAME"),
                            ([*flags, "--redirect", "/=https://"], "HOST/PATH=URL"),
                            ([*flags, "--redirect", "/=https://a?b"], "without ? and #"),
                            ([*flags, "--backend", f"tls://a:1?ca={self.folder()}/none.pem"], "none.pem cannot be read"),
                            (["edit", "gw", "--backend", f"tls://a:1?ca={self.folder()}/none.pem"], "none.pem cannot be read"),
                            ([*flags, "--backend", ":1", "--health-path", "/x"], "add that, or leave --health-path out"),
                            ([*flags, "--backend", ":7000", "--drain-backend", ":7001"], "no backend of this proxy"),
                            (["edit", "gw", "--unset", "responce-timeout"], "response-timeout"),
                            (["edit", "gw", "--tries", "1", "--tries", "2"], "given twice")):
            answer = self.running.run(*words)
            self.assertNotEqual(answer.status, 0, words)
            self.assertIn(said, answer.err, words)

    def test_a_name_that_no_runtime_has_is_told(self):
        self.assertEqual(get(self.proxy("sitte"))[0], 503)
        self.assertIn("backend sitte: no runtime of that name serves", self.running.must("logs", "gw"))

    def test_a_request_at_fault_has_its_reason_in_the_journal(self):
        self.site({"a": b"a"})
        with connect(self.proxy("site")) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
            self.assertTrue(all_of(client).startswith(b"HTTP/1.1 400 "))
        self.assertIn("a request got 400: ", self.running.must("logs", "gw"))


class Patience(HttpProxyTest):
    def test_a_stop_lets_a_tunnel_end(self):
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as backend:
            with connect(self.proxy(f":{backend.getsockname()[1]}")) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n")
                peer = backend.accept()[0]
                with peer:
                    peer.recv(4096)
                    peer.sendall(b"HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\none")
                    text = b""
                    while not text.endswith(b"one"):
                        text += client.recv(4096)
                    stop = threading.Thread(target=self.running.run, args=("stop", "gw"))
                    stop.start()
                    eventually(lambda: self.running.list()["gw"]["status"] != "running", "it stops")
                    peer.sendall(b"two")
                self.assertEqual(all_of(client), b"two")
                stop.join()

    def test_a_client_that_reads_steadily_is_not_cut(self):
        content = random.Random(5).randbytes(16 << 20)
        port = self.site({"a": content}, "--write-timeout", "3s")
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            client.connect(("127.0.0.1", port))
            client.sendall(b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            text = bytearray()
            # For some write timeouts less than a third of a large buffer in each, then as fast as it goes.
            end = time.monotonic() + 7
            while time.monotonic() < end:
                text += client.recv(30 << 10)
                time.sleep(0.1)
            text += all_of(client)
        self.assertTrue(bytes(text).endswith(b"\r\n\r\n" + content))


class RealParts(HttpProxyTest):
    @unittest.skipUnless(shutil.which("curl"), "there is no curl")
    def test_curl(self):
        back = self.program("b")
        port = self.proxy(f":{back.port}", "--request-field", "X-A: 1")
        file = os.path.join(self.folder(), "content")
        with open(file, "wb") as out:
            out.write(random.Random(1).randbytes(3_000_000))

        def curl(*words):
            return subprocess.run(["curl", "-sS", "--max-time", str(DEADLINE_S), *words], capture_output=True, check=True,
                                  timeout=2 * DEADLINE_S).stdout
        url = f"http://127.0.0.1:{port}/x"
        self.assertEqual(curl(url), b"b /x ")
        with open(file, "rb") as content:
            self.assertEqual(curl("--data-binary", f"@{file}", url), b"b /x " + content.read())  # it expects 100
        self.assertIn(b"HTTP/1.1 501", curl("-I", url))  # what Python's server has no method for

    def test_tls_on_both_sides(self):
        if "tls" not in harness.parts():
            self.skipTest("this build has no TLS")
        certificates = harness.Certificates(self.folder())
        secure = ("--tls", "--cert", certificates.cert, "--key", certificates.key)
        behind = self.site({"index.html": b"secret"}, *secure)
        port = self.proxy(f"tls://localhost:{behind}?ca={certificates.ca}", *secure)
        with certificates.connect(port) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertTrue(all_of(client).endswith(b"\r\n\r\nsecret"))
        strict = self.proxy(f"tls://localhost:{behind}", name="strict")  # the authority is unknown
        self.assertEqual(get(strict)[0], 502)
        self.assertIn("certificate", self.running.must("logs", "strict"))

    @harness.needs("tls")
    def test_a_backend_by_address_has_a_name_for_tls(self):
        certificates = harness.Certificates(self.folder())
        cert, key = certificates.named("inner.example")
        behind = self.site({"index.html": b"secret"}, "--tls", "--cert", cert, "--key", key)
        health = ("--health-check", "http", "--health-interval", "50ms", "--health-fall", "1")
        backend = f"tls://127.0.0.1:{behind}?ca={certificates.ca}&name=inner.example"
        port = self.proxy(backend, *health)
        self.assertEqual(get(port), (200, b"secret"))
        self.assertEqual(self.counter("backend_up", backend), 1)
        other = backend.replace("inner", "other")
        self.running.must("edit", "gw", "--backend", other)
        eventually(lambda: self.counter("backend_up", other) == 0, "its certificate is for another name")
        self.assertEqual(get(port)[0], 503)

    def test_shared_memory_on_both_sides(self):
        content = random.Random(3).randbytes(300_000)
        behind = self.site({"a": content}, "--shm")
        port = self.proxy(f"shm://:{behind}", "--shm")
        client = ShmClient(f":{port}")
        self.addCleanup(client.close)
        for _ in range(3):
            client.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.receive(1)
            self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
            self.assertIn(b"Content-Length: 300000\r\n", head)
            self.assertEqual(client.receive(len(content)), content)
        echo = self.program("b")
        self.running.must("edit", "gw", "--backend", f":{echo.port}")
        client.send(b"POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n")
        client.send(content)
        self.assertTrue(client.receive(1_000_000).endswith(b"\r\n\r\nb /p " + content))

    def test_tls_is_passed_on_by_name(self):
        if "tls" not in harness.parts():
            self.skipTest("this build has no TLS")
        certificates = harness.Certificates(self.folder())
        routes = []
        for name in ("a.example", "b.example"):
            cert, key = certificates.named(name)
            self.site({"index.html": name.encode()}, "--tls", "--cert", cert, "--key", key, name=name[0])
            routes += ["--route", f"{name}={name[0]}"]  # by the runtime's name
        port = free_port()
        self.running.must("create", "proxy", "sni", "-p", str(port), *routes, "-s")
        for name in ("a.example", "b.example"):
            # Each certificate is the site's own.
            with certificates.context().wrap_socket(connect(port), server_hostname=name) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(all_of(client).endswith(b"\r\n\r\n" + name.encode()))
        with self.assertRaises(OSError):
            certificates.context().wrap_socket(connect(port), server_hostname="c.example")
        self.assertIn("no route is for its name", self.running.must("logs", "sni"))

    def test_a_websocket_goes_through(self):
        port = free_port()
        self.running.must("create", "server", "room", "-p", str(port), "-s")
        gate = self.proxy("room")
        request = (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        with connect(gate) as one, connect(gate) as two:
            for each in (one, two):
                each.sendall(request)
                head = b""
                while b"\r\n\r\n" not in head:
                    head += each.recv(1)
                self.assertIn(b"101 Switching Protocols", head)
                self.assertIn(b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", head)
            eventually(lambda: self.running.list()["room"]["connections"] == 2, "both are there")
            one.sendall(b"\x81\x85\x00\x00\x00\x00hello")
            frame = b""
            while len(frame) < 7:
                frame += two.recv(7 - len(frame))
            self.assertEqual(frame, b"\x81\x05hello")


# Fetches from a program behind the same port, and talks over a WebSocket.
PAGE = b"""<!doctype html><title>page</title><script>
const room = new WebSocket("ws://" + location.host + "/ws");
const said = new Promise(done => { room.onopen = () => done("open"); });
Promise.all([fetch("/api/x").then(r => r.text()), said]).then(all => { document.title = all.join("|"); });
</script>"""


@harness.needs("scripts")
class Scripts(HttpProxyTest):
    def script(self, text):
        self.path = self.path if hasattr(self, "path") else os.path.join(self.folder(), "gate.lua")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.path

    def test_the_example(self):
        two = self.program("two")
        one = self.site({"a": b"one"})
        example = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples/lua/gate.lua")
        port = self.proxy(f":{one}", "--route", f"/v2=:{two.port}", "--lua", example)
        self.assertEqual(get(port, "/health"), (200, b""))
        self.assertEqual(get(port)[0], 401)
        ann = {"X-API-Key": "key-of-ann"}
        self.assertEqual(get(port, "/a", headers=ann), (200, b"one"))
        self.assertEqual(get(port, "/a", "POST", b"content", {**ann, "X-Version": "2"}), (200, b"two /a content"))
        with connect(port) as client:
            client.sendall(b"GET /a HTTP/1.1\r\nHost: x\r\nX-API-Key: key-of-ann\r\n\r\n" * 300 +
                           b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(b"HTTP/1.1 429 ", all_of(client))
        eventually(lambda: get(port, "/a", headers=ann)[0] == 200, "the limit's end")

    def test_headers_and_statuses_on_their_way(self):
        """Before a site whose script shows what comes."""
        inner = free_port()
        self.running.must("create", "http", "inner", "-p", str(inner), "-s", "--lua", self.script("""
            function on_http_request(r)
                if r.path == "/broken" then error("no") end
                return 200, (r:header("X-User") or "-") .. " " .. (r:header("Authorization") or "-"), {Server = "inner 1.0"}
            end"""))
        example = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples/lua/stamp.lua")
        port = self.proxy(f":{inner}", "--lua", example)
        self.assertEqual(get(port)[0], 401)
        ann = {"Authorization": "Bearer t-ann"}
        self.assertEqual(get(inner, "/", headers=ann)[1], b"- Bearer t-ann")
        self.assertEqual(get(port, "/", headers={**ann, "X-User": "eve"}), (200, b"ann -"))
        self.assertEqual(get(port, "/broken", headers=ann)[0], 502)
        with connect(port) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t-bob\r\nConnection: close\r\n\r\n")
            answer = all_of(client)
        self.assertIn(b"\r\nX-Frame-Options: DENY\r\n", answer)
        self.assertNotIn(b"inner 1.0", answer)

    def test_runtimes_by_name(self):
        """Backends are named before they exist, and a request waits for another server's answer."""
        self.site({"index.html": b"first"}, name="site-1")
        rights = self.site({"ann": b"site-1", "bob": b"late"}, name="rights")
        port = self.proxy("site-1", "--route", "/none=site-*,late", "--lua", self.script(f"""
            function on_route(request)
                local name = request.query:match("^name=(%w+)$")
                if not name then return end
                local got = eddy.http("http://127.0.0.1:{rights}/" .. name)
                if not got or got.status ~= 200 then return false end
                return got.body
            end"""))
        self.assertEqual(get(port), (200, b"first"))
        self.assertEqual(get(port, "/?name=ann"), (200, b"first"))
        self.assertEqual(get(port, "/?name=eve")[0], 403)
        self.assertEqual(get(port, "/?name=bob")[0], 503)
        self.site({"index.html": b"second"}, name="late")
        eventually(lambda: get(port, "/?name=bob") == (200, b"second"), "the runtime serves now")

    def test_is_loaded_again_under_load(self):
        """No request is lost, and each is answered as one of the two versions says."""
        one, two = self.program("one"), self.program("two")
        text = "function on_route(request) return ':%d' end"
        port = self.proxy(f":{one.port},:{two.port}", "--lua", self.script(text % one.port))
        failures, ends = [], threading.Event()

        def ask():
            over = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
            try:
                while not ends.is_set():
                    over.request("GET", "/x")
                    answer = over.getresponse()
                    content = answer.read()
                    if answer.status != 200 or content not in (b"one /x ", b"two /x "):
                        failures.append((answer.status, content))
            except OSError as error:
                failures.append(error)
            finally:
                over.close()

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for each in threads:
            each.start()
        for number in range(20):
            self.script(text % (two.port if number % 2 == 0 else one.port))
            self.running.must("reload-lua", "gw")
        self.script("function on_route(")
        self.assert_refused(self.running.run("reload-lua", "gw"), 1, "goes on as before", "gate.lua:1: ")
        ends.set()
        for each in threads:
            each.join()
        self.assertEqual(failures, [])
        self.assertEqual(get(port, "/x"), (200, b"one /x "))

    def test_going_wrong(self):
        one = self.program("one")
        port = self.proxy(f":{one.port}", "--lua-time", "50ms", "--lua-memory", "4M", "--lua", self.script("""
            function on_route(request)
                if request.path == "/throws" then error("spoilt") end
                if request.path == "/loops" then while true do end end
                if request.path == "/allocates" then local t = {} while true do t[#t + 1] = ("x"):rep(1e5) .. #t end end
                if request.path == "/recurses" then local function f() return 1 + f() end return f() end
                if request.path == "/calls" then table.sort({3, 2, 1}, function() eddy.sleep(1) end) end
            end"""))
        for target in ("/throws", "/loops", "/allocates", "/recurses", "/calls"):
            self.assertEqual(get(port, target)[0], 500, target)
            self.assertEqual(get(port, "/x"), (200, b"one /x "))
        too_long = self.running.metric("eddy_proxy_script_errors_total", runtime="gw", type="proxy", reason="script_too_long")
        self.assertEqual(too_long, 1)
        self.assertIn("gate.lua:3: spoilt", self.running.must("logs", "gw"))
        refused = self.running.run("create", "proxy", "tcp", "-p", str(free_port()), "--backend", ":1", "--lua", self.path)
        self.assert_refused(refused, 1, "--lua has no effect without --protocol http")


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium")
class Browsers(HttpProxyTest):
    def test_chromium(self):
        program = self.program("api")
        self.site({"index.html": PAGE})
        port = free_port()
        self.running.must("create", "server", "room", "-p", str(port), "--origins", "*", "-s")
        gate = self.proxy("site", "--route", f"/api>/=:{program.port}", "--route", "/ws=room")
        with Browser(f"http://127.0.0.1:{gate}/") as browser:
            eventually(lambda: browser.evaluate("document.title") == "api /x |open", "the page has both")


# Requests that two peers may read differently, by what is wrong: a backend may see none of them.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
SUSPICIOUS = {
    "both framings": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 36\r\n\r\n",
    "a list of lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 36\r\n\r\n",
    "a signed length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n",
    "a coding behind chunked": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "chunked twice": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a hidden coding": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a bare line feed": b"GET / HTTP/1.1\nHost: x\n\n",
    "a bare line feed in chunks": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a malformed host": b"GET / HTTP/1.1\r\nHost: x y\r\n\r\n",
    "a chunk's size beyond all numbers":
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    "a carriage return in a field": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    "HTTP/1.0 with chunks": b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


class Smuggling(HttpProxyTest):
    def test_what_two_peers_may_read_differently_is_refused(self):
        back = Recorder()
        port = self.proxy(f":{back.port}")
        for name, text in SUSPICIOUS.items():
            with self.subTest(name), connect(port) as client:
                client.sendall(text + SMUGGLED)
                client.shutdown(socket.SHUT_WR)
                answer = all_of(client)
                self.assertRegex(answer[:12], rb"^HTTP/1\.1 (400|501|505)$")
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, "nothing behind it is a request")
        self.assertEqual(back.seen, [])

    def test_content_is_no_request(self):
        back = Recorder()
        port = self.proxy(f":{back.port}")
        with connect(port) as client:
            client.sendall(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED +
                           b"GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertEqual(all_of(client).count(b"HTTP/1.1 200"), 2)

    def test_a_backends_line_breaks_split_no_response(self):
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        port = self.proxy(f":{listening.getsockname()[1]}")
        for text in (b"HTTP/1.1 200 OK\r\nA: b\nSet-Cookie: c\r\nContent-Length: 0\r\n\r\n",
                     b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                     b"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nA\0: b\r\nContent-Length: 0\r\n\r\n"):
            with self.subTest(text), connect(port) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                peer = listening.accept()[0]
                with peer:
                    peer.recv(65536)
                    peer.sendall(text)
                    self.assertTrue(all_of(client).startswith(b"HTTP/1.1 502 "))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    harness.main()
