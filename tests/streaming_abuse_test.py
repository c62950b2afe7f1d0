#!/usr/bin/env python3
"""Abuse of stream runtimes: handoffs that are none, clients that leave or never read, backends that fail, other users,
and ends of the daemon under load."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import unittest

import harness
from harness import DEADLINE_S, OTHER_USER, as_user, eventually
from streaming_test import answer_of, hand_over, new_client

KINDS = {"seqpacket": socket.SOCK_SEQPACKET, "stream": socket.SOCK_STREAM}
MANY = 2_000 if harness.sanitized() else 10_000
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
needs_many_files = unittest.skipIf(FILES < MANY + 1000, f"needs {MANY + 1000} open files")

# Hands one end of a new connection over, as another user; prints the errno that refuses it, or what the client gets.
SENDER = """
import errno, socket, sys
mine, theirs = socket.socketpair()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
    try:
        sender.connect(sys.argv[1])
        socket.send_fds(sender, [b"{}"], [theirs.fileno()])
    except OSError as error:
        sys.exit(errno.errorcode[error.errno])
theirs.close()
mine.settimeout(60)
print(b"".join(iter(lambda: mine.recv(65536), b"")).decode(), end="")
"""


def tcp_pair():
    """A client's connection over TCP, and the web server's end of it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname(), timeout=DEADLINE_S)
        return client, listening.accept()[0]


