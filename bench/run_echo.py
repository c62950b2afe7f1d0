#!/usr/bin/env python3
"""Echo servers: Eddy's coroutines against Asio's and against raw loops in C style."""

import harness
import report
from harness import Comparison, Program, Progress, built, measure, turns, verdict

ASIO, RAW, EPOLL = "asio", ("raw epoll", "raw uring"), "eddy epoll"
SPIN, SPIN_US = "eddy spinning", 50


class Goal:
    """Something that a row is to reach. `rate` goals mean nothing where the load was the limit."""

    def __init__(self, text, met, rate=True):
        self.text, self.met, self.rate = text, met, rate


def ratio_goal(at_least, rival, side="eddy"):
    """`rival(comparison)` names the side to compare with."""
    def met(comparison):
        return comparison.ratio(side, rival(comparison)).median >= at_least
    return met


def asio(_):
    return ASIO


def best_raw(comparison):
    return max(RAW, key=lambda side: comparison.of(side).median)


def cost(comparison, side):
    return comparison.of(side, "server_ns_per_op").median


def near_raw(comparison):
    return cost(comparison, "eddy") <= min(cost(comparison, side) for side in RAW) + 100


def least_p99(limit_us):
    return lambda comparison: comparison.of("eddy", "p99_us").median <= limit_us


ASIO_105 = Goal("≥ 1.05 × Asio", ratio_goal(1.05, asio))
ASIO_115 = Goal("≥ 1.15 × Asio", ratio_goal(1.15, asio))
SPIN_14 = Goal("spinning ≥ 1.4 × Asio", ratio_goal(1.4, asio, SPIN))
RAW_097 = Goal("≥ 0.97 × raw", ratio_goal(0.97, best_raw))
NEAR_RAW = Goal("CPU ≤ raw + 0.1 µs", near_raw, rate=False)
EPOLL_097 = Goal("≥ 0.97 × epoll", ratio_goal(0.97, lambda _: EPOLL))
P99 = Goal("p99 ≤ 2.8 ms", least_p99(2800), rate=False)
CHEAP = Goal("CPU ≤ 18 µs", lambda comparison: cost(comparison, "eddy") <= 18_000, rate=False)


class Load:
    """What all servers are put under, and what Eddy on io_uring is to reach."""

    def __init__(self, label, mode, connections, payload, *goals, unit="msg/s"):
        self.label, self.unit, self.goals = label, unit, (*goals, EPOLL_097)
        self.flags = ["--mode", mode, "--connections", str(connections), "--payload", str(payload)]
        self.spins = mode == "lockstep"

    def command(self, chosen):
        return [built("echo_load"), "--port", "{port}", "--server-pid", "{pid}",
                "--milliseconds", "200" if chosen.quick else "2000", *self.flags]


LOADS = [
    Load("50 × 1, 64 B", "each", 50, 64, ASIO_105, RAW_097, NEAR_RAW),
    Load("50 × 1, 1 KiB", "each", 50, 1024),
    Load("50 × 1, 16 KiB", "each", 50, 16384),
    Load("500 × 1, 64 B", "each", 500, 64, P99),
    Load("8 in lock step, 64 B", "lockstep", 8, 64, ASIO_115, RAW_097, SPIN_14),
    Load("8 in lock step, 1 KiB", "lockstep", 8, 1024, ASIO_115, SPIN_14),
    Load("8 in lock step, 16 KiB", "lockstep", 8, 16384, ASIO_115, SPIN_14),
    Load("accept, echo, close", "accept", 16, 64, CHEAP, unit="conn/s"),
]


