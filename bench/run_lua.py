#!/usr/bin/env python3
"""Scripts of a server under the daemon's other work: a cache beside a script that computes without end, and
`eddy reload-lua` under a thousand clients that send."""

import os
import subprocess
import threading

import harness
import report
from harness import Load, sample

HERE = os.path.dirname(os.path.abspath(__file__))
ALONE, BESIDE = "cache alone", "beside an endless script"
CALM, RELOADED = "one script", "reloaded ten times a second"
RELOAD_EVERY_S = 0.1
MOST = "12000"


class CacheLoad(Load):
    """GETs of a cache's clients, one at a time each."""

    def command(self, chosen, server):
        return [harness.eddy(), "bench", "resp", "--host", "127.0.0.1", "-p", str(server.port), "--server-pid",
                str(server.pid), "--tests", "get", "--requests", str((20 if chosen.quick else 300) * (50 if "50" in self.program else 1)
                                                    * 20), "--seed", "1", "--json", "--no-progress",
                *self.program.split()]


def p99(found, side):
    return found.of(side, "p99_us").median


NEVER = harness.Goal("p99 ≤ 5 ms", lambda found: found.of(BESIDE, "p99_us").high <= 5000)
THRICE = harness.Goal("p99 ≤ 3 × alone", lambda found: p99(found, BESIDE) <= 3 * p99(found, ALONE))
LOADS = [
    CacheLoad(f"a cache of the same loop, {label}", f"--clients {clients} --pipeline 1",
              {ALONE: "cache", BESIDE: "cache"}, *goals, judged=BESIDE, rivals=(ALONE,), unit="commands/s")
    for clients, label, goals in ((1, "1 client", (NEVER,)), (50, "50 clients", (NEVER, THRICE)))
] + [
    Load("1,000 clients, one line at a time", "line_load --mode echo --senders 1000 --window 1",
         {CALM: "server", RELOADED: "server"},
         harness.Goal("no connection or message lost", lambda found: not found.faults()),
         # Between two arrivals: what the loop takes for its thousand clients is not the reload's.
         harness.Goal("pause ≤ 5 ms more", lambda found: found.of(RELOADED, "longest_gap_us").median <=
                      found.of(CALM, "longest_gap_us").median + 5000),
         judged=RELOADED, rivals=(CALM,)),
]


class Reloaded(harness.Eddy):
    """A server whose script is loaded again and again."""

    def after_start(self):
        super().after_start()
        self.ends, self.reloads = threading.Event(), threading.Thread(target=self.reload)
        self.reloads.start()

    def reload(self):
        while not self.ends.wait(RELOAD_EVERY_S):
            self.ask("reload-lua", "bench")

    def __exit__(self, *args):
        self.ends.set()
        self.reloads.join()
        super().__exit__(*args)


class Beside(harness.Eddy):
    """A cache, and a server on its loop whose script computes from now on."""

    def after_start(self):
        super().after_start()
        port = self.create("server", "loop", "--lua", os.path.join(HERE, "server", "endless.lua"), "--lua-time", "1h")
        self.client = subprocess.Popen(["nc", "127.0.0.1", str(port)], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL)
        self.client.stdin.write(b"loop\n")
        self.client.stdin.flush()

    def __exit__(self, *args):
        self.client.kill()
        self.client.wait()
        super().__exit__(*args)


def start(core, side, kind):
    if kind == "cache":
        made = (Beside if side == BESIDE else harness.Eddy)(core)
    else:
        made = (Reloaded if side == RELOADED else harness.Eddy)(
            core, "--max-connections", MOST, "--lua", os.path.join(HERE, "server", "echo.lua"), runtime="server")
    made.name = side
    return made


class Row(report.Row):
    def json(self):
        return {"row": self.load.label, "goals": self.goals, "samples": self.comparison.samples}


def longest_gap(row, side):
    samples = row.comparison.samples[side]
    return f"{row.comparison.of(side, 'longest_gap_us').median / 1000:.1f} ms" if "longest_gap_us" in samples[0] else ""


def main():
    chosen = harness.begin(__doc__)
    rows = [Row(load, comparison) for load, _, comparison in sample(chosen, LOADS, start)]
    columns = [report.SERVER, report.RATE, report.LATENCY, ("longest pause", longest_gap), report.REMARK, *report.CPU]
    return report.leave_servers("lua", chosen, rows, columns, "Scripts beside other work of their loop",
                                "what was asked to what was there before", "Rates beside scripts, in multiples of those without")


if __name__ == "__main__":
    harness.run(main)
