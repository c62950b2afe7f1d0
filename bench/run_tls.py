#!/usr/bin/env python3
"""TLS 1.3 echo servers: Eddy's streams against Asio's."""

import harness
import report
from harness import Load, RateGoal, near_epoll, sample

ASIO = "asio"
SIDES = {
    ASIO: "echo_tls_asio",
    "eddy": "echo_tls_eddy --backend uring",
    "eddy epoll": "echo_tls_eddy --backend epoll",
}
ALONE = {ASIO: SIDES[ASIO], "raw epoll": "echo_tls_raw_epoll"} | SIDES
GOAL = RateGoal("≥ 1.2 × Asio", 1.2, ASIO)
AES_256 = "--ciphers TLS_AES_256_GCM_SHA384"
LOADS = [
    Load("8 × 1, 16 KiB", "tls_load --mode each --connections 8 --payload 16384", SIDES, GOAL, near_epoll()),
    Load("50 × 1, 16 KiB", "tls_load --mode each --connections 50 --payload 16384", SIDES, GOAL, near_epoll()),
    Load("8 × 1, 16 KiB, AES-256", f"tls_load --mode each --connections 8 --payload 16384 {AES_256}", ALONE, GOAL,
         near_epoll()),
    Load("50 × 1, 16 KiB, AES-256", f"tls_load --mode each --connections 50 --payload 16384 {AES_256}", ALONE, GOAL,
         near_epoll()),
    Load("50 × 1, 64 B", "tls_load --mode each --connections 50 --payload 64", SIDES, near_epoll()),
    Load("handshake, echo, close", "tls_load --mode accept --connections 16 --payload 64", SIDES, near_epoll(), unit="conn/s"),
]


def saved(row, side):
    """Asio's CPU for an operation to the side's."""
    return report.ratio(row.comparison.ratio(ASIO, side, "server_ns_per_op"))


def main():
    chosen = harness.begin(__doc__)
    rows = [report.RatioRow(load, comparison) for load, _, comparison in sample(chosen, LOADS)]
    columns = [report.SERVER, report.RATE, ("to Asio", report.to_goal), report.TO_EPOLL, report.REMARK, report.COST,
               ("Asio's to that", saved), *report.CPU, report.LATENCY]
    return report.leave_servers("tls", chosen, rows, columns, "TLS 1.3 echo servers on one core",
                                "Eddy on io_uring to Asio", "TLS echo rates in multiples of Asio")


if __name__ == "__main__":
    harness.run(main)
