#!/usr/bin/env python3
"""Real sentinels that watch caches: a master that dies or is cut off is replaced, what was
acknowledged by WAIT is kept, and the old one comes back as a replica.

Failovers take as long as sentinels take, and these distrust a machine that stalls: EDDY_FAILOVERS=20 runs
so many in a row. Without it only the cut link is tried.
"""

import os
import shutil
import subprocess
import unittest

import harness
from cache_client import Client, client_of
from harness import eventually, free_port

FAILOVERS = int(os.environ.get("EDDY_FAILOVERS", "0"))
SENTINELS = 3
CACHES = 3


class Node:
    """A cache in a daemon of its own, which can be killed; maybe in a network of its own."""

    def __init__(self, test, port, backend):
        self.test = test
        self.port = port
        self.daemon = harness.Daemon(backend=backend, folder=test.folder())
        test.addCleanup(self.end)
        self.daemon.start()
        self.daemon.must("create", "cache", "db", "-p", str(port), "--mode", "admin", "-s")

    def client(self):
        return client_of(self.test, self.port)

    def kill(self):
        self.daemon.kill()

    def come_back(self):
        self.daemon.start()

    def end(self):
        if self.daemon.process is not None:
            self.daemon.stop()


def answer_of(port, *words):
    """The reply, or None where nobody answers."""
    try:
        client = Client(port, timeout_s=5)
    except OSError:
        return None
    try:
        return client(*words)
    except OSError:
        return None
    finally:
        client.close()