def reset(client):
    """Closes so that the peer gets an RST."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


class Streams(harness.EddyTest):
    """With a daemon, and runtimes that take handoffs at `path`."""

    flags = ()

    def setUp(self):
        # The daemon takes the limit over; on epoll each of its clients is a file.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.path = os.path.join(self.folder(), "s")
        self.running = self.daemon(flags=self.flags)

    def create(self, *flags, name="llm", path=None):
        self.running.must("create", "stream", name, "--handoff", f"unix://{path or self.path}", *flags, "-s")

    def metric(self, name, runtime="llm", **labels):
        return self.running.metric(f"eddy_stream_{name}", runtime=runtime, type="stream", **labels) or 0

    def active(self, runtime="llm"):
        return self.metric("active_streams", runtime)

    def await_error(self, reason, count=1, kind="handoff", runtime="llm"):
        eventually(lambda: self.metric(f"{kind}_errors_total", runtime, reason=reason) == count, f"{count} of {reason}")

    def many(self, count=MANY, message=b'{"prompt":"many"}'):
        """New clients, handed over as fast as it goes."""
        clients = []
        self.addCleanup(lambda: [each.close() for each in clients])
        for _ in range(count):
            mine, theirs = socket.socketpair()
            # Without a timeout, so that it waits while the queue of the listener is full.
            with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
                sender.connect(self.path)
                socket.send_fds(sender, [message], [theirs.fileno()])
            mine.settimeout(DEADLINE_S)
            clients.append(mine)
        return clients

    def assert_serves(self, path=None, kind=socket.SOCK_SEQPACKET):
        answer = answer_of(new_client(path or self.path, kind=kind))
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"), answer)


@harness.on_each_backend
class Handoffs(Streams):
    def on_both_kinds(self):
        for name, kind in KINDS.items():
            path = os.path.join(self.folder(), "s")
            self.create("--handoff-type", name, "--messages", "1", name=name, path=path)
            self.assert_serves(path, kind)
            yield name, path, kind

    def test_without_a_client(self):
        """No descriptor, and descriptors that are no connected stream socket."""
        for name, path, kind in self.on_both_kinds():
            before = self.running.open_files()
            hand_over(path, [], b"{}", kind)
            self.await_error("no_descriptor", runtime=name)
            with contextlib.ExitStack() as held:
                pipe = [held.enter_context(open(end, "rb")) for end in os.pipe()[:1]]
                listening = held.enter_context(socket.create_server(("127.0.0.1", 0)))
                datagram = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                unconnected = held.enter_context(socket.socket(socket.AF_INET))
                for what, reason in ((pipe[0], "not_a_socket"), (listening, "listening_socket"),
                                     (datagram, "not_a_stream_socket"), (unconnected, "not_connected")):
                    hand_over(path, [what.fileno()], b"{}", kind)
                    self.await_error(reason, runtime=name)
                # It is left alone.
                with harness.connect(listening.getsockname()[1]) as client:
                    listening.accept()[0].close()
                    self.assertEqual(client.recv(1), b"")
            self.assertEqual(self.active(name), 0)
            self.assert_serves(path, kind)
            eventually(lambda: self.running.open_files() <= before, "no descriptor is kept")

    def test_with_two_descriptors_serve_the_first(self):
        for _, path, kind in self.on_both_kinds():
            first, theirs = socket.socketpair()
            second, others = socket.socketpair()
            for each in (first, second):
                each.settimeout(DEADLINE_S)
            with theirs, others:
                hand_over(path, [theirs.fileno(), others.fileno()], b"{}", kind)
            self.assertTrue(answer_of(first).endswith(b"data: [DONE]\n\n"))
            self.assertEqual(answer_of(second), b"", "the second was closed")

    def test_of_clients_that_have_closed_already(self):
        for name, path, kind in self.on_both_kinds():
            before = self.running.open_files()
            for make, leave in ((socket.socketpair, socket.socket.close), (tcp_pair, socket.socket.close), (tcp_pair, reset)):
                client, theirs = make()
                leave(client)
                with theirs:
                    hand_over(path, [theirs.fileno()], b"{}", kind)
            eventually(lambda: self.metric("handoffs_total", name) == 4, "the handoffs")
            eventually(lambda: self.active(name) == 0, "the end of each")
            self.assert_serves(path, kind)
            eventually(lambda: self.running.open_files() <= before, "no descriptor is kept")

    def test_with_bad_messages(self):
        cases = [(message, 400, "malformed_message") for message in
                 (b"{", b"[]", b"null", b'"text"', b"{}{}", b'{"prompt":7}', b'{"a":"\xff"}', b"\xff\xfe{}", b'{"a":1,}',
                  b'{"a":' + b"[" * 10_000, b"\0{}", b"{\0}", b'{"prompt":"a\0b"}')]
        cases += [(b'{"a":"' + b"x" * 150_000 + b'"}', 413, "message_too_large")]
        for name, path, kind in self.on_both_kinds():
            for message, status, _ in cases:
                client, theirs = socket.socketpair()
                client.settimeout(DEADLINE_S)
                # A sender over a stream may be refused before it has sent all.
                with theirs, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    hand_over(path, [theirs.fileno()], message, kind)
                answer = answer_of(client)
                self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), (message[:80], answer))
                self.assertIn(b'{"error":', answer)
            for reason in ("malformed_message", "message_too_large"):
                self.await_error(reason, sum(each[2] == reason for each in cases), runtime=name)
            # NULs alone are no message, and at the end they are those of a text in C.
            for message in (b"\0", b"{}\0", b"{}\0\0"):
                self.assertTrue(answer_of(new_client(path, message, kind)).endswith(b"data: [DONE]\n\n"), message)

    def test_cannot_inject_headers_or_events(self):
        self.create("--messages", "1")
        fields = {"X-Good": "yes", "X-A": "1\r\nEvil: 1", "X-B\r\nEvil": "1", "X-C": "1\nEvil: 1", "X-D": "1\rEvil: 1",
                  "X-E\0": "1", "X-F": "a\0b", "X G": "1", "": "1", "X-H:": "1", "Content-Length": "0", "content-type": "text/html",
                  "Transfer-Encoding": "chunked", "Connection": "keep-alive", "Keep-Alive": "1", "Upgrade": "x", "Trailer": "x"}
        message = {"prompt": "a\r\n\r\ndata: [DONE]\n\ndata: x", "response_headers": fields}
        head, _, body = answer_of(new_client(self.path, json.dumps(message).encode())).partition(b"\r\n\r\n")
        self.assertEqual(sorted(head.split(b"\r\n")), sorted([
            b"HTTP/1.1 200 OK", b"Content-Type: text/event-stream", b"Cache-Control: no-cache", b"Connection: close",
            b"X-Accel-Buffering: no", b"X-Good: yes", *re.findall(rb"Date: [^\r]+ GMT", head)]))
        event, end, rest = body.split(b"\n\n")
        self.assertEqual(json.loads(event.removeprefix(b"data: "))["content"][-len(message["prompt"]):], message["prompt"])
        self.assertNotIn(b"\n", event)
        self.assertEqual((end, rest), (b"data: [DONE]", b""))

    def test_of_other_users(self):
        if harness.why_no_other_user():
            self.skipTest(harness.why_no_other_user())
        folder = self.folder()
        os.chmod(folder, 0o755)

        def send(user, path):
            done = subprocess.run(as_user(user, sys.executable, "-c", SENDER, path), capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            return done.stdout or done.stderr.strip()

        for mode in ("0660", "0600"):
            path = os.path.join(folder, mode)
            self.create("--mode", mode, "--messages", "1", name="m" + mode, path=path)
            self.assertEqual(send(OTHER_USER, path), "EACCES", f"mode {mode}")
            self.assertIn("[DONE]", send(os.getuid(), path))
        path = os.path.join(folder, "open")
        self.create("--mode", "0666", "--messages", "1", "--allow-users", str(os.getuid()), path=path)
        # It may connect, and perhaps send; its client gets no answer.
        self.assertIn(send(OTHER_USER, path), ("", "EPIPE", "ECONNRESET"))
        self.await_error("peer_not_allowed")
        self.assertIn("[DONE]", send(os.getuid(), path))
        self.create("--mode", "0666", "--messages", "1", "--allow-users", f"root,{OTHER_USER}", name="both", path=path + "2")
        self.assertIn("[DONE]", send(OTHER_USER, path + "2"))


@harness.on_each_backend
class Clients(Streams):
    def slow_client(self, message=b"{}"):
        """One that reads nothing, and has little room for what it is sent."""
        mine, theirs = socket.socketpair()
        mine.settimeout(DEADLINE_S)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        with theirs:
            hand_over(self.path, [theirs.fileno()], message)
        self.addCleanup(mine.close)
        return mine

    def test_that_never_read_end_at_the_limit_of_their_queue(self):
        self.create("--delay", "1ms", "--messages", "10000", "--max-queue", "10KiB")
        never = [self.slow_client() for _ in range(20)]
        self.await_error("client_too_slow", 20, kind="stream")
        self.assertEqual(self.active(), 0)
        for each in never:
            self.assertNotIn(b"[DONE]", answer_of(each))

    def test_that_never_read_the_end_of_their_stream_are_closed(self):
        """The rest of their stream is below the queue's limit, so that alone does not end them."""
        self.create("--delay", "1ms", "--messages", "300", "--source-timeout", "200ms")
        before = self.running.open_files()
        never = [self.slow_client() for _ in range(20)]
        self.await_error("client_too_slow", 20, kind="stream")
        for each in never:
            self.assertNotIn(b"[DONE]", answer_of(each))
        eventually(lambda: self.running.open_files() <= before, "no descriptor is kept")

    @needs_many_files
    def test_ten_thousand_that_leave_at_once(self):
        self.create("--delay", "1h")
        before = self.running.open_files()
        for each in range(MANY):
            mine, theirs = socket.socketpair()
            if each % 2:
                mine.close()  # before it is handed over
            with mine, theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
                sender.connect(self.path)
                socket.send_fds(sender, [b"{}"], [theirs.fileno()])
        eventually(lambda: self.metric("handoffs_total") == MANY, "all handoffs")
        eventually(lambda: self.active() == 0, "the end of all")
        self.assert_begins()
        eventually(lambda: self.running.open_files() <= before, "no descriptor is kept")

    @needs_many_files
    def test_ten_thousand_that_leave_in_mid_stream(self):
        self.create("--delay", "1h")
        before = self.running.open_files()
        clients = self.many()
        eventually(lambda: self.active() == MANY, "all streams")
        for each in clients:
            self.assertTrue(each.recv(65536).startswith(b"HTTP/1.1 200 "))
        for each in clients:
            each.close()
        self.await_error("client_hung_up", MANY, kind="stream")
        self.assertEqual(self.active(), 0)
        self.assert_begins()
        eventually(lambda: self.running.open_files() <= before, "no descriptor is kept")

    def assert_begins(self):
        with new_client(self.path) as client:
            self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 200 "))

    def test_that_reset_their_connections(self):
        self.create("--delay", "1ms", "--messages", "10000")
        clients = []
        for _ in range(300):
            mine, theirs = tcp_pair()
            with theirs:
                hand_over(self.path, [theirs.fileno()], b"{}")
            clients.append(mine)
        for each in clients:
            each.recv(1)
            reset(each)
        eventually(lambda: self.active() == 0, "the end of all")
        self.assertEqual(self.metric("streams_total"), 0)


