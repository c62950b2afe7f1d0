"""Tests of each flag of a stream runtime by its effect, run by flags_test.py."""

import contextlib
import os
import socket

import harness
from flag_effects import FlagTest, effect_of, read_text, seconds_to_probe
from harness import DEADLINE_S, all_of, connect, eventually, free_port
from streaming_test import EXAMPLES, StreamDaemonTest, answer_of, hand_over, new_client


def children_of(program):
    return read_text(f"/proc/{program.pid}/task/{program.pid}/children").split()


class StreamDaemonFlags(StreamDaemonTest):
    @effect_of("stream-daemon", "socket", "socket-mode", "socket-type", "messages", "backend", "max-connections", "max-message",
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
            self.start("--backend", "openai", "--openai-base", "http://model/v3", "--openai-socket", at)
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
        self.start("--backend", "exec", "--exec", 'echo "$HANDOFF_DATA"')
        self.assertEqual(answer_of(new_client(self.path, b'{"a":1}')), b'{"a":1}\n')


@harness.on_each_backend
class StreamFlags(FlagTest):
    def setUp(self):
        self.path = os.path.join(self.folder(), "s")
        self.running = self.daemon()

    def stream(self, *flags):
        self.running.must("create", "stream", "r", "--handoff", f"unix://{self.path}", *flags, "-s")

    @effect_of("stream", "handoff", "source", "delay", "messages")
    def test_answers(self):
        self.stream("--source", "mock", "--delay", "1ms", "--messages", "3")
        self.assertIn(b"This is message 3 of 3.", answer_of(new_client(self.path)))
        self.running.must("edit", "r", "--delay", "1h")
        with new_client(self.path) as client:
            self.assertIn(b"Hello", client.recv(1 << 16))
            client.settimeout(0.05)
            self.assertRaises(socket.timeout, client.recv, 1)

    @effect_of("stream", "handoff-type", "mode", "allow-users")
    def test_sockets(self):
        self.stream("--handoff-type", "stream", "--mode", "0640", "--messages", "1")
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)
        self.assertIn(b"[DONE]", answer_of(new_client(self.path, kind=socket.SOCK_STREAM)))
        self.running.must("edit", "r", "--allow-users", str(os.getuid() + 1))
        with contextlib.suppress(BrokenPipeError):  # the sender may be refused before it has sent
            self.assertEqual(answer_of(new_client(self.path, kind=socket.SOCK_STREAM)), b"")
        refused = self.running.metric("eddy_stream_handoff_errors_total", runtime="r", type="stream",
                                      reason="peer_not_allowed")
        self.assertEqual(refused, 1)

    @effect_of("stream", "tcp-keepalive")
    def test_tcp_keepalive(self):
        self.stream("--tcp-keepalive", "100s", "--delay", "1h")
        with socket.create_server(("127.0.0.1", 0)) as web_server:
            port = web_server.getsockname()[1]
            with connect(port) as client:
                with web_server.accept()[0] as accepted:
                    hand_over(self.path, [accepted.fileno()], b"{}")
                self.assertIn(b" 200 ", client.recv(1 << 16))
                eventually(lambda: any(0 < each <= 100 for each in seconds_to_probe(port)), "the timer")

    @effect_of("stream", "max-connections", "max-message")
    def test_limits(self):
        self.stream("--max-connections", "1", "--max-message", "100", "--delay", "1h")
        with new_client(self.path) as first:
            self.assertIn(b" 200 ", first.recv(1 << 16))
            self.assertIn(b" 503 ", answer_of(new_client(self.path)))
        self.running.must("edit", "r", "--max-connections", "2")
        self.assertIn(b" 413 ", answer_of(new_client(self.path, b'{"a":"' + b"x" * 100 + b'"}')))

    @effect_of("stream", "exec")
    def test_programs(self):
        # The end of what the client sends is a hang-up, which this one ignores.
        self.stream("--source", "exec", "--exec", 'trap "" HUP; echo "$HANDOFF_DATA"; cat')
        client = new_client(self.path, b'{"a":1}')
        self.assertEqual(client.recv(1 << 16), b'{"a":1}\n')
        client.sendall(b"echo")
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(answer_of(client), b"echo")

    @effect_of("stream", "replay-memory", "replay-time")
    def test_replay(self):
        self.stream("--replay-memory", "1MiB", "--replay-time", "1h", "--delay", "1ms", "--messages", "3")
        with new_client(self.path, b'{"user_id":7,"request_id":"a"}') as client:
            self.assertEqual(client.recv(1), b"H")  # the rest is missed
        answer = answer_of(new_client(self.path, b'{"user_id":7,"request_id":"a","last_event_id":"1"}'))
        self.assertIn(b'\r\n\r\nid: 2\ndata: {"content":"User ID: 7"}\n\nid: 3\n', answer)
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"), answer)
        self.running.must("edit", "r", "--replay-time", "1ms")
        answer_of(new_client(self.path, b'{"user_id":7,"request_id":"b"}'))
        eventually(lambda: self.running.metric("eddy_stream_replay_bytes", runtime="r", type="stream") == 0, "the end")
        self.assertIn(b"event: reset", answer_of(new_client(self.path, b'{"user_id":7,"request_id":"b","last_event_id":"1"}')))

    @effect_of("stream", "script")
    def test_scripts(self):
        example = os.path.join(EXAMPLES, "answer.lua")
        self.stream("--source", "lua", "--script", example)
        answer = answer_of(new_client(self.path, b'{"user_id":7,"prompt":"two words"}'))
        self.assertTrue(answer.endswith(b'\r\n\r\nevent: number\ndata: 1\n\ndata: {"content":"two "}\n\n'
                                        b'data: {"content":"words "}\n\ndata: [DONE]\n\n'), answer)
        self.assertIn(b"user 7.", answer_of(new_client(self.path, b'{"user_id":7}')))
        broken = os.path.join(self.folder(), "broken.lua")
        with open(broken, "w", encoding="utf-8") as file:
            file.write("\nfunction handle( end\n")
        refused = self.running.run("edit", "r", "--script", broken)
        self.assertIn("broken.lua:2: ", refused.err)
        self.assertIn(b"user 8.", answer_of(new_client(self.path, b'{"user_id":8}')))

    @effect_of("stream", "source-url", "source-socket", "key-file", "model", "source-timeout", "heartbeat")
    def test_backends(self):
        """One that reads the request, sends a piece, and goes silent."""
        key = os.path.join(self.folder(), "key")
        with open(key, "w", encoding="utf-8") as file:
            file.write("sk-1\n")
        at = os.path.join(self.folder(), "api")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(at)
            listening.listen()
            self.stream("--source", "openai", "--source-url", "http://model/v1", "--source-socket", at, "--key-file",
                        key, "--model", "small", "--source-timeout", "200ms", "--heartbeat", "20ms")
            client = new_client(self.path)
            peer = listening.accept()[0]
        with peer:
            asked = b""
            while b'"small"' not in asked:
                asked += peer.recv(1 << 16)
            self.assertIn(b"POST /v1/chat/completions", asked)
            self.assertIn(b"Bearer sk-1", asked)
            peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            answer = answer_of(client)
        self.assertIn(b": heartbeat\n\n", answer)
        self.assertTrue(answer.endswith(b'data: {"error":"backend_stalled"}\n\n'), answer)

    @effect_of("stream", "events")
    def test_events_of_a_completion(self):
        chunk = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
        at = os.path.join(self.folder(), "api")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(at)
            listening.listen()
            self.stream("--source", "openai", "--source-url", "http://model/v1", "--source-socket", at)
            for flags, sent in (((), b'data: {"content":"a"}\n\nevent: finish_reason\ndata: {"finish_reason":"stop"}\n\n'),
                                (("--events", "content"), b'data: {"content":"a"}\n\n'), (("--events", "chunks"), chunk)):
                if flags:
                    self.running.must("edit", "r", *flags)
                client = new_client(self.path)
                with listening.accept()[0] as peer:
                    # Unread bytes at the close would reset the connection.
                    request = b""
                    while not request.endswith(b"}"):
                        request += peer.recv(1 << 16)
                    peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + chunk)
                self.assertTrue(answer_of(client).endswith(b"\r\n\r\n" + sent + b"data: [DONE]\n\n"))

    @effect_of("stream", "max-queue")
    def test_slow_readers(self):
        self.stream("--max-queue", "100", "--delay", "1ms", "--messages", "10000")
        mine, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        mine.settimeout(DEADLINE_S)
        self.addCleanup(mine.close)
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
            sender.connect(self.path)
            socket.send_fds(sender, [b"{}"], [theirs.fileno()])
        eventually(lambda: self.running.show("r")["connections"] == 0, "the stream's end")
