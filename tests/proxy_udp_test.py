#!/usr/bin/env python3
"""A proxy over UDP from outside: many source addresses, forged senders, backends that die, restarts."""

import resource
import select
import socket
import struct
import threading
import unittest

import harness
from harness import DEADLINE_S, eventually, free_port
from server_udp_test import forge, may_forge

IP_PKTINFO = 8


class Echo:
    """A backend that answers each datagram with its name and the text."""

    def __init__(self, test, name, port=0):
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", port))
        self.port, self.name, self.got = self.socket.getsockname()[1], name, 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        test.addCleanup(self.end)

    def run(self):
        while True:
            text, sender = self.socket.recvfrom(65536)
            if text == b"end":
                return
            self.got += 1
            self.socket.sendto(self.name + b" " + text, sender)

    def end(self):
        if self.thread.is_alive():
            with socket.socket(type=socket.SOCK_DGRAM) as last:
                last.sendto(b"end", ("127.0.0.1", self.port))
            self.thread.join(DEADLINE_S)
        self.socket.close()


@harness.on_each_backend
class Datagrams(harness.EddyTest):
    def proxy(self, *backends, flags=(), host="127.0.0.1"):
        port = free_port(socket.SOCK_DGRAM)
        self.running.must("create", "proxy", "dns", "--listen", f"udp://{host}:{port}", "--backend",
                          ",".join(f"127.0.0.1:{each}" for each in backends), "-s", *flags)
        return port

    def client(self, port):
        made = socket.socket(type=socket.SOCK_DGRAM)
        self.addCleanup(made.close)
        made.settimeout(DEADLINE_S)
        made.connect(("127.0.0.1", port))
        return made

    def gauge(self, name, backend):
        return self.running.metric(f"eddy_proxy_{name}", runtime="dns", type="proxy",
                                   backend=f"udp://127.0.0.1:{backend}")

    def ask(self, client, text):
        """An answer, whatever is lost before."""
        client.settimeout(0.2)
        def answered():
            client.send(text)
            try:
                return client.recv(65536)
            except (TimeoutError, ConnectionRefusedError):
                return None
        return eventually(answered, "an answer comes")

    def test_a_client_keeps_its_backend_and_clients_are_spread(self):
        self.running = self.daemon()
        a, b = Echo(self, b"a"), Echo(self, b"b")
        port = self.proxy(a.port, b.port)
        names = []
        for _ in range(4):
            client = self.client(port)
            names.append(self.ask(client, b"1"))
            self.assertEqual(self.ask(client, b"1"), names[-1])
        self.assertEqual(sorted(names), [b"a 1", b"a 1", b"b 1", b"b 1"])
        shown = self.running.json("stats", "dns")
        self.assertEqual(shown["connections"], 4)
        self.assertEqual(self.gauge("backend_bytes_sent_total", a.port), 4)

    def test_a_backend_that_ends_is_left_and_found_again(self):
        self.running = self.daemon()
        a, b = Echo(self, b"a"), Echo(self, b"b")
        port = self.proxy(a.port, b.port)
        clients = [self.client(port) for _ in range(8)]
        for each in clients:
            self.ask(each, b"1")
        a.end()
        for each in clients:
            self.assertEqual(self.ask(each, b"2"), b"b 2")
        self.assertGreater(self.gauge("backend_failures_total", a.port), 0)
        Echo(self, b"again", a.port)
        eventually(lambda: self.ask(self.client(port), b"3").startswith(b"again"), "it is used again")

    def test_a_restart_keeps_the_port(self):
        self.running = self.daemon()
        a = Echo(self, b"a")
        port = self.proxy(a.port)
        client = self.client(port)
        self.ask(client, b"1")
        self.running.must("edit", "dns", "--max-connections", "7")
        self.running.must("stop", "dns")
        self.running.must("start", "dns")
        self.assertEqual(self.ask(client, b"2"), b"a 2")

    def test_ten_thousand_source_addresses(self):
        count = 10_000
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2 * count:
            self.skipTest("this machine allows too few open files")
        self.running = self.daemon(limit_files=2 * count)
        backend = Echo(self, b"a")
        port = self.proxy(backend.port, flags=("--max-connections", str(count), "--idle-timeout", "300s"),
                          host="127.0.0.1")
        with socket.socket(type=socket.SOCK_DGRAM) as clients:
            clients.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            clients.bind(("0.0.0.0", 0))
            answered = set()

            def send(i):
                source = struct.pack("=I4s4s", 0, socket.inet_aton(f"127.{2 + i // 60_000}.{i // 250}.{1 + i % 250}"),
                                     bytes(4))
                clients.sendmsg([str(i).encode()], [(socket.IPPROTO_IP, IP_PKTINFO, source)], 0, ("127.0.0.1", port))

            def receive(timeout_s):
                while select.select([clients], [], [], timeout_s)[0]:
                    answered.add(int(clients.recv(100).split()[1]))
                    timeout_s = 0

            def all_answered():
                for n, i in enumerate(sorted(set(range(count)) - answered)):
                    send(i)
                    if n % 50 == 49:
                        receive(0.05)
                receive(0.2)
                return len(answered) == count
            eventually(all_answered, "all are answered")
            shown = self.running.json("stats", "dns")
            self.assertEqual(shown["connections"], count)
            self.assertEqual(shown["connections_total"], count)
            # One more client is beyond the limit.
            extra = self.client(port)
            extra.send(b"more")
            eventually(lambda: self.running.json("stats", "dns")["connections_refused"] == 1, "it is dropped")
            self.assertGreater(self.running.open_files(), count)
        self.running.must("edit", "dns", "--idle-timeout", "1s")
        eventually(lambda: self.running.json("stats", "dns")["connections"] == 0, "the sessions end")
        eventually(lambda: self.running.open_files() < 200, "their sockets are closed")

    @unittest.skipUnless(may_forge(), "only root may forge a sender's address")
    def test_forged_senders_circulate_nothing(self):
        self.running = self.daemon()
        backend = Echo(self, b"a")
        port = self.proxy(backend.port, host="0.0.0.0")
        for sender in (("127.0.0.1", backend.port), ("127.0.0.1", port), ("127.0.0.9", port)):
            before = self.running.json("stats", "dns")["dropped"]
            forge(sender, ("127.0.0.1", port), b"x")
            eventually(lambda past=before: self.running.json("stats", "dns")["dropped"] > past, "it is dropped")
        self.assertEqual(backend.got, 0)
        self.assertEqual(self.running.json("stats", "dns")["connections"], 0)


if __name__ == "__main__":
    harness.main()
