"""Shared by tests of flags: the list of flags with a test of their effect, and runtimes with flags."""

import os
import re
import socket

import harness
from harness import all_of, connect, eventually, free_port

CLAIMED = set()


def effect_of(where, *names):
    """Says that a test shows the effect of these flags of a command, or of a type."""
    CLAIMED.update((where, name) for name in names)
    return lambda test: test


def flags_in(help_text):
    """The long flags of a help text's tables, without those of every command."""
    own = help_text.split("Flags of every command:")[0]
    return set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", own, re.M))


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def seconds_to_probe(port):
    """Until the kernel probes the silent peers of connections whose own end has this port; proc(5), /proc/net/tcp."""
    established, keepalive = "01", "02:"
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    return [int(row[5][len(keepalive):], 16) / os.sysconf("SC_CLK_TCK") for row in rows
            if int(row[1].split(":")[1], 16) == port and row[3] == established and row[5].startswith(keepalive)]


class FlagTest(harness.EddyTest):
    def assert_probes(self, daemon, port):
        """Checks runtime r, which probes after 100 s."""
        for flags, least, most in (([], 0, 100), (["--tcp-keepalive", "1h"], 1000, 3600), (["--unset", "tcp-keepalive"], 100, 300)):
            if flags:
                daemon.must("edit", "r", *flags)
            with connect(port):
                eventually(lambda: any(least < each <= most for each in seconds_to_probe(port)), f"the timer of {flags}")

    def assert_users(self, kind, *flags):
        """A Unix socket of runtime r serves the users of --allow-users, and closes others' connections."""
        daemon = self.daemon()
        path = os.path.join(self.folder(), "s")
        daemon.must("create", kind, "r", "--unix", path, "--allow-users", str(os.getuid() + 1), *flags, "-s")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(harness.DEADLINE_S)
            client.connect(path)
            self.assertEqual(all_of(client), b"")
        daemon.must("edit", "r", "--allow-users", str(os.getuid()))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            eventually(lambda: daemon.list()["r"]["connections"] == 1, "the client")

    def create(self, daemon, kind, name="r", *flags, port=None):
        port = port or free_port()
        daemon.must("create", kind, name, "-p", str(port), "-s", *flags)
        return port

    def joined(self, daemon, port, count):
        """Connects `count` clients and waits until the server has them all."""
        clients = [connect(port) for _ in range(count)]
        for client in clients:
            self.addCleanup(client.close)
        eventually(lambda: daemon.list()["r"]["connections"] == count, "they are all there")
        return clients
