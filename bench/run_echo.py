#!/usr/bin/env python3
"""Echo servers: Eddy's coroutines against Asio's and against raw loops in C style."""

import harness
import report
from harness import Comparison, Program, Progress, built, measure, turns, verdict

ASIO, RAW = "asio", ("raw epoll", "raw uring")


class Load:
    """One row. Goals are ratios of Eddy to Asio, and to the better of the raw loops."""

    def __init__(self, label, unit, flags, asio_goal=None, raw_goal=None):
        self.label, self.unit, self.flags, self.asio_goal, self.raw_goal = label, unit, flags, asio_goal, raw_goal

    def command(self, chosen):
        return [built("echo_load"), "--port", "{port}", "--server-pid", "{pid}",
                "--milliseconds", "200" if chosen.quick else "2000", *self.flags]


LOADS = [
    Load("50 × 1, 64 B", "msg/s", ["--mode", "each", "--connections", "50", "--payload", "64"], 1.05, 0.97),
    Load("8 in lock step, 64 B", "msg/s", ["--mode", "lockstep", "--connections", "8", "--payload", "64"], 1.1, 0.97),
    Load("50 × 1, 1 KiB", "msg/s", ["--mode", "each", "--connections", "50", "--payload", "1024"]),
    Load("50 × 1, 16 KiB", "msg/s", ["--mode", "each", "--connections", "50", "--payload", "16384"]),
    Load("accept, echo, close", "conn/s", ["--mode", "accept", "--connections", "16", "--payload", "64"]),
]


def sides_of(chosen):
    """The servers by name, in the order of the table."""
    core = chosen.server_core
    sides = {
        ASIO: lambda: Program(core, ASIO, "echo_asio"),
        "raw epoll": lambda: Program(core, "raw epoll", "echo_raw_epoll"),
        "raw uring": lambda: Program(core, "raw uring", "echo_raw_uring"),
        "eddy": lambda: Program(core, "eddy", "echo_eddy", "--backend", "uring"),
        "eddy epoll": lambda: Program(core, "eddy epoll", "echo_eddy", "--backend", "epoll"),
    }
    if chosen.spin:
        sides["eddy spinning"] = lambda: Program(core, "eddy spinning", "echo_eddy", "--backend", "uring",
                                                 "--spin-us", str(chosen.spin))
    return sides


class Row:
    """All servers under one load, Eddy on io_uring judged."""

    def __init__(self, load, comparison):
        self.load, self.comparison = load, comparison
        self.asio = comparison.ratio("eddy", ASIO)
        best = max(RAW, key=lambda side: comparison.of(side).median)
        self.raw = comparison.ratio("eddy", best)
        met = None
        if load.asio_goal:
            met = self.asio.median >= load.asio_goal and self.raw.median >= load.raw_goal
        self.verdict = verdict(met, comparison.is_void("eddy", ASIO, *RAW), comparison.faults())

    def lines(self):
        """A line a server; the ratios and the verdict stand in Eddy's."""
        for side in self.comparison.samples:
            def median(field):
                return self.comparison.of(side, field).median
            judged = side == "eddy"
            goal = f" (goal {self.load.asio_goal})" if judged and self.load.asio_goal else ""
            raw_goal = f" (goal {self.load.raw_goal})" if judged and self.load.raw_goal else ""
            yield [f"{self.load.label}: {side}", f"{report.spread(self.comparison.of(side))} {self.load.unit}",
                   f"{report.ratio(self.comparison.ratio(side, ASIO))}{goal}",
                   f"{report.ratio(self.raw)}{raw_goal}" if judged else "",
                   self.verdict if judged else "void" if self.comparison.is_void(side) else "",
                   f"{median('server_ns_per_op'):.0f}", f"{median('server_cpu'):.2f}",
                   f"{median('generator_cpu'):.2f}", f"{median('p50_us'):.0f} / {median('p99_us'):.0f}"]

    def json(self):
        return {"row": self.load.label, "to_asio": self.asio.json(), "to_raw": self.raw.json(),
                "asio_goal": self.load.asio_goal, "raw_goal": self.load.raw_goal, "verdict": self.verdict,
                "samples": self.comparison.samples}

    def group(self):
        values = {side: self.comparison.of(side) for side in self.comparison.samples}
        goal = f" (goal {self.load.asio_goal} ×)" if self.load.asio_goal else ""
        return report.Group(self.load.label, [(side, value, report.rate(value.median)) for side, value in values.items()],
                            ASIO, self.load.asio_goal, f"{self.asio.median:.2f} ×{goal}")


def main():
    chosen = harness.options(__doc__, lambda parser: parser.add_argument(
        "--spin", type=int, default=0, metavar="US", help="also measure Eddy spinning so long before it sleeps"))
    harness.check_quiet()
    sides = sides_of(chosen)
    progress = Progress(len(LOADS) * len(sides) * chosen.pairs)
    rows = []
    for load in LOADS:
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
    report.leave("echo", chosen, text, {"rows": [row.json() for row in rows]},
                 report.bars("Echo servers on one core", "median, whiskers from the least to the greatest; "
                             "at the right, Eddy on io_uring to Asio", [row.group() for row in rows]),
                 "Echo rates in multiples of Asio", max(row.comparison.lost() for row in rows))
    return 2 if any(row.comparison.faults() for row in rows) else 0


if __name__ == "__main__":
    harness.run(main)
