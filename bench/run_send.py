#!/usr/bin/env python3
"""Large messages: copied into the socket, and sent without a copy (loop_options::zero_copy_threshold)."""

import harness
import report
from harness import Load, sample

COPIED, UNCOPIED = "copied", "zero copy"


def load(label, payload):
    server = f"send_eddy --backend uring --payload {payload}"
    return Load(label, f"drain_load --connections 1 --payload {payload}",
                {COPIED: server, UNCOPIED: f"{server} --zero-copy 1"}, judged=UNCOPIED, rivals=(COPIED,))


LOADS = [load("64 KiB", 64 << 10), load("256 KiB", 256 << 10), load("1 MiB", 1 << 20), load("4 MiB", 4 << 20)]


def main():
    chosen = harness.begin(__doc__)
    if harness.uring_refused():
        raise harness.Failure(f"this takes io_uring, which is refused here: {harness.uring_refused()}")
    rows = [report.RatioRow(load, comparison) for load, _, comparison in sample(chosen, LOADS)]
    columns = [report.SERVER, report.RATE, ("to copied", report.to_rival), report.REMARK,
               ("server µs a message", lambda row, side: f"{row.comparison.cost(side) / 1e3:.0f}"), *report.CPU]
    return report.leave_servers("send", chosen, rows, columns, "Large messages, copied and not",
                                "without a copy to copied", "Rates of large messages in multiples of copied ones")


if __name__ == "__main__":
    harness.run(main)
