#!/usr/bin/env python3
"""Waits of other clients while a cache removes something huge, writes a snapshot or loses many keys to their expiry
at once, against redis-server."""

import array
import contextlib
import multiprocessing
import os
import re
import shutil
import subprocess
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
PING_EVERY_S = 0.0005
AHEAD_S = 0.1            # lead of the other client over the expiry
ALL_S, FEW_S = 2, 10     # duration of the measurement while all keys expire, and while few of many do


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


def set_ending(server, keys, at_ms, one_in=1):
    """Sets so many keys, of which one in so many ends in one moment, which must not have come when all are there."""
    end = b"%d" % at_ms
    with connect(server.port) as client:
        for start in range(0, keys, BATCH * one_in):
            numbers = range(start, min(start + BATCH * one_in, keys), one_in)
            ask(client, b"".join(command(b"SET", key(n), VALUE, b"PXAT", end) for n in numbers),
                b"+OK\r\n" * len(numbers))
        if time.time() * 1000 >= at_ms:
            raise harness.Failure("the keys' time was over before all were set")


def dbsize(client):
    client.sendall(command(b"DBSIZE"))
    reply = b""
    while not reply.endswith(b"\r\n"):
        reply += read_exactly(client, 1)
    return int(reply[1:])


# --- Another client, meanwhile ----------------------------------------------------------------

def ping(port, core, started, stop, waits):
    """Measures each of its PINGs, in a process of its own, until it is stopped.

    They go out at fixed times, and one that waits for the reply before it is measured from its time. Between them the
    core is idle: a machine that both cores keep busy may be held up by its hypervisor for milliseconds, in every tenth
    of a second. Where that wakes the client late, the wait is not the server's.
    """
    os.sched_setaffinity(0, {core})
    try:
        # On its core others read the server's memory meanwhile: that is no wait of the server's making.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass  # not root
    with connect(port) as client:
        took = array.array("d")
        ask(client, b"PING\r\n", b"+PONG\r\n")
        started.set()
        due = time.monotonic()
        while not stop.is_set():
            due += PING_EVERY_S
            before, left = due, due - time.monotonic()
            if left > 0:
                time.sleep(left)
                before = time.monotonic()
            ask(client, b"PING\r\n", b"+PONG\r\n")
            took.append(time.monotonic() - before)
        ordered = sorted(took) or [0.0]
        waits[:] = ordered[-1], ordered[min(int(len(ordered) * 0.999), len(ordered) - 1)]


def pings_during(server, core, work):
    """The longest PING of another client during `work` and their p99.9, in seconds; and the result of work."""
    started, stop, waits = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Array("d", 2)
    other = multiprocessing.Process(target=ping, args=(server.port, core, started, stop, waits))
    other.start()
    started.wait()
    done = work()
    stop.set()
    other.join()
    if other.exitcode != 0 or waits[0] == 0:
        raise harness.Failure("the client that sends PINGs has failed")
    return *waits, done


@contextlib.contextmanager
def random_sets(server, core, keys):
    """Others set keys at random, as fast as the server takes them, until the end of the `with`."""
    load = subprocess.Popen([harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", str(server.port), "--tests", "set",
                             "--clients", "4", "--pipeline", "10", "--keys", str(keys), "--value-size", str(len(VALUE)),
                             "--requests", "1000000000", "--no-progress"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=harness.settle(core))
    try:
        with connect(server.port) as client:
            # It prepares its commands for some seconds before the first one.
            last, now = 0, info(client, b"stats", b"total_commands_processed")
            end = time.monotonic() + PATIENCE_S
            while now < last + 1000 or last == 0:
                if load.poll() is not None or time.monotonic() > end:
                    raise harness.Failure("nobody sets keys")
                time.sleep(0.1)
                last, now = now, info(client, b"stats", b"total_commands_processed")
        yield
        if load.poll() is not None:
            raise harness.Failure("the keys were set before the snapshot had ended")
    finally:
        load.kill()
        load.wait()


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
    """Less is better; the goal may be None. `idle` is the same client's wait for an idle server: where that exceeds the
    goal, the machine is the cause."""

    def __init__(self, label, goal, goal_text, samples, form, idle=None):
        self.label, self.goal, self.goal_text, self.samples, self.form = label, goal, goal_text, samples, form
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
                                         for side in SIDES], "redis",
                            self.goal and self.goal / redis.median, report.share(eddy.median / redis.median))


