#!/usr/bin/env python3
"""The reference daemons of bench/streaming in Go, Python, Rust and PHP, and the suite's scripts.

A daemon whose toolchain is missing is skipped, and the reason printed.
"""

import contextlib
import importlib.util
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

import harness
from harness import DEADLINE_S, eventually
from streaming_load import hand_over

SUITE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench/streaming"))
LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "streaming_load.py")


def from_suite(name):
    path = os.path.join(SUITE, "scripts", name + ".py")
    spec = importlib.util.spec_from_file_location("streaming_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


daemons, analyze = from_suite("daemons"), from_suite("analyze")

HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\n"
        b"X-Accel-Buffering: no\r\n\r\n")
KINDS = {"stream": socket.SOCK_STREAM, "seqpacket": socket.SOCK_SEQPACKET}


def expected(language, prompt="", user="0", messages=18):
    """The whole answer. `prompt` and `user` are the insides of JSON strings."""
    texts = [f"Hello from {language}! Prompt: {prompt}", f"User ID: {user}"]
    texts += [f"This is message {number} of {messages}." for number in range(3, messages + 1)]
    return HEAD + "".join(f'data: {{"content":"{text}"}}\n\n' for text in texts[:messages]).encode() + b"data: [DONE]\n\n"


class Client:
    """A client's side of a handed-over connection."""

    def __init__(self, daemon, message, descriptors=1):
        self.stream, theirs = socket.socketpair()
        self.stream.settimeout(DEADLINE_S)
        with theirs:
            hand_over(daemon.socket, KINDS[daemon.kind], message, *[theirs.fileno()] * descriptors)

    def first(self):
        """The first bytes of the answer, which stay there."""
        return self.stream.recv(65536, socket.MSG_PEEK)

    def answer(self):
        """All of it, up to the close."""
        with self.stream:
            return b"".join(iter(lambda: self.stream.recv(65536), b""))


def ask(prompt="hello", user=1, **more):
    return json.dumps({"prompt": prompt, "user_id": user, **more}, ensure_ascii=False).encode()


