#!/usr/bin/env python3
"""`eddy bench http` and `eddy bench ws`: their reports of real servers, and of servers that stall, lie, close or fall
silent."""

import base64
import contextlib
import hashlib
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import time
import xml.etree.ElementTree

import bench_test
import harness
from harness import free_port

BODY = b'{"hello":"world"}'
# The first pass: a request, another one, and a pipeline.
FIRST = 2


def response(body=BODY, fields=b"", status=b"200 OK"):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, fields, len(body), body)


class HttpServer(bench_test.FakeServer):
    """answer((head, body), number) is the response to the request of that number, from 1 on; None closes."""

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    @staticmethod
    def _command(text):
        head, found, rest = text.partition(b"\r\n\r\n")
        if not found:
            return None
        length = re.search(rb"(?i)content-length: (\d+)", head)
        size = int(length.group(1)) if length else 0
        return ((head, rest[:size]), rest[size:]) if len(rest) >= size else None


class TlsServer(HttpServer):
    def __init__(self, test, answer, certificates):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificates.cert, certificates.key)
        self.resumed = 0
        super().__init__(test, answer)

    def _serve(self, stream):
        with stream, contextlib.suppress(OSError):
            secure = self.tls.wrap_socket(stream, server_side=True)
            self.resumed += secure.session_reused
            super()._serve(secure)


