#!/usr/bin/env python3
"""A daemon with 64 descriptors, and clients that would take them all: it can be controlled, and saves what it has."""

import contextlib
import os
import socket
import unittest

import harness
from cache_client import client_of
from harness import connect, eventually, free_port, read_line

LIMIT = 64
# Descriptors that clients leave to the daemon, and control connections to its files: src/base/files/descriptors.hpp.
RESERVED, RESERVED_FOR_FILES = 32, 16


@harness.on_each_backend
@unittest.skipIf(harness.sanitized(), "a sanitizer's own checks need descriptors")
class FewDescriptors(harness.EddyTest):
    def setUp(self):
        self.eddy = self.daemon(limit_files=LIMIT, flags=["--loops", "1"])
        self.port, self.cache_port, self.dir = free_port(), free_port(), self.folder()
        self.eddy.must("create", "server", "crowded", "-p", str(self.port), "-s")
        self.eddy.must("create", "server", "other", "-p", str(free_port()), "-s")
        self.eddy.must("create", "cache", "db", "-p", str(self.cache_port), "--dir", self.dir, "--mode", "admin", "-s")
        self.client = client_of(self, self.cache_port)

    def crowd(self, port=None, count=LIMIT):
        """More clients than there are descriptors. The rest wait in the kernel's queue."""
        clients = []
        for _ in range(count):
            clients.append(connect(port or self.port))
            self.addCleanup(clients[-1].close)
        return clients

    def until_crowded(self, name="crowded"):
        eventually(lambda: "cannot accept connections for now" in self.eddy.must("logs", name), "the limit")
        self.assertLessEqual(self.eddy.open_files(), LIMIT - RESERVED_FOR_FILES)

    def test_it_is_controlled_all_the_same(self):
        clients = self.crowd()
        self.until_crowded()
        served = self.eddy.show("crowded")["connections"]
        self.assertGreater(served, 0)
        self.assertLess(served, LIMIT - RESERVED)
        self.assertEqual(self.eddy.list()["crowded"]["status"], "running")
        self.eddy.must("stop", "other")
        self.eddy.must("edit", "other", "--max-connections", "7")
        self.eddy.must("start", "other")
        self.assertEqual(self.eddy.metric("process_max_fds"), LIMIT)
        self.assertIn("eddy_runtime_up", self.eddy.request("GET", "/metrics")[1])
        # Requests at the same time are served, too.
        with contextlib.ExitStack() as open_ones:
            for _ in range(4):
                open_ones.enter_context(self.eddy.raw())
            self.eddy.must("ls")
        # Waiting clients are served as others leave.
        for client in clients[:served]:
            client.close()
        total = lambda: self.eddy.request("GET", "/v1/runtimes/crowded/stats")[1]["connections_total"]
        eventually(lambda: total() >= served + 2, "the others")
        clients[served].sendall(b"hello\n")
        self.assertEqual(read_line(clients[served + 1]), "hello")
        self.eddy.must("stop", "crowded")
        self.assertEqual(self.eddy.list()["crowded"]["status"], "stopped")

    def test_the_limit_is_named(self):
        self.crowd()
        self.until_crowded()
        self.assertIn(f"{LIMIT} open files", self.eddy.must("logs", "crowded"))
        path = os.path.join(self.folder(), "many.toml")
        with open(path, "w", encoding="ascii") as file:
            file.write("".join(f"[server.s{i}]\nport = 0\n" for i in range(LIMIT)))
        refused = self.eddy.run("up", path)
        self.assertEqual(refused.status, 2, refused)
        self.assertIn(f"{LIMIT} open files", refused.err)
        self.assertIn("LimitNOFILE=", refused.err)
        self.assertEqual(set(self.eddy.list()), {"crowded", "other", "db"})

    def test_it_saves_replicates_and_migrates(self):
        master = self.daemon()
        master_port = free_port()
        master.must("create", "cache", "m", "-p", str(master_port), "-s")
        client_of(self, master_port)("SET", "of", "the master")
        self.crowd()
        self.until_crowded()
        client = self.client
        self.assertEqual(client("SET", "key", "value"), "+OK")
        self.assertEqual(client("SAVE"), "+OK")
        self.assertTrue(os.path.exists(os.path.join(self.dir, "dump.rdb")))
        self.assertEqual(client("CONFIG", "SET", "appendonly", "yes"), "+OK")
        eventually(lambda: client.info("persistence")["aof_rewrite_in_progress"] == "0", "the first snapshot")
        self.assertEqual(client("BGREWRITEAOF")[0], "+")
        eventually(lambda: client.info("persistence")["aof_rewrite_in_progress"] == "0", "the next one")
        self.assertEqual(client.info("persistence")["aof_last_bgrewrite_status"], "ok")
        self.assertEqual(client("MIGRATE", "127.0.0.1", master_port, "key", 0, 10_000), "+OK")
        self.assertEqual(client("REPLICAOF", "127.0.0.1", master_port), "+OK")
        eventually(lambda: client.info("replication")["master_link_status"] == "up", "the copy")
        self.assertEqual(client("GET", "of"), b"the master")

    def test_clients_of_a_cache_with_threads_leave_them_too(self):
        port = free_port()
        self.eddy.must("create", "cache", "threads", "-p", str(port), "--threads", "2", "-s")
        for _ in range(3):
            clients = self.crowd(port)
            self.until_crowded("threads")
            self.eddy.must("ls")
            self.assertEqual(self.client("SAVE"), "+OK")
            for client in clients:
                client.close()
            eventually(lambda: self.eddy.show("threads")["connections"] == 0, "all to leave")
        self.eddy.must("remove", "threads")

    def test_clients_that_come_at_once_leave_them_too(self):
        crowd = []
        for _ in range(4 * LIMIT):
            one = socket.socket()
            self.addCleanup(one.close)
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(("127.0.0.1", self.port))
            crowd.append(one)
        self.until_crowded()
        self.eddy.must("ls")
        self.eddy.must("stop", "crowded")
        self.assertEqual(self.client("SAVE"), "+OK")

    def test_control_connections_leave_descriptors_to_files(self):
        self.crowd()
        self.until_crowded()
        hogs = []
        for _ in range(LIMIT):
            hogs.append(self.eddy.raw())
            self.addCleanup(hogs[-1].close)
        eventually(lambda: "control connections wait" in self.eddy.read_log(), "the limit of control connections")
        self.assertEqual(self.client("SAVE"), "+OK")
        for hog in hogs:
            hog.close()
        self.eddy.must("ls")


if __name__ == "__main__":
    harness.main()
