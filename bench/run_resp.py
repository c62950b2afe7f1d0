#!/usr/bin/env python3
"""Commands a second of the cache against Redis and Valkey: one hot key, a million keys, no pipeline."""

import harness
import report
from harness import sample, verdict


class Load:
    """Rows that one start of the generator yields. `goals` are operations a second, by test; `cost_ns` is the most
    that one may cost the server in CPU time, and `p99_us` what the slowest in a hundred may take."""

    sides = None  # what is here, set before the first turn

    def __init__(self, label, goals, requests, quick_requests, flags, cost_ns=None, p99_us=None):
        self.label, self.goals, self.flags, self.cost_ns, self.p99_us = label, goals, flags, cost_ns or {}, p99_us
        self.requests, self.quick_requests = requests, quick_requests

    def command(self, chosen, server):
        requests = self.quick_requests if chosen.quick else self.requests
        return [harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", str(server.port),
                "--server-pid", str(server.pid), "--clients", "50", "--tests", ",".join(self.goals),
                "--requests", str(requests), "--seed", "1", "--json", "--no-progress", *self.flags]


def shape(pipeline, keys, value_size):
    return ["--pipeline", str(pipeline), "--keys", str(keys), "--value-size", str(value_size)]


LOADS = [
    Load("hot key, P=100",
         {"set": 12e6, "get": 14e6, "lpush": 9e6, "lpop": 12e6, "sadd": 8e6, "hset": 8.5e6}, 6_000_000, 300_000,
         shape(100, 1, 3)),
    Load("1 M keys, P=100", {"set": 4.5e6, "get": 4e6}, 5_000_000, 300_000, shape(100, 1_000_000, 32),
         {"set": 230, "get": 250}),
    Load("1 M keys, P=10", {"set": 1.3e6, "get": 1.3e6}, 3_000_000, 300_000, shape(10, 1_000_000, 32)),
    Load("10 M keys, P=100", {"set": 3.5e6, "get": 3.5e6}, 5_000_000, 300_000, shape(100, 10_000_000, 32)),
    Load("1 KB, P=100", {"set": 1.8e6, "get": 2e6}, 2_000_000, 100_000, shape(100, 100_000, 1024)),
    Load("P=1", dict.fromkeys(("set", "get", "lpush", "lpop", "sadd", "hset"), 205e3), 600_000, 30_000, shape(1, 1, 3), {"set": 4700, "get": 4700}, 450),
    Load("1 M keys, P=1", {"set": 205e3, "get": 205e3}, 600_000, 30_000, shape(1, 1_000_000, 32)),
]


class Row:
    """One command under one load, judged."""

    def __init__(self, load, test, comparison):
        self.load, self.test, self.comparison = load, test, comparison
        self.label = f"{test.upper()}, {load.label}"
        self.goal, self.cost_ns = load.goals[test], load.cost_ns.get(test)
        self.rates = {side: comparison.of(side) for side in load.sides}
        self.ratios = {side: comparison.ratio("eddy", side) for side in load.sides if side != "eddy"}
        self.void = comparison.is_void(*load.sides)
        self.met = (self.rates["eddy"].median >= self.goal and
                    (self.cost_ns is None or comparison.cost("eddy") <= self.cost_ns) and
                    (load.p99_us is None or comparison.of("eddy", "p99_us").median <= load.p99_us))
        self.verdict = verdict(self.met, self.void, comparison.faults())

    def goal_text(self):
        return ", ".join([f"≥ {report.rate(self.goal)}"] +
                         ([f"≤ {self.cost_ns} ns"] if self.cost_ns else []) +
                         ([f"p99 ≤ {self.load.p99_us} µs"] if self.load.p99_us else []))

    def cells(self):
        def each(field, form):
            return " / ".join(form(self.comparison.of(side, field).median) for side in self.load.sides)
        return [self.label, *(report.spread(rate) for rate in self.rates.values()),
                *(report.ratio(ratio) for ratio in self.ratios.values()), self.goal_text(), self.verdict,
                each("server_ns_per_op", lambda ns: f"{ns:.0f}"), each("server_cpu", lambda cpu: f"{cpu:.2f}"),
                each("generator_cpu", lambda cpu: f"{cpu:.2f}"), each("p50_us", lambda us: f"{us:.0f}"),
                each("p99_us", lambda us: f"{us:.0f}")]

    def json(self):
        return {"row": self.label, "ratios": {side: ratio.json() for side, ratio in self.ratios.items()},
                "goal": self.goal, "cost_goal_ns": self.cost_ns,
                "p99_goal_us": self.load.p99_us, "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        return report.Group(self.label, [(side, rate, report.rate(rate.median)) for side, rate in self.rates.items()],
                            "redis", self.goal / self.rates["redis"].median,
                            f"{self.ratios['redis'].median:.2f} × (goal {report.rate(self.goal)})")


def main():
    chosen = harness.begin(__doc__)
    Load.sides = harness.caches(chosen)
    rows = [Row(load, test, comparison)
            for load, test, comparison in sample(chosen, LOADS, lambda core, _, kind: kind(core))]
    text = report.table(["operations a second", *Load.sides, *(f"eddy / {side}" for side in Load.sides if side != "eddy"),
                         "goal", "", "server ns an operation", "server CPU", "load CPU", "p50 µs", "p99 µs"],
                        [row.cells() for row in rows])
    return report.leave("resp", chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars("Cache: commands a second against Redis and Valkey", "50 connections; median, whiskers from "
                                    "the least to the greatest", [row.group() for row in rows]),
                        "Commands a second, in multiples of Redis", [row.comparison for row in rows])


if __name__ == "__main__":
    harness.run(main)
