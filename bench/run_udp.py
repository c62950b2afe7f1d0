#!/usr/bin/env python3
"""UDP echo servers: Eddy's coroutines against Asio's, one by one and in joined rows."""

import harness
import report
from harness import Comparison, Program, Progress, built, measure, turns, verdict

ASIO = "asio"


class Load:
    """One row of the table. The goal is a ratio of the `judged` side to Asio."""

    def __init__(self, label, judged, goal, flags):
        self.label, self.judged, self.goal, self.flags = label, judged, goal, flags

    def command(self, chosen):
        return [built("udp_load"), "--port", "{port}", "--server-pid", "{pid}",
                "--milliseconds", "200" if chosen.quick else "2000", *self.flags]


LOADS = [
    Load("50 × 1, 64 B", "eddy", None, ["--clients", "50", "--row", "1", "--payload", "64"]),
    Load("4 × 32, 64 B", "eddy segments", 2.0, ["--clients", "4", "--row", "32", "--payload", "64"]),
    Load("2 × 32, 1200 B", "eddy segments", None, ["--clients", "2", "--row", "32", "--payload", "1200"]),
]


class MessageServer(Program):
    """Says when it is ready; a connection cannot tell."""

    def is_ready(self):
        self.log.seek(0)
        return "listening" in self.log.read()


def sides_of(chosen):
    """The servers by name, in the order of the table."""
    def eddy(name, *flags):
        return lambda: MessageServer(chosen.server_core, name, "udp_eddy", *flags)
    return {
        ASIO: lambda: MessageServer(chosen.server_core, ASIO, "udp_asio"),
        "eddy": eddy("eddy", "--backend", "uring"),
        "eddy epoll": eddy("eddy epoll", "--backend", "epoll"),
        "eddy segments": eddy("eddy segments", "--backend", "uring", "--segments", "1"),
        "eddy epoll segments": eddy("eddy epoll segments", "--backend", "epoll", "--segments", "1"),
    }


class Row:
    """All servers under one load, one of Eddy's judged."""

    def __init__(self, load, comparison):
        self.load, self.comparison = load, comparison
        self.asio = comparison.ratio(load.judged, ASIO)
        met = self.asio.median >= load.goal if load.goal else None
        self.verdict = verdict(met, comparison.is_void(load.judged, ASIO), comparison.faults())

    def lines(self):
        """A line a server; the verdict stands in the judged one's."""
        for side in self.comparison.samples:
            def median(field):
                return self.comparison.of(side, field).median
            judged = side == self.load.judged
            goal = f" (goal {self.load.goal})" if judged and self.load.goal else ""
            yield [f"{self.load.label}: {side}", f"{report.spread(self.comparison.of(side))} msg/s",
                   f"{report.ratio(self.comparison.ratio(side, ASIO))}{goal}",
                   self.verdict if judged else "void" if self.comparison.is_void(side) else "",
                   f"{median('server_ns_per_op'):.0f}", f"{median('server_cpu'):.2f}",
                   f"{median('generator_cpu'):.2f}", f"{median('p50_us'):.0f} / {median('p99_us'):.0f}"]

    def json(self):
        return {"row": self.load.label, "judged": self.load.judged, "to_asio": self.asio.json(),
                "goal": self.load.goal, "verdict": self.verdict, "samples": self.comparison.samples}

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
            progress.step(f"{load.label}, round {number + 1}, {side}: {report.rate(row['ops_per_second'])} msg/s")
        rows.append(Row(load, Comparison(samples)))

    text = report.table(["load: server", "rate", "to Asio", "", "server ns a datagram", "server CPU", "load CPU",
                         "p50 / p99 µs of a row"], [line for row in rows for line in row.lines()])
    report.leave("udp", chosen, text, {"rows": [row.json() for row in rows]},
                 report.bars("UDP echo servers on one core", "median, whiskers from the least to the greatest; "
                             "at the right, the judged server to Asio", [row.group() for row in rows]),
                 "UDP echo rates in multiples of Asio", max(row.comparison.lost() for row in rows))
    return 2 if any(row.comparison.faults() for row in rows) else 0


if __name__ == "__main__":
    harness.run(main)