class Api:
    """A server on a port of its own, whose `behave(connection)` is called once a request has come."""

    def __init__(self, behave):
        self.behave, self.open = behave, 0
        self.lock = threading.Lock()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}/v1"
        self.accepting = threading.Thread(target=self.accept, daemon=True)
        self.accepting.start()

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.accepting.join(DEADLINE_S)
        self.listening.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listening.accept()[0],), daemon=True).start()

    def serve(self, connection):
        with self.lock:
            self.open += 1
        with contextlib.suppress(OSError), connection:
            connection.settimeout(DEADLINE_S)
            request = b""
            while True:
                head, end, body = request.partition(b"\r\n\r\n")
                if end and len(body) >= int(re.search(rb"(?i)content-length: (\d+)", head)[1]):
                    break
                piece = connection.recv(65536)
                if not piece:
                    break
                request += piece
            self.behave(connection)
        with self.lock:
            self.open -= 1


def without_chunks(body):
    """Content of a body in chunks, and whether it ends with the last one."""
    content = b""
    while body and not body.startswith((b"0\r\n\r\n", b"The content broke off.\r\n")):
        size, _, body = body.partition(b"\r\n")
        content += body[:int(size, 16)]
        body = body[int(size, 16) + 2:]
    return content, body == b"0\r\n\r\n"


