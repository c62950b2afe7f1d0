#!/usr/bin/env python3
"""Full suite: every daemon at every level of connections, each alone on core 0 with the load on core 1.

The results are in FOLDER/LEVEL/DAEMON/ (benchmark.json, resources.csv, daemon.log), FOLDER/results.json has them all,
and FOLDER/REPORT.md compares them, with plots.
"""

import argparse
import contextlib
import datetime
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import threading

import analyze
import daemons

SUITE = os.path.dirname(daemons.HERE)
sys.path.insert(0, os.path.dirname(SUITE))

import harness  # noqa: E402  bench/harness.py
import report  # noqa: E402

LEVELS = (100, 1000, 10_000, 50_000, 100_000)
# A load without an answer for so long beyond its own times has hung.
LOAD_MARGIN_S = 120


def seconds(text):
    """A duration as the load generator takes it, in seconds: 500ms, 30s, 2m."""
    found = re.fullmatch(r"([0-9.]+)(ms|s|m)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is no duration such as 500ms, 30s or 2m")
    return float(found.group(1)) * {"ms": 0.001, "s": 1, "m": 60}[found.group(2)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, nargs="+", default=list(LEVELS), metavar="N", help="connections (%(default)s)")
    parser.add_argument("--daemons", nargs="+", choices=daemons.NAMES, default=list(daemons.NAMES), metavar="NAME",
                        help="which, in this order (%(default)s)")
    parser.add_argument("--delay", type=int, default=5625, metavar="MS", help="between two events of a stream (%(default)s)")
    parser.add_argument("--messages", type=int, default=18, metavar="N", help="events of a stream (%(default)s)")
    parser.add_argument("--ramp-up", type=seconds, metavar="TIME",
                        help="time to reach the level (half of a stream's time, so that all are there at once)")
    parser.add_argument("--hold", type=seconds, metavar="TIME", help="time at the level (a tenth of a stream's time)")
    parser.add_argument("--socket-type", choices=("seqpacket", "stream"), default="seqpacket", help="(%(default)s)")
    parser.add_argument("--interval", type=float, metavar="S",
                        help="between two samples of resources (a second, or less where streams are short)")
    parser.add_argument("--output", metavar="FOLDER", help="of the results (results-YYYYMMDD-HHMMSS beside this suite)")
    parser.add_argument("--render", metavar="FOLDER", help="measure nothing: write the report of earlier results anew")
    chosen = parser.parse_args()
    stream_s = (chosen.messages - 1) * chosen.delay / 1000
    chosen.stream_s = stream_s
    chosen.ramp_up = max(0.5, stream_s / 2) if chosen.ramp_up is None else chosen.ramp_up
    chosen.hold = max(1, stream_s / 10) if chosen.hold is None else chosen.hold
    chosen.interval = max(0.1, min(1, stream_s / 10)) if chosen.interval is None else chosen.interval
    if min(chosen.levels) < 1 or chosen.delay < 0 or chosen.messages < 1 or chosen.interval <= 0:
        parser.error("numbers begin with 1")
    return chosen


def load_words():
    """The command of the load generator."""
    given = os.environ.get("LOAD_GENERATOR")
    return shlex.split(given) if given else [daemons.EDDY, "bench", "handoff"]


