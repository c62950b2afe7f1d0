#!/usr/bin/env python3
"""Stream runtimes: web servers that hand real clients over, the foreground program, the load generator."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import harness
from harness import BINARY, DEADLINE_S, eventually, free_port, line_of

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "streaming")


def hand_over(path, descriptors, message, kind=socket.SOCK_SEQPACKET):
    with socket.socket(socket.AF_UNIX, kind) as sender:
        sender.settimeout(DEADLINE_S)
        sender.connect(path)
        socket.send_fds(sender, [message], descriptors)


def new_client(path, message=b"{}", kind=socket.SOCK_SEQPACKET):
    """Hands one end of a new connection over; returns the other."""
    mine, theirs = socket.socketpair()
    mine.settimeout(DEADLINE_S)
    with theirs:
        hand_over(path, [theirs.fileno()], message, kind)
    return mine


def answer_of(client):
    with client:
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def why_no_php():
    """Why the PHP example cannot run here; empty where it can."""
    if not shutil.which("php"):
        return "there is no php (apt: php-cli)"
    loaded = subprocess.run(["php", "-m"], capture_output=True, text=True, timeout=DEADLINE_S).stdout.split()
    return "" if "sockets" in loaded else "this php has no extension sockets"


@harness.on_each_backend
class Streams(harness.EddyTest):
    def setUp(self):
        self.path = os.path.join(self.folder(), "handoff.sock")
        self.running = self.daemon()

    def create(self, *flags):
        self.running.must("create", "stream", "llm", "--handoff", f"unix://{self.path}", *flags, "-s")

    def web_server(self, *command, stderr=subprocess.DEVNULL):
        port = free_port()
        server = subprocess.Popen([*command, str(port), self.path], stderr=stderr)
        self.addCleanup(server.wait, DEADLINE_S)
        self.addCleanup(server.kill)
        eventually(lambda: self.accepts(port), "the web server")
        return port

    @staticmethod
    def accepts(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def assert_curl_sees_tokens(self, port):
        if not shutil.which("curl"):
            self.skipTest("there is no curl")
        url = f"http://127.0.0.1:{port}/?user=7&prompt=hello"
        with subprocess.Popen(["curl", "-sSN", "--max-time", "60", url], stdout=subprocess.PIPE) as curl:
            self.assertIn(b"Prompt: hello", curl.stdout.readline())
            # The next one takes an hour: the first was seen when it came.
            eventually(lambda: self.running.show("llm")["connections"] == 1, "the stream")
            curl.kill()
        eventually(lambda: self.running.show("llm")["connections"] == 0, "the hang-up")

    def test_a_python_web_server_hands_clients_over(self):
        self.create("--delay", "1h")
        port = self.web_server(sys.executable, os.path.join(EXAMPLES, "hand_over.py"))
        self.assert_curl_sees_tokens(port)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=DEADLINE_S)
        self.assertEqual(refused.exception.code, 401, "the web server still decides")

    def test_a_larger_send_buffer_takes_a_larger_message(self):
        """The kernel's limits, as docs/streaming.md has them."""
        self.create("--messages", "1", "--max-message", "1MiB")
        with open("/proc/sys/net/core/wmem_max", encoding="ascii") as file:
            largest = 2 * int(file.read()) - 32
        message = b'{"prompt":"large","padding":"%s"}' % (b"x" * (min(largest, 1 << 20) - 100))

        def answer(size):
            mine, theirs = socket.socketpair()
            mine.settimeout(DEADLINE_S)
            with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
                sender.connect(self.path)
                if size:
                    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
                socket.send_fds(sender, [message], [theirs.fileno()])
            return answer_of(mine)

        self.assertIn(b"Prompt: large", answer(1 << 20))
        with open("/proc/sys/net/core/wmem_default", encoding="ascii") as file:
            if len(message) > int(file.read()) - 32:
                with self.assertRaises(OSError) as refused:
                    answer(None)
                self.assertEqual(refused.exception.errno, errno.EMSGSIZE)

    def test_a_client_that_connects_again_gets_what_it_missed(self):
        self.create("--delay", "1ms", "--messages", "5", "--replay-memory", "1MiB")
        url = f"http://127.0.0.1:{self.web_server(sys.executable, os.path.join(EXAMPLES, 'hand_over.py'))}/?user=7&request=a"
        with urllib.request.urlopen(url, timeout=DEADLINE_S) as whole:
            events = whole.read()
        self.assertTrue(events.startswith(b"id: 1\ndata: "), events)
        again = urllib.request.Request(url, headers={"Last-Event-ID": "3"})
        with urllib.request.urlopen(again, timeout=DEADLINE_S) as rest:
            self.assertEqual(rest.read(), events[events.index(b"id: 4\n"):])

    def test_a_php_script_hands_clients_over(self):
        if why_no_php():
            self.skipTest(why_no_php())
        self.create("--delay", "1h")
        # Its probe's connection has gone at once.
        with open(os.path.join(self.folder(), "said"), "w+", encoding="utf-8") as said:
            php = ("php", "-d", "display_errors=stderr", os.path.join(EXAMPLES, "hand_over.php"))
            self.assert_curl_sees_tokens(self.web_server(*php, stderr=said))
            said.seek(0)
            self.assertEqual(said.read(), "", "no bytes of the client are lost")

    @harness.needs("scripts")
    def test_the_example_of_a_script(self):
        self.create("--source", "lua", "--lua", os.path.join(EXAMPLES, "answer.lua"))
        answer = answer_of(new_client(self.path, b'{"user_id":7,"prompt":"two words"}'))
        self.assertTrue(answer.endswith(b'\r\n\r\nevent: number\ndata: 1\n\ndata: {"content":"two "}\n\n'
                                        b'data: {"content":"words "}\n\ndata: [DONE]\n\n'), answer)
        self.assertIn(b"user 7.", answer_of(new_client(self.path, b'{"user_id":7}')))

    @harness.needs("scripts")
    def test_a_script_with_a_mistake_is_refused_before_anything_changes(self):
        script = os.path.join(self.folder(), "answer.lua")

        def write(text):
            with open(script, "w", encoding="utf-8") as file:
                file.write(text)

        words = ("create", "stream", "llm", "--handoff", f"unix://{self.path}", "--source", "lua", "--lua", script)
        faults = (("function handle(request) sned('x') end function on_strt() end",
                   "answer.lua:1: there is no callback on_strt; did you mean on_start?"),
                  ("function handle(request)\n self.lgo('x') end",
                   "answer.lua:2: there is no function self.lgo; did you mean self.log?"),
                  ("function handle(", "answer.lua:1: "), ("x = 1", "handle"))
        for text, fault in faults:
            write(text)
            for flags in (), ("-s",):
                self.assert_refused(self.running.run(*words, *flags), 1, "--lua", fault)
            self.assertEqual(self.running.list(), {})
        write("function handle(request) send('fine') end")
        self.running.must(*words, "-s")
        for text, fault in faults:
            write(text)
            for command in ("edit", "llm", "--max-connections", "7"), ("reload-lua", "llm"):
                self.assert_refused(self.running.run(*command), 1, fault)
        self.assertIn(b"fine", answer_of(new_client(self.path, b'{"user_id":7}')))

    def test_it_is_seen_and_drained(self):
        self.create("--delay", "10ms", "--messages", "20")
        clients = [new_client(self.path, json.dumps({"user_id": i}).encode()) for i in range(50)]
        eventually(lambda: self.running.metric("eddy_stream_handoffs_total", runtime="llm", type="stream") == 50, "the handoffs")
        self.running.must("stop", "llm")
        for number, client in enumerate(clients):
            answer = answer_of(client)
            self.assertIn(b'User ID: %d"' % number, answer)
            self.assertTrue(answer.endswith(b"data: [DONE]\n\n"), answer)
        self.assertIn("Peak concurrent streams: ", self.running.must("logs", "llm"))
        self.assertFalse(os.path.exists(self.path))

    def test_garbage_of_every_kind_leaves_it_serving(self):
        self.create("--messages", "1")
        mine, theirs = socket.socketpair()
        with mine, theirs, open("/dev/null", "rb") as null:
            for message in (b"{", b"\xff\xfe", b"[" * 10_000, b"{}" * 40, b'{"a":"' + b"x" * 150_000 + b'"}'):
                for descriptors in ([], [null.fileno()], [theirs.fileno()], [theirs.fileno()] * 50):
                    hand_over(self.path, descriptors, message)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(self.path)
            self.assertIn(b"[DONE]", answer_of(new_client(self.path)))

    def test_a_full_table_of_descriptors_loses_no_client(self):
        """A message that finds no room for its descriptor arrives without it: accepting stops before."""
        running = self.daemon(limit_files=1024)
        running.must("create", "stream", "s", "--handoff", f"unix://{self.path}", "--delay", "1h", "-s")
        clients = [new_client(self.path) for _ in range(900)]
        self.addCleanup(lambda: [each.close() for each in clients])

        def served():
            return running.metric("eddy_stream_handoffs_total", runtime="s", type="stream")

        eventually(lambda: served() > 0, "the first handoffs")
        for each in clients:
            if served() < 900:
                each.close()  # makes room where each client takes a descriptor
        eventually(lambda: served() == 900, "all handoffs")
        self.assertNotIn("lost_descriptor", running.request("GET", "/metrics")[1])


