"""Tests of each flag of a client by its effect, run by flags_test.py."""

import socket

import harness
from flag_effects import FlagTest, effect_of
from harness import eventually, read_line


@harness.on_each_backend
class ClientFlags(FlagTest):
    """Its server is a listener of the test."""

    def listening(self, backlog=100):
        made = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        made.settimeout(harness.DEADLINE_S)
        self.addCleanup(made.close)
        return made

    def accepted(self, server):
        peer = server.accept()[0]
        self.addCleanup(peer.close)
        peer.settimeout(harness.DEADLINE_S)
        return peer

    @effect_of("client", "target", "max-line")
    def test_target_and_max_line(self):
        daemon, first, second = self.daemon(), self.listening(), self.listening()
        self.assert_refused(daemon.run("create", "client", "x"), 1, "--target")
        daemon.must("create", "client", "r", "-t", "127.0.0.1:%d" % first.getsockname()[1], "-s")
        self.accepted(first).sendall(b"to the journal\n")
        eventually(lambda: "received: to the journal" in daemon.must("logs", "r"), "it is in the journal")
        self.assertEqual((daemon.list()["r"]["address"], daemon.list()["r"]["connections"]), (None, 1))
        daemon.must("edit", "r", "--max-line", "4")
        daemon.must("edit", "r", "--target", "tcp://127.0.0.1:%d" % second.getsockname()[1])
        peer = self.accepted(second)
        peer.sendall(b"long line\n")
        eventually(lambda: "received: long... (longer" in daemon.must("logs", "r"), "it is cut")
        self.assertEqual(daemon.must("send", "r", "to the server"), "delivered to 1\n")
        self.assertEqual(read_line(peer), "to the server")
        self.assertEqual(daemon.json("stats", "r")["messages_out"], 1)

    @effect_of("client", "connect-timeout")
    def test_connect_timeout(self):
        daemon, silent = self.daemon(), self.listening(backlog=0)
        with socket.create_connection(silent.getsockname()):  # its queue is full
            daemon.must("create", "client", "r", "-t", ":%d" % silent.getsockname()[1], "--connect-timeout", "50ms", "-s")
            eventually(lambda: daemon.json("stats", "r")["errors"] > 0, "an attempt is over")