def milliseconds(seconds):
    return f"{seconds * 1000:.2f} ms"


def start(side, core, folder):
    if side == "redis":
        return Redis(core)
    server = Eddy(core, runtime=None)
    server.after_start = lambda: setattr(server, "port", server.create("cache", "bench", "--dir", folder))
    return server


class Turn:
    """Measurements of one server. Each method yields figures by name, in seconds but for `grown`."""

    def __init__(self, server, client, core, quick):
        self.server, self.client, self.core = server, client, core
        self.fields, self.keys, self.ending, self.many = SIZES[quick]

    def pings(self, work):
        return pings_during(self.server, self.core, work)

    def flush(self):
        ask(self.client, command(b"FLUSHALL"), b"+OK\r\n")
        settled_rss(self.server.pid)

    def huge_hash(self):
        empty = info(self.client, b"memory", b"used_memory")
        fill_hash(self.client, self.fields)
        stall, _, took = self.pings(lambda: change_during_snapshot(self.client))
        yield "changed", took
        yield "while_changed", stall
        full = info(self.client, b"memory", b"used_memory")

        def remove():
            """Until all that it held is freed, too; how long DEL itself took."""
            before = time.monotonic()
            ask(self.client, command(b"DEL", b"huge"), b":1\r\n")
            took = time.monotonic() - before
            while info(self.client, b"memory", b"used_memory") > empty + (full - empty) / 10:
                time.sleep(0.01)
            return took

        stall, _, took = self.pings(remove)
        yield "removal", took
        yield "while_removed", stall
        self.flush()

    def snapshots(self):
        before = time.monotonic()
        set_all(self.server, self.keys)
        self.fill_s_a_key = (time.monotonic() - before) / self.keys
        settled_rss(self.server.pid)
        before = time.monotonic()
        stall, _, share = self.pings(lambda: snapshot(self.server, self.client))
        yield "while_saved", stall
        yield "grown", share
        self.save_s = time.monotonic() - before
        yield "while_idle", self.pings(lambda: time.sleep(self.save_s))[0]
        with random_sets(self.server, self.core, self.keys):
            stall, mostly, share = self.pings(lambda: snapshot(self.server, self.client))
            yield "while_saved_and_set", stall
            yield "mostly_saved_and_set", mostly
            yield "grown_by_sets", share
            stall, mostly, _ = self.pings(lambda: time.sleep(self.save_s))
            yield "while_set", stall
            yield "mostly_set", mostly

    def flushing(self):
        def flush():
            before = time.monotonic()
            ask(self.client, command(b"FLUSHALL"), b"+OK\r\n")
            took = time.monotonic() - before
            settled_rss(self.server.pid)
            return took

        stall, _, took = self.pings(flush)
        yield "flushed", took
        yield "while_flushed", stall

    def expiry(self):
        yield from self.expiry_of(self.ending, 1, ALL_S, "expired")
        set_all(self.server, self.many)
        yield from self.expiry_of(self.many, 100, FEW_S, "few_expired")

    def expiry_of(self, keys, one_in, watched_s, name):
        """The PINGs while one in so many of the keys end at once, and in as long a time before."""
        ending = len(range(0, keys, one_in))
        # Far enough ahead for all to be set, with their expiries, and for the server to be at rest.
        at_s = time.time() + SETTLING_S + watched_s + 4 * self.fill_s_a_key * ending
        set_ending(self.server, keys, int(at_s * 1000), one_in)
        time.sleep(max(at_s - watched_s - AHEAD_S - time.time(), 0))
        until = at_s - 2 * AHEAD_S
        yield "before_" + name, self.pings(lambda: time.sleep(max(until - time.time(), 0)))[0]
        until = at_s + watched_s
        stall, most, _ = self.pings(lambda: time.sleep(max(until - time.time(), 0)))
        yield "while_" + name, stall
        yield "mostly_" + name, most
        # If few of many keys expire, some are removed later.
        left = dbsize(self.client)
        end = time.monotonic() + PATIENCE_S
        while left == keys or (one_in == 1 and left > 0):
            if time.monotonic() > end:
                raise harness.Failure(f"of {ending} expired keys {left - keys + ending} did not go")
            time.sleep(0.02)
            left = dbsize(self.client)

    def all(self):
        yield from self.huge_hash()
        yield from self.snapshots()
        yield from self.flushing()
        yield from self.expiry()


