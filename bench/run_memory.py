#!/usr/bin/env python3
"""Memory: bytes a key and a connection against Redis, Valkey and memcached, and what an idle daemon uses."""

import os
import socket
import time

import harness
import report
from harness import Eddy, Failure, Memcached, Progress, Spread, rss_of, schedule_of, settled_rss, turns, verdict, wakeups_of

KEY_GOAL, EXPIRY_GOAL, CONNECTION_GOAL, IDLE_RSS_GOAL = 78, 8, 1024, 15 * 10**6
IDLE_CPU_GOAL = 0.0005  # of a core: what rounds to 0.0 %
VALUE = b"0123456789abcdefghijklmnopqrstuv"
BATCH = 1000
# The memory of a million keys comes from the system in some 36 pieces; with so many times as many keys the piece that
# is not full is less of the result.
MANY = 8


# --- A small client ---------------------------------------------------------------------------

def connect(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def read_exactly(client, size):
    data = bytearray()
    while len(data) < size:
        piece = client.recv(size - len(data))
        if not piece:
            raise Failure("the server closed a connection")
        data += piece
    return bytes(data)


def ask(client, request, expected):
    client.sendall(request)
    reply = read_exactly(client, len(expected))
    if reply != expected:
        raise Failure(f"the server answered {reply[:60]!r}, not {expected[:60]!r}")


def key(number):
    return b"key:%012d" % number


class Resp:
    """Commands of Redis, Valkey and Eddy."""

    stored = b"+OK\r\n"
    count, counted = b"*1\r\n$6\r\nDBSIZE\r\n", b":%d\r\n"
    value = b"$32\r\n%b\r\n" % VALUE

    @staticmethod
    def set(name, expiring):
        words, expiry = (5, b"$2\r\nEX\r\n$5\r\n86400\r\n") if expiring else (3, b"")
        return b"*%d\r\n$3\r\nSET\r\n$16\r\n%b\r\n$32\r\n%b\r\n%b" % (words, name, VALUE, expiry)

    @staticmethod
    def get(name):
        return b"*2\r\n$3\r\nGET\r\n$16\r\n%b\r\n" % name


class Text:
    """Commands of memcached."""

    stored = b"STORED\r\n"
    count = None  # it has no short way to ask
    value = b"VA 32\r\n%b\r\n" % VALUE

    @staticmethod
    def set(name, expiring):
        return b"set %b 0 %d 32\r\n%b\r\n" % (name, 86400 if expiring else 0, VALUE)

    @staticmethod
    def get(name):
        return b"mg %b v\r\n" % name


def set_all(server, keys, expiring=False):
    """Sets `keys` keys of 16 bytes to values of 32, and checks that they are there."""
    speaks = Text if isinstance(server, Memcached) else Resp
    with connect(server.port) as client:
        for start in range(0, keys, BATCH):
            count = min(BATCH, keys - start)
            ask(client, b"".join(speaks.set(key(n), expiring) for n in range(start, start + count)),
                speaks.stored * count)
        if speaks.count:
            ask(client, speaks.count, speaks.counted % keys)
        for number in range(0, keys, max(keys // 100, 1)):
            ask(client, speaks.get(key(number)), speaks.value)


# --- What is measured -------------------------------------------------------------------------

def bytes_a_key(server, keys, expiring=False):
    before = settled_rss(server.pid)
    set_all(server, keys, expiring)
    return (settled_rss(server.pid) - before) / keys


def bytes_a_connection(server, count, speaks_resp):
    """Growth for each of `count` connections that have been used once and idle then."""
    # The first connection makes the server set up shared state once, which is not counted.
    with connect(server.port) as first:
        if speaks_resp:
            ask(first, b"PING\r\n", b"+PONG\r\n")
    before = settled_rss(server.pid)
    clients = []
    try:
        for _ in range(count):
            clients.append(connect(server.port))
            if speaks_resp:
                ask(clients[-1], b"PING\r\n", b"+PONG\r\n")
        grown = settled_rss(server.pid) - before
        if not speaks_resp:
            # A broadcast shows that the server has them all. It comes after the measurement: the
            # lines pass through every connection's queue.
            clients[0].sendall(b"are you there?\n")
            for client in clients[1:]:
                if read_exactly(client, 15) != b"are you there?\n":
                    raise Failure("a client got something else than the line that was broadcast")
    finally:
        for client in clients:
            client.close()
    return grown / count


def idle(daemon, seconds):
    """CPU (of a core), wake-ups a second and memory of a daemon with five runtimes."""
    for number in range(3):
        daemon.create("cache", f"cache{number}")
    for number in range(2):
        daemon.create("server", f"server{number}")
    settled_rss(daemon.pid)
    ran, woken = schedule_of(daemon.pid)[0], wakeups_of(daemon.pid)
    started = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - started
    return {"cpu": (schedule_of(daemon.pid)[0] - ran) / 1e9 / passed,
            "wakeups": (wakeups_of(daemon.pid) - woken) / passed, "rss": rss_of(daemon.pid)}


# --- The report -------------------------------------------------------------------------------

def whole(value):
    return f"{value:,.0f}".replace(",", " ")


SIDES = ["redis", "valkey", "memcached", "eddy"]


class Row:
    """A figure of Eddy's and of the rivals that have one; less is better."""

    def __init__(self, label, goal, goal_text, samples, form=whole):
        self.label, self.goal, self.goal_text, self.samples, self.form = label, goal, goal_text, samples, form
        self.values = {side: Spread(values) for side, values in samples.items()}
        self.verdict = verdict(None if goal is None else self.values["eddy"].median <= goal, False, [])

    def cells(self):
        redis = self.values.get("redis")
        return [self.label,
                *(report.spread(self.values[side], self.form) if side in self.values else "–" for side in SIDES),
                f"{self.values['eddy'].median / redis.median:.2f} ×" if redis else "–", self.goal_text, self.verdict]

    def json(self):
        return {"row": self.label, "goal": self.goal, "verdict": self.verdict, "samples": self.samples}

    def group(self):
        redis, eddy = self.values["redis"], self.values["eddy"]
        return report.Group(self.label, [(side, value, f"{self.form(value.median)} B")
                                         for side, value in self.values.items()], "redis",
                            self.goal / redis.median,
                            f"{eddy.median / redis.median:.2f} × (goal {whole(self.goal)} B)")


def tenths(value):
    return f"{round(value, 1) + 0:.1f}"  # + 0: no -0.0


# Rows: the goal, its text, and the form of a figure.
GOALS = {"bytes a key": (KEY_GOAL, f"≤ {KEY_GOAL}", tenths),
         "bytes more with an expiry": (EXPIRY_GOAL, f"≤ {EXPIRY_GOAL}", tenths),
         "the same with {} keys": (EXPIRY_GOAL, f"≤ {EXPIRY_GOAL}", tenths),
         "bytes a connection, cache": (CONNECTION_GOAL, "≤ 1 024", whole),
         "bytes a connection, server": (CONNECTION_GOAL, "≤ 1 024", whole),
         "idle daemon: CPU": (IDLE_CPU_GOAL, "0 %", lambda v: f"{v:.3%}"),
         "idle daemon: wake-ups a second": (None, "", lambda v: f"{v:.1f}"),
         "idle daemon: RSS in MB": (IDLE_RSS_GOAL, "≤ 15", lambda v: f"{v / 1e6:.1f}")}


def measured(chosen, keys, connections, idle_s):
    """The samples of each row, by side."""
    if harness.raise_descriptor_limit() < connections + 200:
        raise Failure(f"{connections + 200} open files are needed: raise the hard limit (ulimit -Hn), or run as root")
    os.sched_setaffinity(0, {chosen.load_core})
    core = chosen.server_core
    found = harness.caches(chosen)
    found["memcached"] = Memcached
    sides = [side for side in SIDES if side in found]
    progress = Progress(chosen.pairs * (3 * len(sides) + 2))
    of_many = {"eddy": []}
    of_key, of_expiry = {side: [] for side in sides}, {side: [] for side in sides}
    of_cache, of_server = {side: [] for side in sides if side != "memcached"}, {"eddy": []}
    of_idle = []
    for number, side in turns(sides, chosen.pairs):
        start = found[side]
        with start(core) as server:
            of_key[side].append(bytes_a_key(server, keys))
        progress.step(f"pair {number + 1}, {side}: {of_key[side][-1]:.1f} B a key")
        with start(core) as server:
            of_expiry[side].append(bytes_a_key(server, keys, expiring=True) - of_key[side][-1])
        progress.step(f"pair {number + 1}, {side}: {of_expiry[side][-1]:.1f} B an expiry")
        if side in of_cache:
            with start(core) as server:
                of_cache[side].append(bytes_a_connection(server, connections, speaks_resp=True))
            progress.step(f"pair {number + 1}, {side}: {of_cache[side][-1]:.0f} B a connection")
        if side != "eddy":
            continue
        grown = []
        for expiring in (False, True):
            with start(core) as server:
                grown.append(bytes_a_key(server, MANY * keys, expiring))
        of_many["eddy"].append(grown[1] - grown[0])
        progress.step(f"pair {number + 1}, eddy, {MANY} times the keys: {of_many['eddy'][-1]:.1f} B an expiry")
        with Eddy(core, runtime="server") as server:
            of_server["eddy"].append(bytes_a_connection(server, connections, speaks_resp=False))
        progress.step(f"pair {number + 1}, eddy's server: {of_server['eddy'][-1]:.0f} B a connection")
        with Eddy(core, runtime=None) as daemon:
            of_idle.append(idle(daemon, idle_s))
        progress.step(f"pair {number + 1}, eddy idle: {of_idle[-1]['cpu']:.3%} CPU, "
                      f"{of_idle[-1]['rss'] / 1e6:.1f} MB")

    return [of_key, of_expiry, of_many, of_cache, of_server,
            *({"eddy": [each[field] for each in of_idle]} for field in ("cpu", "wakeups", "rss"))]


def main():
    chosen = harness.begin(__doc__)
    keys, connections, idle_s = (20_000, 500, 1) if chosen.quick else (1_000_000, 10_000, 10)
    samples = ([row["samples"] for row in chosen.stored["rows"]] if chosen.stored
               else measured(chosen, keys, connections, idle_s))
    many = whole(connections)
    rows = [Row(label.format(whole(MANY * keys)), goal, goal_text, found, form)
            for (label, (goal, goal_text, form)), found in zip(GOALS.items(), samples, strict=True)]
    text = report.table(["", *SIDES, "eddy / redis", "goal", ""], [row.cells() for row in rows])
    text += (f"\n\n{whole(keys)} keys of 16 B with values of 32 B; {many} idle connections, after a PING each on the "
             f"cache; a daemon with five runtimes, over {idle_s} s. Resident memory from smaps_rollup.")
    return report.leave("memory", chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars("Memory against Redis", "growth of the process's resident memory; less is better",
                                    [row.group() for row in rows if "redis" in row.values]),
                        "Memory in multiples of Redis")


if __name__ == "__main__":
    harness.run(main)
