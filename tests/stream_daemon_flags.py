"""Tests of each flag of `eddy stream-daemon` by its effect, run by flags_test.py."""

import contextlib
import grp
import http.server
import json
import os
import socket
import ssl
import threading

from flag_effects import effect_of, read_text
from harness import DEADLINE_S, Certificates, all_of, connect, eventually, free_port, needs
from streaming_test import StreamDaemonTest, answer_of, hand_over, new_client


class Model(http.server.ThreadingHTTPServer):
    """An API of chat completions: keeps the requests, and answers each with one piece and the end, or with the piece alone."""
    daemon_threads = True

    def __init__(self, tls=None, is_whole=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.is_whole, self.ending = [], is_whole, threading.Event()
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_address[1]}/v1"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *failure):
        self.ending.set()
        self.shutdown()
        super().__exit__(*failure)

    def handle_error(self, request, client_address):
        """A client that leaves early, or does not trust the certificate, is part of the tests."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers.items()), body))
        self.wfile.write(b'HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n'
                         b'data: {"choices":[{"delta":{"content":"Good"}}]}\n\n')
        if self.server.is_whole:
            self.wfile.write(b"data: [DONE]\n\n")
        else:
            self.server.ending.wait(DEADLINE_S)

    def log_message(self, *_args):
        pass


def children_of(program):
    return read_text(f"/proc/{program.pid}/task/{program.pid}/children").split()


class StreamDaemonFlags(StreamDaemonTest):
    @effect_of("stream-daemon", "socket", "socket-mode", "socket-type", "messages", "source", "max-connections", "max-message",
               "message-delay")
    def test_the_runtime(self):
        self.start("--socket-mode", "0600", "--socket-type", "stream", "--messages", "2", "--backend", "mock",
                   "--max-connections", "1", "--max-message", "100", "--message-delay", "1h")
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
        with new_client(self.path, kind=socket.SOCK_STREAM) as first:
            self.assertIn(b" 200 ", first.recv(1 << 16))
            self.assertIn(b" 503 ", answer_of(new_client(self.path, kind=socket.SOCK_STREAM)))
            large = b'{"a":"' + b"x" * 100 + b'"}'
            self.assertIn(b" 413 ", answer_of(new_client(self.path, large, kind=socket.SOCK_STREAM)))

    def test_an_abstract_socket(self):
        """By the flag as by the variable, and without permissions."""
        name = f"@eddy-stream-{os.getpid()}-{free_port()}"
        for flags, env in ((["-socket", name], {}), ([], {"DAEMON_SOCKET_PATH": name})):
            program = self.start("--messages", "1", *flags, env={"DAEMON_SOCKET_MODE": "", **env})
            self.assertIn(b"[DONE]", answer_of(new_client("\0" + name[1:])))
            program.terminate()
            self.assertEqual(program.wait(DEADLINE_S), 0)
        refused = self.start("-socket", name, "-socket-mode", "0600", env={"DAEMON_SOCKET_PATH": ""}, is_ready=False)
        self.assertIn("--mode has no effect", refused.stderr.read())
        self.assertNotEqual(refused.wait(DEADLINE_S), 0)

    @effect_of("stream-daemon", "allow-users")
    def test_users(self):
        self.start("--allow-users", str(os.getuid() + 1), "--messages", "1")
        with contextlib.suppress(BrokenPipeError):  # the sender may be refused before it has sent
            self.assertEqual(answer_of(new_client(self.path)), b"")

    @effect_of("stream-daemon", "openai-base", "openai-socket")
    def test_backends(self):
        at = os.path.join(self.folder(), "api")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(at)
            listening.listen()
            self.start("--source", "openai", "--openai-base", "http://model/v3", "--openai-socket", at)
            with new_client(self.path), listening.accept()[0] as peer:
                self.assertIn(b"POST /v3/chat/completions", peer.recv(1 << 16))

    @effect_of("stream-daemon", "metrics-addr", "drain")
    def test_operation(self):
        port = free_port()
        program = self.start("--metrics-addr", f"127.0.0.1:{port}", "--drain", "1ms", "--message-delay", "1h")
        with connect(port) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            self.assertIn(b"\r\n\r\nok\n", all_of(client))
        with new_client(self.path) as cut:
            cut.recv(1)
            program.terminate()
            self.assertNotIn(b"[DONE]", answer_of(cut))
        self.assertEqual(program.wait(DEADLINE_S), 0)

    @effect_of("stream-daemon", "workers", "io-backend")
    def test_processes(self):
        program = self.start("--workers", "2", "--io-backend", "epoll", "--message-delay", "1h")
        workers = eventually(lambda: len(found := children_of(program)) == 2 and found, "the workers")
        self.assertIn("-io-backend=epoll", read_text(f"/proc/{workers[0]}/cmdline").split("\0"))
        with new_client(self.path) as client:
            self.assertIn(b" 200 ", client.recv(1 << 16))

    @effect_of("stream-daemon", "exec")
    def test_programs(self):
        self.start("--source", "exec", "--exec", 'echo "$HANDOFF_DATA"')
        self.assertEqual(answer_of(new_client(self.path, b'{"a":1}')), b'{"a":1}\n')

    def refusal_of(self, *flags):
        """The complaint of a program that does not start."""
        program = self.start(*flags, is_ready=False)
        said = program.stderr.read()
        self.assertNotEqual(program.wait(DEADLINE_S), 0, flags)
        return said

    @effect_of("stream-daemon", "socket-owner", "socket-group")
    def test_the_owner_of_the_file(self):
        group = grp.getgrgid(os.getgid()).gr_name
        for workers in ("1", "2"):
            program = self.start("-socket-owner", str(os.getuid()), "-socket-group", group, "-workers", workers, "-messages", "1")
            self.assertEqual(os.stat(self.path).st_gid, os.getgid())
            self.assertIn(b"[DONE]", answer_of(new_client(self.path)))
            program.terminate()
            self.assertEqual(program.wait(DEADLINE_S), 0)
        for flag in ("-socket-owner", "-socket-group"):
            self.assertIn("no-such-name", self.refusal_of(flag, "no-such-name"))

    @needs("scripts")
    @effect_of("stream-daemon", "lua", "lua-path", "lua-memory", "lua-unsafe", "lua-admin", "lua-time", "lua-slice",
               "lua-max-timers", "lua-max-sockets", "lua-max-queue")
    def test_scripts(self):
        folder = self.folder()
        with open(os.path.join(folder, "words.lua"), "w", encoding="utf-8") as module:
            module.write("return {hello = 'hello'}")
        script = os.path.join(folder, "a.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write("local words = require('words')\n"
                       "function handle(request)\n"
                       "  if request.prompt == 'forever' then while true do end end\n"
                       "  send(words.hello)\n"
                       "  send('timers ' .. tostring(pcall(eddy.set_timeout, 1e6, function() end)))\n"
                       "  send('sockets ' .. tostring(eddy.tcp() ~= nil))\n"
                       "  send('room ' .. tostring(pcall(string.rep, 'x', 4e6)))\n"
                       "  send(tostring(select(2, pcall(eddy.blocking, function() return 1 end))))\n"
                       "  send(tostring(select(2, pcall(eddy.stop, 'x'))))\nend\n")
        flags = ("-source", "lua", "-lua", os.path.relpath(script), "-lua-path", folder)
        self.start(*flags, "-lua-memory", "2M", "-lua-time", "50ms", "-lua-slice", "1ms", "-lua-max-timers", "0", "-lua-max-sockets", "0",
                   "-workers", "2")
        said = answer_of(new_client(self.path)).decode()
        self.assertIn('"hello"', said)
        for each in ("timers", "sockets"):
            self.assertIn(f"{each} false", said)
        self.assertIn("room false", said)
        self.assertIn("--lua-unsafe", said)
        self.assertIn("--lua-admin", said)
        self.assertIn(b"script_too_long", answer_of(new_client(self.path, b'{"prompt":"forever"}')))
        self.start(*flags, "-lua-unsafe", "-lua-admin")
        said = answer_of(new_client(self.path)).decode()
        for each in ("timers", "sockets", "room"):
            self.assertIn(f"{each} true", said)
        self.assertIn("there is no daemon here", said)
        self.assertNotIn("--lua-unsafe", said)
        self.assertIn("--lua-slice", self.refusal_of(*flags, "-lua-slice", "never"))
        self.assertIn("--lua-max-queue", self.refusal_of(*flags, "-lua-max-queue", "0"))

    @effect_of("stream-daemon", "key-file", "key-field", "handoff-key", "model", "events", "source-header", "source-backend")
    def test_requests_to_models(self):
        folder = self.folder()
        key = os.path.join(folder, "key")
        with open(key, "w", encoding="utf-8") as file:
            file.write("sk-1\n")
        with Model() as model:
            self.start("-source", "openai", "-openai-base", f"http://127.0.0.1:{free_port()}", "-source-backend", f"b={model.url}", "-model", "small",
                       "-source-header", "X-A: 1", "-source-header", "X-B: 2", "-events", "chunks", "-workers", "2")
            self.assertIn(b'"delta":{"content":"Good"}', answer_of(new_client(self.path)))
            path, fields, body = model.requests.pop()
            self.assertEqual((path, fields["X-A"], fields["X-B"], body["model"]), ("/v1/chat/completions", "1", "2", "small"))
            self.start("-source", "openai", "-openai-base", model.url, "-key-file", os.path.relpath(key), "-key-field", "api-key", "-handoff-key")
            self.assertIn(b'{"content":"Good"}', answer_of(new_client(self.path)))
            self.assertEqual(model.requests.pop()[1]["api-key"], "sk-1")
            self.assertIn(b"[DONE]", answer_of(new_client(self.path, b'{"api_key":"sk-2"}')))
            self.assertEqual(model.requests.pop()[1]["api-key"], "sk-2")

    @effect_of("stream-daemon", "source-timeout", "heartbeat")
    def test_silent_models(self):
        with Model(is_whole=False) as model:
            self.start("-source", "openai", "-openai-base", model.url, "-source-timeout", "200ms", "-heartbeat", "20ms")
            said = answer_of(new_client(self.path))
            self.assertIn(b": heartbeat", said)
            self.assertIn(b"backend_stalled", said)

    @effect_of("stream-daemon", "source-ca")
    def test_authorities(self):
        made = Certificates(self.folder())
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(made.cert, made.key)
        with Model(tls) as model:
            self.start("-source", "openai", "-openai-base", model.url, "-source-ca", made.ca)
            self.assertIn(b"Good", answer_of(new_client(self.path)))
            self.start("-source", "openai", "-openai-base", model.url)
            self.assertIn(b"backend_certificate", answer_of(new_client(self.path)))

    def test_a_proxy_of_the_environment(self):
        at = os.path.join(self.folder(), "p.sock")
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            proxy.settimeout(DEADLINE_S)
            self.start("-socket", at, "-source", "openai", "-openai-base", "https://model.example/v1",
                       env={"HTTPS_PROXY": f"http://127.0.0.1:{proxy.getsockname()[1]}", "https_proxy": "", "no_proxy": "", "NO_PROXY": ""})
            with new_client(at), proxy.accept()[0] as peer:
                self.assertTrue(peer.recv(1 << 16).startswith(b"CONNECT model.example:443 HTTP/1.1\r\n"))

    @effect_of("stream-daemon", "access-log")
    def test_the_log(self):
        log = os.path.join(self.folder(), "log")
        self.start("-messages", "1", "-access-log", os.path.relpath(log))
        self.assertIn(b"[DONE]", answer_of(new_client(self.path, b'{"user_id":7}')))
        eventually(lambda: os.path.exists(log) and read_text(log).endswith("\n"), "the line")
        self.assertEqual(json.loads(read_text(log))["user"], "7")

    @effect_of("stream-daemon", "max-stream-time", "max-streams-per-user", "events-per-minute")
    def test_limits_of_streams_and_users(self):
        user = b'{"user_id":7}'
        self.start("-message-delay", "1h", "-max-stream-time", "50ms")
        self.assertTrue(answer_of(new_client(self.path)).endswith(b'\n\ndata: {"error":"stream_too_long"}\n\n'))
        self.start("-message-delay", "1h", "-max-streams-per-user", "1")
        with new_client(self.path, user) as first:
            self.assertIn(b" 200 ", first.recv(1 << 16))
            self.assertIn(b" 429 ", answer_of(new_client(self.path, user)))
        self.start("-messages", "1", "-events-per-minute", "1")
        self.assertIn(b" 200 ", answer_of(new_client(self.path, user)))
        # A new minute may have begun.
        eventually(lambda: b" 429 " in answer_of(new_client(self.path, user)), "the refusal")

    @effect_of("stream-daemon", "replay-memory", "replay-time", "tcp-keepalive", "max-queue")
    def test_limits(self):
        named = b'{"user_id":1,"request_id":"r"}'
        self.start("-messages", "2", "-message-delay", "1ms", "-replay-memory", "1M", "-replay-time", "1h", "-tcp-keepalive", "77s")
        self.assertIn(b"\nid: 1\n", answer_of(new_client(self.path, named)))
        again = answer_of(new_client(self.path, named[:-1] + b',"last_event_id":"1"}'))
        self.assertIn(b"\r\n\r\nid: 2\n", again)
        with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as client:
            with listening.accept()[0] as theirs:
                hand_over(self.path, [theirs.fileno()], b"{}")
                self.assertIn(b"[DONE]", all_of(client))
                self.assertEqual(theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 77)
        for flag in ("-replay-time", "-max-queue", "-tcp-keepalive"):
            self.assertIn("-" + flag, self.refusal_of(flag, "never"))
