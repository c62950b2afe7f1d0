#!/usr/bin/env python3
"""Round trips and one-way messages over shared memory, in C++ and Java, beside Aeron, Unix sockets and TCP."""

import glob
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import report
from harness import Failure, Progress, Spread

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))

from jdks import jdks  # noqa: E402  tests/jdks.py

NEAR_NS = 220            # between 100, which two near cores need for a cache line to and fro, and 500 of far ones
MOVED = 1.3              # a turn in which that time changed by so much is discarded
TRIES = 4
REPEATS_WITHIN_S = 560   # after that, such a turn is kept, and counted
TURN_WITHIN_S = 60
BUILD_WITHIN_S = 300
RIVALS = os.path.join(harness.ROOT, "build/rivals/shm")
MODULE = os.path.join(harness.ROOT, "build/release/java")
BENCH_SOURCE = os.path.join(harness.ROOT, "java/src/main/java/io/eddy/shm/Bench.java")
SIZES = {64: "64 B", 1024: "1 KiB", 65536: "64 KiB"}
TCP = "TCP"

# A collector that never runs, as nothing is allocated, and no compiler that runs beside the measurement for long.
JVM = ("-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
# Flags of Aeron's own samples.
AERON_JVM = ("-XX:+UnlockExperimentalVMOptions", "-XX:+TrustFinalNonStaticFields", "-XX:+UnlockDiagnosticVMOptions",
             "-XX:GuaranteedSafepointInterval=300000", "-Dagrona.disable.bounds.checks=true",
             "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED", "--add-opens=java.base/java.util.zip=ALL-UNNAMED")


class Limit:
    """Goal of a side: a field's median is at most `near`, or `far` where the cores are; at least with `at_least`.

    `far` may be None: then there is no goal with far cores.
    """

    def __init__(self, text, field, near, far=None, at_least=False):
        self.text, self.field, self.near, self.far, self.at_least = text, field, near, far, at_least

    def judge(self, samples, is_near):
        goal = self.near if is_near else self.far
        if goal is None:
            return f"{self.text}: none for far cores"
        value = statistics.median(sample[self.field] for sample in samples)
        met = value >= goal if self.at_least else value <= goal
        return f"{self.text} {'≥' if self.at_least else '≤'} {goal:g}: {harness.Goal.word(met)}"


def trips(near, far=(None, None, None)):
    return [Limit(*each) for each in zip(("p50", "p99", "p99.9"), ("p50_us", "p99_us", "p999_us"), near, far)]


def mega(least):
    return [Limit("M/s", "m_per_s", least, at_least=True)]


def giga(least):
    return [Limit("GB/s", "gb_per_s", least, at_least=True)]


# Goals of one-way messages: fenced, asymmetric, Java.
GOALS = {64: (mega(25), mega(150), mega(50)), 1024: (giga(18), giga(18), giga(10)), 65536: (giga(50), giga(50), giga(15))}


class Side:
    """One kind of connection in a row: `command` are the words that measure it, as one of Tools' methods gives them."""

    def __init__(self, name, command, limits=()):
        self.name, self.command, self.limits = name, command, limits


class Row:
    """Sides of a row. `size` is that of one-way messages; `moves` is true where the cores' distance matters."""

    def __init__(self, label, sides, size=None, moves=True):
        self.label, self.sides, self.size, self.moves = label, sides, size, moves


def is_socket(side):
    """Sockets: their times are a hundred cache lines and more, so that the cores' distance does not matter."""
    return any(word in side.name for word in ("Unix", "TCP"))


# --- Programs ---------------------------------------------------------------------------------

class Tools:
    """Command lines of the programs; those of Java once Maven has built them."""

    def __init__(self, chosen):
        self.cores = f"{chosen.load_core},{chosen.server_core}"
        self.same = f"{chosen.server_core},{chosen.server_core}"
        self.quick, self.stored = chosen.quick, bool(chosen.stored)
        self.folder = None
        self.homes, self.why_no_java, self.why_no_rivals = {}, "", ""
        if not self.stored:
            self.eddy = harness.eddy()
            self.help = subprocess.run([self.eddy, "bench", "shm", "--help"], capture_output=True, text=True).stdout
            with open(BENCH_SOURCE) as file:
                self.java_help = file.read()
            self.build_java()

    def build_java(self):
        found = jdks()
        newest = max(found, default=0)
        if newest < 22 or not shutil.which("mvn"):
            self.why_no_java = self.why_no_rivals = "there is no JDK of 22 or later, or no Maven"
            return
        self.homes = {feature: found[feature] for feature in (newest, min(found))}
        self.why_no_java = self.maven("java/pom.xml", f"-Deddy.build={MODULE}", "-DskipTests", "-DskipITs", "package")
        self.why_no_rivals = self.maven("bench/shm/pom.xml", f"-Deddy.build={RIVALS}", "compile")

    def versions(self):
        """Versions beside those of report.machine()."""
        found = []
        for home in self.homes.values():
            with open(os.path.join(home, "release")) as file:
                found.append("JDK " + re.search(r'JAVA_VERSION="([^"]+)', file.read())[1])
        return found + [os.path.basename(jar)[:-4].replace("aeron-all-", "Aeron ") for jar in glob.glob(f"{RIVALS}/lib/aeron-all-*.jar")]

    def maven(self, project, *words):
        """Why Maven cannot build a project; empty if it has."""
        print(f"Building {project}", file=sys.stderr, flush=True)
        command = ["mvn", "-B", "-q", "-f", os.path.join(harness.ROOT, project), *words]
        try:
            done = subprocess.run(command, env=dict(os.environ, JAVA_HOME=self.homes[max(self.homes)]), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_WITHIN_S)
        except subprocess.TimeoutExpired:
            return f"Maven took more than {BUILD_WITHIN_S} s to build {project}"
        return "" if done.returncode == 0 else f"Maven cannot build {project}: {' '.join(done.stdout.split())[:300]}"

    def count(self, usual):
        return str(usual // 50 if self.quick else usual)

    @property
    def seconds(self):
        return "0.05" if self.quick else "0.5"

    def missing(self, side):
        """Why a side cannot be measured here; empty if it can."""
        program, *words = side.command
        if program == "eddy":
            unknown = [word for word in words if word.startswith("--") and word not in self.help]
            return f"eddy bench shm has no {unknown[0]}" if unknown else ""
        if program == "rival":
            return self.why_no_rivals
        if self.why_no_java:
            return self.why_no_java
        unknown = [name for name in re.findall(r"-D(\w+)=", " ".join(words)) if f'"{name}"' not in self.java_help]
        return f"the Java benchmark has no {unknown[0]}" if unknown else ""

    def words(self, side, row):
        """The command line of a side in a row."""
        program, *words = side.command
        if program == "eddy":
            command = [self.eddy, "bench", "shm", "--json", "--no-progress", "--port", str(harness.free_port()), *words]
            if "--cpus" not in words:
                command += ["--cpus", self.cores]
            return command + (["--stream", str(row.size), "--seconds", self.seconds] if row.size else [])
        home = self.homes[max(self.homes) if program != "java17" else min(self.homes)]
        command = [os.path.join(home, "bin/java"), *JVM]
        if program != "java17":
            command.append("--enable-native-access=ALL-UNNAMED")
        if not any(word.startswith("-Dcpus") for word in words):
            words.append(f"-Dcpus={self.cores}")
        words += [f"-Dport={harness.free_port()}"] + ([f"-Dstream={row.size}", f"-Dseconds={self.seconds}"] if row.size else [])
        if program == "rival":
            return command + [*words, f"-Dfolder={self.folder}", "-cp", f"{RIVALS}/classes:{RIVALS}/lib/*", "bench.Rival"]
        jar = max(glob.glob(f"{MODULE}/eddy-shm-*.jar"), key=os.path.getmtime)
        return command + [*words, f"-Doutput={self.folder}/dump", "-cp", jar, "io.eddy.shm.Bench"]


def rows_of(tools):
    """All rows. Counts of round trips are such that a turn takes about a second."""
    fast = ["--reps", tools.count(500_000), "--warmup", tools.count(50_000)]
    slow = ["--reps", tools.count(10_000), "--warmup", tools.count(1000)]
    paused = ["--pause", "5000", "--reps", tools.count(100_000), "--warmup", tools.count(10_000)]
    asleep = ["--wait", "sleep", "--cpus", tools.same, "--reps", tools.count(100_000), "--warmup", tools.count(1000)]
    fast_j = [f"-Dreps={tools.count(500_000)}", f"-Dwarmup={tools.count(200_000)}"]
    slow_j = [f"-Dreps={tools.count(10_000)}", f"-Dwarmup={tools.count(5000)}"]
    paused_j = ["-Dpause=5000", f"-Dreps={tools.count(100_000)}", f"-Dwarmup={tools.count(50_000)}"]
    asleep_j = ["-Dwait=sleep", f"-Dcpus={tools.same}", f"-Dreps={tools.count(50_000)}", f"-Dwarmup={tools.count(10_000)}"]
    rows = [
        Row("4 B there, 1 KiB back", [
            Side("eddy", ["eddy", *fast]),
            Side("eddy spinning", ["eddy", "--wait", "spin", *fast],
                 [*trips((0.14, 0.19, 0.30), (0.67, 1.00, 1.30)), Limit("p50 in cache lines", "p50_lines", 1.4)]),
            Side("eddy Java", ["java", *fast_j], trips((0.15, 0.22), (0.66, 1.00))),
            Side("eddy Java 17", ["java17", *fast_j]),
            Side("Aeron", ["rival", *AERON_JVM, *fast_j]),
            Side("Unix socket", ["eddy", "--unix", *slow]),
            Side(TCP, ["eddy", "--tcp", *slow]),
            Side("NIO Unix", ["rival", "-Dover=unix", *slow_j]),
            Side("NIO Unix spinning", ["rival", "-Dover=unix", "-Dspin=true", *slow_j]),
            Side("NIO TCP", ["rival", "-Dover=tcp", *slow_j]),
            Side("NIO TCP spinning", ["rival", "-Dover=tcp", "-Dspin=true", *slow_j]),
        ]),
        Row("the same, 5 µs between them", [
            Side("eddy", ["eddy", *paused], trips((0.17, 0.20))),
            Side("eddy Java", ["java", *paused_j]),
            Side("Aeron", ["rival", *AERON_JVM, *paused_j]),
            Side(TCP, ["eddy", "--tcp", "--pause", "5000", *slow]),
        ]),
        Row("the same, asleep on one core", [
            Side("eddy", ["eddy", *asleep], trips((4.0, 5.5), (4.0, 5.5))),
            Side("eddy Java", ["java", *asleep_j]),
            Side("Unix socket", ["eddy", "--unix", *asleep]),
            Side(TCP, ["eddy", "--tcp", *asleep]),
        ], moves=False),
    ]
    for size, text in SIZES.items():
        fenced, asymmetric, java = GOALS[size]
        sides = [
            Side("eddy", ["eddy"], fenced),
            Side("eddy asymmetric", ["eddy", "--asymmetric"], asymmetric),
            Side("eddy in place", ["eddy", "--in-place"], fenced if size == 64 else ()),
            Side("eddy asymmetric in place", ["eddy", "--asymmetric", "--in-place"], asymmetric if size == 64 else ()),
            Side("eddy Java", ["java"], java),
            Side("eddy Java in batches", ["java", "-Dbatch=64", "-Dasymmetric=true"], java),
            Side("eddy Java in place", ["java", "-Dbatch=64", "-Dasymmetric=true", "-DinPlace=true"], java if size == 64 else ()),
            Side("Aeron", ["rival", *AERON_JVM]),
            Side("Aeron in place", ["rival", *AERON_JVM, "-DinPlace=true"]),
            Side("Unix socket", ["eddy", "--unix"]),
            Side(TCP, ["eddy", "--tcp"]),
            Side("NIO Unix", ["rival", "-Dover=unix"]),
            Side("NIO TCP", ["rival", "-Dover=tcp"]),
        ]
        # There, a batch would be more than the ring, and Aeron cannot claim as much.
        large = ("eddy Java in batches", "Aeron in place")
        rows.append(Row(f"{text} one way", [side for side in sides if size <= 1024 or side.name not in large], size=size))
    for label, words, limits in (("connect and close", ["--connects", tools.count(5000)], trips((60, 130), (60, 130))),
                                 ("SIGKILL to end of stream", ["--kills", tools.count(500)], trips((50, 150), (50, 150)))):
        rows.append(Row(label, [Side("eddy", ["eddy", *words], limits), Side("Unix socket", ["eddy", "--unix", *words]),
                                Side(TCP, ["eddy", "--tcp", *words])], moves=False))
    return rows


# --- Turns ------------------------------------------------------------------------------------

def output_of(chosen, words):
    """Standard output of a program that has both cores, and ends by itself."""
    both = {chosen.server_core, chosen.load_core}
    program = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=harness.settle(both))
    try:
        out, err = program.communicate(timeout=TURN_WITHIN_S)
    except BaseException as why:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        if isinstance(why, subprocess.TimeoutExpired):
            raise Failure(f"{' '.join(words)} took more than {TURN_WITHIN_S} s") from None
        raise
    if program.returncode != 0:
        raise Failure(f"{' '.join(words)} failed: {(err or out).strip()[-500:]}")
    return out


def line_ns(chosen, tools):
    """Nanoseconds that a cache line needs to and fro between the cores, now."""
    found = json.loads(output_of(chosen, [tools.eddy, "bench", "shm", "--json", "--no-progress", "--cpus", tools.cores, "--reps", "1",
                                          "--warmup", "0", "--port", str(harness.free_port())]))
    return statistics.median(found["cache_line_ns"])


def parsed(out):
    """(figures, own times of the cache line) of a program's JSON or text. A JVM's times are left out: code that is not
    compiled yet may have taken them."""
    if out.lstrip().startswith("{"):
        found = json.loads(out)
        latencies, rate, lines = found.get("latency_us", {}), found.get("messages_per_second"), found.get("cache_line_ns", [])
    else:
        latencies = {f"p{percent}": float(value) for percent, value in
                     re.findall(r"^([\d.]+)% +\( *\d+\) : +([\d.]+) \(us\)$", out, re.M)}
        rates, lines = re.search(r"^([\d.]+) M messages of (\d+) bytes a second, ([\d.]+) GB/s", out, re.M), []
        # The rounding with more digits.
        rate = rates and max((len(rates[1]), float(rates[1]) * 1e6), (len(rates[3]), float(rates[3]) * 1e9 / int(rates[2])))[1]
    sample = {f"p{name.replace('.', '')}_us": latencies[f"p{name}"] for name in ("50", "99", "99.9") if f"p{name}" in latencies}
    if rate:
        sample["messages_per_second"] = rate
    if not sample:
        raise Failure(f"no figures in: {out.strip()[:300]}")
    return sample, [line for line in lines if line > 0]


class Measurement:
    """Turns of sides, with the cache line's time before and after each."""

    def __init__(self, chosen, tools):
        self.chosen, self.tools = chosen, tools
        self.begun, self.line = time.monotonic(), line_ns(chosen, tools)

    def once(self, row, side):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        before, begun = self.line, time.monotonic()
        with tempfile.TemporaryDirectory(prefix="eddy-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            self.tools.folder = folder
            sample, lines = parsed(output_of(self.chosen, self.tools.words(side, row)))
        sample["seconds"] = time.monotonic() - begun
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        sample["cpu_s"] = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        self.line = line_ns(self.chosen, self.tools)
        sample["line_ns"] = [before, *lines, self.line]
        if row.size:
            sample["m_per_s"] = sample["messages_per_second"] / 1e6
            if not side.name.endswith("in place"):  # where no bytes are moved
                sample["gb_per_s"] = sample["messages_per_second"] * row.size / 1e9
        else:
            sample["p50_lines"] = sample["p50_us"] * 1000 / statistics.median(sample["line_ns"])
        sample["moved"] = row.moves and not is_socket(side) and max(sample["line_ns"]) > MOVED * min(sample["line_ns"])
        return sample

    def turn(self, row, side):
        """A turn in which the cores stayed where they were, if there is one among TRIES."""
        for tried in range(TRIES):
            sample = self.once(row, side)
            if not sample["moved"] or self.chosen.quick or time.monotonic() - self.begun > REPEATS_WITHIN_S:
                break
        sample["discarded"] = tried
        return sample


def busy_s():
    """Seconds for which all cores have worked since boot, and seconds of this program and its children."""
    own = sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return harness.busy_ticks()[0] / os.sysconf("SC_CLK_TCK"), own


def measure_all(chosen, tools, rows):
    """(row, samples by side) of all rows. The sides of a row take turns; all rows are gone through in each round."""
    measurement = Measurement(chosen, tools)
    found = {row.label: {side.name: [] for side in row.sides} for row in rows}
    progress = Progress(sum(len(row.sides) for row in rows) * chosen.pairs)
    for number in range(chosen.pairs):
        for row in rows:
            for side in row.sides if number % 2 == 0 else row.sides[::-1]:
                sample = measurement.turn(row, side)
                found[row.label][side.name].append(sample)
                figures = ", ".join(f"{name} {sample[name]:.3g}" for name in ("p50_us", "p99_us", "m_per_s", "gb_per_s") if name in sample)
                progress.step(f"{row.label}, round {number + 1}, {side.name}: {figures}, line "
                              f"{'–'.join(f'{line:.0f}' for line in sample['line_ns'])} ns"
                              + (", which changed" if sample["moved"] else "")
                              + (f", {sample['discarded']} discarded" if sample["discarded"] else ""))
    return found


def available(chosen, tools, rows):
    """The rows without what cannot be measured here, of which the reason is printed."""
    kept, printed = [], set()
    for row in rows:
        sides = []
        for side in row.sides:
            why = tools.missing(side)
            if not why:
                sides.append(side)
                continue
            if why not in printed:
                harness.warn(f"left out: {row.label}: {side.name} ({why})")
            printed.add(why)
            if why in (tools.why_no_java, tools.why_no_rivals):
                chosen.skipped[side.name] = why
        if sides:
            kept.append(Row(row.label, sides, row.size, row.moves))
    return kept


# --- Report -----------------------------------------------------------------------------------

def is_near(sample):
    return statistics.median(sample["line_ns"]) <= NEAR_NS


def placed(row, side, samples):
    """The turns of a side with the cores at the distance of most, and whether that is near; all where it does not
    matter."""
    if not row.moves or is_socket(side):
        return samples, True
    near = [sample for sample in samples if is_near(sample)]
    kept = near if 2 * len(near) >= len(samples) else [sample for sample in samples if not is_near(sample)]
    return kept, kept is near


def cell(samples, field, form="{:.2f}"):
    if field not in samples[0]:
        return ""
    return report.spread(Spread(sample[field] for sample in samples), form.format)


def remarks(samples, kept, limits, near):
    found = [limit.judge(kept, near) for limit in limits]
    if len(kept) < len(samples):
        found.append(f"{len(kept)} of {len(samples)} turns, the others with {'far' if near else 'near'} cores")
    return "; ".join(found)


def changes(samples):
    """Number of turns discarded as the cache line's time changed, and of turns kept all the same."""
    discarded, kept = sum(sample["discarded"] for sample in samples), sum(sample["moved"] for sample in samples)
    return f"{discarded}, {kept} kept" if kept else str(discarded)


def lines_of(rows, found, fields):
    lines = []
    for row in rows:
        for side in row.sides:
            samples = found[row.label][side.name]
            kept, near = placed(row, side, samples)
            line = Spread(statistics.median(sample["line_ns"]) for sample in kept)
            lines.append([f"{row.label}: {side.name}", *(cell(kept, field, form) for field, form in fields),
                          report.spread(line, "{:.0f}".format) if row.moves else "–", changes(samples),
                          f"{statistics.median(sample['cpu_s'] for sample in kept):.2f} in "
                          f"{statistics.median(sample['seconds'] for sample in kept):.2f} s",
                          remarks(samples, kept, side.limits, near)])
    return lines


TAIL = ["cache line ns", "discarded", "CPU s of all processes", "goal"]


def tables(rows, found):
    trips_of, streams = [row for row in rows if not row.size], [row for row in rows if row.size]
    us = "{:.2f}"
    first = report.table(["round trip: side", "p50 µs", "p99 µs", "p99.9 µs", *TAIL],
                         lines_of(trips_of, found, [("p50_us", us), ("p99_us", us), ("p999_us", us)]))
    second = report.table(["messages: side", "M/s", "GB/s", *TAIL],
                          lines_of(streams, found, [("m_per_s", "{:.3g}"), ("gb_per_s", "{:.3g}")]))
    return f"{first}\n\n{second}"


def groups(rows, found):
    """Rates in multiples of TCP's, also of round trips, whose times stand beside them."""
    for row in rows:
        kept = {side.name: placed(row, side, found[row.label][side.name])[0] for side in row.sides}
        if TCP not in kept:
            continue
        bars = []
        for name, samples in kept.items():
            if row.size:
                rate = Spread(sample["messages_per_second"] for sample in samples)
                bars.append((name, rate, f"{report.rate(rate.median)}/s"))
            else:
                rate = Spread(1e6 / sample["p50_us"] for sample in samples)
                bars.append((name, rate, f"{1e6 / rate.median:.2f} µs"))
        yield report.Group(row.label.replace("the same, ", ""), bars, TCP)


def perf_lines(chosen, rows, found):
    report.perf_meta("shm", chosen, {})
    for row in rows:
        field = "messages_per_second" if row.size else "p50_us"
        report.perf_values("shm", row.label, field, {
            side.name: [sample[field] for sample in found[row.label][side.name]] for side in row.sides})


def main():
    chosen = harness.begin(__doc__)
    tools = Tools(chosen)
    rows = rows_of(tools)
    if chosen.stored:
        found = {row["row"]: row["samples"] for row in chosen.stored["rows"]}
        rows = [Row(row.label, [side for side in row.sides if side.name in found[row.label]], row.size, row.moves)
                for row in rows if row.label in found]
        others, versions = chosen.stored["others"], chosen.stored["versions"]
    else:
        rows, versions = available(chosen, tools, rows), tools.versions()
        begun, (busy, own) = time.monotonic(), busy_s()
        found = measure_all(chosen, tools, rows)
        later = busy_s()
        others = max(later[0] - busy - (later[1] - own), 0) / (time.monotonic() - begun)
    perf_lines(chosen, rows, found)
    quiet = f"Other processes and the kernel's threads had {others:.1%} of a core."
    if others > harness.QUIET_SHARE:
        harness.warn(f"{quiet} Repeat it on a quiet machine.")
    return report.leave("shm", chosen, f"{tables(rows, found)}\n\n{quiet} {', '.join(versions)}.",
                        {"others": others, "versions": versions, "rows": [{"row": row.label, "samples": found[row.label]} for row in rows]},
                        report.bars("Shared memory beside sockets",
                                    "round trips and one-way messages a second in multiples of TCP's; whiskers from the least to "
                                    "the greatest", list(groups(rows, found)), logarithmic=True),
                        "Rates over shared memory in multiples of TCP")


if __name__ == "__main__":
    harness.run(main)
