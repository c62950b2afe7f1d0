#!/usr/bin/env python3
"""Commands a second of the cache against redis-server: one hot key, a million keys, no pipeline."""

import harness
import report
from harness import Eddy, Redis, sample, verdict

CPU_GOAL_NS = 4800  # of the server, an operation, without a pipeline
SIDES = {"redis": Redis, "eddy": Eddy}


class Load:
    """Rows that one start of the generator yields. `goals` are ratios to Redis, by test."""

    def __init__(self, label, goals, requests, quick_requests, flags, cpu_goal_ns=None):
        self.label, self.goals, self.flags, self.cpu_goal_ns = label, goals, flags, cpu_goal_ns
        self.requests, self.quick_requests, self.sides = requests, quick_requests, SIDES

    def command(self, chosen, server):
        requests = self.quick_requests if chosen.quick else self.requests
        return [harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", str(server.port),
                "--server-pid", str(server.pid), "--clients", "50", "--tests", ",".join(self.goals),
                "--requests", str(requests), "--seed", "1", "--json", "--no-progress", *self.flags]


LOADS = [
    Load("hot key, P=100",
         {"set": 3, "get": 3, "lpush": 3, "lpop": 5, "sadd": 3, "hset": 3}, 6_000_000, 300_000,
         ["--pipeline", "100", "--keys", "1", "--value-size", "3"]),
    Load("1 M keys, P=100",
         {"set": 3.5, "get": 3.5}, 5_000_000, 300_000,
         ["--pipeline", "100", "--keys", "1000000", "--value-size", "32"]),
    Load("P=1",
         {"set": 1.1, "get": 1.1}, 600_000, 30_000,
         ["--pipeline", "1", "--keys", "1", "--value-size", "3"], CPU_GOAL_NS),
]


class Row:
    """One command under one load, judged."""

    def __init__(self, load, test, comparison):
        self.load, self.test, self.comparison = load, test, comparison
        self.label = f"{test.upper()}, {load.label}"
        self.goal = load.goals[test]
        self.redis, self.eddy = comparison.of("redis"), comparison.of("eddy")
        self.ratio = comparison.ratio("eddy", "redis")
        self.cpu = {side: comparison.of(side, "server_ns_per_op").median for side in SIDES}
        self.void = comparison.is_void(*SIDES)
        self.met = (self.ratio.median >= self.goal and
                    (load.cpu_goal_ns is None or self.cpu["eddy"] <= load.cpu_goal_ns))
        self.verdict = verdict(self.met, self.void, comparison.faults())

    def goal_text(self):
        limit = f", ≤ {self.load.cpu_goal_ns / 1000} µs" if self.load.cpu_goal_ns else ""
        return f"≥ {self.goal} ×{limit}"

    def cells(self):
        def both(field, form):
            return " / ".join(form(self.comparison.of(side, field).median) for side in SIDES)
        return [self.label, report.spread(self.redis), report.spread(self.eddy),
                report.ratio(self.ratio), self.goal_text(), self.verdict,
                both("server_ns_per_op", lambda ns: f"{ns:.0f}"), both("server_cpu", lambda cpu: f"{cpu:.2f}"),
                both("generator_cpu", lambda cpu: f"{cpu:.2f}"), both("p99_us", lambda us: f"{us:.0f}")]

    def json(self):
        return {"row": self.label, "ratio": self.ratio.json(), "goal": self.goal, "cpu_goal_ns": self.load.cpu_goal_ns,
                "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        return report.Group(self.label, [("redis", self.redis, report.rate(self.redis.median)),
                                         ("eddy", self.eddy, report.rate(self.eddy.median))], "redis", self.goal,
                            f"{self.ratio.median:.2f} × (goal {self.goal} ×)")


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
