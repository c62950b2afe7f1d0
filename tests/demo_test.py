#!/usr/bin/env python3
"""The demo with other people's programs, and what an idle or crowded daemon costs."""

import shutil
import socket
import subprocess
import time
import unittest

import harness
from harness import connect, eventually, free_port, read_line


@harness.on_each_backend
class Demo(harness.EddyTest):
    def test_the_cache_answers_redis_cli(self):
        if not shutil.which("redis-cli"):
            self.skipTest("there is no redis-cli")
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")

        def cli(*words):
            return subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True,
                                  check=True, timeout=harness.DEADLINE_S).stdout.decode().strip()
        self.assertEqual(cli("set", "greeting", "hello"), "OK")
        self.assertEqual(cli("get", "greeting"), "hello")
        self.assertEqual(cli("lpush", "list", "a", "b"), "2")
        self.assertEqual(cli("lpop", "list"), "b")
        self.assertIn("WRONGTYPE", cli("get", "list"))
        self.assertEqual(daemon.json("stats", "db")["errors"], 1)

    def test_the_server_broadcasts_to_two_nc(self):
        if not shutil.which("nc"):
            self.skipTest("there is no nc")
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "-s")
        clients = [subprocess.Popen(["nc", "127.0.0.1", str(port)], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE) for _ in range(2)]
        try:
            eventually(lambda: daemon.list()["chat"]["connections"] == 2, "both are there")
            clients[0].stdin.write(b"from one\n")
            clients[0].stdin.flush()
            self.assertEqual(clients[1].stdout.readline(), b"from one\n")
            clients[1].stdin.write(b"from the other\n")
            clients[1].stdin.flush()
            self.assertEqual(clients[0].stdout.readline(), b"from the other\n")
            daemon.must("send", "chat", "from the command line")
            for client in clients:
                self.assertEqual(client.stdout.readline(), b"from the command line\n")
        finally:
            for client in clients:
                client.kill()
                client.wait()
                client.stdin.close()
                client.stdout.close()

    def test_curl_over_the_control_socket(self):
        if not shutil.which("curl"):
            self.skipTest("there is no curl")
        daemon = self.daemon()
        daemon.must("create", "server", "chat", "-p", str(free_port()))
        out = subprocess.run(["curl", "-sS", "--unix-socket", daemon.socket,
                              "http://eddy/v1/runtimes", "http://eddy/metrics"],
                             capture_output=True, check=True, timeout=harness.DEADLINE_S).stdout
        self.assertIn(b'"name": "chat"', out)
        self.assertIn(b"eddy_runtime_up", out)

    def test_an_idle_daemon_costs_nothing(self):
        daemon = self.daemon()
        kinds = {"server": [], "cache": [], "http": ["--root", self.folder()], "proxy": ["--backend", "127.0.0.1:9"]}
        for i in range(5):
            for kind, more in kinds.items():
                daemon.must("create", kind, f"{kind}{i}", "-p", str(free_port()), *more, "-s")

        # More than once: on a busy machine a tick that was another's can be counted as ours.
        def is_idle():
            ticks = daemon.cpu_ticks()
            began = time.monotonic()
            eventually(lambda: time.monotonic() - began > 3, "three seconds")
            return daemon.cpu_ticks() - ticks <= 2

        eventually(is_idle, "at most two ticks of 10 ms in three seconds")

        def sleeps():
            before, began = daemon.wake_ups(), time.monotonic()
            eventually(lambda: time.monotonic() - began > 3, "three seconds")
            return daemon.wake_ups() == before

        eventually(sleeps, "three seconds without a wake-up")
        if not harness.sanitized():
            self.assertLess(daemon.resident_kib(), 20 * 1024)

    def test_a_thousand_clients_that_vanish_leave_no_trace(self):
        daemon = self.daemon()
        ports = {}
        for kind in ("server", "cache"):
            ports[kind] = free_port()
            daemon.must("create", kind, kind, "-p", str(ports[kind]), "-s")
        before = daemon.open_files()
        for kind, port in ports.items():
            for i in range(500):
                client = connect(port)
                if i % 2:
                    client.sendall(b"half of a messa")
                if i % 3 == 0:
                    # As when a machine goes away: a reset instead of an end.
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                      b"\1\0\0\0\0\0\0\0")
                client.close()
        for kind in ports:
            eventually(lambda name=kind: daemon.json("stats", name)["connections_total"] > 300, "they came")
            eventually(lambda name=kind: daemon.list()[name]["connections"] == 0, "all are gone")
            self.assertLessEqual(daemon.json("stats", kind)["connections_total"], 500)
        eventually(lambda: daemon.open_files() <= before, "the descriptors are back")
        with connect(ports["server"]) as one, connect(ports["server"]) as two:
            eventually(lambda: daemon.list()["server"]["connections"] == 2, "both are there")
            one.sendall(b"still broadcasting\n")
            self.assertEqual(read_line(two), "still broadcasting")

    def test_a_client_that_never_reads_costs_its_queue_alone(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "--max-queue", "256k", "-s")
        with connect(port) as deaf, connect(port) as sender:
            eventually(lambda: daemon.list()["chat"]["connections"] == 2, "both are there")
            before = daemon.resident_kib()
            block = (b"x" * 1000 + b"\n") * 1000
            for _ in range(50):
                sender.sendall(block)
            eventually(lambda: daemon.json("stats", "chat")["messages_in"] == 50_000, "all is read")
            self.assertLess(daemon.resident_kib() - before, 32 * 1024)
            deaf.close()
        self.assertEqual(daemon.stop(), 0)

    def test_work_on_one_runtime_does_not_stop_the_control_api(self):
        daemon = self.daemon(flags=["--loops", "1"])
        port = free_port()
        daemon.must("create", "server", "busy", "-p", str(port), "-s")
        with connect(port) as sender:
            sender.settimeout(0.05)
            block = b"x\n" * 100_000
            for _ in range(20):
                try:
                    sender.sendall(block)
                except socket.timeout:
                    pass
                self.assertEqual(daemon.run("ls").status, 0)
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    harness.main()
