#!/usr/bin/env python3
"""HTTP and WebSocket servers: Eddy against nginx, h2o, hyper, fasthttp and Bun, and with scripts against nginx's Lua."""

import os
import resource
import shutil
import socket
import sys
import tempfile

import harness
import report
from harness import Failure, Goal, Progress, RateGoal, Spread, sample, turns

sys.path.insert(0, os.path.join(harness.ROOT, "bench/http"))
import rivals

HERE = os.path.dirname(os.path.abspath(__file__))
ECHO = "/echo?hello=world"
MESSAGE = '{"name":"eddy","count":7,"tags":["a","b"],"nested":{"is_small":true,"ratio":0.5}}'
CONNECTION_GOAL = 512   # bytes of memory an idle one
QUICK_PAIRS = 2         # so that each side begins once


class Load:
    """One load on some servers: a path with `flags` of `eddy bench`. `wrk` has the other tool make it."""

    unit = "req/s"

    def __init__(self, label, kind, path, flags, sides, at_least, tls=False, wrk=False, p99=False, judged="eddy"):
        self.label = label + (", by wrk" if wrk else "")
        self.kind, self.path, self.flags, self.tls, self.wrk = kind, path, flags, tls, wrk
        self.wanted, self.best_goal, self.p99 = sides, at_least, p99
        self.program = f"{'wrk' if wrk else 'eddy bench ' + kind} {path} {' '.join(flags)}"
        self.judged = judged

    def choose(self, found, site):
        """Takes the servers that are here; False when there is no pair to compare."""
        self.sides = {name: lambda core, start=found[name]: start(core, site, self.tls)
                      for name in self.wanted if name in found}
        if self.kind == "ws":
            self.unit = "msg/s"
        self.rivals = tuple(name for name in self.sides if name != self.judged)
        if self.judged not in self.sides and self.sides:
            self.judged, self.best_goal, self.p99 = list(self.sides)[0], None, False
        self.rivals = self.rivals or (self.judged,)
        self.goals = ()
        if self.best_goal and not self.wrk:
            self.goals = (RateGoal(f"≥ {self.best_goal:.2f} × the best", self.best_goal, *self.rivals,
                                   side=self.judged, or_cpu=True),)
        if self.p99 and not self.wrk:
            self.goals += (Goal("p99 no worse", self.has_good_p99),)
        return bool(self.sides)

    def has_good_p99(self, comparison):
        best = min(comparison.of(side, "p99_us").median for side in self.rivals)
        return comparison.of(self.judged, "p99_us").median <= best * 1.05

    def command(self, chosen, server):
        seconds, warm_up = (0.2, 0.05) if chosen.quick else (2, 0.5)
        url = f"{self.kind}{'s' if self.tls else ''}://127.0.0.1:{server.port}{self.path}"
        pid = ["--server-pid", str(server.pid)]
        if not self.wrk:
            return [harness.eddy(), "bench", self.kind, url, "--json", "--no-progress", "--duration", str(seconds),
                    "--warm-up", str(warm_up), *pid, *(["--insecure"] if self.tls else []), *self.flags]
        flags = dict(zip(self.flags[::2], self.flags[1::2]))
        more = ["-s", os.path.join(HERE, "http/pipeline.lua")] if "-P" in flags else []
        if "--data" in flags:
            more = ["-s", os.path.join(HERE, "http/json_wrk.lua")]
        return [sys.executable, os.path.join(HERE, "http/wrk_load.py"), *pid, "--pipeline", flags.get("-P", "1"),
                "-t1", "-c", flags["-c"], "-d", "1s" if chosen.quick else "2s", *more, url]


def loads(with_wrk):
    echo = ("nginx", "hyper", "fasthttp", "bun", "eddy")
    files = ("nginx", "h2o", "fasthttp", "bun", "eddy")
    sockets = ("bun", "fasthttp", "eddy")
    scripts = ("nginx with Lua", "eddy with Lua")
    right = ["--expect", '{"hello":"world"}']
    both = [
        ("echo, 50", ECHO, ["-c", "50"], echo, 1.10, False, True),
        ("echo, 200", ECHO, ["-c", "200"], echo, 1.10, False, True),
        ("echo, 50 × 16", ECHO, ["-c", "50", "-P", "16"], echo, 1.10, False, False),
        ("static 1 KB", "/small", ["-c", "50"], files, 1.05, False, False),
        ("static 100 KB", "/large", ["-c", "50"], files, 1.05, False, False),
        ("HTTPS, static 1 KB", "/small", ["-c", "50"], files, 1.05, True, False),
    ]
    for label, path, flags, sides, at_least, tls, p99 in both:
        more = right if path == ECHO else ["--expect", "the file " + path[1:]]
        yield Load(label, "http", path, flags + more, sides, at_least, tls, p99=p99)
        if with_wrk:
            yield Load(label, "http", path, flags, sides, None, tls, wrk=True)
    posted = ["--data", MESSAGE, "-c", "50"]
    for wrk in [False, True][:1 + with_wrk]:
        yield Load("Lua, JSON echo", "http", "/json", posted + ([] if wrk else ["--expect", '"count":8']), scripts, 1.25, wrk=wrk,
                   judged="eddy with Lua")
    yield Load("new TLS connections", "http", "/small", ["-c", "16", "--close"], files, 1.05, tls=True)
    for size, text in ((20, "20 B"), (1024, "1 KB"), (65536, "64 KB")):
        yield Load(f"WebSocket echo {text}", "ws", "/ws", ["-c", "50", "--size", str(size)], sockets, 1.05)


