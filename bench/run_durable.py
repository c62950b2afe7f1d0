#!/usr/bin/env python3
"""Commands a second with an append-only file, synced for each reply or each second, against Redis and Valkey."""

import harness
import report
from harness import sample, verdict
from run_resp import shape

REWRITES = "auto-aof-rewrite-percentage"


def flags(side, policy):
    """No rewrite falls into a turn."""
    common = ["--appendonly", "yes", "--appendfsync", policy]
    if side == "eddy":
        return [*common, "--dir", "{folder}", "--save", "off", "--config", f"{REWRITES} 0"]
    return [*common, f"--{REWRITES}", "0"]


class Load:
    """One row: SETs of random keys, each of which is in the file before its reply, or within a second."""

    servers = None  # what is here, set before the first turn

    def __init__(self, label, policy, requests, form):
        self.label, self.requests, self.form = label, requests, form
        self.sides = {side: (server, flags(side, policy)) for side, server in Load.servers.items()}

    def command(self, chosen, server):
        return [harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", str(server.port), "--server-pid", str(server.pid),
                "--clients", "50", "--tests", "set", "--requests", str(self.requests // 20 if chosen.quick else self.requests),
                "--seed", "1", "--json", "--no-progress", *self.form]


def loads():
    return [
        Load("always, P=1", "always", 60_000, shape(1, 1_000_000, 32)),
        Load("always, P=100", "always", 2_000_000, shape(100, 1_000_000, 32)),
        Load("everysec, P=1", "everysec", 600_000, shape(1, 1_000_000, 32)),
        Load("everysec, P=100", "everysec", 3_000_000, shape(100, 1_000_000, 32)),
    ]


class Row:
    """One load, judged: Eddy's rate is to be the highest."""

    def __init__(self, load, comparison):
        self.load, self.comparison = load, comparison
        self.rates = {side: comparison.of(side) for side in load.sides}
        self.ratios = {side: comparison.ratio("eddy", side) for side in load.sides if side != "eddy"}
        # The disk is the limit in most rows, and where it is not, the server is.
        self.verdict = verdict(all(ratio.median >= 1 for ratio in self.ratios.values()), comparison.is_void(*load.sides),
                               comparison.faults())

    def cells(self):
        def each(field, form):
            return " / ".join(form(self.comparison.of(side, field).median) for side in self.load.sides)
        return [f"SET, {self.load.label}", *(report.spread(rate) for rate in self.rates.values()),
                *(report.ratio(ratio) for ratio in self.ratios.values()), "≥ each", self.verdict,
                each("server_ns_per_op", lambda ns: f"{ns:.0f}"), each("server_cpu", lambda cpu: f"{cpu:.2f}"),
                each("p50_us", lambda us: f"{us:.0f}"), each("p99_us", lambda us: f"{us:.0f}")]

    def json(self):
        return {"row": self.load.label, "ratios": {side: ratio.json() for side, ratio in self.ratios.items()},
                "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        return report.Group(self.load.label, [(side, rate, report.rate(rate.median)) for side, rate in self.rates.items()],
                            "redis", None, f"{self.ratios['redis'].median:.2f} ×")


def main():
    chosen = harness.begin(__doc__)
    Load.servers = harness.caches(chosen)
    rows = [Row(load, comparison) for load, _, comparison in
            sample(chosen, loads(), lambda core, _, side: side[0](core, *side[1]))]
    sides = list(Load.servers)
    text = report.table(["operations a second", *sides, *(f"eddy / {side}" for side in sides if side != "eddy"), "goal", "",
                         "server ns an operation", "server CPU", "p50 µs", "p99 µs"], [row.cells() for row in rows])
    return report.leave("durable", chosen, text, {"rows": [row.json() for row in rows]},
                        report.bars("Cache: SETs a second with an append-only file", "50 connections; median, whiskers from the "
                                    "least to the greatest", [row.group() for row in rows]),
                        "SETs a second with an append-only file, in multiples of Redis", [row.comparison for row in rows])


if __name__ == "__main__":
    harness.run(main)