def stall(connection):
    """Until the other side closes."""
    while connection.recv(65536):
        pass


def saying(*pieces, ends=socket.socket.close):
    """Sends this, and ends so."""
    def behave(connection):
        for each in pieces:
            connection.sendall(each)
        ends(connection)
    return behave


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
UNSIZED = HEAD + b"Connection: close\r\n\r\n"
TOKEN = b'data: {"choices":[{"delta":{"content":"tok"}}]}\n\n'
CHUNK = b"%x\r\n%b\r\n" % (len(TOKEN), TOKEN)
ERROR_500 = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\nsorry"

# A backend's behaviour, the reason of openai's last event, and the part of a proxied answer that arrives; None for a
# 502.
FAILURES = {
    "closes at once": (saying(), "backend_unreachable", None),
    "resets at once": (saying(ends=reset), "backend_unreachable", None),
    "answers 500": (saying(ERROR_500), "backend_status", b"sorry"),
    "breaks off in a chunk": (saying(CHUNKED, CHUNK, b"ff\r\nda"), "backend_broke_off", TOKEN + b"da"),
    "breaks off between chunks": (saying(CHUNKED, CHUNK), "backend_broke_off", TOKEN),
    "breaks off before its length": (saying(HEAD + b"Content-Length: 999\r\n\r\n", TOKEN), "backend_broke_off", TOKEN),
    "breaks off in its head": (saying(HEAD), "backend_unreachable", None),
    "ends without a mark": (saying(UNSIZED, TOKEN), "backend_broke_off", TOKEN),
    "is no HTTP": (saying(b"\xff\0garbage\r\n\r\n" * 100), "backend_malformed_head", None),
    "has a head without end": (saying(HEAD, b"X: y\r\n" * 200_000), "backend_malformed_head", None),
    "has a bad field": (saying(HEAD + b"Bad\0Field: x\r\n\r\n", TOKEN), "backend_malformed_head", None),
    "has a bad chunk size": (saying(CHUNKED, CHUNK, b"zz\r\n"), "backend_broke_off", TOKEN),
    "sends no JSON": (saying(UNSIZED, TOKEN, b"data: garbage\n\n"), "backend_malformed", TOKEN + b"data: garbage\n\n"),
    "sends an error": (saying(UNSIZED, TOKEN, b'data: {"error":{"message":"x"}}\n\n'), "backend_error",
                       TOKEN + b'data: {"error":{"message":"x"}}\n\n'),
    "sends bytes of no text": (saying(UNSIZED, TOKEN, b"data: \xff\xfe\0\n\n"), "backend_malformed", TOKEN + b"data: \xff\xfe\0\n\n"),
    "sends an event without end": (saying(UNSIZED, TOKEN, b"x" * 2_000_000), "backend_malformed", TOKEN + b"x" * 2_000_000),
}


