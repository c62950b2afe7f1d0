#!/usr/bin/env python3
"""UDP echo servers: Eddy's coroutines against Asio's, one by one and in joined rows."""

import harness
import report
from harness import Load, RateGoal, near_epoll, sample

ASIO, JOINED, JOINED_EPOLL = "asio", "eddy segments", "eddy epoll segments"
SIDES = {
    ASIO: "udp_asio",
    "eddy": "udp_eddy --backend uring",
    "eddy epoll": "udp_eddy --backend epoll",
    JOINED: "udp_eddy --backend uring --segments 1",
    JOINED_EPOLL: "udp_eddy --backend epoll --segments 1",
}
NEAR_EPOLL = near_epoll(), near_epoll("segments ≥ 0.97 × epoll's", JOINED, JOINED_EPOLL)
LOADS = [
    Load("50 × 1, 64 B", "udp_load --clients 50 --row 1 --payload 64", SIDES, *NEAR_EPOLL),
    Load("4 × 32, 64 B", "udp_load --clients 4 --row 32 --payload 64", SIDES,
         RateGoal("≥ 2 × Asio", 2.0, ASIO, side=JOINED), *NEAR_EPOLL, judged=JOINED),
    Load("2 × 32, 1200 B", "udp_load --clients 2 --row 32 --payload 1200", SIDES, *NEAR_EPOLL, judged=JOINED),
]


def main():
    chosen = harness.begin(__doc__)
    rows = [report.RatioRow(load, comparison) for load, _, comparison in sample(chosen, LOADS)]
    columns = [report.SERVER, report.RATE, ("to Asio", report.to_goal), report.TO_EPOLL, report.REMARK,
               ("server ns a datagram", report.COST[1]), *report.CPU, ("p50 / p99 µs of a row", report.LATENCY[1])]
    return report.leave_servers("udp", chosen, rows, columns, "UDP echo servers on one core",
                                "the judged server to Asio", "UDP echo rates in multiples of Asio")


if __name__ == "__main__":
    harness.run(main)
