#!/usr/bin/env python3
"""A daemon with many runtimes: the time of `eddy ls`, creation and removal beside them, memory of each type, idle
wake-ups."""

import argparse
import concurrent.futures
import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
EDDY = os.path.abspath(os.environ.get("EDDY_BINARY") or os.path.join(ROOT, "build/release/eddy"))
LS_GOAL_MS = 50
IDLE_S, IDLE_GOAL_KIB = 10, 16 * 1024
IDLE_TYPES = ["server", "cache", "http", "proxy"]


class Control(http.client.HTTPConnection):
    """A connection to the control socket, kept open."""

    def __init__(self, path):
        super().__init__("eddy")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, target, body=None):
        self.request(method, target, json.dumps(body) if body is not None else None)
        answer = self.getresponse()
        text = answer.read()
        if answer.status // 100 != 2:
            raise RuntimeError(f"{method} {target}: {text.decode()}")
        return text


class Daemon:
    """A daemon in a folder of its own."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="eddy-bench-")
        self.socket = os.path.join(self.folder.name, "eddy.sock")
        self.process = subprocess.Popen(
            [EDDY, "--socket", self.socket, "daemon", "--state", os.path.join(self.folder.name, "state"),
             "--log-level", "error"], stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def control(self):
        return Control(self.socket)

    def path(self, *parts):
        return os.path.join(f"/proc/{self.process.pid}", *parts)

    def rss_kib(self):
        with open(self.path("status"), encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("VmRSS")).split()[1])

    def files(self):
        return len(os.listdir(self.path("fd")))

    def wake_ups(self):
        count = 0
        for task in os.listdir(self.path("task")):
            with open(self.path("task", task, "status"), encoding="ascii") as file:
                count += int(next(line for line in file if line.startswith("voluntary")).split()[1])
        return count

    def ls_ms(self):
        began = time.perf_counter()
        subprocess.run([EDDY, "--socket", self.socket, "ls"], stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - began) * 1000

    def api_ms(self, target):
        asked = self.control()
        began = time.perf_counter()
        asked.ask("GET", target)
        return (time.perf_counter() - began) * 1000


def options_of(kind, name, folder):
    more = {"proxy": {"backend": "127.0.0.1:9"}, "http": {"root": folder}}.get(kind, {})
    return {"unix": f"@{os.path.basename(folder)}-{name}", **more}


def in_threads(work, count):
    """work(number) on a thread each; the first failure is raised."""
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        for each in [threads.submit(work, number) for number in range(count)]:
            each.result()


def fill(daemon, kind, count, threads=8, prefix="r"):
    """Creates and starts so many of a type."""
    folder = daemon.folder.name

    def some(first):
        control = daemon.control()
        for number in range(first, count, threads):
            name = f"{prefix}-{kind}-{number:05}"
            control.ask("POST", "/v1/runtimes", {"type": kind, "name": name, "start": True,
                                                "options": options_of(kind, name, folder)})
    in_threads(some, threads)


def churn(daemon, seconds, rate, threads=4):
    """Creates and removes `rate` runtimes a second beside the present ones; the achieved rate, and the times of ls."""
    until = time.monotonic() + seconds
    done = [0] * threads
    times = []

    def some(which):
        control, at, name = daemon.control(), time.monotonic(), f"churn-{which}"
        while at < until:
            control.ask("POST", "/v1/runtimes", {"type": "server", "name": name, "start": True,
                                                "options": options_of("server", name, daemon.folder.name)})
            control.ask("DELETE", f"/v1/runtimes/{name}")
            done[which] += 1
            at += threads / rate
            time.sleep(max(0, at - time.monotonic()))

    def work(number):
        if number < threads:
            return some(number)
        while time.monotonic() < until:
            times.append(daemon.ls_ms())
            time.sleep(1)
        return None
    began = time.monotonic()
    in_threads(work, threads + 1)
    return sum(done) / (time.monotonic() - began), times


def shown(times):
    return f"median {statistics.median(times):.0f} ms, {min(times):.0f} to {max(times):.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtimes", type=int, default=10_000, metavar="N", help="held (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="of creation and removal (%(default)s)")
    parser.add_argument("--rate", type=int, default=100, metavar="N", help="created and removed a second (%(default)s)")
    parser.add_argument("--threads", type=int, default=4, metavar="N", help="control connections (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few of all, to see that it works")
    parser.add_argument("--no-memory", action="store_true", help="not the memory of each type")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.runtimes, chosen.seconds = 50, 3
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)

    idle = Daemon()
    for kind in IDLE_TYPES:
        fill(idle, kind, 5)
    time.sleep(2)
    before = idle.wake_ups()
    time.sleep(IDLE_S)
    print(f"idle with 20 runtimes: {idle.wake_ups() - before} wake-ups in {IDLE_S} s, {idle.rss_kib() / 1024:.1f} MiB "
          f"(goal {IDLE_GOAL_KIB // 1024})", flush=True)
    idle.close()

    if not chosen.no_memory:
        count = 10 if chosen.quick else 300
        for kind in IDLE_TYPES:
            daemon = Daemon()
            fill(daemon, kind, 10, prefix="warm")
            before = daemon.rss_kib()
            fill(daemon, kind, count)
            print(f"memory of an idle {kind}: {(daemon.rss_kib() - before) / count:.1f} KiB", flush=True)
            daemon.close()

    daemon = Daemon()
    began = time.monotonic()
    fill(daemon, "server", chosen.runtimes)
    took = time.monotonic() - began
    print(f"{chosen.runtimes} servers created and started in {took:.1f} s, {took / chosen.runtimes * 1000:.1f} ms each; "
          f"{daemon.rss_kib() / 1024:.0f} MiB, {daemon.files()} open files", flush=True)
    print(f"eddy ls: {shown([daemon.ls_ms() for _ in range(20)])} (goal {LS_GOAL_MS})")
    print(f"GET /v1/runtimes: {shown([daemon.api_ms('/v1/runtimes') for _ in range(10)])}; "
          f"with fields: {shown([daemon.api_ms('/v1/runtimes?fields=name,type,port,status') for _ in range(10)])}",
          flush=True)
    churn(daemon, 2, chosen.rate, chosen.threads)
    before = daemon.rss_kib(), daemon.files()
    rate, times = churn(daemon, chosen.seconds, chosen.rate, chosen.threads)
    time.sleep(1)
    print(f"{rate:.0f} created and removed a second for {chosen.seconds} s: eddy ls {shown(times)}; "
          f"memory {before[0]} -> {daemon.rss_kib()} KiB, open files {before[1]} -> {daemon.files()}")
    daemon.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
