"""Tests of each flag of `eddy stream-daemon` by its effect, run by flags_test.py."""

import contextlib
import os
import socket

from flag_effects import effect_of, read_text
from harness import DEADLINE_S, all_of, connect, eventually, free_port
from streaming_test import StreamDaemonTest, answer_of, new_client


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