class DaemonTests:
    """For a TestCase of each daemon."""

    name = language = None

    @classmethod
    def setUpClass(cls):
        try:
            cls.command = daemons.build(cls.name)
        except daemons.Missing as why:
            print(f"skipped: {cls.language}: {why}", file=sys.stderr)
            raise unittest.SkipTest(str(why)) from None

    def start(self, kind="seqpacket", delay_ms=5, **more):
        daemon = daemons.Daemon(self.name, self.command, kind=kind, delay_ms=delay_ms, **more).__enter__()
        self.addCleanup(shutil.rmtree, daemon.folder, ignore_errors=True)
        self.addCleanup(daemon.stop)
        return daemon

    def on_both_kinds(self, **more):
        for kind in KINDS:
            yield self.start(kind, **more)

    def answer_to(self, daemon, message, **more):
        return Client(daemon, message, **more).answer()

    def open_files(self, daemon):
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    def test_fifty_streams_at_once_are_whole(self):
        for daemon in self.on_both_kinds():
            clients = [Client(daemon, ask(f"question {number}", number)) for number in range(50)]
            for number, client in enumerate(clients):
                self.assertEqual(client.answer(), expected(self.language, f"question {number}", number))
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertGreaterEqual(daemon.peak, 1)

    def test_short_streams_end_with_the_mark(self):
        for messages in (1, 2, 3):
            daemon = self.start(messages=messages)
            self.assertEqual(self.answer_to(daemon, ask("x", 7)), expected(self.language, "x", 7, messages))

    def test_messages(self):
        """Messages that are accepted, and their form in the answer."""
        long = "ä\u2028😀" * 50
        cases = (
            (b"\0", "", "0"),
            (b"{}", "", "0"),
            (ask("a\"b\\c/d<e>&\b\f\n\r\t\x01\x7f", 2), "a\\\"b\\\\c/d<e>&\\b\\f\\n\\r\\t\\u0001\x7f", "2"),
            (ask(long, 3), long[:50], "3"),
            (ask("x", "user-\"4\""), "x", "user-\\\"4\\\""),
            (ask("x", 2**53 + 1), "x", str(2**53 + 1)),
            (ask("x", -1, messages=[{"role": "user"}], model="m"), "x", "-1"),
            (b'{"user_id":null,"prompt":7}', "", "0"),
            (ask("x" * 50, 5, more="y" * 100_000), "x" * 50, "5"),
        )
        for daemon in self.on_both_kinds(messages=2, delay_ms=1):
            for message, prompt, user in cases:
                self.assertEqual(self.answer_to(daemon, message), expected(self.language, prompt, user, 2), message[:80])

    def test_a_message_in_pieces(self):
        daemon = self.start("stream", messages=2)
        ours, theirs = socket.socketpair()
        message = ask("in pieces", 6)
        with ours, theirs, socket.socket(socket.AF_UNIX) as sender:
            ours.settimeout(DEADLINE_S)
            sender.connect(daemon.socket)
            socket.send_fds(sender, [message[:5]], [theirs.fileno()])
            theirs.close()
            for at in range(5, len(message)):
                sender.send(message[at:at + 1])
            self.assertEqual(b"".join(iter(lambda: ours.recv(65536), b"")), expected(self.language, "in pieces", 6, 2))

    def test_what_is_no_handoff_leaves_the_others_alone(self):
        for daemon in self.on_both_kinds(messages=2):
            # After an answer, all that the daemon needs for itself is open.
            self.answer_to(daemon, ask())
            before = self.open_files(daemon)
            for refused, status in ((b"{", 400), (b"[]", 400), (b"\0\0", 400)):
                self.assertRegex(self.answer_to(daemon, refused), b"^HTTP/1.1 %d " % status)
            hand_over(daemon.socket, KINDS[daemon.kind], ask())
            with socket.socket(socket.AF_UNIX, KINDS[daemon.kind]) as silent:
                silent.connect(daemon.socket)
            self.assertEqual(self.answer_to(daemon, ask(), descriptors=3), expected(self.language, "hello", 1, 2))
            eventually(lambda: self.open_files(daemon) <= before + 1, "all descriptors are closed")

    def test_a_message_that_is_too_long(self):
        daemon = self.start("stream")
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE_S)
        with ours, socket.socket(socket.AF_UNIX) as sender:
            sender.connect(daemon.socket)
            with theirs:
                socket.send_fds(sender, [b'{"prompt":"'], [theirs.fileno()])
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sender.sendall(b"x" * 1_000_000)
            self.assertRegex(b"".join(iter(lambda: ours.recv(65536), b"")), b"^HTTP/1.1 413 ")

    def test_over_the_cap(self):
        for daemon in self.on_both_kinds(connections=3, messages=100_000, delay_ms=20):
            held = [Client(daemon, ask()) for _ in range(3)]
            for client in held:
                self.assertTrue(client.first().startswith(HEAD))
            answer = self.answer_to(daemon, ask())
            self.assertRegex(answer, rb"^HTTP/1.1 503 [^\r]*\r\n(?s:.*)\r\nRetry-After: [0-9]+\r\n")
            for client in held:
                client.stream.close()

            def is_served():
                client = Client(daemon, ask())
                with client.stream:
                    return client.first().startswith(HEAD)

            eventually(is_served, "a stream more is allowed again")

    def test_a_client_that_leaves_ends_its_stream(self):
        daemon = self.start(messages=100_000, delay_ms=10)
        clients = [Client(daemon, ask()) for _ in range(5)]
        for client in clients:
            client.first()
        streaming = self.open_files(daemon)
        for client in clients:
            client.stream.close()
        eventually(lambda: self.open_files(daemon) <= streaming - 5, "no stream")

    def test_a_client_that_reads_late_gets_all(self):
        daemon = self.start(messages=20_000, delay_ms=0)
        late = Client(daemon, ask())
        late.first()
        # The late client's socket is full; others are served meanwhile.
        prompt = Client(daemon, ask("x", 2))
        whole = expected(self.language, "x", 2, 20_000)
        self.assertTrue(prompt.answer() == whole, "another one's answer")
        self.assertTrue(late.answer() == expected(self.language, "hello", 1, 20_000), "the late one's answer")

    def test_sigterm_drains(self):
        for daemon in self.on_both_kinds(messages=3, delay_ms=200):
            clients = [Client(daemon, ask()) for _ in range(20)]
            for client in clients:
                client.first()
            daemon.process.terminate()
            eventually(lambda: not os.path.exists(daemon.socket), "the socket has gone")
            for client in clients:
                self.assertEqual(client.answer(), expected(self.language, "hello", 1, 3))
            self.assertEqual(daemon.process.wait(DEADLINE_S), 0)
            daemon.stop()
            self.assertLessEqual(daemon.peak, 20)
            self.assertGreater(daemon.peak, 0)

    def test_workers_share_the_listener_and_the_cap(self):
        daemon = self.start(processes=3, connections=30, messages=100_000, delay_ms=20)
        clients = [Client(daemon, ask()) for _ in range(30)]
        for client in clients:
            self.assertTrue(client.first().startswith(HEAD))
        self.assertRegex(self.answer_to(daemon, ask()), b"^HTTP/1.1 503 ")
        self.assertEqual(daemons.find(daemon.socket), daemon.pid)
        for client in clients:
            client.stream.close()
        self.assertEqual(daemon.stop(), 0, daemon.log())
        self.assertEqual(daemon.peak, 30)

    def test_a_full_descriptor_table_loses_no_client(self):
        # Each process has room for some 80 streams; the rest waits in the queue.
        for processes in (1, 2):
            daemon = self.start(limit=128, processes=processes, messages=3, delay_ms=20)
            clients = [Client(daemon, ask("x", number)) for number in range(400)]
            for number, client in enumerate(clients):
                self.assertEqual(client.answer(), expected(self.language, "x", number, 3))
            self.assertEqual(daemon.stop(), 0, daemon.log())
            self.assertLessEqual(daemon.peak, 128 * processes)
            self.assertNotIn("without a client", daemon.log())

    def test_a_daemon_that_refuses_its_options_does_not_start(self):
        with self.assertRaises(daemons.Missing):
            self.start(messages=0)

    def test_metrics(self):
        daemon = self.start(messages=2, processes=2)
        if daemon.metrics_port is None:
            self.skipTest("it has no metrics")
        for _ in range(5):
            self.answer_to(daemon, ask())
        self.answer_to(daemon, b"{")

        def values():
            with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=DEADLINE_S) as response:
                return dict(re.findall(r"^(daemon_\S+) (\S+)$", response.read().decode(), re.M))

        eventually(lambda: values()["daemon_stream_duration_seconds_count"] == "5", "five streams have ended")
        found = values()
        for name, value in (("active_connections", 0), ("active_streams", 0), ("connections_total", 6),
                            ("connections_rejected_total", 0), ("handoffs_total", 6), ("chunks_sent_total", 10),
                            ("handoff_duration_seconds_count", 6), ("backend_ttfb_seconds_count", 5),
                            ('handoff_errors_total{reason="format"}', 1), ('stream_errors_total{reason="client_gone"}', 0),
                            ('stream_duration_seconds_bucket{le="+Inf"}', 5)):
            self.assertEqual(float(found["daemon_" + name]), value, name)
        self.assertEqual(int(found["daemon_bytes_sent_total"]), 5 * len(expected(self.language, "hello", 1, 2)))
        self.assertIn("daemon_peak_streams", found)


