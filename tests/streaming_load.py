#!/usr/bin/env python3
"""Small load generator for the tests of bench/streaming: the options and the JSON of `eddy bench handoff`, for a few
hundred connections. What it measures is of no worth."""

import argparse
import json
import socket
import statistics
import time


def parse():
    parser = argparse.ArgumentParser()
    for name, default in (("socket", None), ("connections", "100"), ("ramp-up", "10s"), ("hold", "60s"),
                          ("stream-timeout", "120s"), ("data", '{"prompt":"benchmark test","user_id":1}'),
                          ("output", None), ("socket-type", "stream")):
        parser.add_argument("-" + name, default=default)
    return parser.parse_args()


def hand_over(path, kind, message, *descriptors):
    """One handoff: a connection, a message with descriptors, and the end."""
    with socket.socket(socket.AF_UNIX, kind) as sender:
        sender.connect(path)
        if descriptors:
            socket.send_fds(sender, [message], descriptors)
        else:
            sender.send(message)


def percentiles(values):
    cuts = statistics.quantiles(values, n=1000, method="inclusive") if len(values) > 1 else [*values] * 999
    return {"p50": cuts[499], "p95": cuts[949], "p99": cuts[989], "p999": cuts[998]}


def main():
    chosen = parse()
    kind = socket.SOCK_SEQPACKET if chosen.socket_type == "seqpacket" else socket.SOCK_STREAM
    clients, handoffs, firsts, durations, failed, received = [], [], [], [], 0, 0
    for _ in range(int(chosen.connections)):
        ours, theirs = socket.socketpair()
        started = time.monotonic()
        with theirs:
            hand_over(chosen.socket, kind, chosen.data.encode(), theirs.fileno())
        handoffs.append(1000 * (time.monotonic() - started))
        clients.append((ours, started))
    for ours, started in clients:
        answer = b""
        while piece := ours.recv(65536):
            if not answer:
                firsts.append(1000 * (time.monotonic() - started))
            answer += piece
        durations.append(1000 * (time.monotonic() - started))
        failed += not answer.endswith(b"data: [DONE]\n\n")
        received += len(answer)
        ours.close()
    with open(chosen.output, "w") as file:
        json.dump({"connections_started": len(clients), "connections_completed": len(clients) - failed,
                   "connections_failed": failed, "incomplete_responses": failed, "bytes_received": received,
                   "handoff_latency_ms": percentiles(handoffs), "ttfb_latency_ms": percentiles(firsts),
                   "stream_duration_ms": percentiles(durations)}, file)


if __name__ == "__main__":
    main()
