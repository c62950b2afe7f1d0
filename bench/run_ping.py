#!/usr/bin/env python3
"""One message to and fro between two programs of the library, asleep in between and spinning."""

import harness
import report
from harness import Goal, Load, sample

ASLEEP, SPINNING, SPIN_US = "asleep", "spinning", 200
GOAL = Goal("p50 ≤ 7.5 µs", lambda comparison: comparison.of(SPINNING, "p50_us").median <= 7.5)


class Ping(Load):
    """Both programs on one backend, asleep and spinning."""

    def __init__(self, backend, *goals):
        server = f"echo_eddy --backend {backend}"
        super().__init__(backend, "ping_eddy", {ASLEEP: server, SPINNING: f"{server} --spin-us {SPIN_US}"}, *goals,
                         judged=SPINNING, rivals=(ASLEEP,))

    def command(self, chosen, server):
        return super().command(chosen, server) + server.flags


def micros(value):
    return f"{value:.1f}"


def times(field):
    """A cell with the spread of a field in microseconds."""
    return lambda row, side: report.spread(row.comparison.of(side, field), micros)


COLUMNS = [
    ("both programs", lambda row, side: f"{row.load.label}, {side}"), ("p50 µs", times("p50_us")),
    ("p99 µs", times("p99_us")),
    ("rate", lambda row, side: f"{report.rate(row.comparison.of(side).median)} {row.load.unit}"),
    ("", lambda row, side: row.verdict if side == SPINNING else ""),
]


def group(row):
    values = {side: row.comparison.of(side, "p50_us") for side in (ASLEEP, SPINNING)}
    return report.Group(row.load.label,
                        [(side, value, f"{micros(value.median)} µs") for side, value in values.items()], ASLEEP)


def main():
    chosen = harness.begin(__doc__)
    loads = [Ping("uring", GOAL), Ping("epoll")]
    rows = [report.Row(load, comparison) for load, _, comparison in sample(chosen, loads)]
    report.perf_lines("ping", rows)
    return report.leave("ping", chosen, report.table_of(rows, COLUMNS),
                        {row.load.label: row.comparison.samples for row in rows},
                        report.bars("A message to and fro", "median time, whiskers from the least to the greatest; "
                                    "less is better", [group(row) for row in rows]),
                        "Time of a message to and fro", [row.comparison for row in rows])


if __name__ == "__main__":
    harness.run(main)
