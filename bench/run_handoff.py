#!/usr/bin/env python3
"""Streams to handed-over sockets: Eddy's stream-daemon beside a daemon in Go, in turns."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import harness
import report

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "streaming/scripts"))

import daemons  # noqa: E402  bench/streaming/scripts/daemons.py

PIECES = 18
TICKS = os.sysconf("SC_CLK_TCK")
MARGIN_S = 60


class Load:
    """`streams` streams, begun over `ramp_up_s`, with a message each `delay_ms`; measured `turns` times, the rival as often or
    `rival_turns` times."""

    def __init__(self, label, streams, ramp_up_s, delay_ms, turns, sides=("eddy", "go"), backend=None, rival_turns=None):
        self.label, self.streams, self.ramp_up_s, self.delay_ms, self.turns = label, streams, ramp_up_s, delay_ms, turns
        self.rival_turns = rival_turns or turns
        self.sides, self.backend = sides, backend

    @property
    def stream_s(self):
        return (PIECES - 1) * self.delay_ms / 1000


LOADS = [
    Load("102,000 streams, a message each 4 s", 102_000, 34, 4000, 3, rival_turns=1),
    Load("18,000 streams, a message each 1.5 s", 18_000, 12, 1500, 3, rival_turns=1),
    Load("burst of 1,000, a message each 50 ms", 1000, 0, 50, 7),
    Load("18,000 streams in 10 s, a message each 50 ms", 18_000, 10, 50, 3),
    Load("openai: 10,000 streams, a piece each 1 s", 10_000, 10, 1000, 3, sides=("eddy", "rust"), backend="openai"),
]
QUICK = [Load("1,000 streams, a message each 50 ms", 1000, 0.5, 50, 1),
         Load("openai: 200 streams, a piece each 50 ms", 200, 0.5, 50, 1, sides=("eddy", "rust"), backend="openai")]


def tree(pid):
    """A process and its children."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [pid, *(each for child in file.read().split() for each in tree(int(child)))]


def cpu_s(pids):
    """CPU time of processes, user and system."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def peak_mb(pids):
    """Sum of the processes' largest resident memory, in MB."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    return total * 1024 / 1e6


class CpuShare(threading.Thread):
    """Share of a core that processes use while all streams are there; of the whole run where that is short."""

    def __init__(self, load, pids):
        super().__init__(daemon=True)
        whole = load.ramp_up_s + load.stream_s
        steady = load.stream_s > load.ramp_up_s + 10
        self.begin_s, self.end_s = (load.ramp_up_s + 2, load.stream_s - 2) if steady else (0, whole)
        self.pids, self.share = pids, None

    def run(self):
        time.sleep(self.begin_s)
        begun, used = time.monotonic(), cpu_s(self.pids)
        time.sleep(self.end_s - self.begin_s)
        self.share = (cpu_s(self.pids) - used) / (time.monotonic() - begun)


def environment_of(load, api):
    if not load.backend:
        return {}
    return {"DAEMON_BACKEND_PROVIDER": load.backend, "OPENAI_API_BASE": f"http://127.0.0.1:{api}/v1",
            "OPENAI_API_KEY": "key"}


def measure(chosen, load, side, command, api):
    """One turn of one side."""
    daemons_core, load_core = chosen.server_core, chosen.load_core
    with daemons.Daemon(side, command, connections=load.streams + load.streams // 10 + 100, delay_ms=load.delay_ms,
                        messages=PIECES, processes=daemons.processes_for(side, load.streams), core=daemons_core,
                        environment=environment_of(load, api)) as daemon, tempfile.TemporaryDirectory() as folder:
        pids = tree(daemon.pid)
        found = os.path.join(folder, "load.json")
        share = CpuShare(load, pids)
        share.start()
        words = [daemons.EDDY, "bench", "handoff", "-socket", daemon.socket, "-socket-type", "seqpacket", "-connections",
                 str(load.streams), "-ramp-up", f"{load.ramp_up_s}s", "-hold", "60s", "-stream-timeout",
                 f"{load.stream_s + 30:g}s", "-interval", f"{load.delay_ms}ms", "-messages", str(PIECES), "-output", found]
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=load.stream_s * 2 + 200,
                       preexec_fn=lambda: daemons.prepare_child(load_core, 15))
        share.join()
        with open(found) as file:
            turn = json.load(file)
        turn["rss_mb"], turn["cpu"], turn["processes"] = peak_mb(pids), share.share, len(pids)
        return turn


