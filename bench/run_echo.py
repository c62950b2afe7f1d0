#!/usr/bin/env python3
"""Echo servers: Eddy's coroutines against Asio's and against raw loops in C style."""

import harness
import report
from harness import Goal, Load, RateGoal, near_epoll, sample

ASIO, RAW, EPOLL, SPIN = "asio", ("raw epoll", "raw uring"), "eddy epoll", "eddy spinning"
UNPOLLED = "eddy without polling"
SIDES = {
    ASIO: "echo_asio",
    "boost": "echo_boost",
    "libuv": "echo_uv",
    "raw epoll": "echo_raw_epoll",
    "raw uring": "echo_raw_uring",
    "eddy": "echo_eddy --backend uring",
    EPOLL: "echo_eddy --backend epoll",
}
SPINNING = {SPIN: "echo_eddy --backend uring --spin-us 50"}
NO_POLLING = {UNPOLLED: "echo_eddy --backend uring --polling no"}
MORE = {"lockstep": SPINNING | NO_POLLING, "accept": NO_POLLING}


def p99_within(text, limit_us):
    """The goal that the 99th percentile is at most limit_us(comparison)."""
    return Goal(text, lambda comparison: comparison.of("eddy", "p99_us").median <= limit_us(comparison))


ASIO_105 = RateGoal("≥ 1.05 × Asio", 1.05, ASIO)
ASIO_115 = RateGoal("≥ 1.15 × Asio", 1.15, ASIO)
SPIN_14 = RateGoal("spinning ≥ 1.4 × Asio", 1.4, ASIO, side=SPIN)
RAW_097 = RateGoal("≥ 0.97 × raw", 0.97, *RAW)
NEAR_RAW = Goal("CPU ≤ raw + 0.1 µs", lambda found: found.cost("eddy") <= min(map(found.cost, RAW)) + 100)
P99 = p99_within("p99 ≤ 2.8 ms", lambda _: 2800)
FAIR = p99_within("p99 ≤ 4 × p50", lambda found: 4 * found.of("eddy", "p50_us").median)
CHEAP = Goal("CPU ≤ 18 µs", lambda found: found.cost("eddy") <= 18_000)


def load(label, mode, connections, payload, *goals, unit="msg/s"):
    return Load(label, f"echo_load --mode {mode} --connections {connections} --payload {payload}",
                SIDES | MORE.get(mode, {}), *goals, near_epoll(), unit=unit)


LOADS = [
    load("50 × 1, 64 B", "each", 50, 64, ASIO_105, RAW_097, NEAR_RAW),
    load("50 × 1, 1 KiB", "each", 50, 1024),
    load("50 × 1, 16 KiB", "each", 50, 16384),
    load("500 × 1, 64 B", "each", 500, 64, P99),
    load("500 in any order, 64 B", "any", 500, 64, P99, FAIR),
    load("8 in lock step, 64 B", "lockstep", 8, 64, ASIO_115, RAW_097, SPIN_14),
    load("8 in lock step, 1 KiB", "lockstep", 8, 1024, ASIO_115, SPIN_14),
    load("8 in lock step, 16 KiB", "lockstep", 8, 16384, ASIO_115, SPIN_14),
    load("accept, echo, close", "accept", 16, 64, CHEAP, unit="conn/s"),
]


class Row(report.Row):
    """Held against the better raw loop, too."""

    def __init__(self, load, comparison):
        super().__init__(load, comparison)
        raw = [side for side in RAW if side in comparison.samples]
        self.raw = comparison.ratio(load.judged, comparison.best(raw))

    def json(self):
        return {"row": self.load.label, "to_asio": self.ratio.json(), "to_raw": self.raw.json(),
                "goals": self.goals, "samples": self.comparison.samples}


def main():
    chosen = harness.begin(__doc__)
    rows = [Row(load, comparison) for load, _, comparison in sample(chosen, LOADS)]
    columns = [report.SERVER, report.RATE, ("to Asio", report.to_rival),
               ("to the better raw loop", lambda row, side: report.ratio(row.raw) if side == row.load.judged else ""),
               report.TO_EPOLL,
               report.REMARK, report.COST, *report.CPU, report.LATENCY,
               ("sleeps per 1,000", report.median("sleeps_per_1000_ops", ".0f"))]
    return report.leave_servers("echo", chosen, rows, columns, "Echo servers on one core",
                                "Eddy on io_uring to Asio", "Echo rates in multiples of Asio")


if __name__ == "__main__":
    harness.run(main)