@harness.on_each_backend
class Backends(Streams):
    def api(self, behave):
        made = Api(behave)
        self.addCleanup(made.close)
        return made

    def answer_from(self, backend, url, *flags):
        """Status and content of an answer, of a new runtime with this backend."""
        self.made = getattr(self, "made", 0) + 1
        self.name, path = f"s{self.made}", f"{self.path}{self.made}"
        self.create("--source", backend, "--source-url", url, *flags, name=self.name, path=path)
        answer = answer_of(new_client(path, b'{"prompt":"hi"}'))
        eventually(lambda: self.active(self.name) == 0, "the end of the stream")
        self.head, _, body = answer.partition(b"\r\n\r\n")
        if b"\r\nTransfer-Encoding: chunked" in self.head:
            body, self.is_whole = without_chunks(body)
        return int(self.head.split(b" ", 2)[1]), body

    def assert_error(self, body, reason, token=False):
        """Checks that a stream of openai's ended with this reason, and that it was counted."""
        self.assertNotIn(b"[DONE]", body)
        self.assertTrue(body.endswith(b'data: {"error":"%b"}\n\n' % reason.encode()), (reason, body[-200:]))
        self.assertEqual(body.count(b'data: {"content":"tok"}\n\n'), token)
        self.assertEqual(self.metric("stream_errors_total", self.name, reason=reason), 1, reason)

    def test_that_fail_end_their_streams_with_the_reason(self):
        for what, (behave, reason, proxied) in FAILURES.items():
            with self.subTest(what):
                api = self.api(behave)
                status, body = self.answer_from("openai", api.url)
                self.assertEqual(status, 200)
                self.assert_error(body, reason, TOKEN in (proxied or b""))
                status, body = self.answer_from("proxy", api.url)
                if proxied is None:
                    self.assertEqual((status, json.loads(body)), (502, {"error": reason}))
                else:
                    self.assertEqual(status, 500 if b"sorry" in proxied else 200)
                    self.assertEqual(body, proxied)
                if "its length" in what:
                    self.assertIn(b"\r\nContent-Length: 999", self.head, "so the client notices")
                elif proxied is not None and b"sorry" not in proxied:
                    # An answer that only the close ends may be whole.
                    self.assertEqual(self.is_whole, "breaks off" not in what and "chunk size" not in what, what)
                eventually(lambda: api.open == 0, "the backend has no connection")

    def test_that_refuse(self):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
            status, body = self.answer_from("openai", url)
            self.assertEqual(status, 200)
            self.assert_error(body, "backend_unreachable")
            status, body = self.answer_from("proxy", url)
            self.assertEqual((status, json.loads(body)), (502, {"error": "backend_unreachable"}))

    def test_that_fail_say_why_in_the_log(self):
        key = os.path.join(self.folder(), "key")
        with open(key, "w", encoding="utf-8") as file:
            file.write("sk-secret\n")
        body = b'{"error":{"message":"Incorrect API key provided: sk-secret\\u001b[2J.","code":"invalid_api_key"}}'
        api = self.api(saying(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)))
        _, answer = self.answer_from("openai", api.url, "--key-file", key)
        self.assert_error(answer, "backend_status")
        self.assertNotIn(b"Incorrect", answer)
        log = self.running.must("logs", self.name)
        self.assertIn("a stream failed: the source answered 401 Unauthorized: Incorrect API key provided: "
                      r"***\x1b[2J. (invalid_api_key)", log)
        self.assertNotIn("sk-secret", log)
        self.assertNotIn("sk-secret", self.running.read_log())
        self.assertEqual(self.metric("backend_responses_total", self.name, status="401"), 1)

    def test_that_have_a_bad_certificate(self):
        made = harness.Certificates(self.folder())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.cert, made.key)

        def shake_hands(listening):
            with contextlib.suppress(OSError):
                while True:
                    with contextlib.suppress(ssl.SSLError), listening.accept()[0] as plain:
                        context.wrap_socket(plain, server_side=True).close()

        listening = socket.create_server(("127.0.0.1", 0))
        serving = threading.Thread(target=shake_hands, args=(listening,), daemon=True)
        serving.start()
        self.addCleanup(listening.close)
        self.addCleanup(serving.join, DEADLINE_S)
        self.addCleanup(listening.shutdown, socket.SHUT_RDWR)
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/v1"
        _, body = self.answer_from("openai", url)
        self.assert_error(body, "backend_certificate")
        self.assertIn("certificate is not signed", self.running.must("logs", self.name))
        status, body = self.answer_from("proxy", url)
        self.assertEqual((status, json.loads(body)), (502, {"error": "backend_certificate"}))

    def test_that_stall(self):
        for pieces in ((), (HEAD,), (CHUNKED, CHUNK), (CHUNKED, CHUNK, b"5\r\nab")):
            api = self.api(saying(*pieces, ends=stall))
            status, body = self.answer_from("openai", api.url, "--source-timeout", "300ms")
            self.assertEqual(status, 200)
            self.assert_error(body, "backend_stalled", len(pieces) > 1)
            status, body = self.answer_from("proxy", api.url, "--source-timeout", "300ms")
            if len(pieces) < 2:
                self.assertEqual((status, json.loads(body)), (502, {"error": "backend_stalled"}))
            else:
                self.assertEqual((status, body), (200, TOKEN + (b"ab" if len(pieces) > 2 else b"")))
                self.assertFalse(self.is_whole)
            eventually(lambda: api.open == 0, "its request was cancelled")

    def test_lose_their_requests_with_clients_that_leave(self):
        api = self.api(saying(CHUNKED, CHUNK, ends=stall))
        self.create("--source", "openai", "--source-url", api.url)
        clients = self.many(300)
        for each in clients:
            while b"tok" not in each.recv(65536):
                pass
        self.assertEqual(api.open, 300)
        for each in clients:
            each.close()
        eventually(lambda: api.open == 0, "the end of all requests")
        self.await_error("client_hung_up", 300, kind="stream")

    def test_cannot_be_sent_fields_of_a_handoffs_making(self):
        seen = []

        def behave(connection):
            seen.append(1)
            saying(UNSIZED, TOKEN, b"data: [DONE]\n\n")(connection)

        api = self.api(behave)
        self.create("--source", "openai", "--source-url", api.url)
        message = {"prompt": "x\r\n\r\nGET / HTTP/1.1\r\n\r\n", "test_pattern": "a\r\nEvil: 1", "model": "m\r\nEvil: 1"}
        self.assertTrue(answer_of(new_client(self.path, json.dumps(message).encode())).endswith(b"data: [DONE]\n\n"))
        self.assertEqual(len(seen), 1)


