#!/usr/bin/env python3
"""How long others wait while a cache removes something huge, writes a snapshot or loses many keys to their expiry
at once, against redis-server."""

import array
import multiprocessing
import os
import re
import shutil
import tempfile
import time

import harness
import report
from harness import Eddy, Progress, Redis, Spread, settled_rss, turns, verdict
from run_memory import BATCH, VALUE, ask, connect, key, read_exactly, set_all, whole

SIDES = ["redis", "eddy"]
STALL_GOAL_S, MEMORY_GOAL = 0.001, 0.05
PATIENCE_S = 300
SETTLING_S = 2           # between the last key's SET and the expiry of all, at least
AHEAD_S = 0.1            # how long before it the other client begins


# --- Commands ---------------------------------------------------------------------------------

def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def info(client, section, field):
    client.sendall(command(b"INFO", section))
    head = b""
    while not head.endswith(b"\r\n"):
        head += read_exactly(client, 1)
    return int(re.search(rb"\n%b:(\d+)" % field, read_exactly(client, int(head[1:]) + 2)).group(1))


def fill_hash(client, fields):
    each = 100
    for start in range(0, fields, each * 10):
        ask(client, b"".join(
            command(b"HSET", b"huge", *(part for n in range(first, first + each) for part in (b"field:%d" % n, b"v")))
            for first in range(start, start + each * 10, each)), b":%d\r\n" % each * 10)


def set_ending(server, keys, at_ms):
    """Sets so many keys that end in one moment, which must not have come when all are there."""
    end = b"%d" % at_ms
    with connect(server.port) as client:
        for start in range(0, keys, BATCH):
            count = min(BATCH, keys - start)
            ask(client, b"".join(command(b"SET", key(n), VALUE, b"PXAT", end) for n in range(start, start + count)),
                b"+OK\r\n" * count)
        if time.time() * 1000 >= at_ms:
            raise harness.Failure("the keys' time was over before all were set")
        ask(client, command(b"DBSIZE"), b":%d\r\n" % keys)


def dbsize(client):
    client.sendall(command(b"DBSIZE"))
    reply = b""
    while not reply.endswith(b"\r\n"):
        reply += read_exactly(client, 1)
    return int(reply[1:])


def wait_for_expiry(client, at_s):
    """Until the server has removed all keys, which end at that time; how long that took."""
    time.sleep(max(at_s - time.time(), 0))
    end = time.monotonic() + PATIENCE_S
    while dbsize(client) != 0:
        if time.monotonic() > end:
            raise harness.Failure("expired keys did not go")
        time.sleep(0.02)
    return time.time() - at_s


# --- Another client, meanwhile ----------------------------------------------------------------

def ping(port, core, started, stop, waits):
    """Measures each of its PINGs, in a process of its own, until told to stop."""
    os.sched_setaffinity(0, {core})
    try:
        # On its core others look at the server's memory meanwhile: that is no wait of the server's making.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass  # not root
    with connect(port) as client:
        took = array.array("d")
        ask(client, b"PING\r\n", b"+PONG\r\n")
        started.set()
        while not stop.is_set():
            before = time.monotonic()
            ask(client, b"PING\r\n", b"+PONG\r\n")
            took.append(time.monotonic() - before)
        ordered = sorted(took) or [0.0]
        waits[:] = ordered[-1], ordered[min(int(len(ordered) * 0.999), len(ordered) - 1)]


def pings_during(server, core, work):
    """The longest PING of another client while `work` goes on and their p99.9, in seconds; and what work returned."""
    started, stop, waits = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Array("d", 2)
    other = multiprocessing.Process(target=ping, args=(server.port, core, started, stop, waits))
    other.start()
    started.wait()
    done = work()
    stop.set()
    other.join()
    return *waits, done


def memory_of(pid):
    """Resident memory of the process and its children; what they share counts once."""
    total = 0
    for each in [pid, *children_of(pid)]:
        try:
            with open(f"/proc/{each}/smaps_rollup") as file:
                total += int(re.search(r"^Pss: +(\d+) kB", file.read(), re.M).group(1)) * 1024
        except (OSError, AttributeError):
            pass
    return total


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]


def begin_snapshot(client):
    client.sendall(command(b"BGSAVE"))
    if not client.recv(100).startswith(b"+Background"):
        raise harness.Failure("the server refused BGSAVE")


def snapshot(server, client):
    """Asks for one and waits for its end; the greatest growth of memory, of what there was."""
    before, most = memory_of(server.pid), 0
    begin_snapshot(client)
    end = time.monotonic() + PATIENCE_S
    while info(client, b"persistence", b"rdb_bgsave_in_progress") != 0:
        most = max(most, memory_of(server.pid))
        if time.monotonic() > end:
            raise harness.Failure("the snapshot did not end")
        time.sleep(0.05)
    return max(most - before, 0) / before


def change_during_snapshot(client):
    """Changes the hash as soon as a snapshot has begun; how long that took."""
    begin_snapshot(client)
    before = time.monotonic()
    ask(client, command(b"HSET", b"huge", b"added", b"v"), b":1\r\n")
    took = time.monotonic() - before
    while info(client, b"persistence", b"rdb_bgsave_in_progress") != 0:
        time.sleep(0.01)
    return took


# --- The report -------------------------------------------------------------------------------

