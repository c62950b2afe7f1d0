#!/usr/bin/env python3
"""wrk as a load of run_http.py: prints a row as `eddy bench http --json` does.

    wrk_load.py --server-pid PID --pipeline N WRK-ARGUMENT...
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness

UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}


def microseconds(text, percent):
    found = re.search(rf"(?m)^ +{percent}% +([\d.]+)([a-z]+)$", text)
    return float(found.group(1)) * UNITS[found.group(2)] if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-pid", type=int, required=True)
    parser.add_argument("--pipeline", type=int, default=1)
    chosen, words = parser.parse_known_args()
    server, started = harness.schedule_of(chosen.server_pid)[0], time.monotonic()
    done = subprocess.run(["wrk", "--latency", *words], capture_output=True, text=True)
    seconds = time.monotonic() - started
    server_cpu = (harness.schedule_of(chosen.server_pid)[0] - server) / 1e9 / seconds
    counted = re.search(r"(\d+) requests in", done.stdout)
    if done.returncode != 0 or not counted:
        sys.exit((done.stderr or done.stdout).strip() or "wrk failed")
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_cpu = (own.ru_utime + own.ru_stime) / seconds
    requests = int(counted.group(1))
    rate = float(re.search(r"Requests/sec: +([\d.]+)", done.stdout).group(1))
    errors = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", done.stdout)))
    for line in re.findall(r"Socket errors: (.*)", done.stdout):
        # Reads fail when the server closes as it was asked to, on new connections.
        errors += sum(int(count) for kind, count in re.findall(r"(\w+) (\d+)", line) if kind in ("connect", "timeout"))
    print(json.dumps({
        "test": "wrk", "requests": requests, "ops_per_second": rate, "seconds": requests / rate if rate else 0,
        "p50_us": microseconds(done.stdout, 50), "p99_us": microseconds(done.stdout, 99), "errors": errors,
        "verified": requests > 0, "generator_cpu": own_cpu, "server_cpu": server_cpu,
        "server_ns_per_op": server_cpu * 1e9 / rate if rate else 0, "void": own_cpu > 0.95 > server_cpu}))


if __name__ == "__main__":
    main()
