#!/usr/bin/env python3
"""Timers: arming, cancelling and putting off one beside few others and a million, against Asio's."""

import json
import subprocess

import harness
import report
from harness import Failure, Progress, Spread, built, settle

GOAL_NS = 60
FEW, MOST = 10, 1_000_000
# The same test in Asio; what a figure is divided by, since putting off is both.
KINDS = {
    "arm, then cancel": "arm_and_cancel",
    "arm 64, then cancel them": "arm_and_cancel_64",
    "put off any of them": "put_off_any",
}
TESTS = {f"{label}, beside {others:,}": (f"{test}/{others}", f"asio_{test}/{others}")
         for label, test in KINDS.items() for others in (FEW, MOST)}
FIRE = "fire_all"


def turn(chosen, order):
    """{test: the benchmark's own row} of one start, in which all tests run."""
    found = {}
    for test in order:
        done = subprocess.run([built("timers"), f"--benchmark_filter=^{test}(/iterations:|$)", "--benchmark_format=json",
                               f"--benchmark_min_time={0.05 if chosen.quick else 0.5}"],
                              capture_output=True, text=True, preexec_fn=settle(chosen.server_core))
        if done.returncode != 0:
            raise Failure(f"timers {test}: {done.stderr.strip()}")
        found[test] = json.loads(done.stdout)["benchmarks"][0]
    return found


def measured(chosen):
    """Nanoseconds by test and round, and the longest turn of each round."""
    names = [name for pair in TESTS.values() for name in pair] + [FIRE]
    progress = Progress(chosen.pairs)
    samples = {name: [] for name in names}
    longest = []
    for number in range(chosen.pairs):
        found = turn(chosen, names if number % 2 == 0 else names[::-1])
        for name, row in found.items():
            samples[name].append(1e9 / row["items_per_second"])
        longest.append(found[FIRE]["longest_ms"])
        progress.step(f"round {number + 1}: " + ", ".join(f"{name} {samples[name][-1]:.0f} ns" for name in names))
    return samples, longest


def main():
    chosen = harness.begin(__doc__)
    samples, longest = (chosen.stored["samples"], chosen.stored["longest_ms"]) if chosen.stored else measured(chosen)

    def ns(value):
        return f"{value:.1f}"
    lines, groups = [], []
    report.perf_meta("timers", chosen, {label: f"--others {names[0].split('/')[1]}" for label, names in TESTS.items()})
    for label, (ours, rival) in TESTS.items():
        own, other = Spread(samples[ours]), Spread(samples[rival])
        faster = Spread(theirs / mine for mine, theirs in zip(own.values, other.values))
        report.perf_values("timers", label, "ns", {"eddy": own.values, "asio": other.values},
                           [("asio", "eddy", faster.median)])
        goal = f"≤ {2 * GOAL_NS} ns for both: " + ("met" if own.median <= 2 * GOAL_NS else "**missed**")
        lines.append([label, report.spread(other, ns), report.spread(own, ns),
                      f"{own.median / other.median:.2f} ×", goal])
        groups.append(report.Group(label, [("asio", other, f"{other.median:.0f} ns"), ("eddy", own, f"{own.median:.0f} ns")],
                                   "asio", note=f"{own.median / other.median:.2f} ×"))
    lines.append(["a million fire within a second", "–",
                  f"longest turn {report.spread(Spread(longest), lambda ms: f'{ms:.1f}')} ms", "", ""])
    growth = [Spread(most / few for few, most in zip(samples[f"{test}/{FEW}"], samples[f"{test}/{MOST}"]))
              for test in ("arm_and_cancel", "asio_arm_and_cancel")]
    text = report.table(["a timer", "asio ns", "eddy ns", "eddy / asio", ""], lines)
    text += (f"\n\nArming and cancelling beside a million others takes {report.ratio(growth[0])} the time that it takes "
             f"beside {FEW}; with Asio {report.ratio(growth[1])}.")
    return report.leave("timers", chosen, text, {"samples": samples, "longest_ms": longest},
                        report.bars("A timer beside others", "time of arming and cancelling; less is better", groups),
                        "Time of arming and cancelling a timer in multiples of Asio's")


if __name__ == "__main__":
    harness.run(main)