class Sentinels(harness.EddyTest):
    def setUp(self):
        if FAILOVERS == 0:
            self.skipTest("takes a minute: EDDY_FAILOVERS=2 runs it")
        if shutil.which("redis-server") is None:
            self.skipTest("redis-server, which is sentinel as well, is not installed")

    def start_sentinels(self, master_port):
        ports = []
        for i in range(SENTINELS):
            port = free_port()
            path = os.path.join(self.folder(), "sentinel.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"port {port}\nbind 127.0.0.1\ndir {os.path.dirname(path)}\n"
                           f"sentinel monitor db 127.0.0.1 {master_port} 2\n"
                           "sentinel down-after-milliseconds db 1000\n"
                           "sentinel failover-timeout db 6000\n"
                           "sentinel parallel-syncs db 2\n")
            process = subprocess.Popen(["redis-server", path, "--sentinel"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            ports.append(port)
        return ports

    @staticmethod
    def master_of(sentinel):
        told = answer_of(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "db")
        return int(told[1]) if isinstance(told, list) else None

    @staticmethod
    def state_of(sentinel):
        flat = answer_of(sentinel, "SENTINEL", "MASTER", "db")
        if not isinstance(flat, list):
            return {}
        return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}

    def everybody_knows(self, sentinels, replicas):
        def known():
            for each in sentinels:
                told = self.state_of(each)
                if (told.get("num-other-sentinels") != str(SENTINELS - 1) or
                        told.get("num-slaves") != str(replicas) or
                        told.get("flags") != "master"):
                    return False
            return True
        eventually(known, "the sentinels to know each other and all caches", 120)

    def write_acknowledged(self, port, number):
        """Writes until something is acknowledged by a replica; returns the number."""
        def attempt():
            try:
                client = Client(port, timeout_s=10)
            except OSError:
                return False
            try:
                return (client("SET", f"kept {number}", number) == "+OK" and
                        client("WAIT", "1", "5000") >= 1)
            except (OSError, TypeError):
                return False
            finally:
                client.close()
        eventually(attempt, "an acknowledged write", 120)

    @staticmethod
    def has_role(port, role):
        """Asks by connections of its own: a sentinel that changes a role closes those that are there."""
        def has_it():
            told = answer_of(port, "ROLE")
            return isinstance(told, list) and told[0] == role
        eventually(has_it, f"the role {role.decode()}", 120)

    def test_a_master_that_dies_is_replaced(self):
        ports = [free_port() for _ in range(CACHES)]
        nodes = {port: Node(self, port, self.backend) for port in ports}
        for port in ports[1:]:
            nodes[port].client()("REPLICAOF", "127.0.0.1", ports[0])
        sentinels = self.start_sentinels(ports[0])
        self.everybody_knows(sentinels, CACHES - 1)
        master = ports[0]
        for number in range(FAILOVERS):
            self.write_acknowledged(master, number)
            nodes[master].kill()
            chosen = eventually(lambda: next(
                (each for each in {self.master_of(s) for s in sentinels}
                 if each not in (None, master)), None), "another master", 120)
            eventually(lambda: {self.master_of(s) for s in sentinels} == {chosen},
                       "the sentinels to agree", 120)
            self.has_role(chosen, b"master")
            promoted = nodes[chosen].client()
            for old in range(number + 1):
                self.assertEqual(promoted("GET", f"kept {old}"), str(old).encode())
            nodes[master].come_back()
            self.has_role(master, b"slave")
            old_master = nodes[master].client()
            eventually(lambda: old_master.info("replication").get("master_link_status") == "up",
                       "its link", 120)
            self.assertEqual(int(old_master.info("replication")["master_port"]), chosen)
            eventually(lambda: old_master("GET", f"kept {number}") == str(number).encode(),
                       "its data", 120)
            for client in (promoted, old_master):
                client.close()
            master = chosen
            self.everybody_knows(sentinels, CACHES - 1)

    def test_a_planned_failover(self):
        ports = [free_port() for _ in range(2)]
        nodes = {port: Node(self, port, self.backend) for port in ports}
        nodes[ports[1]].client()("REPLICAOF", "127.0.0.1", ports[0])
        sentinels = self.start_sentinels(ports[0])
        self.everybody_knows(sentinels, 1)
        self.write_acknowledged(ports[0], 1)
        eventually(lambda: answer_of(sentinels[0], "SENTINEL", "FAILOVER", "db") == "+OK",
                   "a sentinel to begin", 120)
        eventually(lambda: {self.master_of(s) for s in sentinels} == {ports[1]}, "the change", 120)
        self.has_role(ports[1], b"master")
        self.has_role(ports[0], b"slave")
        promoted, old = nodes[ports[1]].client(), nodes[ports[0]].client()
        self.assertEqual(promoted("GET", "kept 1"), b"1")
        eventually(lambda: old.info("replication").get("master_link_status") == "up", "its link")
        eventually(lambda: old("GET", "kept 1") == b"1", "its data")


class Partition(harness.EddyTest):
    """The master's network is cut: it goes on alone, and follows when the cut is healed."""

    def setUp(self):
        if not harness.is_root() or shutil.which("ip") is None:
            self.skipTest("network namespaces need root and iproute2")
        self.name = f"eddy{os.getpid()}"
        made = subprocess.run(["ip", "netns", "add", self.name], stderr=subprocess.PIPE,
                              check=False)
        if made.returncode != 0:
            self.skipTest(f"no network namespace here: {made.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.name], check=False)
        octet = os.getpid() % 250
        self.outer, self.inner = f"10.211.{octet}.1", f"10.211.{octet}.2"
        self.link = f"ed{os.getpid()}"
        for words in (f"link add {self.link} type veth peer name {self.link}i",
                      f"link set {self.link}i netns {self.name}",
                      f"addr add {self.outer}/24 dev {self.link}",
                      f"link set {self.link} up",
                      f"netns exec {self.name} ip addr add {self.inner}/24 dev {self.link}i",
                      f"netns exec {self.name} ip link set {self.link}i up",
                      f"netns exec {self.name} ip link set lo up"):
            done = subprocess.run(["ip", *words.split()], stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                self.skipTest(f"no veth pair here: {done.stderr.decode().strip()}")

    def test_a_cut_link_times_out_and_goes_on_where_it_was(self):
        inside = harness.Daemon(folder=self.folder())
        command = inside.command
        inside.command = lambda: ["ip", "netns", "exec", self.name, *command()]
        self.addCleanup(inside.stop)
        inside.start()
        inside.must("create", "cache", "db", "-p", "7000", "--bind", self.inner, "--mode", "admin",
                    "--protected-mode", "no", "-s")
        leader = client_of(self, 7000, self.inner)
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "--mode", "admin", "-s")
        follower = client_of(self, port)
        for each in (leader, follower):
            self.assertEqual(each("CONFIG", "SET", "repl-diskless-sync-delay", "0"), "+OK")
        leader("SET", "a", "1")
        follower("REPLICAOF", self.inner, "7000")
        eventually(lambda: follower("GET", "a") == b"1", "the key")
        for each in (leader, follower):
            self.assertEqual(each("CONFIG", "SET", "repl-timeout", "2",
                                  "repl-ping-replica-period", "1"), "+OK")
        subprocess.run(["ip", "link", "set", self.link, "down"], check=True)
        eventually(lambda: follower.info("replication")["master_link_status"] == "down",
                   "the loss to be noticed")
        subprocess.run(["ip", "link", "set", self.link, "up"], check=True)
        leader = client_of(self, 7000, self.inner)
        leader("SET", "a", "2")
        eventually(lambda: follower("GET", "a") == b"2", "the change")
        self.assertEqual(leader.info("stats")["sync_full"], "1")


if __name__ == "__main__":
    harness.main()
