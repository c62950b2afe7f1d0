#!/usr/bin/env python3
"""Commands a second of the cache against redis-server: one hot key, a million keys, no pipeline."""

import harness
import report
from harness import Comparison, Eddy, Progress, Redis, measure, turns, verdict

CPU_GOAL_NS = 4800  # of the server, an operation, without a pipeline


class Load:
    """Rows that one start of the generator yields. `goals` are ratios to Redis, by test."""

    def __init__(self, label, goals, requests, quick_requests, flags, cpu_goal_ns=None):
        self.label, self.goals, self.flags, self.cpu_goal_ns = label, goals, flags, cpu_goal_ns
        self.requests, self.quick_requests = requests, quick_requests

    def command(self, chosen):
        requests = self.quick_requests if chosen.quick else self.requests
        return [harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", "{port}", "--server-pid", "{pid}",
                "--clients", "50", "--tests", ",".join(self.goals), "--requests", str(requests),
                "--seed", "1", "--json", "--no-progress", *self.flags]


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
SIDES = {"redis": Redis, "eddy": Eddy}


def sample(load, chosen, progress):
    """{test: Comparison}, each side started anew for each of its turns."""
    found = {test: {side: [] for side in SIDES} for test in load.goals}
    for number, side in turns(list(SIDES), chosen.pairs):
        with SIDES[side](chosen.server_core) as server:
            rows = measure(server, chosen.load_core, load.command(chosen))
        for row in rows:
            found[row["test"]][side].append(row)
        progress.step(f"{load.label}, pair {number + 1}, {side}: " + ", ".join(
            f"{row['test'].upper()} {report.rate(row['ops_per_second'])}/s" for row in rows))
    return {test: Comparison(samples) for test, samples in found.items()}


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
    chosen = harness.options(__doc__)
    harness.check_quiet()
    progress = Progress(len(LOADS) * len(SIDES) * chosen.pairs)
    rows = [Row(load, test, comparison)
            for load in LOADS for test, comparison in sample(load, chosen, progress).items()]
    text = report.table(["operations a second", "redis", "eddy", "eddy / redis", "goal", "", "server ns an operation",
                         "server CPU", "load CPU", "p99 µs"], [row.cells() for row in rows])
    report.leave("resp", chosen, text, {"rows": [row.json() for row in rows]},
                 report.bars("Cache: commands a second against Redis", "50 connections; median, whiskers from the "
                             "least to the greatest", [row.group() for row in rows]),
                 "Commands a second, in multiples of Redis", max(row.comparison.lost() for row in rows))
    return 2 if any(row.comparison.faults() for row in rows) else 0


if __name__ == "__main__":
    harness.run(main)
