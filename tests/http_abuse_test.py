#!/usr/bin/env python3
"""Abuse of sites over real sockets: slow clients, request smuggling, resets, too few descriptors, files that shrink."""

import contextlib
import ctypes
import os
import resource
import shutil
import socket
import struct
import subprocess
import unittest

import harness
from harness import connect, eventually, free_port

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

# Each ends its connection: what is behind it must never be taken for a request. A site refuses POST by its head alone,
# so a fault in the content closes behind that refusal.
SMUGGLED = (
    ("CL and TE", POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("TE and CL", POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    ("TE twice", POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("TE chunked, chunked", POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400),
    ("TE identity", POST + b"Transfer-Encoding: identity\r\n\r\n", (400, 501)),
    ("TE xchunked", POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", (400, 501)),
    ("TE behind a tab", POST + b"Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n", (400, 501)),
    ("TE in quotes", POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n', (400, 501)),
    ("TE, space before the colon", POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    ("TE behind a NUL", POST + b"Transfer-Encoding: \0chunked\r\n\r\n0\r\n\r\n", 400),
    ("TE in HTTP/1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("bare LF", b"GET / HTTP/1.1\nHost: x\n\n", 400),
    ("bare LF in the header", HEAD + b"A: b\nC: d\r\n\r\n", 400),
    ("bare CR in the header", HEAD + b"A: b\rC: d\r\n\r\n", 400),
    ("obs-fold", HEAD + b"A: b\r\n c\r\n\r\n", 400),
    ("obs-fold of TE", POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
    ("space before the first field", b"GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400),
    ("space before the colon", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    ("no colon", HEAD + b"A\r\n\r\n", 400),
    ("CL twice, different", POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    ("CL twice, the same", POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
    ("CL list, different", POST + b"Content-Length: 1, 2\r\n\r\nab", 400),
    ("CL +1", POST + b"Content-Length: +1\r\n\r\na", 400),
    ("CL -1", POST + b"Content-Length: -1\r\n\r\na", 400),
    ("CL 0x1", POST + b"Content-Length: 0x1\r\n\r\na", 400),
    ("CL 1 1", POST + b"Content-Length: 1 1\r\n\r\na", 400),
    ("CL empty", POST + b"Content-Length: \r\n\r\na", 400),
    ("CL above 64 bits", POST + b"Content-Length: 18446744073709551617\r\n\r\na", (400, 413)),
    ("chunk size 0x1", CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", 405),
    ("chunk size +1", CHUNKED + b"+1\r\na\r\n0\r\n\r\n", 405),
    ("chunk size -1", CHUNKED + b"-1\r\na\r\n0\r\n\r\n", 405),
    ("chunk size of 20 digits", CHUNKED + b"f" * 20 + b"\r\na\r\n0\r\n\r\n", 405),
    ("chunk size, bare LF", CHUNKED + b"1\na\r\n0\r\n\r\n", 405),
    ("chunk longer than its size", CHUNKED + b"1\r\nab\r\n0\r\n\r\n", 405),
    ("flood of chunk extensions", CHUNKED + b"1;" + b"a=b;" * 20_000 + b"\r\na\r\n0\r\n\r\n", 405),
    ("many chunk extensions", CHUNKED + b"1;a=b\r\na\r\n" * 20_000 + b"0\r\n\r\n", 405),
    ("absolute form of another host", b"GET http://other/ HTTP/1.1\r\nHost: x\r\n\r\n", (200, 400)),
    ("two hosts", HEAD + b"Host: y\r\n\r\n", 400),
    ("no host", b"GET / HTTP/1.1\r\n\r\n", 400),
    ("host with a space", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    ("NUL in the target", b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("NUL in a field", HEAD + b"A: b\0c\r\n\r\n", 400),
    ("space in the target", b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("version 1.1.1", b"GET / HTTP/1.1.1\r\nHost: x\r\n\r\n", 400),
    ("version 2.0", b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", (400, 505)),
    ("header of 65 kB", HEAD + b"A: " + b"a" * 65_000 + b"\r\n\r\n", 431),
    ("200 fields", HEAD + b"A: b\r\n" * 200 + b"\r\n", 431),
    ("target of 65 kB", b"GET /" + b"a" * 65_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
)
# Bytes behind a refused request.
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"


def send(peer, data):
    """True if the peer has taken it all; it may close before."""
    try:
        peer.sendall(data)
        return True
    except OSError:
        return False


def rest_of(peer):
    """All that comes until the peer closes or resets."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := peer.recv(65536):
            received += piece
    return received


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


class SiteTest(harness.EddyTest):
    large = 32 << 20

    def start(self, *flags, **options):
        self.root = self.folder()
        self.write("index.html", b"hello\n")
        self.write("hidden", b"HIDDEN")
        self.write("large", b"x" * self.large)
        self.running = self.daemon(**options)
        self.port = free_port()
        self.running.must("create", "http", "site", "-p", str(self.port), "--root", self.root, *flags, "-s")

    def write(self, name, content):
        with open(os.path.join(self.root, name), "wb") as file:
            file.write(content)

    def client(self):
        peer = connect(self.port)
        self.addCleanup(peer.close)
        return peer

    def ask(self, data, half_close=False):
        with connect(self.port) as peer:
            send(peer, data)
            if half_close:
                peer.shutdown(socket.SHUT_WR)
            return rest_of(peer)

    def assert_served(self):
        got = self.ask(HEAD + b"Connection: close\r\n\r\n")
        self.assertTrue(got.startswith(b"HTTP/1.1 200 "), got[:100])
        self.assertTrue(got.endswith(b"\r\n\r\nhello\n"))

    def connections(self):
        return self.running.show("site")["connections"]

    def until_quiet(self):
        eventually(lambda: self.connections() == 0, "all connections to end")


@harness.on_each_backend
class Abuse(SiteTest):
    def setUp(self):
        self.start()

    def test_smuggled_requests_are_refused_and_end_the_connection(self):
        for what, request, wanted in SMUGGLED:
            with self.subTest(what):
                got = self.ask(request + HIDDEN, half_close=True)
                self.assertRegex(got, rb"^HTTP/1\.1 \d\d\d ")
                status = int(got[9:12])
                self.assertIn(status, wanted if isinstance(wanted, tuple) else (wanted,))
                if status >= 400:
                    self.assertEqual(got.count(b"HTTP/1.1 "), 1, got[:500])
                    self.assertIn(b"\r\nConnection: close\r\n", got)
                    self.assertNotIn(b"HIDDEN", got)
        self.assert_served()
        self.until_quiet()

    def test_the_target_of_the_absolute_form_decides_the_host(self):
        got = self.ask(b"GET http://other/hidden HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertTrue(got.startswith(b"HTTP/1.1 200 "), got[:100])

    def test_connection_close_closes(self):
        self.assert_served()
        got = self.ask(HEAD + b"Connection: close\r\n\r\n" + HIDDEN)
        self.assertEqual(got.count(b"HTTP/1.1 200 "), 1)
        self.assertIn(b"\r\nConnection: close\r\n", got)
        old = self.ask(b"GET / HTTP/1.0\r\n\r\n")
        self.assertEqual(old.count(b"HTTP/1.1 200 "), 1)

    def test_a_half_closed_client_gets_its_whole_response(self):
        got = self.ask(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", half_close=True)
        self.assertEqual(len(got.split(b"\r\n\r\n", 1)[1]), self.large)
        self.assertEqual(self.ask(HEAD + b"\r\n" + HIDDEN, half_close=True).count(b"HTTP/1.1 200 "), 2)
        self.until_quiet()

    def test_resets_in_the_middle_of_a_response(self):
        files = self.running.open_files()
        for i in range(40):
            peer = self.client()
            send(peer, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            if i % 2:
                peer.recv(100_000)
            reset(peer)
        self.until_quiet()
        self.assert_served()
        eventually(lambda: self.running.open_files() <= files, "all descriptors to be closed")

    def test_a_file_that_shrinks_while_it_is_sent_cuts_the_connection(self):
        peer = self.client()
        send(peer, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        got = peer.recv(1000)
        os.truncate(os.path.join(self.root, "large"), 1000)
        got += rest_of(peer)
        head, content = got.split(b"\r\n\r\n", 1)
        self.assertIn(b"\r\nContent-Length: %d\r\n" % self.large, head + b"\r\n")
        self.assertLess(len(content), self.large)
        self.assertEqual(content.strip(b"x"), b"")
        self.assert_served()
        self.until_quiet()

    def test_small_responses_are_sent_at_once(self):
        """Nagle's algorithm is off: a response in two writes never waits for a delayed ACK of 40 ms."""
        peer = self.client()
        send(peer, HEAD + b"\r\n")
        self.assertTrue(peer.recv(9).startswith(b"HTTP/1.1"))
        accepted = self.socket_of_the_daemon(peer.getsockname())
        self.assertEqual(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), 1)

    def socket_of_the_daemon(self, remote):
        """A duplicate of the daemon's descriptor of its connection with `remote`: pidfd_getfd(2)."""
        libc = ctypes.CDLL(None, use_errno=True)
        process = os.pidfd_open(self.running.pid)
        self.addCleanup(os.close, process)
        for name in os.listdir(f"/proc/{self.running.pid}/fd"):
            fd = libc.syscall(438, process, int(name), 0)
            if fd < 0:
                if ctypes.get_errno() in (1, 38):
                    self.skipTest("pidfd_getfd(2) is refused here")
                continue
            try:
                found = socket.socket(fileno=fd)
            except OSError:
                os.close(fd)
                continue
            self.addCleanup(found.close)
            with contextlib.suppress(OSError):
                if found.family in (socket.AF_INET, socket.AF_INET6) and found.getpeername()[1] == remote[1]:
                    return found
        raise AssertionError("the daemon has no such connection")


@harness.on_each_backend
@unittest.skipIf(harness.sanitized(), "a sanitizer's own checks need descriptors")
class FewDescriptors(SiteTest):
    def test_responses_go_on_and_new_ones_say_so_until_descriptors_are_free(self):
        self.start(limit_files=64, flags=["--loops", "1"])
        busy = self.client()
        send(busy, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        head = busy.recv(1000)
        crowd = [self.client() for _ in range(64)]
        eventually(lambda: "cannot accept connections for now" in self.running.must("logs", "site"), "the limit")
        # Each asks for a file. Accepted ones get it, or 503.
        for each in crowd:
            send(each, b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = head + rest_of_one(busy, self.large, head)
        self.assertEqual(len(got.split(b"\r\n\r\n", 1)[1]), self.large)
        busy.close()
        for each in crowd:
            answer = rest_of(each)
            self.assertRegex(answer[:12], rb"^HTTP/1\.1 (200|503)$")
            if answer[9:12] == b"200":
                self.assertEqual(len(answer.split(b"\r\n\r\n", 1)[1]), self.large)
            each.close()
        self.assert_served()
        self.until_quiet()

    large = 4 << 20


def rest_of_one(peer, size, begun):
    """The rest of a response with a content of `size` bytes, of which `begun` has come."""
    got = b""
    while b"\r\n\r\n" not in begun + got or len((begun + got).split(b"\r\n\r\n", 1)[1]) < size:
        piece = peer.recv(1 << 20)
        if not piece:
            break
        got += piece
    return got


class ManyIdle(SiteTest):
    large = 10

    @unittest.skipIf(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 11_000, "needs 11,000 open files")
    def test_ten_thousand_idle_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.start("--max-connections", "10100", "--idle-timeout", "0")
        self.assert_served()
        before = self.running.resident_kib()
        idle = []
        for i in range(10_000):
            idle.append(self.client())
            send(idle[-1], HEAD + b"\r\n")
            if i % 100 == 99:
                for each in idle[-100:]:
                    self.assertTrue(each.recv(4096).startswith(b"HTTP/1.1 200 "))
        eventually(lambda: self.connections() == 10_000, "all connections")
        each = (self.running.resident_kib() - before) * 1024 / 10_000
        print(f"{before} KiB resident with a site, {each:.0f} bytes more for each idle connection", flush=True)
        if not harness.sanitized():
            self.assertLessEqual(before, 15 * 1024)
            # Clients of the last second have a session; src/runtime/memory_test.cpp bounds the others.
            self.assertLessEqual(each, 8 * 1024)
        self.assert_served()
        # They are alive.
        for peer in idle[::500]:
            send(peer, HEAD + b"\r\n")
            self.assertTrue(peer.recv(4096).startswith(b"HTTP/1.1 200 "))
        for peer in idle:
            peer.close()
        self.until_quiet()


@unittest.skipUnless(shutil.which("slowhttptest"), "slowhttptest is not installed (Debian's package of that name)")
class Slow(SiteTest):
    """100 connections of each kind at a time, with the limits that a site has by default: 15 s. That these cut within
    20 s is shown in virtual time, by src/http/session/slow_clients_test.cpp; here the bound is one that a busy machine keeps."""

    # Duration of an attack.
    seconds = 120

    def attack(self, *words):
        attacker = subprocess.Popen(["slowhttptest", "-c", "100", "-r", "200", "-i", "2", "-p", "20", "-l",
                                     str(self.seconds), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        return attacker

    def sockets(self):
        """The kernel's sockets on the port of the site that hold memory: also closed ones that still have bytes to
        send."""
        count = 0
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table, encoding="ascii") as lines:
                for line in list(lines)[1:]:
                    local, state = line.split()[1], line.split()[3]
                    if int(local.rsplit(":", 1)[1], 16) == self.port and state not in ("06", "0A"):  # TIME_WAIT, LISTEN
                        count += 1
        return count

    def assert_are_cut(self):
        total = lambda: self.running.request("GET", "/v1/runtimes/site/stats")[1]["connections_total"]
        eventually(lambda: total() >= 100, "slow connections")

        def all_cut():
            self.assert_served()
            return self.sockets() == 0

        eventually(all_cut, "all connections to be cut", self.seconds / 2)

    def test_slow_headers_are_cut_while_others_are_served(self):
        self.start()
        self.attack("-H", "-u", f"http://127.0.0.1:{self.port}/")
        self.assert_are_cut()

    def test_slow_bodies_are_cut_while_others_are_served(self):
        self.start()
        self.attack("-B", "-s", "100000", "-u", f"http://127.0.0.1:{self.port}/")
        self.assert_are_cut()

    def test_slow_readers_are_reset_while_others_are_served(self):
        self.start()
        attacker = self.attack("-X", "-w", "10", "-y", "20", "-n", "1", "-z", "32", "-k", "3", "-u",
                               f"http://127.0.0.1:{self.port}/large")
        self.assert_are_cut()
        self.assertIsNone(attacker.poll(), "the attacker ended by itself")


if __name__ == "__main__":
    harness.main()
