#!/usr/bin/env python3
"""Memory of HTTP proxies: clients that rest, and uploads to a backend that does not read."""

import os
import resource
import select
import socket
import time
import threading
import unittest

import harness
from harness import connect, eventually, free_port

UPLOADS = 1000
AT_A_TIME = 100
# A session keeps its buffers for a second after its response, and then leaves them to the clients that come next. So
# clients come in waves here: in one wave all sessions would exist at once.
WAVE, WAVE_S = 1000, 1.2
MOST_SENT = 1 << 19
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
IDLE = 10_000 if FILES > 11_000 else 2_000
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Backend:
    """Answers requests without content; reads no content."""

    def __init__(self, path):
        # The kernel holds less of an upload than over TCP.
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen(1024)
        self.peers, self.uploads = [], []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer = self.listening.accept()[0]
            except OSError:
                return
            self.peers.append(peer)
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        text = b""
        while True:
            try:
                # Byte by byte, so that no content is read.
                byte = peer.recv(1)
            except OSError:
                return
            text += byte
            if not byte:
                return
            if text.endswith(b"\r\n\r\n"):
                if text.startswith(b"POST"):
                    self.uploads.append(peer)
                    return
                peer.sendall(OK)
                text = b""

    def close(self):
        self.listening.close()
        for each in self.peers:
            each.close()


@harness.on_each_backend
class Memory(harness.EddyTest):
    @unittest.skipIf(FILES < 4 * UPLOADS, f"needs {4 * UPLOADS} open files")
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        path = os.path.join(self.folder(), "s")
        self.behind = Backend(path)
        self.addCleanup(self.behind.close)
        self.running = self.daemon()
        self.port = free_port()
        self.running.must("create", "proxy", "gw", "-p", str(self.port), "--protocol", "http", "--backend",
                          f"unix://{path}", "--max-connections", str(IDLE + 200), "--max-backend-connections",
                          str(UPLOADS + 100), "--client-timeout", "1h", "-s")
        self.clients = []
        self.addCleanup(lambda: [each.close() for each in self.clients])

    def rest(self, count):
        """More clients, each of which has got a response."""
        for _ in range(0, count, AT_A_TIME):
            more = [connect(self.port) for _ in range(AT_A_TIME)]
            for each in more:
                each.sendall(GET)
            for each in more:
                self.answered(each)
            self.clients += more
            if len(self.clients) % WAVE < AT_A_TIME:
                time.sleep(WAVE_S)

    def answered(self, client):
        got = b""
        while not got.endswith(b"\r\n\r\nok"):
            piece = client.recv(1000)
            self.assertTrue(piece, got)
            got += piece

    def each(self, before, count):
        return (self.running.resident_kib() - before) * 1024 / count

    def test_clients_that_rest_cost_little(self):
        self.rest(AT_A_TIME)
        before = self.running.resident_kib()
        self.rest(IDLE)
        if not harness.sanitized():
            eventually(lambda: self.each(before, IDLE) <= 1024, "the memory of clients that rest")
        print(f"{self.each(before, IDLE):.0f} bytes resident for each idle client", flush=True)
        for each in self.clients[::100]:
            each.sendall(GET)
            self.answered(each)

    def test_uploads_to_a_backend_that_does_not_read_are_bounded(self):
        self.rest(AT_A_TIME)
        before = self.running.resident_kib()
        content, size = b"x" * 65536, 1 << 30
        waiting = []
        for _ in range(UPLOADS):
            client = connect(self.port)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
            client.setblocking(False)
            self.clients.append(client)
            waiting.append(client)
        eventually(lambda: len(self.behind.uploads) == UPLOADS, "all are at the backend")
        poll = select.epoll()
        self.addCleanup(poll.close)
        for each in waiting:
            poll.register(each, select.EPOLLOUT)
        by_number = {each.fileno(): each for each in waiting}
        sent = dict.fromkeys(by_number, 0)
        # More than the proxy and the sockets behind it hold, until no client takes any more for a second.
        while ready := poll.poll(1):
            for number, _ in ready:
                sent[number] += by_number[number].send(content)
                if sent[number] >= MOST_SENT:
                    poll.unregister(number)
        each = self.each(before, UPLOADS)
        print(f"{each:.0f} bytes resident for each upload that waits, of {sum(sent.values()) / UPLOADS:.0f} sent", flush=True)
        # A piece as it was received, as docs/proxy.md says, and the state of both connections.
        if not harness.sanitized():
            self.assertLess(each, 160 * 1024)
        # Others are served meanwhile.
        self.answered_one_more()

    def answered_one_more(self):
        with connect(self.port) as client:
            client.sendall(GET)
            self.answered(client)


if __name__ == "__main__":
    harness.main()
