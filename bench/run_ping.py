#!/usr/bin/env python3
"""One message to and fro between two programs of the library, asleep in between and spinning, and without one."""

import harness
import report
from harness import Goal, Load, built, near_epoll, sample

BACKENDS, SPIN_US = ("uring", "epoll"), 200
ASLEEP, SPINNING = ({backend: f"{backend}, {way}" for backend in BACKENDS} for way in ("asleep", "spinning"))
RAW = "raw recv, spinning"
GOALS = (
    Goal("p50 ≤ 7.5 µs", lambda comparison: comparison.of(SPINNING["uring"], "p50_us").median <= 7.5),
    near_epoll("spinning ≥ 0.97 × epoll", SPINNING["uring"], SPINNING["epoll"]),
    near_epoll("asleep ≥ 0.97 × epoll", ASLEEP["uring"], ASLEEP["epoll"]),
)


class Ping(Load):
    """Both programs alike: on one backend, asleep or spinning."""

    def __init__(self):
        servers = {backend: f"echo_eddy --backend {backend}" for backend in BACKENDS}
        super().__init__("ping", "ping_eddy", {
            side: server + spin for backend, server in servers.items()
            for side, spin in ((ASLEEP[backend], ""), (SPINNING[backend], f" --spin-us {SPIN_US}"))
        } | {RAW: "ping_raw --serve yes"}, *GOALS, judged=SPINNING["uring"], rivals=(ASLEEP["uring"],))

    def command(self, chosen, server):
        command = super().command(chosen, server)
        return [built("ping_raw"), *command[1:]] if server.name == RAW else command + server.flags


def micros(value):
    return f"{value:.1f}"


def times(field):
    """A cell with the spread of a field in microseconds."""
    return lambda row, side: report.spread(row.comparison.of(side, field), micros)


COLUMNS = [
    ("both programs", lambda row, side: side), ("p50 µs", times("p50_us")), ("p99 µs", times("p99_us")),
    ("rate", lambda row, side: f"{report.rate(row.comparison.of(side).median)} {row.load.unit}"),
    ("", lambda row, side: row.verdict if side == row.load.judged else ""),
]


def groups(row):
    for backend in BACKENDS:
        values = {way: row.comparison.of(side[backend], "p50_us")
                  for way, side in (("asleep", ASLEEP), ("spinning", SPINNING)) if side[backend] in row.comparison.samples}
        if values:
            values["raw recv"] = row.comparison.of(RAW, "p50_us")
            yield report.Group(backend, [(way, value, f"{micros(value.median)} µs") for way, value in values.items()],
                               "asleep")


def main():
    chosen = harness.begin(__doc__)
    rows = [report.Row(load, comparison) for load, _, comparison in sample(chosen, [Ping()])]
    report.perf_lines("ping", chosen, rows)
    return report.leave("ping", chosen, report.table_of(rows, COLUMNS),
                        {"goals": rows[0].goals, "samples": rows[0].comparison.samples},
                        report.bars("A message to and fro", "median time, whiskers from the least to the greatest; "
                                    "less is better", list(groups(rows[0]))),
                        "Time of a message to and fro", [row.comparison for row in rows])


if __name__ == "__main__":
    harness.run(main)