# --- Servers without WebSockets ---------------------------------------------------------------

def speaks_websocket(start, core, site):
    """True if a server opens a WebSocket at /ws."""
    with start(core, site, False) as server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        return client.recv(100).startswith(b"HTTP/1.1 101")


# --- Memory -----------------------------------------------------------------------------------

def memory_of(server, count):
    """(bytes of the idle server, bytes of each of `count` connections that wait after one request)."""
    idle = harness.settled_rss(server.pid)
    clients = []
    path = "/small" if isinstance(server, rivals.H2o) else ECHO
    request = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    try:
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            clients.append(client)
            client.sendall(request)
            if not client.recv(4096).startswith(b"HTTP/1.1 200"):
                raise Failure(f"{server.name} did not answer 200")
        return idle, (harness.settled_rss(server.pid) - idle) / count
    finally:
        for client in clients:
            client.close()


def measure_memory(chosen, found, site):
    """Samples by side: {"idle": bytes, "connection": bytes}."""
    if chosen.stored:
        return chosen.stored["memory"]
    count = 200 if chosen.quick else 10_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(harness.DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
                                                resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    found = {name: start for name, start in found.items() if not name.endswith("with Lua")}
    samples, progress = {}, Progress(len(found) * 2)
    for _, side in turns(list(found), 2):
        with found[side](chosen.server_core, site, False) as server:
            idle, connection = memory_of(server, count)
        samples.setdefault(side, []).append({"idle": idle, "connection": connection})
        progress.step(f"memory, {side}: idle {idle / 1e6:.1f} MB, {connection:.0f} B a connection")
    return samples


def memory_table(samples):
    def cells(side):
        idle = Spread(sample["idle"] for sample in samples[side]).median
        connection = Spread(sample["connection"] for sample in samples[side]).median
        judged = ""
        if side == "eddy":
            judged = f"≤ {CONNECTION_GOAL} B: " + Goal.word(connection <= CONNECTION_GOAL)
        return [side, f"{idle / 1e6:.1f} MB", f"{connection:.0f} B", judged]
    return report.table(["server", "idle", "a connection that waits", ""], [cells(side) for side in samples])


# --- The whole --------------------------------------------------------------------------------

def stored_loads(chosen, site):
    """The loads of the stored results, with the servers that they had."""
    samples = {row["row"]: row["samples"] for row in chosen.stored["rows"]}
    return [load for load in loads(True)
            if load.label in samples and load.choose(dict.fromkeys(samples[load.label]), site)]


def loads_here(chosen, found, site):
    """The loads that can be made here, on the servers that are here."""
    has_wrk = shutil.which("wrk") is not None
    if not has_wrk:
        chosen.skipped["wrk"] = "it is not installed"
        harness.warn("there is no wrk: what it would have measured, too, is left out")
    sockets = dict(found)
    for side in ("bun", "fasthttp", "eddy"):
        if side in sockets and not speaks_websocket(sockets[side], chosen.server_core, site):
            del sockets[side]
            chosen.skipped[f"{side}, WebSocket"] = "it opens none"
            harness.warn(f"{side} opens no WebSocket: it is left out there")
    return [load for load in loads(has_wrk) if load.choose(sockets if load.kind == "ws" else found, site)]


def main():
    chosen = harness.begin(__doc__)
    if chosen.quick:
        chosen.pairs = QUICK_PAIRS
    folder = tempfile.mkdtemp(prefix="eddy-bench-site-")
    os.chmod(folder, 0o755)
    try:
        site = rivals.Site(folder)
        found, there = {}, stored_loads(chosen, site) if chosen.stored else []
        if not chosen.render:
            found = rivals.find(chosen)
            here = loads_here(chosen, found, site)
            there = [load for load in there if chosen.row not in load.label] + [
                load for load in here if not chosen.row or chosen.row in load.label]
        rows = [report.BestRow(load, comparison) for load, _, comparison in
                sample(chosen, there, lambda core, side, start: start(core))]
        memory = measure_memory(chosen, found, site)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.perf_lines("http", chosen, rows)
    columns = [report.SERVER, report.RATE, ("to the best rival", report.to_best), report.REMARK, report.COST, *report.CPU,
               report.LATENCY]
    text = report.table_of(rows, columns) + "\n\n" + memory_table(memory)
    return report.leave("http", chosen, text, {"rows": [row.json() for row in rows], "memory": memory},
                        report.bars("HTTP and WebSocket servers on one core",
                                    "median, whiskers from the least to the greatest; at the right, Eddy to the best rival",
                                    [row.group() for row in rows]),
                        "HTTP rates in multiples of the best rival", [row.comparison for row in rows])


if __name__ == "__main__":
    harness.run(main)