for _name, _language in (("go", "Go"), ("python", "Python"), ("rust", "Rust"), ("php", "PHP")):
    globals()[_language] = type(_language, (DaemonTests, unittest.TestCase),
                                {"name": _name, "language": _language, "__module__": __name__})


class OpenAi(unittest.TestCase):
    """The Rust daemon's backend of streamed chat completions, against a server that cuts its chunks anywhere."""

    EVENTS = ['{"choices":[{"delta":{"role":"assistant"}}]}', '{"choices":[{"delta":{"content":"Grüße, \\"you\\""}}]}',
              '{"choices":[{"delta":{"content":" and\\n all"}}]}', '{"choices":[{"delta":{},"finish_reason":"stop"}]}', "[DONE]"]

    def setUp(self):
        try:
            self.command = daemons.build("rust")
        except daemons.Missing as why:
            self.skipTest(str(why))
        self.requests = []

    def serve(self, status, body, size):
        """Answers one request with a chunked body, `size` bytes a chunk."""
        def answer():
            # The daemon closes where it needs no more.
            with contextlib.suppress(ConnectionError), listener, listener.accept()[0] as stream:
                stream.settimeout(DEADLINE_S)
                request = b""
                while b"\r\n\r\n" not in request:
                    request += stream.recv(65536)
                head, body_begin = request.split(b"\r\n\r\n", 1)
                length = int(re.search(rb"Content-Length: (\d+)", head).group(1))
                while len(body_begin) < length:
                    body_begin += stream.recv(65536)
                self.requests.append((head, json.loads(body_begin)))
                stream.sendall(f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
                for at in range(0, len(body), size):
                    stream.sendall(b"%x\r\n%b\r\n" % (len(body[at:at + size]), body[at:at + size]))
                stream.sendall(b"0\r\n\r\n")

        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=answer)
        thread.start()
        self.addCleanup(thread.join)
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    def answer(self, message, status="200 OK", events=None, size=1):
        body = "".join(f"data: {event}\n\n" for event in events or self.EVENTS).encode()
        environment = {"DAEMON_BACKEND_PROVIDER": "openai", "OPENAI_API_KEY": "key",
                       "OPENAI_API_BASE": self.serve(status, body, size)}
        with daemons.Daemon("rust", self.command, environment=environment) as daemon:
            return Client(daemon, message).answer()

    def test_contents_are_streamed(self):
        whole = HEAD + ('data: {"content":"Grüße, \\"you\\""}\n\ndata: {"content":" and\\n all"}\n\n').encode() + \
            b"data: [DONE]\n\n"
        for size in (1, 7, 10_000):
            self.assertEqual(self.answer(ask("x" * 60, model="small"), size=size), whole)
        head, body = self.requests[0]
        self.assertTrue(head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n"), head)
        self.assertIn(b"\r\nAuthorization: Bearer key\r\n", head)
        self.assertEqual(body, {"model": "small", "messages": [{"role": "user", "content": "x" * 60}], "stream": True})

    def test_a_backend_that_refuses_is_a_502(self):
        self.assertRegex(self.answer(ask(), status="500 No"), b"^HTTP/1.1 502 ")

    def test_a_backend_that_breaks_off_gives_no_mark_of_the_end(self):
        answer = self.answer(ask(), events=self.EVENTS[:2])
        self.assertTrue(answer.startswith(HEAD))
        self.assertNotIn(b"[DONE]", answer)


TABLE = """\
================================================================================
BENCHMARK COMPARISON
================================================================================

### Connection Statistics
Daemon           Started  Completed     Failed  Success %
----------------------------------------------------
go                  1000       1000          0      100.0%
rust                1000        999          1       99.9%

### Latency (milliseconds)
Daemon        Handoff p50  Handoff p99   TTFB p50   TTFB p99
--------------------------------------------------------
go                   0.02         0.04       0.10       0.20
rust                 0.02         0.03       0.21       0.43

### Memory (RSS in MB)
Daemon        Baseline       Peak      Delta  Per-Conn KB
--------------------------------------------------------
go                12.0       22.0       10.0         10.2
rust              18.0       33.0       15.0         15.4

### CPU Usage
Daemon          Avg %      Peak %    Threads
------------------------------------------
go                6.1        10.8       1005
rust                -         8.2          4

================================================================================
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="eddy-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_script(self, *words, status=0, **environment):
        done = subprocess.run(words, cwd=SUITE, capture_output=True, text=True, timeout=harness.SCRIPT_TIMEOUT_S,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", LOAD_GENERATOR=f"{sys.executable} {LOAD}",
                                       INTERVAL="0.1", **environment))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def store(self, name, load, samples):
        os.makedirs(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, name, "benchmark.json"), "w") as file:
            json.dump(load, file)
        with open(os.path.join(self.folder, name, "resources.csv"), "w") as file:
            file.write("timestamp,rss_kb,vsz_kb,threads,utime,stime,cpu_pct,active_conns\n" + samples)

    def test_the_analysis_of_two_daemons(self):
        self.store("go", {"connections_started": 1000, "connections_completed": 1000, "connections_failed": 0,
                          "handoff_latency_ms": {"p50": 0.02, "p99": 0.04}, "ttfb_latency_ms": {"p50": 0.1, "p99": 0.2}},
                   "100.000000000,12288,99,1004,0,0,0.0,\n101.000000000,22528,99,1005,1,1,10.8,\n"
                   "102.000000000,20480,99,1005,1,1,1.4,\n103.0000")
        self.store("rust", {"connections_started": 1000, "connections_completed": 999, "connections_failed": 1,
                            "handoff_latency_ms": {"p50": 0.02, "p99": 0.03}, "ttfb_latency_ms": {"p50": 0.21, "p99": 0.43}},
                   "100.000000000,18432,99,4,0,0,8.2,\n")
        # One sample gives no average, and no growth of memory.
        table = TABLE.replace("rust              18.0       33.0       15.0         15.4",
                              "rust              18.0       18.0        0.0          0.0")
        self.assertEqual(self.run_script(sys.executable, "scripts/analyze.py", self.folder), table)

    def test_the_analysis_shows_connections_of_metrics(self):
        self.store("go", {"connections_started": 1000}, "100.0,1024,9,1,0,0,0.0,0\n101.0,3072,9,1,0,0,0.0,500\n")
        shown = self.run_script(sys.executable, "scripts/analyze.py", self.folder)
        self.assertIn("### Peak Connections (Prometheus)\nDaemon              Peak\n------------------------\n"
                      "go                   500\n", shown)
        self.assertIn("go                 1.0        3.0        2.0          2.0", shown)

    def test_the_analysis_of_nothing_fails(self):
        self.run_script(sys.executable, "scripts/analyze.py", self.folder, status=1)

    def test_resources_are_those_of_all_processes(self):
        """The columns, and the sum over a process and its children."""
        out = os.path.join(self.folder, "resources.csv")
        sleeper = subprocess.Popen(["sh", "-c", "sleep 60 & a=$!; sleep 60 & read line; kill $a $!; wait"], stdin=subprocess.PIPE)
        collector = subprocess.Popen(["scripts/collect-resources.sh", str(sleeper.pid), out], cwd=SUITE,
                                     env=dict(os.environ, INTERVAL="0.05"))

        def last_threads():
            with contextlib.suppress(FileNotFoundError, IndexError):
                with open(out) as file:
                    return file.read().splitlines()[-1].split(",")[3]

        eventually(lambda: last_threads() == "3", "three processes are seen")
        sleeper.communicate(b"\n")
        self.assertEqual(collector.wait(DEADLINE_S), 0, "it ends with the process")
        with open(out) as file:
            header, *samples = file.read().splitlines()
        self.assertEqual(header, "timestamp,rss_kb,vsz_kb,threads,utime,stime,cpu_pct,active_conns")
        for sample in samples:
            self.assertRegex(sample, r"^\d+\.\d{9},\d+,\d+,\d+,\d+,\d+,\d+\.\d,$")

    def test_make_starts_measures_and_stops_a_daemon(self):
        if not shutil.which("make"):
            self.skipTest("there is no make")
        shown = self.run_script("make", "bench-python", "CONNECTIONS=20", "HOLD=1s", "RAMP_UP=1s", RESULTS=self.folder,
                                DELAY_MS="5", MESSAGES="4")
        self.assertRegex(shown, r"\npython +20 +20 +0 +100\.0%\n")
        self.assertRegex(shown, r"\nPeak concurrent streams: \d+\n")
        shown = self.run_script("make", "analyze", f"DIR={self.folder}")
        self.assertRegex(shown, r"\npython +20 +20 +0 +100\.0%\n")

    def test_a_benchmark_of_a_daemon_that_runs(self):
        with daemons.Daemon("python", daemons.build("python"), kind="stream", delay_ms=5, messages=4) as daemon:
            shown = self.run_script("scripts/run-benchmark.sh", "python", "10", "1s", "1s", RESULTS=self.folder,
                                    SOCKET=daemon.socket)
            self.assertRegex(shown, r"\npython +10 +10 +0 +100\.0%\n")
            self.assertIsNone(daemon.process.poll(), "it runs on")

    def test_the_full_suite(self):
        self.run_script("./run_full_benchmark.sh", "--levels", "5", "20", "--daemons", "python", "go", "--delay", "5",
                        "--messages", "4", "--interval", "0.1", "--output", self.folder)
        with open(os.path.join(self.folder, "REPORT.md")) as file:
            text = file.read()
        self.assertIn("## 5 connections", text)
        self.assertIn("## 20 connections", text)
        self.assertRegex(text, r"\| Success rate \| 100\.000 % ")
        self.assertIn("![Peak RSS](memory.svg)", text)
        for name in ("ttfb.svg", "memory.svg", "20/python/resources.csv", "20/python/daemon.log"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, name)), name)


class Files(unittest.TestCase):
    def test_the_processes_that_a_level_needs(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard == resource.RLIM_INFINITY:
            self.skipTest("there is no limit of open files")
        self.assertEqual(daemons.processes_for("go", 10), 1)
        for count in (hard, 5 * hard):
            self.assertGreater(daemons.processes_for("go", count) * (hard - daemons.RESERVED_DESCRIPTORS), count)
            self.assertEqual(daemons.processes_for("eddy", count), 1)


if __name__ == "__main__":
    harness.main()