def sides_of(load, core):
    """The servers by name, in the order of the table."""
    sides = {
        ASIO: lambda: Program(core, ASIO, "echo_asio"),
        "boost": lambda: Program(core, "boost", "echo_boost"),
        "libuv": lambda: Program(core, "libuv", "echo_uv"),
        "raw epoll": lambda: Program(core, "raw epoll", "echo_raw_epoll"),
        "raw uring": lambda: Program(core, "raw uring", "echo_raw_uring"),
        "eddy": lambda: Program(core, "eddy", "echo_eddy", "--backend", "uring"),
        EPOLL: lambda: Program(core, EPOLL, "echo_eddy", "--backend", "epoll"),
    }
    if load.spins:
        sides[SPIN] = lambda: Program(core, SPIN, "echo_eddy", "--backend", "uring", "--spin-us", str(SPIN_US))
    return sides


class Row:
    """All servers under one load, Eddy on io_uring judged."""

    def __init__(self, load, comparison):
        self.load, self.comparison = load, comparison
        self.asio = comparison.ratio("eddy", ASIO)
        self.raw = comparison.ratio("eddy", best_raw(comparison))
        self.limited = comparison.is_void("eddy", ASIO, *RAW)
        self.goals = {goal.text: self.judge(goal) for goal in load.goals}
        faults = comparison.faults()
        self.verdict = verdict(None, False, faults) if faults else "; ".join(
            f"{text}: {judged}" for text, judged in self.goals.items())

    def judge(self, goal):
        return "void" if goal.rate and self.limited else "met" if goal.met(self.comparison) else "**missed**"

    def lines(self):
        """A line a server; the ratio to the raw loops and the verdict stand in Eddy's."""
        for side in self.comparison.samples:
            def median(field):
                return self.comparison.of(side, field).median
            judged = side == "eddy"
            yield [f"{self.load.label}: {side}", f"{report.spread(self.comparison.of(side))} {self.load.unit}",
                   report.ratio(self.comparison.ratio(side, ASIO)), report.ratio(self.raw) if judged else "",
                   self.verdict if judged else "the load was the limit" if self.comparison.is_void(side) else "",
                   f"{median('server_ns_per_op'):.0f}", f"{median('server_cpu'):.2f}",
                   f"{median('generator_cpu'):.2f}", f"{median('p50_us'):.0f} / {median('p99_us'):.0f}"]

    def json(self):
        return {"row": self.load.label, "to_asio": self.asio.json(), "to_raw": self.raw.json(),
                "goals": self.goals, "samples": self.comparison.samples}

    def group(self):
        values = {side: self.comparison.of(side) for side in self.comparison.samples}
        return report.Group(self.load.label, [(side, value, report.rate(value.median)) for side, value in values.items()],
                            ASIO, note=f"{self.asio.median:.2f} ×" + (", limited by the load" if self.limited else ""))


def main():
    chosen = harness.options(__doc__)
    harness.check_quiet()
    progress = Progress(sum(len(sides_of(load, 0)) for load in LOADS) * chosen.pairs)
    rows = []
    for load in LOADS:
        sides = sides_of(load, chosen.server_core)
        samples = {side: [] for side in sides}
        for number, side in turns(list(sides), chosen.pairs):
            with sides[side]() as server:
                row = measure(server, chosen.load_core, load.command(chosen))[0]
            samples[side].append(row)
            progress.step(f"{load.label}, round {number + 1}, {side}: "
                          f"{report.rate(row['ops_per_second'])} {load.unit}")
        rows.append(Row(load, Comparison(samples)))

    text = report.table(["load: server", "rate", "to Asio", "to the better raw loop", "", "server ns an operation",
                         "server CPU", "load CPU", "p50 / p99 µs"], [line for row in rows for line in row.lines()])
    report.perf_lines("echo", {row.load.label: row.comparison for row in rows}, "eddy", ASIO)
    report.leave("echo", chosen, text, {"rows": [row.json() for row in rows]},
                 report.bars("Echo servers on one core", "median, whiskers from the least to the greatest; "
                             "at the right, Eddy on io_uring to Asio", [row.group() for row in rows]),
                 "Echo rates in multiples of Asio", max(row.comparison.lost() for row in rows))
    return 2 if any(row.comparison.faults() for row in rows) else 0


if __name__ == "__main__":
    harness.run(main)
