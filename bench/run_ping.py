#!/usr/bin/env python3
"""One message to and fro between two programs of the library, asleep in between and spinning."""

import harness
import report
from harness import Comparison, Program, Progress, built, measure, turns

P50_GOAL_US = 7.5
SPIN_US = 200
SIDES = {"asleep": [], "spinning": ["--spin-us", str(SPIN_US)]}


def main():
    chosen = harness.options(__doc__)
    harness.check_quiet()
    progress = Progress(len(SIDES) * 2 * chosen.pairs)
    comparisons = {}
    for backend in ("uring", "epoll"):
        samples = {side: [] for side in SIDES}
        for number, side in turns(list(SIDES), chosen.pairs):
            flags = ["--backend", backend, *SIDES[side]]
            with Program(chosen.server_core, side, "echo_eddy", *flags) as server:
                row = measure(server, chosen.load_core, [
                    built("ping_eddy"), "--port", "{port}", *flags,
                    "--milliseconds", "200" if chosen.quick else "2000"])[0]
            samples[side].append(row)
            progress.step(f"{backend}, round {number + 1}, {side}: p50 {row['p50_us']} µs")
        comparisons[backend] = Comparison(samples)

    def micros(value):
        return f"{value:.1f}"
    lines, groups = [], []
    for backend, comparison in comparisons.items():
        for side in SIDES:
            p50, p99 = comparison.of(side, "p50_us"), comparison.of(side, "p99_us")
            judged = backend == "uring" and side == "spinning"
            goal = ("met" if p50.median <= P50_GOAL_US else "**missed**") if judged else ""
            lines.append([f"{backend}, {side}", report.spread(p50, micros), report.spread(p99, micros),
                          f"{report.rate(comparison.of(side).median)} msg/s",
                          f"p50 ≤ {P50_GOAL_US} µs: {goal}" if judged else ""])
        groups.append(report.Group(backend, [(side, comparison.of(side, "p50_us"),
                                              f"{comparison.of(side, 'p50_us').median:.1f} µs") for side in SIDES],
                                   "asleep"))
    text = report.table(["both programs", "p50 µs", "p99 µs", "rate", ""], lines)
    report.perf_lines("ping", comparisons, "spinning", "asleep")
    report.leave("ping", chosen, text, {backend: each.samples for backend, each in comparisons.items()},
                 report.bars("A message to and fro", "median time, whiskers from the least to the greatest; "
                             "less is better", groups),
                 "Time of a message to and fro", max(each.lost() for each in comparisons.values()))
    return 2 if any(each.faults() for each in comparisons.values()) else 0


if __name__ == "__main__":
    harness.run(main)