# Fields of the hash; keys of the snapshot; keys that end at once; keys of which one in a hundred does.
SIZES = {True: (20_000, 50_000, 20_000, 50_000), False: (2_000_000, 5_000_000, 1_000_000, 10_000_000)}


def rows_of(samples, quick):
    """The table's, of the samples by name and side."""
    rows = []
    for label, name, (goal_text, goal), *idle in spec_of(quick):
        form = (lambda share: f"{share:.1%}") if name.startswith("grown") else milliseconds
        rows.append(Row(label, goal, goal_text, samples[name], form, samples[idle[0]] if idle else None))
    return rows


def spec_of(quick):
    """(label, name of the samples, goal, perhaps the name of an idle server's samples) of each row."""
    fields, keys, ending, many = map(whole, SIZES[quick])
    stall = ("≤ 1 ms", STALL_GOAL_S)
    memory = ("≤ 5 %", MEMORY_GOAL)
    none = ("", None)
    return [
        (f"DEL of a hash of {fields} fields", "removal", stall),
        ("longest PING of another client meanwhile", "while_removed", stall),
        (f"longest PING during a snapshot of {keys} keys", "while_saved", stall, "while_idle"),
        (f"longest PING while a hash of {fields} fields changes during one", "while_changed", stall, "while_idle"),
        ("the HSET that changes it", "changed", none),
        ("longest PING in as long a time without one", "while_idle", none),
        ("memory that the snapshot takes beside the keys", "grown", memory),
        ("longest PING during a snapshot while keys are set at random", "while_saved_and_set", stall, "while_set"),
        ("p99.9 of the PINGs meanwhile", "mostly_saved_and_set", none),
        ("longest PING while keys are set, without a snapshot", "while_set", none),
        ("p99.9 of the PINGs meanwhile", "mostly_set", none),
        ("memory that this snapshot takes beside the keys", "grown_by_sets", none),
        (f"FLUSHALL of {keys} keys", "flushed", none),
        ("longest PING until they are freed", "while_flushed", stall, "while_idle"),
        (f"longest PING in {ALL_S} s in which {ending} keys expire at once", "while_expired", stall, "before_expired"),
        ("p99.9 of the PINGs meanwhile", "mostly_expired", none),
        ("longest PING in as long a time before", "before_expired", none),
        (f"longest PING in {FEW_S} s in which 1 % of {many} keys expire at once", "while_few_expired", stall,
         "before_few_expired"),
        ("p99.9 of the PINGs meanwhile", "mostly_few_expired", none),
        ("longest PING in as long a time before", "before_few_expired", none),
    ]


def measured(chosen):
    """The samples by name and side."""
    os.sched_setaffinity(0, {chosen.load_core})
    progress = Progress(chosen.pairs * len(SIDES))
    samples = {}
    for number, side in turns(SIDES, chosen.pairs):
        folder = tempfile.mkdtemp(prefix="eddy-bench-dump-")
        told = []
        with start(side, chosen.server_core, folder) as server, connect(server.port) as client:
            for name, value in Turn(server, client, chosen.load_core, chosen.quick).all():
                samples.setdefault(name, {each: [] for each in SIDES})[side].append(value)
                told.append(f"{name} {value:.1%}" if name.startswith("grown") else f"{name} {milliseconds(value)}")
        shutil.rmtree(folder, ignore_errors=True)
        progress.step(f"pair {number + 1}, {side}: " + ", ".join(told))
    return samples


def main():
    chosen = harness.begin(__doc__)
    if chosen.stored:
        samples = {name: row["samples"] for (_, name, *_), row in zip(spec_of(False), chosen.stored["rows"], strict=True)}
    else:
        samples = measured(chosen)
    rows = rows_of(samples, chosen.quick)
    text = report.table(["", *SIDES, "goal", ""], [row.cells() for row in rows])
    text += ("\n\nThe client sends a PING each 0.5 ms, and measures one that waits for the reply before it "
             "from that time; how long its wake-up at the reply takes is part of what it measures.")
    return report.leave("stalls", chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars("Waits against Redis", "less is better; the scale is logarithmic",
                                    [row.group() for row in rows], logarithmic=True),
                        "Waits in multiples of Redis")


if __name__ == "__main__":
    harness.run(main)
