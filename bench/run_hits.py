#!/usr/bin/env python3
"""Hit rates of a full cache against redis-server's allkeys-lru: what eviction leaves."""

import itertools
import os
import random
import re

import harness
import report
from harness import Eddy, Progress, Redis, Spread, turns, verdict
from run_memory import VALUE, ask, connect, key, read_exactly, set_all, whole

BATCH = 100
SIDES = ["redis", "eddy", "eddy, same memory", "eddy, s3fifo"]


# --- The requests -----------------------------------------------------------------------------

def zipf(draw, keys, exponent, count):
    """`count` numbers of keys; the most popular ones have numbers all over the range."""
    weights = list(itertools.accumulate((rank + 1) ** -exponent for rank in range(keys)))
    names = list(range(keys))
    draw.shuffle(names)
    return draw.choices(names, cum_weights=weights, k=count)


def with_scans(draw, keys, count):
    """Zipf 1.0, and for a quarter of the time keys in order that are never requested again."""
    asked = zipf(draw, keys, 1.0, count)
    period, fresh = max(count // 40, 1), keys
    for start in range(3 * period, count, 4 * period):
        for at in range(start, min(start + period, count)):
            asked[at] = fresh
            fresh += 1
    return asked


LOADS = {
    "Zipf 0.8": lambda draw, keys, count: zipf(draw, keys, 0.8, count),
    "Zipf 1.0": lambda draw, keys, count: zipf(draw, keys, 1.0, count),
    "Zipf 1.2": lambda draw, keys, count: zipf(draw, keys, 1.2, count),
    "Zipf 1.0 and scans": with_scans,
}


# --- A cache that is filled on a miss ---------------------------------------------------------

def used_memory(client):
    client.sendall(b"*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n")
    head = b""
    while not head.endswith(b"\r\n"):
        head += read_exactly(client, 1)
    text = read_exactly(client, int(head[1:]) + 2)
    return int(re.search(rb"\nused_memory:(\d+)", text).group(1))


def configure(client, name, value):
    words = [b"CONFIG", b"SET", name, value]
    ask(client, b"*4\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words), b"+OK\r\n")


def hits_of(client, numbers):
    """Asks for a batch, and stores what is missing; how many were there."""
    client.sendall(b"".join(b"*2\r\n$3\r\nGET\r\n$16\r\n%b\r\n" % key(n) for n in numbers))
    missing, rest = [], bytearray()
    hit, miss = b"$%d\r\n%b\r\n" % (len(VALUE), VALUE), b"$-1\r\n"
    for number in numbers:
        while len(rest) < len(miss) or rest[1:2] != b"-" and len(rest) < len(hit):
            rest += client.recv(64 * 1024)
        if rest[1:2] == b"-":
            missing.append(number)
            del rest[:len(miss)]
        elif rest[:len(hit)] == hit:
            del rest[:len(hit)]
        else:
            raise harness.Failure(f"the server answered {bytes(rest[:60])!r}")
    missing = list(dict.fromkeys(missing))
    if missing:
        ask(client, b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\n%b\r\n$32\r\n%b\r\n" % (key(n), VALUE) for n in missing),
            b"+OK\r\n" * len(missing))
    return len(numbers) - len(missing)


def hit_rate(server, limit, policy, asked):
    """Hit rate of the last three quarters, when the cache is full."""
    with connect(server.port) as client:
        ask(client, b"*1\r\n$8\r\nFLUSHALL\r\n", b"+OK\r\n")
        configure(client, b"maxmemory", b"%d" % limit)
        configure(client, b"maxmemory-policy", policy)
        hits, warm = 0, len(asked) // 4
        for start in range(0, len(asked), BATCH):
            found = hits_of(client, asked[start:start + BATCH])
            hits += found if start >= warm else 0
        return hits / (len(asked) - warm)


def limit_for(server, keys):
    """The memory that so many keys take."""
    set_all(server, keys)
    with connect(server.port) as client:
        return used_memory(client)


# --- The report -------------------------------------------------------------------------------

class Row:
    def __init__(self, label, samples):
        self.label, self.samples = label, samples
        self.values = {side: Spread(values) for side, values in samples.items()}
        self.verdict = verdict(self.values["eddy"].median >= self.values["redis"].median, False, [])

    def cells(self):
        shown = [report.spread(self.values[side], lambda v: f"{v:.1%}") for side in SIDES]
        return [self.label, *shown, "≥ redis", self.verdict]

    def json(self):
        return {"row": self.label, "verdict": self.verdict, "samples": self.samples}

    def group(self):
        redis = self.values["redis"]
        return report.Group(self.label, [(side, self.values[side], f"{self.values[side].median:.1%}") for side in SIDES],
                            "redis", 1, f"{self.values['eddy'].median / redis.median:.2f} ×")


def measured(chosen, keys, room, count):
    """The samples by load and side, and the limits of memory by side."""
    os.sched_setaffinity(0, {chosen.load_core})
    progress = Progress(chosen.pairs * len(LOADS) * len(SIDES))
    samples = {load: {side: [] for side in SIDES} for load in LOADS}
    limits = {}
    for side, start in (("redis", Redis), ("eddy", Eddy)):
        with start(chosen.server_core) as server:
            limits[side] = limit_for(server, room)
    limits["eddy, same memory"] = limits["eddy, s3fifo"] = limits["redis"]
    for load, asked_for in LOADS.items():
        for number, side in turns(SIDES, chosen.pairs):
            # Each pair has the same requests.
            asked = asked_for(random.Random(f"{load} {number}"), keys, count)
            with (Redis if side == "redis" else Eddy)(chosen.server_core) as server:
                policy = b"allkeys-s3fifo" if side == "eddy, s3fifo" else b"allkeys-lru"
                samples[load][side].append(hit_rate(server, limits[side], policy, asked))
            progress.step(f"{load}, pair {number + 1}, {side}: {samples[load][side][-1]:.1%}")
    return samples, limits


def main():
    chosen = harness.begin(__doc__)
    keys, room, count = (20_000, 2_000, 40_000) if chosen.quick else (200_000, 20_000, 400_000)
    if chosen.stored:
        samples, limits = {row["row"]: row["samples"] for row in chosen.stored["rows"]}, chosen.stored["limits"]
    else:
        samples, limits = measured(chosen, keys, room, count)
    rows = [Row(load, samples[load]) for load in LOADS]
    text = report.table(["", *SIDES, "goal", ""], [row.cells() for row in rows])
    text += (f"\n\n{whole(keys)} keys of 16 B with values of 32 B, {whole(count)} requests; maxmemory "
             f"is what {whole(room)} keys take: {limits['redis']:,} B for Redis, {limits['eddy']:,} B for Eddy; "
             "*same memory*: Eddy with Redis's limit; *s3fifo*: the same with maxmemory-policy allkeys-s3fifo. "
             "Otherwise maxmemory-policy is allkeys-lru, and the rest as it is by default.")
    return report.leave("hits", chosen, text, {"limits": limits, "rows": [row.json() for row in rows]},
                        report.bars("Hit rates against Redis", "share of the requests; more is better",
                                    [row.group() for row in rows]),
                        "Hit rates in multiples of Redis")


if __name__ == "__main__":
    harness.run(main)