@harness.on_each_backend
class Programs(Streams):
    """The exec backend."""

    def run_for(self, client, command, *flags, name="llm"):
        self.create("--source", "exec", "--exec", command, *flags, name=name)
        mine, theirs = client
        self.addCleanup(mine.close)
        mine.settimeout(DEADLINE_S)
        with theirs:
            hand_over(self.path, [theirs.fileno()], b"{}")
        return mine

    def test_that_cannot_start_or_fail_are_counted(self):
        self.create("--source", "exec", "--exec", "echo ready; exit 3", "--max-message", "1MiB")
        # A variable of the environment, and then all of it, has more than the kernel takes.
        refused = answer_of(new_client(self.path, b'{"a":"' + b"x" * 140_000 + b'"}'))
        self.assertTrue(refused.startswith(b"HTTP/1.1 413 "), refused)
        stack = resource.prlimit(self.running.pid, resource.RLIMIT_STACK)
        resource.prlimit(self.running.pid, resource.RLIMIT_STACK, (512 * 1024, stack[1]))
        refused = answer_of(new_client(self.path, b'{"a":"' + b"x" * 131_050 + b'"}'))
        resource.prlimit(self.running.pid, resource.RLIMIT_STACK, stack)
        self.assertTrue(refused.startswith(b"HTTP/1.1 502 "), refused)
        self.await_error("program_not_started")
        self.assertEqual(answer_of(new_client(self.path)), b"ready\n")
        self.await_error("program_failed", kind="stream")
        self.assertIn("a stream failed: the program ended with status 3", self.running.must("logs", "llm"))

    def test_end_with_what_they_started_when_their_client_leaves(self):
        for make in (socket.socketpair, tcp_pair):
            with socket.socket(socket.AF_UNIX) as listening:
                held = os.path.join(self.folder(), "held")
                listening.bind(held)
                listening.listen()
                listening.settimeout(DEADLINE_S)
                # Both the shell and the program that it waits for hold the connection.
                holder = (f"{sys.executable} -c 'import socket, time; s = socket.socket(socket.AF_UNIX); s.connect(\"{held}\"); "
                          "time.sleep(3600)'")
                client = self.run_for(make(), f"echo ready; {holder}; echo never")
                self.assertEqual(client.recv(6), b"ready\n")
                with listening.accept()[0] as program:
                    program.settimeout(DEADLINE_S)
                    client.close()
                    self.assertEqual(program.recv(1), b"", "the program has ended")
            eventually(lambda: self.active() == 0, "its stream's end")
            self.await_error("client_hung_up", kind="stream")
            self.running.must("remove", "-f", "llm")

    def test_kill_at_their_end_what_they_have_left_behind(self):
        with socket.socket(socket.AF_UNIX) as listening:
            held = os.path.join(self.folder(), "held")
            listening.bind(held)
            listening.listen()
            listening.settimeout(DEADLINE_S)
            echo = (f"{sys.executable} -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{held}\"); "
                    "[s.send(each) for each in iter(lambda: s.recv(1), b\"\")]'")
            for launcher, lives in (("", False), ("setsid ", True)):
                client = self.run_for(socket.socketpair(), f"{launcher}{echo} & head -c 1 >/dev/null; echo ready")
                with listening.accept()[0] as left:
                    left.settimeout(DEADLINE_S)
                    client.sendall(b"x")
                    self.assertEqual(answer_of(client), b"ready\n")
                    eventually(lambda: self.metric("streams_total") == 1, "the program's end")
                    if lives:
                        left.sendall(b"y")
                    self.assertEqual(left.recv(1), b"y" if lives else b"")
                self.running.must("remove", "-f", "llm")

    def test_that_ignore_a_hang_up_go_on(self):
        client = self.run_for(tcp_pair(), "trap '' HUP; echo ready; cat; echo bye")
        self.assertEqual(client.recv(6), b"ready\n")
        client.sendall(b"hello")
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(answer_of(client), b"hellobye\n")
        eventually(lambda: self.metric("streams_total") == 1, "its end")

    def test_that_ignore_a_hang_up_are_ended_at_the_limit(self):
        for ignored, on_term in (("HUP", "; trap 'touch TOLD; exit' TERM"), ("HUP TERM", "")):
            told = os.path.join(self.folder(), "told")
            client = self.run_for(tcp_pair(), f"trap '' {ignored}{on_term.replace('TOLD', told)}; echo ready; "
                                  "while :; do sleep 1; done", "--source-timeout", "100ms")
            self.assertEqual(client.recv(6), b"ready\n")
            client.close()
            eventually(lambda: self.active() == 0, "its place is free")
            self.assertEqual(os.path.exists(told), bool(on_term), "SIGTERM comes before SIGKILL")
            self.await_error("client_hung_up", kind="stream")
            self.running.must("remove", "-f", "llm")

    def test_end_their_connection_wherever_else_the_socket_is(self):
        """In what they have left behind, which ends with the client here, and in the web server."""
        for make in (socket.socketpair, tcp_pair):
            for command in ("cat <&1 & echo ready", "echo ready"):
                self.create("--source", "exec", "--exec", command)
                client, kept = make()
                client.settimeout(DEADLINE_S)
                with kept:
                    hand_over(self.path, [kept.fileno()], b"{}")
                    self.assertEqual(answer_of(client), b"ready\n")
                self.running.must("remove", "-f", "llm")

    def test_that_do_not_read_reset_no_connection(self):
        client, theirs = tcp_pair()
        client.sendall(b"unread" * 10_000)
        client = self.run_for((client, theirs), "head -c 3000000 /dev/zero")
        self.assertEqual(len(answer_of(client)), 3_000_000)

    def test_end_with_a_daemon_that_is_killed(self):
        client = self.run_for(socket.socketpair(), "echo ready; sleep 3600; echo never")
        ended = self.run_again("echo ready")
        self.assertEqual(answer_of(ended), b"ready\n", "one that has ended before")
        self.assertEqual(client.recv(6), b"ready\n")
        # The runtime's thread has gone on since it started the program: its guard knows of it.
        eventually(lambda: self.active() == 1, "the stream")
        self.running.kill()
        # It is open as long as the shell or sleep(1) runs.
        self.assertEqual(client.recv(1), b"")

    def run_again(self, command):
        self.path += "2"
        return self.run_for(socket.socketpair(), command, name="other")