class Backlog:
    """The longest queue of connections that the daemon has not accepted yet, as ss(8) shows it, while a `with` lasts."""

    def __init__(self, path, interval_s):
        self.path, self.interval_s, self.longest = path, interval_s, None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.stopping.wait(self.interval_s):
            with contextlib.suppress(OSError, ValueError, IndexError):
                shown = subprocess.run(["ss", "-xlH", "src", self.path], capture_output=True, text=True).stdout.split()
                self.longest = max(self.longest or 0, int(shown[2]))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def measure(chosen, name, command, level, folder):
    """One daemon at one level; what the report needs of it beside the files. Raises Missing where it does not run."""
    os.makedirs(folder, exist_ok=True)
    server_core, load_core = daemons.cores()

    def on_load_core():
        daemons.prepare_child(load_core, signal.SIGTERM)

    processes = daemons.processes_for(name, level)
    with daemons.Daemon(name, command, kind=chosen.socket_type, connections=level + level // 10 + 100, delay_ms=chosen.delay,
                        messages=chosen.messages, processes=processes, core=server_core) as daemon:
        collector = subprocess.Popen(
            [os.path.join(daemons.HERE, "collect-resources.sh"), str(daemon.pid), os.path.join(folder, "resources.csv"),
             *([str(daemon.metrics_port)] if daemon.metrics_port else [])],
            env=dict(os.environ, INTERVAL=str(chosen.interval)), start_new_session=True, preexec_fn=on_load_core)
        try:
            threading.Event().wait(2 * chosen.interval)  # samples of the memory before the load
            timeout_s = chosen.stream_s + 30
            words = [*load_words(), "-socket", daemon.socket, "-socket-type", chosen.socket_type, "-connections", str(level),
                     "-ramp-up", f"{chosen.ramp_up:g}s", "-hold", f"{chosen.hold:g}s", "-stream-timeout", f"{timeout_s:g}s",
                     "-output", os.path.join(folder, "benchmark.json")]
            with Backlog(daemon.socket, chosen.interval) as backlog:
                load = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=on_load_core)
                try:
                    load.wait(chosen.ramp_up + chosen.hold + timeout_s + LOAD_MARGIN_S)
                except subprocess.TimeoutExpired:
                    raise daemons.Missing("the load has hung") from None
                finally:
                    if load.poll() is None:
                        load.kill()
                        load.wait()
        finally:
            collector.terminate()
            collector.wait()
        status = daemon.stop()
        with open(os.path.join(folder, "daemon.log"), "w", encoding="utf-8") as file:
            file.write(daemon.log())
        if not os.path.exists(os.path.join(folder, "benchmark.json")):
            raise daemons.Missing("the load has left no result")
        return {"daemon": name, "level": level, "processes": processes, "peak_streams": daemon.peak, "status": status,
                "longest_backlog": backlog.longest}


# --- Report -----------------------------------------------------------------------------------

def cell(value, digits=2, unit=""):
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


# Rows of a level's table: title, and the cell of a result with its facts.
ROWS = (
    ("Success rate", lambda one, facts: cell(one.success_pct, 3, " %")),
    ("Failed", lambda one, facts: f"{one.failed:,}"),
    ("Incomplete responses", lambda one, facts: cell(one.load.get("incomplete_responses"), 0)),
    ("Handoff p50 / p99", lambda one, facts: pair(one, "handoff")),
    ("TTFB p50 / p99", lambda one, facts: pair(one, "ttfb")),
    ("TTFB p99.9", lambda one, facts: cell(one.latency("ttfb", "p999"), 2, " ms")),
    ("Stream p50 / p99", lambda one, facts: pair(one, "stream")),
    ("Peak RSS", lambda one, facts: cell(one.peak_kb and one.peak_kb / 1024, 1, " MB")),
    ("RSS a stream, above the idle daemon's", lambda one, facts: cell(one.per_connection_kb(facts["peak_streams"]), 2, " KB")),
    ("CPU, average / peak", lambda one, facts: f"{cell(one.average_cpu_pct, 1)} / {cell(one.peak_cpu_pct, 1, ' %')}"),
    ("Processes", lambda one, facts: str(facts["processes"])),
    ("Peak concurrent streams", lambda one, facts: cell(facts["peak_streams"], 0)),
    ("Longest accept queue", lambda one, facts: cell(facts["longest_backlog"], 0)),
)


def pair(one, kind):
    return f"{cell(one.latency(kind, 'p50'))} / {cell(one.latency(kind, 'p99'), 2, ' ms')}"


# Plots: file, title, what is shown of a result, and its unit.
PLOTS = (
    ("ttfb", "Time to first byte, 99th percentile", lambda one: one.latency("ttfb", "p99"), "ms"),
    ("memory", "Peak RSS", lambda one: one.peak_kb and one.peak_kb / 1024, "MB"),
    ("cpu", "CPU of a core, average", lambda one: one.average_cpu_pct, "%"),
)
LEAST = 0.001  # of a value that is shown, since bars are in units of one


def plot(title, value_of, unit, levels):
    """An SVG of all levels, or None where nothing was measured. Bars are in units of Go's, or of the first daemon's."""
    groups = []
    for level, results in levels.items():
        values = {one.name: value_of(one) for one in results}
        values = {name: max(value, LEAST) for name, value in values.items() if value is not None}
        if values:
            rival = "go" if "go" in values else next(iter(values))
            groups.append(report.Group(f"{level:,}", [
                (name, harness.Spread([value]), f"{report.figures(value)} {unit}") for name, value in values.items()], rival))
    return report.bars(title, "by concurrent connections; less is better", groups) if groups else None


