#!/usr/bin/env python3
"""Comparison of the daemons of one run: connections, latency, memory, CPU.

Usage: analyze.py RESULTS

RESULTS has a folder for each daemon with benchmark.json, as the load generator writes it, and resources.csv of
collect-resources.sh; NAME.json in RESULTS itself will do for the former.
"""

import csv
import json
import os
import sys

WIDTH = 80
NONE = "-"


class Result:
    """One daemon's run. What was not measured is None."""

    def __init__(self, name, load, samples):
        self.name, self.load, self.samples = name, load, samples
        self.started, self.completed, self.failed = (
            load.get("connections_" + what, 0) for what in ("started", "completed", "failed"))
        self.success_pct = 100 * self.completed / self.started if self.started else 0.0

    def latency(self, kind, percentile):
        """`kind` is handoff, ttfb or stream."""
        field = "stream_duration_ms" if kind == "stream" else kind + "_latency_ms"
        return self.load.get(field, {}).get(percentile)

    def column(self, name):
        return [float(sample[name]) for sample in self.samples if sample.get(name) not in (None, "")]

    @property
    def baseline_kb(self):
        return next(iter(self.column("rss_kb")), None)

    @property
    def peak_kb(self):
        return max(self.column("rss_kb"), default=None)

    @property
    def delta_kb(self):
        return None if self.peak_kb is None else self.peak_kb - self.baseline_kb

    def per_connection_kb(self, connections):
        return self.delta_kb / connections if self.delta_kb is not None and connections else None

    @property
    def average_cpu_pct(self):
        """Average CPU in percent from the first sample to the last."""
        if len(self.samples) < 2:
            return None
        shares, times = self.column("cpu_pct"), self.column("timestamp")
        spans = [later - earlier for earlier, later in zip(times, times[1:])]
        return sum(share * span for share, span in zip(shares[1:], spans)) / sum(spans) if sum(spans) > 0 else None

    @property
    def peak_cpu_pct(self):
        return max(self.column("cpu_pct"), default=None)

    @property
    def threads(self):
        return max(self.column("threads"), default=None)

    @property
    def peak_connections(self):
        return max(self.column("active_conns"), default=None)


def read(folder, name):
    """The Result of a daemon, or None where the load has left nothing."""
    for path in (os.path.join(folder, name, "benchmark.json"), os.path.join(folder, name + ".json")):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                load = json.load(file)
            break
    else:
        return None
    samples = []
    path = os.path.join(folder, name, "resources.csv")
    if os.path.exists(path):
        with open(path, newline="", encoding="utf-8") as file:
            # The last line may be half of one where the collection was interrupted.
            samples = [row for row in csv.DictReader(file) if None not in row.values()]
    return Result(name, load, samples)


def read_all(folder):
    names = {os.path.splitext(entry.name)[0] for entry in os.scandir(folder)
             if entry.is_dir() or entry.name.endswith(".json")}
    return [result for result in (read(folder, name) for name in sorted(names)) if result]


def number(value, digits, scale=1.0):
    return NONE if value is None else f"{value / scale:.{digits}f}"


def table(title, header, widths, rule, rows):
    """A table of text: the first column to the left, 12 wide, the others to the right."""
    lines = [f"### {title}", f"{'Daemon':<12}" + "".join(f"{text:>{width}}" for text, width in zip(header, widths)), "-" * rule]
    for name, *cells in rows:
        # A percent sign stands beyond its column.
        lines.append(f"{name:<12}" + "".join(f"{cell:>{width + cell.endswith('%')}}" for cell, width in zip(cells, widths)))
    return "\n".join([*lines, ""])


def comparison(results):
    parts = [
        "=" * WIDTH, "BENCHMARK COMPARISON", "=" * WIDTH, "",
        table("Connection Statistics", ("Started", "Completed", "Failed", "Success %"), (12, 11, 11, 11), 52,
              [(one.name, str(one.started), str(one.completed), str(one.failed), f"{one.success_pct:.1f}%")
               for one in results]),
        table("Latency (milliseconds)", ("Handoff p50", "Handoff p99", "TTFB p50", "TTFB p99"), (13, 13, 11, 11), 56,
              [(one.name, *(number(one.latency(kind, percentile), 2)
                            for kind in ("handoff", "ttfb") for percentile in ("p50", "p99"))) for one in results]),
        table("Memory (RSS in MB)", ("Baseline", "Peak", "Delta", "Per-Conn KB"), (10, 11, 11, 13), 56,
              [(one.name, *(number(value, 1, 1024) for value in (one.baseline_kb, one.peak_kb, one.delta_kb)),
                number(one.per_connection_kb(one.started), 1)) for one in results]),
        table("CPU Usage", ("Avg %", "Peak %", "Threads"), (9, 12, 11), 42,
              [(one.name, number(one.average_cpu_pct, 1), number(one.peak_cpu_pct, 1), number(one.threads, 0))
               for one in results]),
    ]
    counted = [(one.name, number(one.peak_connections, 0)) for one in results if one.peak_connections is not None]
    if counted:
        parts.append(table("Peak Connections (Prometheus)", ("Peak",), (12,), 24, counted))
    return "\n".join([*parts, "=" * WIDTH])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        results = read_all(sys.argv[1])
    except (OSError, ValueError) as why:
        sys.exit(f"analyze.py: {why}")
    if not results:
        sys.exit(f"analyze.py: {sys.argv[1]} has no results")
    print(comparison(results))


if __name__ == "__main__":
    main()
