#!/usr/bin/env python3
"""TLS 1.3 echo servers: Eddy's streams against Asio's."""

import harness
import report
from harness import Comparison, Program, Progress, built, measure, turns, verdict

ASIO = "asio"


class Load:
    """One row. The goal is a ratio of Eddy to Asio."""

    def __init__(self, label, unit, flags, goal=None):
        self.label, self.unit, self.flags, self.goal = label, unit, flags, goal

    def command(self, chosen):
        return [built("tls_load"), "--port", "{port}", "--server-pid", "{pid}",
                "--milliseconds", "200" if chosen.quick else "2000", *self.flags]


LOADS = [
    Load("8 × 1, 16 KiB", "msg/s", ["--mode", "each", "--connections", "8", "--payload", "16384"], 1.2),
    Load("50 × 1, 16 KiB", "msg/s", ["--mode", "each", "--connections", "50", "--payload", "16384"], 1.2),
    Load("50 × 1, 64 B", "msg/s", ["--mode", "each", "--connections", "50", "--payload", "64"]),
    Load("handshake, echo, close", "conn/s", ["--mode", "accept", "--connections", "16", "--payload", "64"]),
]


def sides_of(chosen):
    """The servers by name, in the order of the table."""
    core = chosen.server_core
    return {
        ASIO: lambda: Program(core, ASIO, "echo_tls_asio"),
        "eddy": lambda: Program(core, "eddy", "echo_tls_eddy", "--backend", "uring"),
        "eddy epoll": lambda: Program(core, "eddy epoll", "echo_tls_eddy", "--backend", "epoll"),
    }


class Row:
    """All servers under one load, Eddy on io_uring judged."""

    def __init__(self, load, comparison):
        self.load, self.comparison = load, comparison
        self.asio = comparison.ratio("eddy", ASIO)
        met = self.asio.median >= load.goal if load.goal else None
        self.verdict = verdict(met, comparison.is_void("eddy", ASIO), comparison.faults())

    def lines(self):
        """A line a server; the verdict stands in Eddy's."""
        for side in self.comparison.samples:
            def median(field):
                return self.comparison.of(side, field).median
            judged = side == "eddy"
            goal = f" (goal {self.load.goal})" if judged and self.load.goal else ""
            cost = self.comparison.ratio(ASIO, side, "server_ns_per_op")
            yield [f"{self.load.label}: {side}", f"{report.spread(self.comparison.of(side))} {self.load.unit}",
                   f"{report.ratio(self.comparison.ratio(side, ASIO))}{goal}",
                   self.verdict if judged else "void" if self.comparison.is_void(side) else "",
                   f"{median('server_ns_per_op'):.0f}", report.ratio(cost), f"{median('server_cpu'):.2f}",
                   f"{median('generator_cpu'):.2f}", f"{median('p50_us'):.0f} / {median('p99_us'):.0f}"]

    def json(self):
        return {"row": self.load.label, "to_asio": self.asio.json(), "goal": self.load.goal,
                "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        values = {side: self.comparison.of(side) for side in self.comparison.samples}
        goal = f" (goal {self.load.goal} ×)" if self.load.goal else ""
        return report.Group(self.load.label, [(side, value, report.rate(value.median)) for side, value in values.items()],
                            ASIO, self.load.goal, f"{self.asio.median:.2f} ×{goal}")


def main():
    chosen = harness.options(__doc__)
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

    text = report.table(["load: server", "rate", "to Asio", "", "server ns an operation", "Asio's to that",
                         "server CPU", "load CPU", "p50 / p99 µs"], [line for row in rows for line in row.lines()])
    report.leave("tls", chosen, text, {"rows": [row.json() for row in rows]},
                 report.bars("TLS 1.3 echo servers on one core", "median, whiskers from the least to the greatest; "
                             "at the right, Eddy on io_uring to Asio", [row.group() for row in rows]),
                 "TLS echo rates in multiples of Asio", max(row.comparison.lost() for row in rows))
    return 2 if any(row.comparison.faults() for row in rows) else 0


if __name__ == "__main__":
    harness.run(main)