class EchoServer(bench_test.FakeServer):
    """A WebSocket server: answer(frame, number) is what it sends for the unmasked frame (opcode, payload)."""

    def _serve(self, stream):
        with stream, contextlib.suppress(OSError, EOFError):
            source = stream.makefile("rb")
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = source.readline()
                if not line:
                    return
                head += line
            key = re.search(rb"(?i)sec-websocket-key: (\S+)", head).group(1)
            accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            while True:
                got = self._frame(source)
                with self.lock:
                    self.commands.append(got)
                    reply = self.answer(got, len(self.commands))
                if reply is None:
                    return
                stream.sendall(reply)

    @staticmethod
    def _frame(source):
        def exactly(size):
            got = source.read(size)
            if len(got) < size:
                raise EOFError
            return got
        first, second = exactly(2)
        size = second & 0x7f
        if size == 126:
            size, = struct.unpack(">H", exactly(2))
        elif size == 127:
            size, = struct.unpack(">Q", exactly(8))
        assert second & 0x80, "clients mask"
        mask = exactly(4)
        data = int.from_bytes(exactly(size), "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return first & 0x0f, data.to_bytes(size, "big")


def frame(opcode, payload):
    size = len(payload)
    head = bytes([size]) if size < 126 else struct.pack(">BH", 126, size) if size < 65536 else struct.pack(
        ">BQ", 127, size)
    return bytes([0x80 | opcode]) + head + payload


def echo(got, number):
    return frame(*got)


class Case(harness.EddyTest):
    def bench(self, *words):
        process = subprocess.run([harness.BINARY, "bench", *words, "--io-backend", self.backend], capture_output=True,
                                 timeout=harness.DEADLINE_S, stdin=subprocess.DEVNULL)
        return harness.Result(process, process.stdout.decode(), process.stderr.decode())

    def report(self, *words, status=0):
        result = self.bench(*words, "--json")
        self.assertEqual(result.status, status, result)
        self.assertEqual(result.err, "")
        return json.loads(result.out)

    def assert_given_up(self, result, *texts):
        self.assert_refused(result, 2, *texts)
        self.assertEqual(result.out, "")
        self.assertEqual(len(result.err.strip().splitlines()), 1, result)


@harness.on_each_backend
class BenchHttp(Case):
    def fake(self, answer=lambda request, number: response()):
        return HttpServer(self, answer)

    def http(self, server, *words, path="/echo?hello=world", status=0):
        return self.report("http", f"http://127.0.0.1:{server.port}{path}", "--warm-up", "0", *words, status=status)

    def test_a_site(self):
        daemon, port, root = self.daemon(), free_port(), self.folder()
        with open(os.path.join(root, "large"), "wb") as file:
            file.write(os.urandom(100_000))
        with open(os.path.join(root, "small"), "wb") as file:
            file.write(b"x" * 1024)
        daemon.must("create", "http", "site", "-p", str(port), "--root", root, "-s")
        for name, size, more in (("small", 1024, ()), ("small", 1024, ("-P", "16")), ("large", 100_000, ("-P", "3")),
                                 ("small", 1024, ("--threads", "2")), ("small", 1024, ("--close",)),
                                 ("small", 1024, ("--rate", "20000"))):
            row = self.report("http", f"http://127.0.0.1:{port}/{name}", "--warm-up", "0.01", "-n", "2000", "-c", "7",
                              "--server-pid", str(daemon.pid), *more)
            self.assertEqual(row["test"], "http")
            self.assertEqual(row["requests"], 2000, more)
            self.assertEqual(row["errors"], 0, row)
            self.assertTrue(row["verified"])
            self.assertEqual(row["statuses"], {"1xx": 0, "2xx": 2000, "3xx": 0, "4xx": 0, "5xx": 0})
            self.assertGreater(row["received_bytes"], 2000 * size)
            self.assertAlmostEqual(row["ops_per_second"] * row["seconds"], 2000, 3)
            latency = row["latency_us"]
            marks = [latency[mark] for mark in ("p50", "p75", "p90", "p99", "p99.9", "p99.99", "max")]
            self.assertEqual(marks, sorted(marks))
            self.assertLess(0, latency["mean"])
            self.assertEqual((row["p50_us"], row["p99_us"]), (latency["p50"], latency["p99"]))
            self.assertEqual(row["loop"], "open" if "--rate" in more else "closed")
        missing = self.bench("http", f"http://127.0.0.1:{port}/missing", "-n", "10")
        self.assert_given_up(missing, "the status is 404; --expect-status 404 allows it")
        row = self.report("http", f"http://127.0.0.1:{port}/missing", "-n", "10", "--warm-up", "0",
                          "--expect-status", "404")
        self.assertEqual(row["statuses"]["4xx"], 10)

    def test_text_and_figure(self):
        figure = os.path.join(self.folder(), "latency.svg")
        server = self.fake()
        url = f"http://127.0.0.1:{server.port}/a?b&c"
        result = self.bench("http", url, "-n", "100", "-c", "3", "--warm-up", "0", "--svg", figure)
        self.assertEqual(result.status, 0, result)
        lines = dict(line.strip().split(maxsplit=1) for line in result.out.splitlines()[3:])
        self.assertEqual(result.out.splitlines()[0], url)
        self.assertIn("requests/s (100 in ", lines["rate"])
        self.assertEqual(lines["status"], "2xx 100")
        self.assertEqual(lines["errors"], "none")
        texts = [each.text for each in xml.etree.ElementTree.parse(figure).iter() if each.text]
        self.assertIn(f"Latency by percentile: {url}", texts)
        result = self.bench("http", url, "-n", "10", "--warm-up", "0", "--svg", os.path.join(figure, "no"))
        self.assert_refused(result, 2, "cannot write ", "latency.svg/no")

    def test_the_time_of_a_run(self):
        server = self.fake()
        row = self.http(server, "-d", "0.3", "-c", "2")
        self.assertGreater(row["requests"], 0)
        self.assertEqual(len(server.commands), row["requests"] + FIRST + 1)
        # Requests of the warm-up are not counted.
        server = self.fake()
        row = self.http(server, "-d", "0.1", "-c", "2", "--warm-up", "0.3")
        self.assertLess(row["requests"], len(server.commands) - FIRST - 1)

    def test_requests_are_as_wanted(self):
        server = self.fake()
        self.http(server, "-n", "10", "-c", "2", "-P", "2", "-H", "X-One: 1", "-H", "x-two:2")
        self.assertEqual(len(server.commands), 10 + FIRST + 2)
        for head, body in server.commands:
            lines = head.decode().split("\r\n")
            self.assertEqual(lines[0], "GET /echo?hello=world HTTP/1.1")
            self.assertEqual(sorted(lines[1:]), sorted([f"Host: 127.0.0.1:{server.port}", "X-One: 1", "x-two: 2"]))
        path = os.path.join(self.folder(), "body")
        with open(path, "wb") as file:
            file.write(bytes(range(256)))
        for words, method, sent in ((("--data", "text"), b"POST", b"text"),
                                    (("--data", "@" + path, "-X", "PUT", "-H", "Host: x"), b"PUT", bytes(range(256))),
                                    (("-X", "DELETE"), b"DELETE", b"")):
            server = self.fake()
            self.http(server, "-n", "4", "-c", "1", *words)
            for head, body in server.commands:
                self.assertEqual(head.split()[0], method)
                self.assertEqual(body, sent)
                self.assertEqual(b"Host: x\r\n" in head + b"\r\n", "Host: x" in words)

    def test_replies_to_head_have_no_body(self):
        server = self.fake(lambda request, number: b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n")
        self.assertEqual(self.http(server, "-n", "10", "-c", "2", "-X", "HEAD", "-P", "3")["requests"], 10)

    # --- Servers that are wrong ---

    def test_the_first_pass_compares_replies(self):
        for other, text in ((response(b'{"hello":"worlD"}'), "a reply differs from the first one"),
                            (response(b"{}"), "a reply has 2 bytes, the first one had 17"),
                            (response(status=b"201 Created"), "the status 201, the first one had 200"),
                            (response(status=b"500 Oh"), "the status is 500"),
                            (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "no HTTP response"),
                            (response() + response(), "more than it was asked for")):
            server = self.fake(lambda request, number, other=other: other if number == 2 else response())
            self.assert_given_up(self.bench("http", f"http://127.0.0.1:{server.port}/", "-n", "10"), text)
            self.assertLessEqual(len(server.commands), 2 + 1, "nothing more is sent")
        server = self.fake(lambda request, number: response(b"%d" % number))
        self.assertEqual(self.http(server, "-n", "200", "-c", "3", "--no-verify")["errors"], 0)

    def test_expectations(self):
        server = self.fake()
        self.http(server, "-n", "10", "--expect", '"hello"', "--expect-status", "200")
        url = f"http://127.0.0.1:{server.port}/"
        self.assert_given_up(self.bench("http", url, "-n", "9", "--expect", "bye"), 'the body does not contain "bye"')
        self.assert_given_up(self.bench("http", url, "-n", "9", "--expect-status", "204"), "the status is 200, not 204")

    def test_errors_are_counted_by_kind_and_the_run_goes_on(self):
        first = FIRST + 1
        kinds = {
            "content": lambda number: response(b'{"hello":"worlD"}'),
            "status": lambda number: response(status=b"503 Busy"),
            "closed": None,
            "malformed": lambda number: b"HTTP/1.1 2000 OK\r\n\r\n",
        }
        for kind, wrong in kinds.items():
            if kind == "closed":
                # On a connection that was used, with no byte of the reply, so this one is sent again.
                row = self.http(self.fake(lambda request, number: None if number == first + 50 else response()),
                                "-n", "100", "-c", "1")
                self.assertEqual((row["requests"], row["errors"], row["reconnects"]), (100, 0, 1))
                # In the middle of a reply: the second of a pipeline, whose other ones are lost, too.
                server = self.fake(lambda request, number: response()[:30] if number == 55 else
                                   None if number == 56 else response())
                row = self.http(server, "-n", "100", "-c", "1", "-P", "2", status=2)
                self.assertEqual(row["errors_by_kind"]["closed"], 1, row)
                self.assertEqual(row["requests"], 98)
                continue
            server = self.fake(lambda request, number, wrong=wrong: wrong(number)
                               if number in (first + 50, first + 60) else response())
            row = self.http(server, "-n", "100", "-c", "1", status=2)
            self.assertEqual(row["errors"], 2, row)
            self.assertEqual(row["errors_by_kind"][kind], 2, row)
            self.assertEqual(row["requests"], 98 if kind == "malformed" else 100)
            self.assertIs(row["verified"], kind != "content")
            self.assertEqual(row["verdict"], "2 errors")
            self.assertEqual(row["statuses"]["5xx"], 2 if kind == "status" else 0)

    def test_a_server_that_goes_away(self):
        def answer(request, number):
            if number == FIRST + 1 + 20:
                server.listener.shutdown(socket.SHUT_RDWR)
                for stream in server.streams:
                    with contextlib.suppress(OSError):
                        stream.shutdown(socket.SHUT_RDWR)
            return response()
        server = self.fake(answer)
        row = self.http(server, "-n", "100", "-c", "2", status=2)
        self.assertGreater(row["errors_by_kind"]["connect"], 0, row)
        self.assertLess(row["requests"], 100)

    def test_a_server_that_falls_silent(self):
        url = f"http://127.0.0.1:{self.fake(lambda request, number: b'').port}/"
        self.assert_given_up(self.bench("http", url, "--timeout", "1"), "no byte came for 1 s; --timeout")
        server = self.fake(lambda request, number: b"" if number == FIRST + 1 + 10 else response())
        row = self.http(server, "-n", "100", "-c", "2", "--timeout", "1", status=2)
        self.assertEqual(row["errors_by_kind"]["timeout"], 1)
        self.assertEqual(row["requests"], 99)
        self.assertIn("no byte came", row["first_error"])

    # --- Connections ---

    def test_a_server_that_closes_is_reconnected_to(self):
        closing = response(fields=b"Connection: close\r\n")

        def answer(request, number):
            return closing if number % 5 == 0 else response()
        for words in ((), ("-P", "4")):
            server = self.fake(answer)
            row = self.http(server, "-n", "100", "-c", "3", *words)
            self.assertEqual((row["requests"], row["errors"]), (100, 0), row)
            self.assertGreater(row["reconnects"], 5)
        # A body that the close ends.
        server = self.fake(lambda request, number: b"HTTP/1.0 200 OK\r\n\r\nhello" if number % 2 else None)
        self.assertEqual(self.bench("http", f"http://127.0.0.1:{server.port}/", "-n", "1", "--timeout", "1").status, 2)

    def test_new_connections(self):
        server = self.fake()
        row = self.http(server, "-n", "50", "-c", "5", "--close")
        self.assertEqual((row["requests"], row["errors"]), (50, 0))
        self.assertEqual(server.connections, 50 + FIRST + 1)
        for head, _ in server.commands:
            self.assertIn(b"\r\nConnection: close", head)

    def test_tls(self):
        certificates = harness.Certificates(self.folder())
        server = TlsServer(self, lambda request, number: response(), certificates)
        url = f"https://127.0.0.1:{server.port}/"
        trusted = ("-n", "40", "-c", "4", "--warm-up", "0", "--ca", certificates.ca)
        self.assertEqual(self.report("http", url, *trusted, "-P", "4")["requests"], 40)
        before, server.resumed = server.connections, 0
        self.assertEqual(self.report("http", url, *trusted, "--close")["requests"], 40)
        self.assertEqual(server.connections, before + 40 + FIRST + 1)
        self.assertEqual(server.resumed, 0, "full handshakes")
        self.assertEqual(self.report("http", url, *trusted, "--close", "--resume")["requests"], 40)
        self.assertGreater(server.resumed, 0)
        self.assertEqual(self.report("http", url, "-n", "4", "-k")["requests"], 4)
        self.assert_given_up(self.bench("http", url, "-n", "4"), "certificate")

    # --- The open loop ---

    def test_the_plan_is_kept(self):
        server = self.fake()
        began = time.monotonic()
        row = self.http(server, "--rate", "200", "-n", "60", "-c", "3")
        self.assertGreaterEqual(time.monotonic() - began, 59 / 200)
        self.assertEqual((row["requests"], row["loop"], row["planned_rate"]), (60, "open", 200))

    def test_a_stall_shows_in_the_open_loop_alone(self):
        def stalling(first):
            def answer(request, number):
                if number == first + 50:
                    time.sleep(0.3)
                return response()
            return self.fake(answer)
        words = ("-n", "200", "-c", "1", "--rate", "200")
        opened = self.http(stalling(FIRST + 1), *words)["latency_us"]
        closed = self.http(stalling(FIRST + 1), *words[:4])["latency_us"]
        # 60 requests were planned in these 300 ms; 40 of them waited for 100 ms or more.
        self.assertGreaterEqual(opened["p99.9"], 250_000)
        self.assertGreaterEqual(opened["p90"], 100_000)
        self.assertGreaterEqual(closed["max"], 300_000)
        self.assertLess(closed["p90"], opened["p90"])

    def test_a_server_that_cannot_keep_up(self):
        def slow(request, number):
            time.sleep(0.02)
            return response()
        row = self.http(self.fake(slow), "--rate", "1000", "-d", "0.5", "-c", "1")
        self.assertGreater(row["unsent"], 100)
        self.assertIn("did not keep up", row["verdict"])

    # --- The command line ---

    def test_input_that_makes_no_sense(self):
        url = f"http://127.0.0.1:{free_port()}/"
        for words, texts in (
                (("http",), ("needs URL",)), (("http", "127.0.0.1:80"), ("it must begin with http:// or https://",)),
                (("http", "http:///x"), ("it names no host",)), (("http", "http://a:b/"), ("its port is none",)),
                (("http", "http://a:70000/"), ("its port is none",)), (("http", "http://[::1/"), ("a ] is missing",)),
                (("http", "http://a/ b"), ("%XX",)), (("http", "ws://a/"), ("http://",)),
                (("ws", "http://a/"), ("ws:// or wss://",)), (("ws", "ws://a/", "--size", "-1"), ("--size",)),
                (("http", url, "-c", "0"), ("--connections takes a whole number from 1",)),
                (("http", url, "-t", "51"), ("51 threads have no use for 50 connections",)),
                (("http", url, "-n", "1", "-d", "1"), ("exclude each other",)),
                (("http", url, "-d", "never"), ("--duration takes seconds",)), (("http", url, "-k"), ("https://",)),
                (("http", url, "-H", "no"), ("--header takes NAME:VALUE",)),
                (("http", url, "-H", "Content-Length: 1"), ("--header cannot set Content-Length",)),
                (("http", url, "-X", "A B"), ("--method",)), (("http", url, "--close", "-P", "2"), ("--pipeline",)),
                (("http", url, "--resume"), ("--close",)), (("http", url, "--data", "@/nowhere"), ("/nowhere",)),
                (("http", url, "--data", "@/"), ("the file / cannot be read",)),
                (("http", url, "--data", "@/dev/zero"), ("/dev/zero has more than",)),
                (("http", url, "--io-backend", "sim"), ("--io-backend",)), (("http", url, "--rate", "0"), ("--rate",)),
                (("htpp",), ("there is no `eddy bench htpp`", "resp, http, ws")), (("htpp", "--help"), ("no `eddy",))):
            process = subprocess.run([harness.BINARY, "bench", *words], capture_output=True, text=True, check=False)
            with self.subTest(words=words):
                self.assertEqual(process.returncode, 1, process)
                for text in texts:
                    self.assertIn(text, process.stderr)
        self.assert_given_up(self.bench("http", url), f"127.0.0.1:{url.split(':')[2][:-1]}")
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.assert_given_up(self.bench("http", url, "--server-pid", str(ended.pid)), f"no process {ended.pid}")

    def test_help_has_examples_whose_flags_exist(self):
        for name in ("http", "ws", "handoff", "shm"):
            for words in (("bench", name, "--help"), ("help", "bench", name)):
                process = subprocess.run([harness.BINARY, *words], capture_output=True, text=True, check=True)
                flags, examples = process.stdout.split("Examples:")
                found = re.findall(rf"^ *(eddy bench {name} .*)$", examples, re.M)
                self.assertGreaterEqual(len(found), 3)
                for flag in re.findall(r" (--[a-z-]+)", "\n".join(found)):
                    self.assertRegex(flags, rf"(?m)^.*{flag}( |$)")
        for words in (("bench", "--help"), ("help", "bench")):
            text = subprocess.run([harness.BINARY, *words], capture_output=True, text=True, check=True).stdout
            for name in ("resp", "http", "ws", "handoff", "shm"):
                self.assertIn(f"eddy bench {name} ", text)


@harness.on_each_backend
class BenchWs(Case):
    def ws(self, server, *words, status=0):
        return self.report("ws", f"ws://127.0.0.1:{server.port}/echo", "--warm-up", "0", *words, status=status)

    def test_echoes(self):
        for size, opcode, words in ((20, 2, ()), (0, 2, ()), (1024, 1, ("--text",)), (65536, 2, ("-P", "4")),
                                    (20, 2, ("-P", "16", "--threads", "2")), (20, 2, ("--rate", "2000"))):
            server = EchoServer(self, echo)
            row = self.ws(server, "-n", "200", "-c", "3", "--size", str(size), *words)
            self.assertEqual((row["test"], row["requests"], row["errors"]), ("ws", 200, 0), row)
            pipeline = row["pipeline"]
            self.assertEqual(len(server.commands), 200 + FIRST + pipeline)
            self.assertEqual({got[0] for got in server.commands}, {opcode})
            self.assertEqual({len(got[1]) for got in server.commands}, {size})

    def test_other_framings_and_pings(self):
        def answer(got, number):
            opcode, payload = got
            if opcode == 10:
                pongs.append(payload)
                return b""
            if number % 3 == 0:
                return frame(9, b"ping") + bytes([opcode, 5]) + payload[:5] + frame(0, payload[5:])
            return echo(got, number)
        pongs = []
        row = self.ws(EchoServer(self, answer), "-n", "100", "-c", "1")
        self.assertEqual((row["requests"], row["errors"]), (100, 0))
        self.assertEqual(set(pongs), {b"ping"})

    def test_wrong_echoes(self):
        def wrong_at(which):
            return EchoServer(self, lambda got, number: frame(got[0], got[1][:-1] + b"\0") if number in which
                              else echo(got, number))
        server = wrong_at({2})
        self.assert_given_up(self.bench("ws", f"ws://127.0.0.1:{server.port}/", "--text"),
                             "an echo differs from the message")
        row = self.ws(wrong_at({40, 50, 60}), "-n", "100", "-c", "2", "--text", status=2)
        self.assertEqual((row["errors_by_kind"]["content"], row["requests"]), (3, 100))
        row = self.ws(wrong_at({1, 40, 50, 60}), "-n", "100", "-c", "2", "--text", "--no-verify")
        self.assertEqual(row["errors"], 0)

    def test_a_server_that_closes(self):
        server = EchoServer(self, lambda got, number: frame(8, b"\x03\xe9bye") if number == 50 else echo(got, number))
        row = self.ws(server, "-n", "100", "-c", "1", status=2)
        self.assertEqual((row["errors_by_kind"]["closed"], row["requests"]), (1, 99))
        self.assertIn("1001 bye", row["first_error"])
        server = EchoServer(self, lambda got, number: None if number == 50 else echo(got, number))
        row = self.ws(server, "-n", "100", "-c", "1")
        self.assertEqual((row["reconnects"], row["requests"]), (1, 100))

    def test_a_server_that_leaves_upgrades_unanswered(self):
        server = HttpServer(self, lambda request, number: b"")
        self.assert_given_up(self.bench("ws", f"ws://127.0.0.1:{server.port}/", "--timeout", "1"), "no byte came for 1 s")

    def test_no_websocket(self):
        server = HttpServer(self, lambda request, number: response(status=b"404 No"))
        self.assert_given_up(self.bench("ws", f"ws://127.0.0.1:{server.port}/"), "opens no WebSocket: status 404")


if __name__ == "__main__":
    harness.main()
