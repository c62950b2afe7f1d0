#!/usr/bin/env python3
"""Memory of a daemon after a rush of clients: it goes back to the system."""

import resource

import harness
from harness import connect, eventually, free_port

CLIENTS = 1500
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 15_000  # not whole yet, so it is kept


@harness.on_each_backend
class IdleMemory(harness.EddyTest):
    def setUp(self):
        if harness.sanitized():
            self.skipTest("a sanitizer keeps freed memory")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < CLIENTS + 500:
            self.skipTest("needs 2,000 open files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def test_memory_of_a_rush_goes_back(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "http", "site", "-p", str(port), "--root", self.folder(), "--request-timeout", "0", "-s")
        before = daemon.resident_kib()
        clients = [connect(port) for _ in range(CLIENTS)]
        try:
            for each in clients:
                each.sendall(HEAD)
            eventually(lambda: daemon.resident_kib() - before > CLIENTS * len(HEAD) / 1024, "all is received")
        finally:
            for each in clients:
                each.close()
        eventually(lambda: daemon.json("stats", "site")["connections"] == 0, "they are gone")
        eventually(lambda: daemon.resident_kib() - before < 10 * 1024, "it is given back", 180)


if __name__ == "__main__":
    harness.main()
