#!/usr/bin/env python3
"""A proxy before three caches that three real sentinels watch: masters are killed and replaced on request, in turn, while a
client writes through the proxy. It reaches the new master each time, and no write that all replicas have acknowledged is
lost.

EDDY_FAILOVERS is the number of failovers.
"""

import os
import shutil
import subprocess
import threading

import harness
from cache_client import Client
from harness import eventually, free_port
from sentinel_test import Node, answer_of, local

FAILOVERS = int(os.environ.get("EDDY_FAILOVERS", "20"))
SENTINELS = 3
CACHES = 3
DEADLINE_S = 120
# Times in milliseconds in which sentinels ask and decide; by default each is seconds.
SENTINEL_TIMES = {"info-period": 200, "ping-period": 100, "ask-period": 100, "publish-period": 200,
                  "min-link-reconnect-period": 100, "election-timeout": 2000, "tilt-period": 500}


def table_of(flat):
    """The fields of a reply that alternates names and values."""
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)} if isinstance(flat, list) else {}


class Writer:
    """Writes numbers by one connection after the other, and waits for all replicas each time."""

    def __init__(self, port):
        self.port = port
        self.acknowledged = []
        self.connections = 0
        self.has_ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number, client = 0, None
        while not self.has_ended.is_set():
            try:
                if client is None:
                    client = Client(self.port, timeout_s=30)
                    self.connections += 1
                number += 1
                if (client("SET", f"kept {number}", number) == "+OK" and
                        client("WAIT", str(CACHES - 1), "100") == CACHES - 1):
                    self.acknowledged.append(number)
            except (OSError, ValueError):
                if client is not None:
                    client.close()
                client = None
        if client is not None:
            client.close()

    def end(self):
        self.has_ended.set()
        self.thread.join()


class SentinelProxy(harness.EddyTest):
    backend = "auto"

    def setUp(self):
        if shutil.which("redis-server") is None:
            self.skipTest("redis-server, which is sentinel as well, is not installed")
        super().setUp()

    def start_sentinels(self, master):
        """Their places."""
        places = [local() for _ in range(SENTINELS)]
        for port, host in places:
            path = os.path.join(self.folder(), "sentinel.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"port {port}\nbind {host}\ndir {os.path.dirname(path)}\n"
                           f"sentinel monitor db {master[1]} {master[0]} 2\n"
                           "sentinel down-after-milliseconds db 1000\n"
                           "sentinel failover-timeout db 3000\n"
                           "sentinel parallel-syncs db 2\n")
            process = subprocess.Popen(["redis-server", path, "--sentinel"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        words = [str(word) for pair in SENTINEL_TIMES.items() for word in pair]
        for place in places:
            reply = eventually(lambda place=place: answer_of(place, "SENTINEL", "DEBUG", *words), "a sentinel")
            if str(reply).startswith("-"):
                self.skipTest(f"this sentinel has no times to set: {reply}")
        return places

    @staticmethod
    def is_settled(sentinel, master):
        """True if a sentinel sees this master and its replicas as they should be."""
        told = table_of(answer_of(sentinel, "SENTINEL", "MASTER", "db"))
        if (told.get("flags") != "master" or (int(told["port"]), told["ip"]) != master or
                told["num-other-sentinels"] != str(SENTINELS - 1)):
            return False
        replicas = [table_of(each) for each in answer_of(sentinel, "SENTINEL", "REPLICAS", "db") or ()]
        return len(replicas) == CACHES - 1 and all(
            each["flags"] == each["role-reported"] == "slave" and each["master-link-status"] == "ok" and
            (int(each["master-port"]), each["master-host"]) == master for each in replicas)

    def settled(self):
        """The master, as soon as all sentinels see it and all replicas have its data."""
        def seen():
            told = answer_of(self.sentinels[0], "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "db")
            if not isinstance(told, list):
                return None
            master = (int(told[1]), told[0].decode())
            return master if all(self.is_settled(each, master) for each in self.sentinels) else None
        return eventually(seen, "the sentinels to agree about all caches", DEADLINE_S)

    def replaced(self, master, ask):
        """Until all sentinels name another master; `ask` is called now and then."""
        def is_done():
            ask()
            named = [answer_of(each, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "db") for each in self.sentinels]
            return all(isinstance(each, list) and int(each[1]) != master[0] for each in named)
        eventually(is_done, "another master", DEADLINE_S)

    def fail_over(self, master):
        def ask():
            # It gives up what takes it too long on a busy machine; then the operator asks again.
            told = table_of(answer_of(self.sentinels[0], "SENTINEL", "MASTER", "db"))
            if told.get("port") == str(master[0]) and "failover_in_progress" not in told["flags"]:
                answer_of(self.sentinels[0], "SENTINEL", "FAILOVER", "db")
        self.replaced(master, ask)

    def has_kept(self, port, numbers):
        client = Client(port)
        self.addCleanup(client.close)
        lost = []
        for i in range(0, len(numbers), 500):
            some = numbers[i:i + 500]
            replies = client.all([("GET", f"kept {each}") for each in some])
            lost += [each for each, reply in zip(some, replies) if reply != str(each).encode()]
        self.assertEqual(lost, [])

    def test_failovers_lose_no_write_that_all_replicas_have_acknowledged(self):
        places = [local() for _ in range(CACHES)]
        nodes = {place: Node(self, place) for place in places}
        for node in nodes.values():
            node.configure("repl-diskless-sync-delay", "0")
            self.assertEqual(answer_of(node.place, "CONFIG", "REWRITE"), "+OK")
        for place in places[1:]:
            nodes[place].follow(places[0])
        self.sentinels = self.start_sentinels(places[0])
        master = self.settled()
        eddy = self.daemon()
        port = free_port()
        eddy.must("create", "proxy", "gw", "-p", str(port), "--backend", "@db-master", "--sentinel",
                  ",".join(f"{host}:{number}" for number, host in self.sentinels), "-s")
        writer = Writer(port)
        self.addCleanup(writer.end)
        for number in range(FAILOVERS):
            before = len(writer.acknowledged)
            eventually(lambda before=before: len(writer.acknowledged) > before + 10, "acknowledged writes", DEADLINE_S)
            if number % 2 == 0:
                self.fail_over(master)
            else:
                nodes[master].kill()
                self.replaced(master, lambda: None)
                nodes[master].come_back()
            master = self.settled()
            eventually(lambda master=master: f"@db-master is 127.0.0.1:{master[0]} (" in eddy.show("gw")["detail"],
                       "the proxy to follow", DEADLINE_S)
        before = len(writer.acknowledged)
        eventually(lambda: len(writer.acknowledged) > before + 10, "acknowledged writes", DEADLINE_S)
        writer.end()
        self.has_kept(port, writer.acknowledged)
        self.assertGreater(writer.connections, FAILOVERS, "each failover cuts the connections to the master before")


if __name__ == "__main__":
    harness.main()
