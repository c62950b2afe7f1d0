#!/usr/bin/env python3
"""Upgrades of the daemon under clients with TLS: no connection is refused, and connections of before end in order, with
a reply to each command that was executed.
"""

import http.client
import os
import threading
import time
import unittest

import harness
from harness import connect, eventually
from upgrade_test import UpgradeTest, command


class TlsTest(UpgradeTest):
    def setUp(self):
        if "tls" not in harness.parts():
            raise unittest.SkipTest("this program was built without TLS")
        super().setUp()
        self.certificates = harness.Certificates(self.folder())
        self.context = self.certificates.context()

    def secure_port(self, *words):
        return self.port(*words, "--tls", "--cert", self.certificates.cert, "--key", self.certificates.key)

    def connect(self, port):
        """A connection that fails where the peer ends it without a word."""
        return self.context.wrap_socket(connect(port), server_hostname="127.0.0.1", suppress_ragged_eofs=False)

    def root(self):
        root = self.folder()
        with open(os.path.join(root, "f"), "wb") as file:
            file.write(b"x" * 10_000)
        return root


@harness.on_each_backend
class HttpTest(TlsTest):
    def ask(self, peer):
        peer.request("GET", "/f")
        answer = peer.getresponse()
        body = answer.read()
        if answer.status != 200 or len(body) != 10_000:
            raise AssertionError(f"{answer.status} with {len(body)} bytes")
        return answer

    def fresh(self, port):
        peer = http.client.HTTPSConnection("127.0.0.1", port, timeout=harness.DEADLINE_S, context=self.context)
        # It would connect anew without a word.
        peer.auto_open = False
        peer.connect()
        return peer

    def no_request_fails(self, port):
        idle = [self.fresh(port) for _ in range(5)]
        for each in idle:
            self.addCleanup(each.close)
        self.ask(idle[0])

        def talk(number, state):
            peer = state.get("peer") or state.setdefault("peer", self.fresh(port))
            answer = self.ask(peer)
            # Some keep their connection until its end is announced, others take a new one each time.
            if answer.will_close or number % 2:
                state.clear()
                peer.close()

        self.upgrade_under(talk)
        for each in idle:
            self.ask(each)
        self.await_end_of_before()

    def test_no_request_to_a_site_fails(self):
        self.no_request_fails(self.secure_port("http", "r", "--root", self.root(), "--threads", "2"))

    def test_no_request_to_a_proxy_fails(self):
        self.port("http", "b", "--root", self.root())
        self.no_request_fails(self.secure_port("proxy", "r", "--protocol", "http", "--backend", "b"))


@harness.on_each_backend
class ProxyTest(TlsTest):
    def test_connections_go_on(self):
        backend = harness.free_port()
        other = self.daemon()
        other.must("create", "cache", "b", "-p", str(backend), "-s")
        port = self.secure_port("proxy", "r", "--backend", f":{backend}")

        def talk(number, _):
            with self.connect(port) as peer:
                peer.sendall(b"PING\r\n" * 3)
                for _ in range(3):
                    if (line := harness.read_line(peer)) != "+PONG":
                        raise AssertionError(line)

        with self.connect(port) as held:
            self.upgrade_under(talk)
            held.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(held), "+PONG", "a connection of before goes on")
        self.await_end_of_before()


@harness.on_each_backend
class CacheTest(TlsTest):
    def test_each_command_that_was_executed_has_a_reply(self):
        port = self.secure_port("cache", "r")
        answered = {}
        ends = []

        def talk(number, state):
            key = b"n%d" % number
            peer = state.get("peer")
            if peer is None:
                peer = state["peer"] = self.connect(port)
                count = int(command(peer, b"INCRBY", key, b"0")[1:])
                if count != answered.setdefault(number, 0):
                    raise AssertionError(f"{count} were executed, and {answered[number]} answered")
            try:
                reply = command(peer, b"INCR", key)
            except (OSError, AssertionError) as end:  # a connection of before
                ends.append(end)
                state.clear()
                peer.close()
                return
            answered[number] += 1
            if reply != f":{answered[number]}":
                raise AssertionError(f"{reply} after {answered[number]}")

        self.upgrade_under(talk)
        self.assertTrue(ends)
        self.await_end_of_before()

    def test_pipelines_have_a_reply_to_each_command_that_was_executed(self):
        port = self.secure_port("cache", "r", "--threads", "2")
        answered = {}
        ends = []

        def talk(number, state):
            key = b"n%d" % number
            if "peer" not in state:
                state["peer"] = self.connect(port)
                count = int(command(state["peer"], b"INCRBY", key, b"0")[1:])
                if count != answered.setdefault(number, 0):
                    raise AssertionError(f"{count} were executed, and {answered[number]} answered")
            try:
                state["peer"].sendall(b"INCR %s\r\n" % key * 100)
                for _ in range(100):
                    reply = harness.read_line(state["peer"])
                    answered[number] += 1
                    if reply != f":{answered[number]}":
                        raise ValueError(f"{reply} after {answered[number]}")
            except (OSError, AssertionError) as end:  # a connection of before
                ends.append(end)
                state.pop("peer").close()

        self.upgrade_under(talk)
        self.assertTrue(ends)
        self.await_end_of_before()

    def test_new_connections_wait(self):
        port = self.secure_port("cache", "r", "--dir", self.folder())

        def talk(number, _):
            with self.connect(port) as peer:
                try:
                    reply = command(peer, b"SET", b"k%d" % number, b"v")
                except (OSError, AssertionError):
                    return  # one of the daemon before
                if reply != "+OK":
                    raise AssertionError(reply)

        self.upgrade_under(talk)
        self.await_end_of_before()


@harness.on_each_backend
class ServerTest(TlsTest):
    def test_lines_that_were_taken_are_sent_before_the_end(self):
        lines = os.path.join(self.folder(), "lines")
        port = self.secure_port("server", "r", "--log", lines)
        for _ in range(3):
            with open(lines, "wb"):
                pass
            with self.connect(port) as sender, self.connect(port) as reader:
                eventually(lambda: self.running.show("r")["connections"] == 2, "both")

                def send(to=sender):
                    try:
                        for number in range(1_000_000):
                            to.sendall(b"%d\n" % number)
                            time.sleep(0.0005)
                    except OSError:
                        pass

                thread = threading.Thread(target=send)
                thread.start()
                self.assertEqual(harness.read_line(reader), "0")
                self.upgrade()
                got = b"0\n" + harness.all_of(reader)
                thread.join(harness.DEADLINE_S)
            self.await_end_of_before()
            with open(lines, "rb") as file:
                taken = [line.rsplit(b" ", 1)[-1] for line in file.read().splitlines()]
            self.assertEqual(got.splitlines(), taken)

        def talk(number, _):
            with self.connect(port) as peer:
                try:
                    peer.sendall(b"client %d\n" % number)
                    peer.unwrap()
                except OSError:
                    pass  # one of the daemon before

        self.upgrade_under(talk)
        self.await_end_of_before()


if __name__ == "__main__":
    harness.main()