def write_report(folder, about):
    """REPORT.md and its plots, of what results.json says and the files beside it."""
    facts, levels = {}, {}
    for one in about["runs"]:
        facts[one["level"], one["daemon"]] = one
        result = analyze.read(os.path.join(folder, str(one["level"])), one["daemon"])
        levels.setdefault(one["level"], []).append(result)
    lines = ["# Streaming daemons", "", f"{about['date']}; {'; '.join(about['machine'].values())}.", "",
             f"Streams of {about['messages']} events, {about['delay_ms']} ms apart; handoffs over SOCK_{about['socket_type'].upper()}, "
             f"started within {about['ramp_up_s']:g} s. At most {about['open_files']} open files a process, so that "
             "daemons which need a descriptor for each connection run in several; memory and CPU are sums. Peak concurrent "
             "streams are the sum of the processes' peaks. One run each.", "", f"    {about['command']}", ""]
    for level, results in levels.items():
        lines += [f"## {level:,} connections", "",
                  report.table(["", *(one.name for one in results)],
                               [[title, *(value(one, facts[level, one.name]) for one in results)] for title, value in ROWS]), ""]
    for name, title, value_of, unit in PLOTS:
        svg = plot(title, value_of, unit, levels)
        if svg:
            with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
                file.write(svg)
            lines += [f"![{title}]({name}.svg)", ""]
    if about["missing"]:
        lines += ["Not measured:", "", *(f"- {text}" for text in about["missing"]), ""]
    with open(os.path.join(folder, "REPORT.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip("\n") + "\n")


def describe_machine():
    """The machine that the figures depend on, without the rivals of other benchmarks."""
    return {key: text for key, text in report.machine().items()
            if key not in ("redis", "valkey", "memcached", "asio", "boost", "libuv", "date")}


def store(folder, about):
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1, ensure_ascii=False)
        file.write("\n")
    if about["runs"]:
        write_report(folder, about)


def main():
    chosen = parse()
    if chosen.render:
        with open(os.path.join(chosen.render, "results.json"), encoding="utf-8") as file:
            write_report(chosen.render, json.load(file))
        return 0
    if not os.environ.get("LOAD_GENERATOR"):
        daemons.build("eddy")
    folder = chosen.output or os.path.join(SUITE, datetime.datetime.now().strftime("results-%Y%m%d-%H%M%S"))
    os.makedirs(folder, exist_ok=True)
    about = {"date": datetime.date.today().isoformat(), "machine": describe_machine(), "messages": chosen.messages,
             "delay_ms": chosen.delay, "socket_type": chosen.socket_type, "ramp_up_s": chosen.ramp_up,
             "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
             "command": shlex.join(["bench/streaming/run_full_benchmark.sh", *sys.argv[1:]]), "runs": [], "missing": []}
    commands = {}
    for name in chosen.daemons:
        try:
            commands[name] = daemons.build(name)
        except daemons.Missing as why:
            about["missing"].append(f"{name}: {why}")
            harness.warn(f"{name} is left out: {why}")
    harness.warn_of_load()
    progress = harness.Progress(len(chosen.levels) * len(commands))
    for level in chosen.levels:
        for name, command in commands.items():
            result_folder = os.path.join(folder, str(level), name)
            try:
                about["runs"].append(measure(chosen, name, command, level, result_folder))
                one = analyze.read(os.path.join(folder, str(level)), name)
                text = f"{one.success_pct:.3f} % whole, TTFB p99 {cell(one.latency('ttfb', 'p99'))} ms"
            except daemons.Missing as why:
                about["missing"].append(f"{name} with {level:,} connections: {why}")
                text = f"not measured: {why}"
            progress.step(f"{name}, {level:,} connections: {text}")
            store(folder, about)  # each time, so that a run which is broken off leaves a report
    for level in chosen.levels:
        results = analyze.read_all(os.path.join(folder, str(level))) if os.path.isdir(os.path.join(folder, str(level))) else []
        if results:
            print(f"\n{level:,} connections\n{analyze.comparison(results)}")
    print(f"\nWritten: {os.path.join(folder, 'REPORT.md' if about['runs'] else 'results.json')}")
    return 0 if about["runs"] else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except (daemons.Missing, harness.Failure) as reason:
        sys.exit(f"full_benchmark.py: {reason}")
    except KeyboardInterrupt:
        sys.exit("full_benchmark.py: interrupted")
