#!/usr/bin/env python3
"""Blocking sockets, and a loop's wait that finds nothing: Eddy's against Asio's."""

import json
import os
import subprocess
import time

import harness
import report
from harness import Comparison, Failure, Load, Progress, Spread, built, free_port, near_epoll, settle

ASIO = "asio"
BOTH = {ASIO: "blocking_asio", "eddy": "blocking_eddy"}
LOOPS = {ASIO: "blocking_asio", "eddy": "blocking_eddy --backend uring", "eddy epoll": "blocking_eddy --backend epoll"}
LOADS = [
    Load("idle wait", "--test idle", LOOPS, near_epoll(), unit="ns a wait"),
    *(Load(f"echo, {text}", f"--test echo --payload {payload}", BOTH, unit="µs a message")
      for text, payload in (("64 B", 64), ("1 KiB", 1024), ("16 KiB", 16384))),
    *(Load(f"churn, {connections} connections", f"--test churn --connections {connections}", BOTH,
           unit="µs a connection") for connections in (16, 32, 64)),
]


def turn(chosen, load, side):
    """Figures of one start of a side's program, with the share of time that was lost to others.

    Both threads are in one process here; the share is that of the core which lost more.
    """
    program, *flags = load.sides[side].split()
    argv = [built(program), *flags, *load.program.split(), "--port", str(free_port()),
            "--milliseconds", "100" if chosen.quick else "1000",
            "--server-core", str(chosen.server_core), "--client-core", str(chosen.load_core)]
    cores = (chosen.server_core, chosen.load_core)
    stolen, deferred = harness.busy_ticks()[1], [harness.deferred_work(core) for core in cores]
    started = time.monotonic()
    # The program moves its threads to their cores itself.
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, start_new_session=True,
                          preexec_fn=settle(chosen.server_core))
    seconds = time.monotonic() - started
    if done.returncode not in (0, 2):
        raise Failure(f"{side}, {load.label}: {done.stderr.strip() or f'status {done.returncode}'}")
    row = json.loads(done.stdout)
    others = [waited - (harness.deferred_work(core) - before)
              for waited, core, before in zip(row["waited_ns"], cores, deferred)]
    stolen = (harness.busy_ticks()[1] - stolen) / os.sysconf("SC_CLK_TCK")
    row["lost"] = round(max(*(each / 1e9 for each in others), stolen) / seconds, 5)
    return row


def time_of(row, side, field=None):
    """The time of one operation, or the share of it that `field` counts, in the row's unit."""
    scale = 1e9 if row.load.unit.startswith("ns") else 1e6
    return Spread(scale * (sample[field] if field else 1) / sample["ops_per_second"]
                  for sample in row.comparison.samples[side])


def time_cell(row, side):
    return f"{report.spread(time_of(row, side), report.figures)} {row.load.unit}"


def cpu_cell(row, side):
    """The CPU time of both threads for one operation."""
    return f"{report.figures(time_of(row, side, 'generator_cpu').median)} {row.load.unit.split()[0]}"


class TimeRow(report.RatioRow):
    """Programs compared by their rates, as elsewhere, and labelled with the time of one operation."""

    def group(self):
        group = super().group()
        unit = self.load.unit.split()[0]
        group.bars = [(side, value, f"{report.figures(time_of(self, side).median)} {unit}")
                      for side, value, _ in group.bars]
        return group


def main():
    chosen = harness.begin(__doc__)
    loads = harness.here(chosen, LOADS)
    progress = Progress(sum(len(load.sides) for load in loads) * chosen.pairs)
    rows = []
    for load in loads:
        samples = {side: [] for side in load.sides}
        for number, side in harness.turns(list(load.sides), chosen.pairs):
            samples[side].append(turn(chosen, load, side))
            progress.step(f"{load.label}, round {number + 1}, {side}: {samples[side][-1]['ops_per_second']:,.0f}/s")
        rows.append(TimeRow(load, Comparison(samples)))
    columns = [("test: library", report.SERVER[1]), ("time", time_cell), ("rate to Asio's", report.to_rival),
               ("CPU of both threads", cpu_cell), report.REMARK]
    return report.leave_servers("blocking", chosen, rows, columns, "Blocking sockets and idle waits",
                                "the rate of Eddy to Asio's; a longer bar is faster",
                                "Rates of blocking calls in multiples of Asio")


if __name__ == "__main__":
    harness.run(main)