class Row:
    """Less is better; the goal may be None. `idle` is what the same client waits for when the server does nothing: where
    that is beyond the goal, the row tells of the machine."""

    def __init__(self, label, goal, goal_text, samples, form, idle=None):
        self.label, self.goal_text, self.samples, self.form = label, goal_text, samples, form
        self.values = {side: Spread(values) for side, values in samples.items()}
        met = None if goal is None else self.values["eddy"].median <= goal
        disturbed = not met and idle is not None and Spread(idle["eddy"]).median > goal
        self.verdict = verdict(met, False, [], disturbed)

    def cells(self):
        return [self.label, *(report.spread(self.values[side], self.form) for side in SIDES), self.goal_text,
                self.verdict]

    def json(self):
        return {"row": self.label, "verdict": self.verdict, "samples": self.samples}

    def group(self):
        redis, eddy = self.values["redis"], self.values["eddy"]
        return report.Group(self.label, [(side, self.values[side], self.form(self.values[side].median))
                                         for side in SIDES], "redis", 1, f"{eddy.median / redis.median:.3f} ×")


def milliseconds(seconds):
    return f"{seconds * 1000:.2f} ms"


def start(side, core, folder):
    if side == "redis":
        return Redis(core)
    server = Eddy(core, runtime=None)
    server.after_start = lambda: setattr(server, "port", server.create("cache", "bench", "--dir", folder))
    return server


def main():
    chosen = harness.begin(__doc__)
    fields, keys, ending = (20_000, 50_000, 20_000) if chosen.quick else (2_000_000, 5_000_000, 1_000_000)
    os.sched_setaffinity(0, {chosen.load_core})
    progress = Progress(chosen.pairs * len(SIDES))
    changed, while_changed, removal, while_removed, while_saved, grown, while_idle, while_expired, mostly_expired = (
        {side: [] for side in SIDES} for _ in range(9))
    for number, side in turns(SIDES, chosen.pairs):
        folder = tempfile.mkdtemp(prefix="eddy-bench-dump-")
        with start(side, chosen.server_core, folder) as server, connect(server.port) as client:
            empty = info(client, b"memory", b"used_memory")
            fill_hash(client, fields)
            stall, _, took = pings_during(server, chosen.load_core, lambda: change_during_snapshot(client))
            changed[side].append(took)
            while_changed[side].append(stall)
            full = info(client, b"memory", b"used_memory")

            def remove():
                """Until all that it held is freed, too; how long DEL itself took."""
                before = time.monotonic()
                ask(client, command(b"DEL", b"huge"), b":1\r\n")
                took = time.monotonic() - before
                while info(client, b"memory", b"used_memory") > empty + (full - empty) / 10:
                    time.sleep(0.01)
                return took

            stall, _, took = pings_during(server, chosen.load_core, remove)
            removal[side].append(took)
            while_removed[side].append(stall)
            ask(client, command(b"FLUSHALL"), b"+OK\r\n")
            before = time.monotonic()
            set_all(server, keys)
            fill_s = (time.monotonic() - before) * ending / keys
            settled_rss(server.pid)
            before = time.monotonic()
            stall, _, share = pings_during(server, chosen.load_core, lambda: snapshot(server, client))
            while_saved[side].append(stall)
            grown[side].append(share)
            took = time.monotonic() - before
            while_idle[side].append(pings_during(server, chosen.load_core, lambda: time.sleep(took))[0])
            ask(client, command(b"FLUSHALL"), b"+OK\r\n")
            settled_rss(server.pid)
            # Far enough ahead for all to be set, with their expiries, and for the server to be at rest.
            at_s = time.time() + SETTLING_S + 3 * fill_s
            set_ending(server, ending, int(at_s * 1000))
            time.sleep(max(at_s - AHEAD_S - time.time(), 0))
            stall, mostly, gone_s = pings_during(server, chosen.load_core, lambda: wait_for_expiry(client, at_s))
            while_expired[side].append(stall)
            mostly_expired[side].append(mostly)
        shutil.rmtree(folder, ignore_errors=True)
        progress.step(f"pair {number + 1}, {side}: HSET {milliseconds(changed[side][-1])}, others "
                      f"{milliseconds(while_changed[side][-1])}, DEL {milliseconds(removal[side][-1])}, "
                      f"snapshot {milliseconds(while_saved[side][-1])} in {took:.1f} s, without one "
                      f"{milliseconds(while_idle[side][-1])}, {grown[side][-1]:.1%} more memory, "
                      f"expiry {milliseconds(stall)}, p99.9 {milliseconds(mostly)}, over after {gone_s:.1f} s")
    rows = [Row(f"DEL of a hash of {whole(fields)} fields", STALL_GOAL_S, "≤ 1 ms", removal, milliseconds),
            Row("longest PING of another client meanwhile", STALL_GOAL_S, "≤ 1 ms", while_removed, milliseconds),
            Row(f"longest PING during a snapshot of {whole(keys)} keys", STALL_GOAL_S, "≤ 1 ms", while_saved,
                milliseconds, while_idle),
            Row(f"longest PING while a hash of {whole(fields)} fields changes during one", STALL_GOAL_S, "≤ 1 ms",
                while_changed, milliseconds, while_idle),
            Row("the HSET that changes it", None, "", changed, milliseconds),
            Row("longest PING in as long a time without one", None, "", while_idle, milliseconds),
            Row("memory that the snapshot takes beside the keys", MEMORY_GOAL, "≤ 5 %", grown, lambda v: f"{v:.1%}"),
            Row(f"longest PING while {whole(ending)} keys expire at once", STALL_GOAL_S, "≤ 1 ms", while_expired,
                milliseconds),
            Row("p99.9 of the PINGs meanwhile", None, "", mostly_expired, milliseconds)]
    text = report.table(["", *SIDES, "goal", ""], [row.cells() for row in rows])
    text += "\n\nThe client waits and asks again at once; its own scheduling is part of what it measures."
    return report.leave("stalls", chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars("Waits against Redis", "less is better", [row.group() for row in rows]),
                        "Waits in multiples of Redis")


if __name__ == "__main__":
    harness.run(main)
