#!/usr/bin/env python3
"""Clients that are killed while they wait for queue elements: no element is lost, and none comes twice.

EDDY_KILLS=N chooses how many elements are pushed while consumers are killed.
"""

import os
import random
import threading
import time

import harness
from cache_client import Client
from harness import eventually, free_port

ELEMENTS = int(os.environ.get("EDDY_KILLS", "1500"))
CONSUMERS = 4
# Each leaves the element in the reply's last place.
WAITS = {
    "RPUSH": (("BLPOP", "q", "0"), ("BRPOP", "other", "q", "0"), ("BLMPOP", "0", "1", "q", "LEFT"),
              ("BLMOVE", "q", "taken", "LEFT", "RIGHT", "0")),
    "ZADD": (("BZPOPMIN", "q", "0"), ("BZPOPMAX", "q", "0"), ("BZMPOP", "0", "1", "q", "MIN")),
}


class Consumer(threading.Thread):
    """Waits for elements, on a new connection after each kill."""

    def __init__(self, port, wait):
        super().__init__()
        self.port, self.wait = port, wait
        self.id, self.taken, self.kills = None, [], 0
        self.is_over = False

    def run(self):
        while not self.is_over:
            client = Client(self.port)
            try:
                self.id = client("CLIENT", "ID")
                while True:
                    self.taken.append(self.element(client(*self.wait)))
            except ConnectionError:
                self.kills += 1
            finally:
                client.close()

    def element(self, reply):
        if self.wait[0] == "BLMOVE":
            return int(reply)
        value = reply[1]
        while isinstance(value, list):
            value = value[0]
        return int(value)


@harness.on_each_backend
class ClosedClients(harness.EddyTest):
    def consume(self, push, threads):
        port = free_port()
        daemon = self.daemon()
        daemon.must("create", "cache", "c", "-p", str(port), "--threads", threads, "-s")
        client = Client(port)
        self.addCleanup(client.close)
        chance = random.Random(os.environ.get("EDDY_SEED", "1"))
        consumers = [Consumer(port, chance.choice(WAITS[push])) for _ in range(CONSUMERS)]
        is_over = threading.Event()

        def kill():
            mine = Client(port)
            while not is_over.is_set():
                victim = chance.choice(consumers).id
                if victim is not None:
                    mine("CLIENT", "KILL", "ID", victim)
                time.sleep(chance.random() * 0.004)
            mine.close()

        killer = threading.Thread(target=kill)
        everything = [*consumers, killer]
        for each in everything:
            each.start()
        try:
            for i in range(ELEMENTS):
                client(push, "q", i, i) if push == "ZADD" else client(push, "q", i)
                if i % 50 == 0:
                    # A killed one and an element in one pipeline.
                    client.all([("CLIENT", "KILL", "ID", consumers[i // 50 % CONSUMERS].id or 1),
                                (push, "q", *([ELEMENTS + i] * (2 if push == "ZADD" else 1)))])
            expected = sorted([*range(ELEMENTS), *range(ELEMENTS, 2 * ELEMENTS, 50)])
            eventually(lambda: sum(len(each.taken) for each in consumers) >= len(expected), "all elements")
        finally:
            is_over.set()
            killer.join()
            for each in consumers:
                each.is_over = True
            while any(each.is_alive() for each in consumers):
                client("CLIENT", "KILL", "TYPE", "normal")
                time.sleep(0.001)
        self.assertEqual(sorted(one for each in consumers for one in each.taken), expected)
        self.assertEqual(client("EXISTS", "q"), 0)
        self.assertGreater(sum(each.kills for each in consumers), CONSUMERS)

    def test_no_element_of_a_list_is_lost(self):
        for threads in ("1", "3"):
            self.consume("RPUSH", threads)

    def test_no_element_of_a_sorted_set_is_lost(self):
        for threads in ("1", "3"):
            self.consume("ZADD", threads)


if __name__ == "__main__":
    harness.main()