class StreamDaemonTest(harness.EddyTest):
    """With `eddy stream-daemon`, at `path`, or at that of the environment."""

    def start(self, *flags, env=None, is_ready=True):
        self.path = os.path.join(self.folder(), "s.sock")
        command = [BINARY, "stream-daemon", *flags]
        if not env:
            command += ["-socket", self.path]
        program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait, DEADLINE_S)
        self.addCleanup(program.kill)
        if is_ready:
            self.await_ready(program)
        return program

    @staticmethod
    def await_ready(program):
        """Its socket listens before, its metrics' port only then. What it prints later stays unread."""
        lines = []

        def read():
            for line in iter(program.stderr.readline, ""):
                lines.append(line)
                if line.startswith("eddy stream-daemon ready: "):
                    return
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        reader.join(DEADLINE_S)
        if not lines or not lines[-1].startswith("eddy stream-daemon ready: "):
            program.kill()
            raise AssertionError(f"the program did not become ready; it printed {lines}")


class StreamDaemon(StreamDaemonTest):
    def test_runs_in_the_foreground_and_prints_its_peak(self):
        port = free_port()
        program = self.start("-message-delay", "5ms", "-messages=4", "-metrics-addr", f"127.0.0.1:{port}")
        answers = [answer_of(client) for client in [new_client(self.path) for _ in range(10)]]
        self.assertTrue(all(each.endswith(b"4 of 4.\"}\n\ndata: [DONE]\n\n") for each in answers), answers)

        def page(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=DEADLINE_S) as got:
                return got.read().decode()

        self.assertEqual(page("/healthz"), "ok\n")
        counted = page("/metrics")
        for line in ("daemon_handoffs_total 10", "daemon_connections_total 10", "daemon_chunks_sent_total 40",
                     "daemon_active_connections 0", "daemon_stream_duration_seconds_count 10"):
            self.assertIn(line + "\n", counted)
        late = new_client(self.path)
        late.recv(1)
        program.send_signal(signal.SIGTERM)
        self.assertTrue(answer_of(late).endswith(b"data: [DONE]\n\n"), "streams end before the program does")
        out = program.stderr.read()
        self.assertEqual(program.wait(DEADLINE_S), 0)
        self.assertRegex(out, r"Peak concurrent streams: \d+\n")

    def test_takes_its_options_from_the_environment(self):
        path = os.path.join(self.folder(), "e.sock")
        self.start(env={"DAEMON_SOCKET_PATH": path, "DAEMON_SOCKET_MODE": "0602", "DAEMON_MAX_CONNECTIONS": "1",
                        "DAEMON_SOCKET_TYPE": "stream", "DAEMON_MESSAGE_DELAY": "1h"})
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o602)
        with new_client(path, kind=socket.SOCK_STREAM) as first:
            self.assertTrue(first.recv(1 << 16).startswith(b"HTTP/1.1 200 "))
            refused = answer_of(new_client(path, kind=socket.SOCK_STREAM))
            self.assertTrue(refused.startswith(b"HTTP/1.1 503 "), refused)

    def test_takes_openai_from_the_environment(self):
        path, api = (os.path.join(self.folder(), name) for name in ("s.sock", "api.sock"))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(api)
            listening.listen()
            self.start(env={"DAEMON_SOCKET_PATH": path, "DAEMON_BACKEND_PROVIDER": "openai",
                            "OPENAI_API_BASE": "http://model/v2", "OPENAI_API_SOCKET": api, "OPENAI_API_KEY": "sk-2"})
            client = new_client(path, b'{"prompt":"hi"}')
            peer = listening.accept()[0]
        with peer:
            asked = b""
            while b'"hi"' not in asked:
                asked += peer.recv(1 << 16)
            self.assertIn(b"POST /v2/chat/completions", asked)
            self.assertIn(b"Bearer sk-2", asked)
            peer.sendall(b"HTTP/1.1 200 OK\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hm\"}}]}\n\n"
                         b"data: [DONE]\n\n")
            self.assertTrue(answer_of(client).endswith(b'data: {"content":"Hm"}\n\ndata: [DONE]\n\n'))

    def test_refuses_what_it_cannot_use(self):
        for flags, text in ((("-socket-mode", "9"), "--mode"), (("-messages", "0"), "messages"),
                            (("-metrics-addr", "here"), "--metrics-addr"), (("-backend", "x"), "--source"),
                            (("-workers", "0"), "--workers"), (("-workers", "65"), "--workers"),
                            (("-io-backend", "sim"), "--io-backend"), (("-backend", "exec"), "--exec")):
            program = self.start(*flags, is_ready=False)
            self.assertIn(text, program.stderr.read())
            self.assertNotEqual(program.wait(DEADLINE_S), 0)

    def test_the_load_generator_streams_a_thousand(self):
        self.start("-message-delay", "10ms", "-messages", "18")
        report = os.path.join(self.folder(), "report.json")
        done = subprocess.run([BINARY, "bench", "handoff", "-socket", self.path, "-connections", "1000", "-ramp-up",
                               "500ms", "-hold", "60s", "-output", report], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done)
        with open(report, encoding="utf-8") as file:
            counted = json.load(file)
        self.assertEqual(counted["connections_started"], 1000)
        self.assertEqual(counted["connections_completed"], 1000)
        self.assertEqual(counted["connections_failed"], 0)
        self.assertEqual(counted["incomplete_responses"], 0)


if __name__ == "__main__":
    harness.main()
