#!/usr/bin/env python3
"""Commands a second of the cache against redis-server: one hot key, a million keys, no pipeline."""

import harness
import report
from harness import Eddy, Redis, sample, verdict

SIDES = {"redis": Redis, "eddy": Eddy}


class Load:
    """Rows that one start of the generator yields. `goals` are operations a second, by test; `cost_ns` is the most
    that one may cost the server in CPU time, and `p99_us` what the slowest in a hundred may take."""

    def __init__(self, label, goals, requests, quick_requests, flags, cost_ns=None, p99_us=None):
        self.label, self.goals, self.flags, self.cost_ns, self.p99_us = label, goals, flags, cost_ns or {}, p99_us
        self.requests, self.quick_requests, self.sides = requests, quick_requests, SIDES

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
    Load("P=1", {"set": 205e3, "get": 205e3}, 600_000, 30_000, shape(1, 1, 3), {"set": 4700, "get": 4700}, 450),
]


class Row:
    """One command under one load, judged."""

    def __init__(self, load, test, comparison):
        self.load, self.test, self.comparison = load, test, comparison
        self.label = f"{test.upper()}, {load.label}"
        self.goal, self.cost_ns = load.goals[test], load.cost_ns.get(test)
        self.redis, self.eddy = comparison.of("redis"), comparison.of("eddy")
        self.ratio = comparison.ratio("eddy", "redis")
        self.void = comparison.is_void(*SIDES)
        self.met = (self.eddy.median >= self.goal and
                    (self.cost_ns is None or comparison.cost("eddy") <= self.cost_ns) and
                    (load.p99_us is None or comparison.of("eddy", "p99_us").median <= load.p99_us))
        self.verdict = verdict(self.met, self.void, comparison.faults())

    def goal_text(self):
        return ", ".join([f"≥ {report.rate(self.goal)}"] +
                         ([f"≤ {self.cost_ns} ns"] if self.cost_ns else []) +
                         ([f"p99 ≤ {self.load.p99_us} µs"] if self.load.p99_us else []))

    def cells(self):
        def both(field, form):
            return " / ".join(form(self.comparison.of(side, field).median) for side in SIDES)
        return [self.label, report.spread(self.redis), report.spread(self.eddy),
                report.ratio(self.ratio), self.goal_text(), self.verdict,
                both("server_ns_per_op", lambda ns: f"{ns:.0f}"), both("server_cpu", lambda cpu: f"{cpu:.2f}"),
                both("generator_cpu", lambda cpu: f"{cpu:.2f}"), both("p99_us", lambda us: f"{us:.0f}")]

    def json(self):
        return {"row": self.label, "ratio": self.ratio.json(), "goal": self.goal, "cost_goal_ns": self.cost_ns,
                "p99_goal_us": self.load.p99_us, "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        return report.Group(self.label, [("redis", self.redis, report.rate(self.redis.median)),
                                         ("eddy", self.eddy, report.rate(self.eddy.median))], "redis",
                            self.goal / self.redis.median,
                            f"{self.ratio.median:.2f} × (goal {report.rate(self.goal)})")


def main():
    chosen = harness.begin(__doc__)
    rows = [Row(load, test, comparison)
            for load, test, comparison in sample(chosen, LOADS, lambda core, _, kind: kind(core))]
    text = report.table(["operations a second", "redis", "eddy", "eddy / redis", "goal", "", "server ns an operation",
                         "server CPU", "load CPU", "p99 µs"], [row.cells() for row in rows])
    return report.leave("resp", chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars("Cache: commands a second against Redis", "50 connections; median, whiskers from "
                                    "the least to the greatest", [row.group() for row in rows]),
                        "Commands a second, in multiples of Redis", [row.comparison for row in rows])


if __name__ == "__main__":
    harness.run(main)
