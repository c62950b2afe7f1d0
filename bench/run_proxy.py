#!/usr/bin/env python3
"""Proxies before one backend: Eddy against nginx, haproxy and h2o, by request, by connection, with TLS and WebSockets."""

import contextlib
import os
import shutil
import socket
import sys
import tempfile

import harness
import report
from harness import Failure, Goal, Progress, RateGoal, Spread, sample, turns

sys.path.insert(0, os.path.join(harness.ROOT, "bench/http"))
import proxies
import rivals

HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTION_GOAL = 1024   # bytes of memory a client that waits
QUICK_PAIRS = 2          # so that each side begins once


class Load:
    """A load on proxies of a kind: `http`, `tcp`, `tls` or `ws`; by wrk, or by `eddy bench` with `flags`."""

    def __init__(self, label, kind, connections, at_least, path="/small", flags=(), cpu=None, p50=None):
        self.label, self.kind, self.connections, self.path, self.flags = label, kind, connections, path, flags
        self.at_least, self.cpu, self.p50 = at_least, cpu, p50
        self.best_goal = at_least.get("the best")
        self.judged, self.unit = "eddy", "msg/s" if kind == "ws" else "req/s"
        self.program = f"{'eddy bench' if flags else 'wrk'} -c {connections} {path} {' '.join(flags)}"

    def choose(self, found):
        self.sides = {name: side for name, side in found.items() if self.kind in side.kinds}
        self.rivals = tuple(name for name in self.sides if name != self.judged)
        if not self.rivals or self.judged not in self.sides:
            return False
        self.goals = ()
        for rival, least in self.at_least.items():
            named = self.rivals if rival == "the best" else tuple(name for name in self.rivals if name == rival)
            if named:
                self.goals += (RateGoal(f"≥ {least:.2f} × {rival}", least, *named, or_cpu=True),)
        if self.cpu:
            self.goals += (Goal(f"CPU ≤ {self.cpu:.2f} × the best", lambda found: found.cost("eddy") <= self.cpu * min(
                found.cost(rival) for rival in self.rivals)),)
        if self.p50:
            self.goals += (Goal(f"p50 ≤ {self.p50:.2f} × the best", lambda found: found.of("eddy", "p50_us").median <=
                                self.p50 * min(found.of(rival, "p50_us").median for rival in self.rivals)),)
        return True

    def command(self, chosen, server):
        is_tls = self.kind == "tls"
        scheme = "ws" if self.kind == "ws" else "https" if is_tls else "http"
        url = f"{scheme}://127.0.0.1:{server.port}{self.path}"
        pid = ["--server-pid", str(server.pid)]
        if self.flags:
            seconds, warm_up = (0.2, 0.05) if chosen.quick else (2, 0.5)
            return [harness.eddy(), "bench", "ws" if self.kind == "ws" else "http", url, "--json", "--no-progress",
                    "--duration", str(seconds), "--warm-up", str(warm_up), *pid, *(["--insecure"] if is_tls else []),
                    "-c", str(self.connections), *self.flags]
        return [sys.executable, os.path.join(HERE, "http/wrk_load.py"), *pid, "-t1", "-c", str(self.connections),
                "-d", "1s" if chosen.quick else "3s", url]


def loads():
    both = {"nginx": 1.25, "haproxy": 1.10}
    yield Load("HTTP, 1 KB, 50", "http", 50, both)
    yield Load("HTTP, 1 KB, 200", "http", 200, both)
    yield Load("HTTP, 1 KB, one", "http", 1, {}, p50=0.85)
    yield Load("HTTP, 100 KB, 50", "http", 50, {"the best": 1.10}, path="/large")
    yield Load("TCP, 1 KB, one", "tcp", 1, {"haproxy": 1.15})
    yield Load("TCP, 1 KB, 50", "tcp", 50, {"haproxy": 1.15})
    yield Load("TCP, 1 KB, 200", "tcp", 200, {"haproxy": 1.15})
    yield Load("TCP, 100 KB, 50", "tcp", 50, {}, path="/large", cpu=0.9)
    yield Load("WebSocket echo 20 B, 50", "ws", 50, {"the best": 1.10}, path="/ws", flags=("--size", "20"))
    yield Load("TLS, 1 KB, 50", "tls", 50, {"the best": 1.10})
    yield Load("new TLS connections", "tls", 16, {"the best": 1.00}, flags=("--close",))


# --- Memory -----------------------------------------------------------------------------------

def memory_of(server, count):
    """Bytes of each of `count` clients that wait after one request."""
    idle = harness.settled_rss(server.pid)
    with contextlib.ExitStack() as clients:
        for _ in range(count):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            client.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
            if not client.recv(4096).startswith(b"HTTP/1.1 200"):
                raise Failure(f"{server.name} did not answer 200")
        return (harness.settled_rss(server.pid) - idle) / count


def measure_memory(chosen, found, backends):
    """Bytes by side, of each turn."""
    if chosen.stored:
        return chosen.stored["memory"]
    count = 200 if chosen.quick else min(10_000, proxies.MOST_CLIENTS - 100)
    there = {name: side for name, side in found.items() if "http" in side.kinds}
    samples, progress = {}, Progress(len(there) * 2)
    for _, name in turns(list(there), 2):
        with there[name](chosen.server_core, "http", backends) as server:
            samples.setdefault(name, []).append(memory_of(server, count))
        progress.step(f"memory, {name}: {samples[name][-1]:.0f} B a client")
    return samples


def memory_table(samples):
    def cells(side):
        each = Spread(samples[side]).median
        judged = f"≤ {CONNECTION_GOAL} B: " + Goal.word(each <= CONNECTION_GOAL) if side == "eddy" else ""
        return [side, f"{each:.0f} B", judged]
    return report.table(["proxy", "a client that waits", ""], [cells(side) for side in samples])


# --- The whole --------------------------------------------------------------------------------

def main():
    chosen = harness.begin(__doc__)
    if chosen.quick:
        chosen.pairs = QUICK_PAIRS
    folder = tempfile.mkdtemp(prefix="eddy-bench-proxy-")
    os.chmod(folder, 0o755)
    try:
        site = rivals.Site(folder)
        found = proxies.find(chosen)
        there = [load for load in loads() if load.choose(found)]
        with proxies.Backends(chosen.load_core, site) as backends:
            rows = [report.BestRow(load, comparison) for load, comparison in measured(chosen, there, backends)]
            memory = measure_memory(chosen, found, backends)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.perf_lines("proxy", chosen, rows)
    columns = [report.SERVER, report.RATE, ("to the best rival", report.to_best), report.REMARK, report.COST, *report.CPU,
               report.LATENCY]
    text = report.table_of(rows, columns) + "\n\n" + memory_table(memory)
    return report.leave("proxy", chosen, text, {"rows": [row.json() for row in rows], "memory": memory},
                        report.bars("Proxies on one core, before nginx",
                                    "median, whiskers from the least to the greatest; at the right, Eddy to the best rival",
                                    [row.group() for row in rows]),
                        "Proxies' rates in multiples of the best rival", [row.comparison for row in rows])


def measured(chosen, there, backends):
    for load in there:
        for each, _, comparison in sample(chosen, [load],
                                          lambda core, side, start, kind=load.kind: start(core, kind, backends)):
            yield each, comparison


if __name__ == "__main__":
    harness.run(main)
