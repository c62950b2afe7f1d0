#!/usr/bin/env python3
"""Gain of a second thread for a cache where load and server share two cores. run_http_threads.py has the same of a site."""

import harness
import report
from harness import Eddy, sample, verdict
from run_resp import shape

CORES = 2
ONE, TWO = "1 thread", "2 threads"


class Threads(Eddy):
    """A cache with --threads."""

    shares_cores = True

    def __init__(self, cores, threads):
        super().__init__(cores)
        self.threads = threads

    def after_start(self):
        self.port = self.create("cache", "bench", "--threads", str(self.threads))


SIDES = {ONE: 1, TWO: 2}


class Load:
    """Rows that one start of the generator yields. `goal` is what two threads are to have, in multiples of one."""

    def __init__(self, label, goal, requests, flags):
        self.label, self.goal, self.requests, self.flags, self.sides = label, goal, requests, flags, SIDES
        self.tests = ("set", "get")

    def row(self, test):
        return f"{test.upper()}, {self.label}"

    def command(self, chosen, server):
        return [harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", str(server.port),
                "--server-pid", str(server.pid), "--clients", "50", "--tests", "set,get", "--requests",
                str(self.requests // 20 if chosen.quick else self.requests), "--seed", "1", "--json",
                "--no-progress", *self.flags]


LOADS = [
    Load("1 M keys, P=100", 1.8, 5_000_000, shape(100, 1_000_000, 32)),
    Load("hot key, P=100", 1.0, 6_000_000, shape(100, 1, 3)),
    Load("1 M keys, P=10", None, 3_000_000, shape(10, 1_000_000, 32)),
    Load("P=1", None, 600_000, shape(1, 1, 3)),
]


class Row:
    """One test of a load, judged."""

    def __init__(self, load, test, comparison):
        self.label, self.goal, self.comparison = load.row(test), load.goal, comparison
        self.ratio = comparison.ratio(TWO, ONE)
        # Upper bound of both cores for the load's and the server's work together.
        self.bound = harness.Spread(
            CORES / (sample["server_cpu"] + sample["generator_cpu"]) for sample in comparison.samples[ONE])
        self.cost = comparison.ratio(TWO, ONE, "server_ns_per_op").median
        self.verdict = verdict(self.met(), False, comparison.faults(), comparison.lost() > harness.DISTURBED_SHARE)

    def met(self):
        return None if self.goal is None else self.ratio.median >= self.goal

    def goal_text(self):
        return f"≥ {self.goal}" if self.goal else ""

    def cells(self):
        def each(field, form):
            return " / ".join(form(self.comparison.of(side, field).median) for side in SIDES)
        return [self.label, *(report.spread(self.comparison.of(side)) for side in SIDES), report.ratio(self.ratio),
                self.goal_text(), self.verdict, f"{self.bound.median:.2f}", f"{self.cost:.2f}",
                each("server_cpu", lambda cpu: f"{cpu:.2f}"), each("generator_cpu", lambda cpu: f"{cpu:.2f}"),
                each("p99_us", lambda us: f"{us:.0f}")]

    def json(self):
        return {"row": self.label, "ratio": self.ratio.json(), "goal": self.goal, "bound": self.bound.json(),
                "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        return report.Group(self.label, [(side, self.comparison.of(side), report.rate(self.comparison.of(side).median))
                                         for side in SIDES], ONE, self.goal, f"{self.ratio.median:.2f} ×")


def compare(name, chosen, title, what, loads, start, row=Row):
    """Measures `loads`, whose servers are start(cores, threads), and leaves the results; the program's exit status."""
    chosen.server_core = chosen.load_core = frozenset({chosen.server_core, chosen.load_core})
    if chosen.stored:
        found = {each["row"]: harness.Comparison(each["samples"]) for each in chosen.stored["rows"]}
        rows = [row(load, test, found[load.row(test)]) for load in loads for test in load.tests]
    else:
        rows = [row(load, test, comparison) for load, test, comparison in
                sample(chosen, loads, lambda cores, _, threads: start(cores, threads))]
    text = report.table([f"{what} a second", *SIDES, "2 threads / 1", "goal", "", "bound",
                         "CPU an operation, 2 / 1", "server CPU", "load CPU", "p99 µs"], [row.cells() for row in rows])
    return report.leave(name, chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars(title, "50 connections; load and server share two cores",
                                    [row.group() for row in rows]),
                        f"{what.capitalize()} a second, in multiples of one thread", [row.comparison for row in rows])


def main():
    return compare("threads", harness.begin(__doc__), "Cache: threads", "operations", LOADS, Threads)


if __name__ == "__main__":
    harness.run(main)