@harness.on_each_backend
class Drain(Streams):
    flags = ("--drain", "60s")

    @needs_many_files
    def test_a_stop_under_ten_thousand_streams_cuts_none(self):
        for delay_s in (3, 10, 20):
            self.create("--delay", f"{delay_s}s", "--messages", "3")
            clients = self.many()
            # All live, none near its end: a busy machine may need slower streams.
            if eventually(lambda: self.metric("handoffs_total") == MANY, "all handoffs") and self.active() == MANY:
                break
            self.running.must("remove", "-f", "llm")
            for each in clients:
                each.close()
        else:
            self.fail("ten thousand streams were never there at a time")
        self.running.signal(signal.SIGTERM)
        whole = sum(answer_of(each).endswith(b"3 of 3.\"}\n\ndata: [DONE]\n\n") for each in clients)
        self.assertEqual(whole, MANY)
        self.assertEqual(self.running.wait(), 0)
        self.assertNotIn("lost", self.running.read_log())


@harness.on_each_backend
class ShortDrain(Streams):
    flags = ("--drain", "100ms")

    def test_a_stop_with_too_short_a_deadline_logs_what_it_cut(self):
        self.create("--delay", "1h")
        clients = self.many(500)
        eventually(lambda: self.active() == 500, "all streams")
        self.running.signal(signal.SIGTERM)
        for each in clients:
            self.assertNotIn(b"[DONE]", answer_of(each))
        self.assertEqual(self.running.wait(), 0)
        self.assertIn("stopped; lost 500 streams that had not ended", self.running.read_log())

    def test_what_a_client_has_not_read_of_an_ended_stream_is_cut(self):
        self.create("--delay", "1ms", "--messages", "300")
        mine, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        with mine, theirs:
            hand_over(self.path, [theirs.fileno()], b"{}")
            theirs.close()
            eventually(lambda: self.metric("streams_total") == 1, "the stream's end")
            self.running.signal(signal.SIGTERM)
            self.assertEqual(self.running.wait(), 0)
        self.assertIn("stopped; lost 1 streams that had not ended", self.running.read_log())


if __name__ == "__main__":
    harness.main()