def median(values):
    return sorted(values)[len(values) // 2]


def spread(values, form):
    low, middle, high = min(values), median(values), max(values)
    return form.format(middle) if len(values) == 1 else f"{form.format(middle)} ({form.format(low)}–{form.format(high)})"


def row(load, side, turns):
    failed = sum(each["connections_failed"] for each in turns)
    started = sum(each["connections_started"] for each in turns)
    cells = [load.label if side == load.sides[0] else "", side + (f" × {turns[0]['processes']}" if turns[0]["processes"] > 1 else ""),
             f"{100 * (started - failed) / started:.3f} %"]
    for name in ("p50", "p99"):
        cells.append(spread([each["ttfb_latency_ms"][name] for each in turns], "{:.2f}"))
    cells.append("" if load.backend else spread([each["drift_ms"]["p99"] for each in turns], "{:.1f}"))
    cells.append(spread([each["rss_mb"] for each in turns], "{:.0f}"))
    cells.append(spread([100 * each["cpu"] for each in turns], "{:.1f}"))
    return "| " + " | ".join(cells) + " |"


def main():
    chosen = harness.begin(__doc__)
    commands = {}
    for side in ("eddy", "go", "rust"):
        try:
            commands[side] = daemons.build(side)
        except daemons.Missing as why:
            chosen.skipped[side] = str(why)
            harness.warn(f"{side}: {why}: it is left out")
    rows, data = [], []
    for load in QUICK if chosen.quick else LOADS:
        api, server = daemons.free_port(), None
        if load.backend:
            server = subprocess.Popen([os.path.join(os.environ["EDDY_BENCH_DIR"], "chat_api"), str(api), str(PIECES),
                                       str(load.delay_ms)], preexec_fn=lambda: daemons.prepare_child(chosen.load_core, 15))
        try:
            sides = [side for side in load.sides if side in commands]
            turns = {side: [] for side in sides}
            for number in range(load.turns):
                for side in sides if number % 2 == 0 else sides[::-1]:
                    if side != load.sides[0] and number >= load.rival_turns:
                        continue
                    print(f"{load.label}: {side}, turn {number + 1} of {load.turns}", flush=True)
                    turns[side].append(measure(chosen, load, side, commands[side], api))
        finally:
            if server:
                server.kill()
                server.wait()
        rows += [row(load, side, turns[side]) for side in sides]
        data.append({"load": load.label, "turns": turns})
    table = ("| load | daemon | streams that were whole | first byte ms, p50 | p99 | drift of the end ms, p99 | memory MB | CPU % of a core |\n"
             "|---|---|---:|---:|---:|---:|---:|---:|\n" + "\n".join(rows))
    about = report.machine()
    text = f"{table}\n\n{'; '.join(about.values())}. Turns of the sides alternate, as many of each as a spread in brackets shows, or one; median (least–greatest)."
    print(f"\n{text}\n")
    complete = not chosen.quick and not chosen.skipped
    path = report.store(("bench/results" if complete else "build/bench") + "/handoff.json",
                        json.dumps({"benchmark": "handoff", "machine": about, "rows": data}, indent=1) + "\n")
    if complete:
        path = ", ".join([path, *report.insert("handoff", text)])
    print(f"Written: {path}")
    return 0


if __name__ == "__main__":
    harness.run(main)
