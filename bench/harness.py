"""Harness of the benchmarks: servers and loads on cores of their own, in turns, with nothing beside them.

A run_<name>.py says what to measure. The rules that it keeps to are in docs/benchmarks.md.
"""

import argparse
import copy
import ctypes
import functools
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Servers run in folders of their own, so these are absolute.
EDDY = os.path.abspath(os.environ.get("EDDY_BINARY") or os.path.join(ROOT, "build/release/eddy"))
VALKEY = shutil.which(os.path.abspath(os.environ.get("EDDY_VALKEY") or shutil.which("valkey-server") or "/none"))
PROGRAMS = os.path.abspath(os.environ.get("EDDY_BENCH_DIR") or os.path.join(ROOT, "build/release/bench"))

MIN_PAIRS = 6            # fewer make no table in the documentation; even, so that each side begins as often
QUIET_SHARE = 0.02       # of a core's time: what other load may take before we warn
DISTURBED_SHARE = 0.1    # what makes a row void in which load and server share their cores
READY_WITHIN_S = 20
STOPPED_WITHIN_S = 20
DESCRIPTORS = 65536
FIRST_PORT = 17000
PR_SET_PDEATHSIG = 1
PF_KTHREAD = 0x200000    # of proc_pid_stat(5)'s flags
LIBC = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """A benchmark cannot continue; the reason is its text."""


# --- Arguments --------------------------------------------------------------------------------

def begin(description):
    """The parsed arguments that every benchmark takes; warns of other load on the machine."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--pairs", type=int, default=MIN_PAIRS, metavar="N",
                        help=f"how often each side is measured; under {MIN_PAIRS}, the results stay "
                             "in build/bench/ (%(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="one short turn of each, to see that all works; results stay in build/bench/")
    parser.add_argument("--render", action="store_true",
                        help="measure nothing: judge the stored samples anew and write the table and figure of them "
                             "(echo, udp, tls, send, shm, http, http_threads, proxy, server, threads, stalls, timers, hits, lua and memory)")
    parser.add_argument("--row", metavar="TEXT",
                        help="measure only the rows whose name has TEXT; the stored samples of the others stay, and the "
                             "table says so (of those that take --render)")
    parser.add_argument("--server-core", type=int, default=0, metavar="CPU", help="core of the servers (%(default)s)")
    parser.add_argument("--load-core", type=int, default=1, metavar="CPU", help="core of the load (%(default)s)")
    chosen = parser.parse_args()
    chosen.skipped, chosen.refused = {}, None  # see here() and caches(): sides, each with the reason
    if chosen.quick:
        chosen.pairs = 1
    if chosen.pairs < 1 or chosen.pairs > 1 and chosen.pairs % 2:
        parser.error("--pairs must be even, so that each side begins as often as the other")
    allowed = os.sched_getaffinity(0)
    if chosen.server_core == chosen.load_core or not {chosen.server_core, chosen.load_core} <= allowed:
        parser.error(f"server and load need two different cores of {sorted(allowed)}: "
                     "choose --server-core and --load-core")
    chosen.stored = stored_results(parser) if chosen.render or chosen.row else None
    if chosen.stored and chosen.row and chosen.pairs != chosen.stored["pairs"]:
        parser.error(f"--row: the other rows have {chosen.stored['pairs']} pairs")
    if chosen.render:
        chosen.pairs = chosen.stored["pairs"]
    else:
        warn_of_load()
    return chosen


def stored_results(parser):
    """The last complete results of this script in bench/results/."""
    name = os.path.basename(sys.argv[0]).removeprefix("run_").removesuffix(".py")
    try:
        with open(os.path.join(ROOT, "bench/results", f"{name}.json")) as file:
            found = json.load(file)
    except OSError as why:
        parser.error(f"--render: {why}")
    if "samples" not in found and not all("samples" in row for row in found.get("rows", [{}])):
        parser.error(f"--render: the results of {name} are not kept in a form that allows it")
    return found


def run(main):
    """Calls main(); a Failure, Ctrl-C or SIGTERM ends the program with one line, after the servers' end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except Failure as why:
        sys.exit(f"bench: {why}")
    except KeyboardInterrupt:
        sys.exit("bench: interrupted")


# --- The kernel's figures of a process --------------------------------------------------------

def schedule_of(pid):
    """(nanoseconds on a core, nanoseconds waiting for one) of all threads; proc(5), schedstat."""
    ran = waited = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                fields = file.read().split()
        except OSError:
            continue  # the thread has ended meanwhile
        ran += int(fields[0])
        waited += int(fields[1])
    return ran, waited


def cores_of(core):
    """One core or several, as a set."""
    return {core} if isinstance(core, int) else set(core)


def deferred_work(core):
    """Nanoseconds that the kernel's threads for these cores' softirqs and for RCU have run.

    They finish what the servers' own system calls began (freeing closed sockets, above all) and so
    belong to what is measured. Other kernel threads do not. The threads of RCU have no core; the
    little that they did on the load's is counted, too.
    """
    ran = 0
    names = {f"ksoftirqd/{one}" for one in cores_of(core)}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            is_kernel_thread = int(rest.split()[6]) & PF_KTHREAD
            if is_kernel_thread and (name in names or name.startswith("rcu_")):
                with open(f"/proc/{pid}/schedstat") as file:
                    ran += int(file.read().split()[0])
        except OSError:
            continue  # it has ended meanwhile
    return ran


def wakeups_of(pid):
    """Number of times that the process's threads have gone to sleep and been woken."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as file:
            count += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return count


def rss_of(pid):
    """Bytes of physical memory, exactly: status and statm lag behind by some pages a core."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
    raise Failure(f"/proc/{pid}/smaps_rollup has no Rss")


def settled_rss(pid, quiet_s=0.4, within_s=15):
    """The memory once it has stopped to change for a while."""
    end = time.monotonic() + within_s
    last, since = rss_of(pid), time.monotonic()
    while time.monotonic() < end:
        time.sleep(0.05)
        now = rss_of(pid)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since >= quiet_s:
            break
    return last


# --- Other load -------------------------------------------------------------------------------

def busy_seconds(core):
    """For which these cores have worked since boot, for whomever."""
    names = {f"cpu{one}" for one in cores_of(core)}
    with open("/proc/stat") as file:
        lines = [line.split() for line in file]
    ticks = sum(sum(map(int, fields[1:4] + fields[6:8])) for fields in lines if fields[0] in names)
    return ticks / os.sysconf("SC_CLK_TCK")


def busy_ticks():
    """(busy, stolen by the hypervisor) clock ticks of all cores since boot."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    return sum(fields[:3]) + sum(fields[5:8]), fields[7]


def ticks_by_process():
    ticks = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, rest = file.read().rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        ticks[int(pid)] = (name.split("(", 1)[1], int(fields[11]) + int(fields[12]))
    return ticks


def warn_of_load(seconds=1.0):
    """Says which processes take how much of a core before a run begins."""
    a_second = os.sysconf("SC_CLK_TCK")
    before, processes = busy_ticks()[0], ticks_by_process()
    time.sleep(seconds)
    after = ticks_by_process()
    share = (busy_ticks()[0] - before) / a_second / seconds
    if share > QUIET_SHARE:
        used = sorted(((ticks - processes.get(pid, (name, 0))[1], name, pid)
                       for pid, (name, ticks) in after.items() if pid != os.getpid()), reverse=True)
        who = ", ".join(f"{name} ({pid}) {ticks / a_second / seconds:.0%}" for ticks, name, pid in used[:3] if ticks)
        warn(f"other load takes {share:.0%} of a core: {who or 'short-lived processes'}. "
             "Figures taken beside it mean little.")


def warn(text):
    print(f"bench: WARNING: {text}", file=sys.stderr, flush=True)


# --- Processes on cores of their own ----------------------------------------------------------

def settle(core):
    """For the child, before its program: its core or cores, and the first place on it.

    Each child has a session of its own, which is a scheduling group of its own where the kernel
    has autogroups (sched(7)); a shell's other processes then do not count against it.
    """
    def prepare():
        os.sched_setaffinity(0, cores_of(core))
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        try:
            os.setpriority(os.PRIO_PROCESS, 0, -20)
            with open("/proc/self/autogroup", "w") as file:
                file.write("-20")
        except OSError:
            pass  # not root, or no autogroups: the run is only more easily disturbed
        raise_descriptor_limit()
    return prepare


def raise_descriptor_limit():
    """Lets this process and its children open up to DESCRIPTORS files; how many it got."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for most in (max(hard, DESCRIPTORS), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, DESCRIPTORS), most))
            break
        except (ValueError, OSError):
            continue  # only CAP_SYS_RESOURCE may go beyond the hard limit
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port():
    """A port, of TCP and of UDP, below the kernel's range for clients."""
    for port in range(FIRST_PORT, FIRST_PORT + 2000):
        # A server that has just ended may hold its UDP port for a moment, since io_uring releases it later.
        with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as message:
            try:
                stream.bind(("127.0.0.1", port))
                message.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Failure(f"no port from {FIRST_PORT} is free")


def need(program, how):
    path = program if os.path.isabs(program) else shutil.which(program)
    if not path or not os.access(path, os.X_OK):
        raise Failure(f"{program} is missing: {how}")
    return path


class Server:
    """One server process while a `with` lasts: `port`, `pid`. `name` is the side's name."""

    shares_cores = False  # with the load, so that it waits for them

    def __init__(self, core, name, argv):
        self.core = core
        self.name = name
        self.argv = argv
        self.env = dict(os.environ)
        self.process = None
        self.port = None
        self.folder = None

    def arguments(self):
        """The command line, with the port put in."""
        return [word.format(port=self.port, folder=self.folder) for word in self.argv]

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def after_start(self):
        """Steps after the start of the process, once it answers."""

    def written(self, name, text):
        """The path of a file in the server's folder that has this text."""
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    @property
    def pid(self):
        return self.process.pid

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="eddy-bench-")
        self.port = free_port()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        try:
            self.process = subprocess.Popen(
                self.arguments(), env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log,
                stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=settle(self.core))
            end = time.monotonic() + READY_WITHIN_S
            while not self.is_ready():
                if self.process.poll() is not None or time.monotonic() > end:
                    raise Failure(f"{self.name} does not start: {self.last_words()}")
                time.sleep(0.02)
            self.after_start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                warn(f"{self.name} did not stop on SIGTERM within {STOPPED_WITHIN_S} s")
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_words(self):
        self.log.seek(0)
        return " / ".join(self.log.read().strip().split("\n")[-5:]) or "it said nothing"


class Redis(Server):
    """redis-server as apt installs it, without persistence but for what `more` asks for."""

    def __init__(self, core, *more, name="redis", program=None):
        program = program or need("redis-server", "run `apt install redis-server`")
        super().__init__(core, name, [
            program, "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", "{folder}", "--maxclients", "15000", "--tcp-backlog", "4096", *more])


class Valkey(Redis):
    """valkey-server as Debian builds it, in the same way."""

    def __init__(self, core, *more):
        super().__init__(core, *more, name="valkey", program=VALKEY)


class Memcached(Server):
    """memcached as apt installs it, with one thread and room for whatever a benchmark stores."""

    def __init__(self, core):
        program = need("memcached", "run `apt install memcached`")
        super().__init__(core, "memcached", [program, "-u", "nobody", "-l", "127.0.0.1", "-p", "{port}", "-t", "1",
                                             "-m", "4096", "-c", "15000"])


def caches(chosen):
    """The rivals among caches and Eddy, by name. Without Valkey the results make no table in the documentation."""
    found = {"redis": Redis, "valkey": Valkey, "eddy": Eddy}
    if not VALKEY:
        warn("there is no valkey-server (./eddy-dev fetches one): it is left out.")
        chosen.skipped["valkey"] = "there is no valkey-server"
        del found["valkey"]
    return found


def eddy():
    """The program's path."""
    return need(EDDY, "run `./eddy-dev build`")


class Eddy(Server):
    """An `eddy daemon` with a socket and a state of its own; create() adds runtimes to it.

    The first is made with the flags `more`, in which {folder} is a folder of the server's own.
    """

    def __init__(self, core, *more, runtime="cache"):
        super().__init__(core, "eddy", [eddy(), "daemon"])
        self.runtime, self.more = runtime, more

    def __enter__(self):
        place = tempfile.mkdtemp(prefix="eddy-bench-state-")
        self.place = place
        self.env.update(EDDY_SOCKET=os.path.join(place, "eddy.sock"), EDDY_STATE_DIR=os.path.join(place, "state"))
        os.mkdir(self.env["EDDY_STATE_DIR"])
        return super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        shutil.rmtree(self.place, ignore_errors=True)

    def ask(self, *words):
        """Runs an eddy command against this daemon."""
        done = subprocess.run([EDDY, *words], env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"eddy {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def is_ready(self):
        return os.path.exists(self.env["EDDY_SOCKET"]) and subprocess.run(
            [EDDY, "ls"], env=self.env, capture_output=True).returncode == 0

    def create(self, kind, name, *more):
        """Starts a runtime; its port."""
        port = free_port()
        self.ask("create", kind, name, "-p", str(port), "-s", *more)
        return port

    def after_start(self):
        if self.runtime:
            self.port = self.create(self.runtime, "bench", *(word.format(folder=self.folder) for word in self.more))


class Program(Server):
    """One of the programs built from this folder. `command` is its name and its flags."""

    def __init__(self, core, name, command):
        program, *self.flags = command.split()
        super().__init__(core, name, [built(program), "--port", "{port}", *self.flags])

    def is_ready(self):
        """Read from its log, since with UDP a connection would prove nothing."""
        self.log.seek(0)
        return "listening" in self.log.read()


def built(program):
    return need(os.path.join(PROGRAMS, program), "run `./eddy-dev bench NAME`, which builds it")


# --- io_uring, where it is refused ------------------------------------------------------------

@functools.cache
def uring_refused():
    """Why io_uring cannot be used here, in the words of a server that tried; None where it can."""
    server = subprocess.Popen([built("echo_eddy"), "--port", str(free_port()), "--backend", "uring"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if "listening" in server.stdout.readline():
            return None
        return server.stderr.read().strip().split("\n")[-1] or f"status {server.wait()}"
    finally:
        server.kill()
        server.communicate()


def needs_uring(command):
    """True if a program of this folder, called like this, uses io_uring."""
    return isinstance(command, str) and ("--backend uring" in command or command.startswith("echo_raw_uring"))


def here(chosen, loads):
    """The loads without what this machine refuses, which is printed once a side.

    A load with a side left out is not judged, and the results make no table in the documentation.
    """
    needing = [side for load in loads for side, command in load.sides.items() if needs_uring(command)]
    reason = uring_refused() if needing else None
    if not reason:
        return loads
    chosen.skipped.update(dict.fromkeys(needing, reason))
    chosen.refused = reason
    warn(f"io_uring is refused here ({reason}): not measured, {'; '.join(chosen.skipped)}; no goal is judged there")
    return [load.without_uring() for load in loads]


def lost_to_others(waited, others_ran, deferred, stolen):
    """Share of time lost to others: the server waited for its core, on which others ran, some of them its own deferred
    work.

    Its threads also wait for one another, as the kernel's that write its files do for its loop. That is no loss.
    """
    return max(min(waited, others_ran) - deferred, stolen)


def measure(server, core, argv):
    """Runs a load that prints JSON; its rows, each with the share of time that was lost to others.

    That is what the server waited for its core, less the deferred work of its own system calls; where the load
    has the same cores, only what the hypervisor took.
    """
    stolen = busy_ticks()[1]
    (ran, waited), deferred, busy = schedule_of(server.pid), deferred_work(server.core), busy_seconds(server.core)
    started = time.monotonic()
    load = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True, preexec_fn=settle(core))
    try:
        out, err = load.communicate()
    except BaseException:
        load.kill()
        load.wait()
        raise
    seconds = time.monotonic() - started
    if load.returncode not in (0, 2) or server.process.poll() is not None:
        ended = "" if server.process.poll() is None else f"; {server.name} has ended: {server.last_words()}"
        raise Failure(f"the load on {server.name} failed: {err.strip()}{ended}")
    try:
        rows = json.loads(out)
    except ValueError:
        raise Failure(f"the load on {server.name} printed no JSON: {(out + err).strip()[:300]}") from None
    rows = rows if isinstance(rows, list) else [rows]
    ran_later, waited_later = schedule_of(server.pid)
    ran, waited = (ran_later - ran) / 1e9 / seconds, (waited_later - waited) / 1e9 / seconds
    busy = (busy_seconds(server.core) - busy) / seconds
    deferred = (deferred_work(server.core) - deferred) / 1e9 / seconds
    stolen = (busy_ticks()[1] - stolen) / os.sysconf("SC_CLK_TCK") / seconds
    if server.shares_cores:
        lost = stolen / len(cores_of(server.core))
    else:
        lost = lost_to_others(waited, busy - ran, deferred, stolen)
    for row in rows:
        row.update(lost=round(lost, 5), waited=round(waited, 5), deferred=round(deferred, 5))
    return rows


# --- Turns ------------------------------------------------------------------------------------

def turns(sides, pairs):
    """Each side once a round, forwards and backwards by turns: A B, B A, A B and so on."""
    for number in range(pairs):
        for side in (sides if number % 2 == 0 else list(reversed(sides))):
            yield number, side


class Load:
    """Load on some servers, and the goal of the judged one.

    `program` is the load's program and its flags. `sides` are the servers by name, in the order of the table: the
    arguments of Program. Rates mean little where the load was the limit for the judged side or for one of its `rivals`.
    """

    def __init__(self, label, program, sides, *goals, judged="eddy", rivals=("asio",), unit="msg/s"):
        self.label, self.program, self.sides, self.goals = label, program, sides, goals
        self.judged, self.rivals, self.unit = judged, rivals, unit

    def command(self, chosen, server):
        """The command line that puts a server under this load."""
        program, *flags = self.program.split()
        return [built(program), "--port", str(server.port), "--server-pid", str(server.pid),
                "--milliseconds", "200" if chosen.quick else "2000", *flags]

    def without_uring(self):
        """The same load on the sides that need no io_uring. Another of Eddy's stands for a judged one."""
        rest = copy.copy(self)
        rest.sides = {side: command for side, command in self.sides.items() if not needs_uring(command)}
        if len(rest.sides) == len(self.sides):
            return self
        rest.goals = ()
        own = [side for side, command in rest.sides.items() if "eddy" in command]
        if self.judged not in rest.sides:
            rest.judged = own[0]
        rest.rivals = tuple(side for side in self.rivals if side in rest.sides) or (own[-1],)
        return rest


def sample(chosen, loads, start=Program):
    """Yields (load, test, Comparison) for each test that a load reports, one load after the other.

    start(core, side, load.sides[side]) is a server; each of a side's turns has one of its own.
    """
    rows = {row["row"]: row["samples"] for row in chosen.stored["rows"]} if chosen.stored else {}
    wanted = [load for load in loads if not chosen.stored or chosen.row and chosen.row in load.label]
    if chosen.row and not wanted:
        raise Failure(f"no row has {chosen.row!r} in its name: {'; '.join(load.label for load in loads)}")
    if wanted:
        loads = here(chosen, loads)
    progress = Progress(sum(len(load.sides) for load in wanted) * chosen.pairs)
    for load in loads:
        if load.label not in [each.label for each in wanted]:
            if load.label in rows:
                yield load, None, Comparison(rows[load.label])
            continue
        found = {}
        for number, side in turns(list(load.sides), chosen.pairs):
            with start(chosen.server_core, side, load.sides[side]) as server:
                rows = measure(server, chosen.load_core, load.command(chosen, server))
            for row in rows:
                found.setdefault(row["test"], {}).setdefault(side, []).append(row)
            progress.step(f"{load.label}, round {number + 1}, {side}: " + ", ".join(
                f"{row['test']} {row['ops_per_second']:,.0f}/s, p50 {row['p50_us']:.1f} µs" for row in rows))
        for test, samples in found.items():
            yield load, test, Comparison(samples)


class Progress:
    """One line a finished turn, with the time that is left."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.started = time.monotonic()

    def step(self, text):
        self.done += 1
        spent = time.monotonic() - self.started
        left = spent / self.done * (self.total - self.done)
        print(f"[{self.done}/{self.total}] {text}   ({spent:.0f} s, {left:.0f} s left)", file=sys.stderr, flush=True)


class Spread:
    """Median, least and greatest of some values."""

    def __init__(self, values):
        self.values = list(values)
        self.median = statistics.median(self.values)
        self.low = min(self.values)
        self.high = max(self.values)

    def json(self):
        return {"median": self.median, "low": self.low, "high": self.high}


class Comparison:
    """The samples of one row, by side, in the order of the rounds."""

    def __init__(self, samples):
        self.samples = samples

    def of(self, side, field="ops_per_second"):
        return Spread(sample[field] for sample in self.samples[side])

    def ratio(self, side, rival, field="ops_per_second"):
        """side / rival, of each round: what disturbed both alike falls out."""
        return Spread(a[field] / b[field] for a, b in zip(self.samples[side], self.samples[rival]))

    def cost(self, side):
        """Nanoseconds of the server's CPU an operation."""
        return self.of(side, "server_ns_per_op").median

    def best(self, sides):
        """The side with the highest rate."""
        return max(sides, key=lambda side: self.of(side).median)

    def is_void(self, *sides):
        """The generator was the limit in half of a side's turns or more."""
        return any(2 * sum(s["void"] for s in self.samples[side]) >= len(self.samples[side]) for side in sides)

    def faults(self):
        """Faults in any turn: wrong replies and error replies."""
        found = []
        for side, samples in self.samples.items():
            if not all(sample["verified"] for sample in samples):
                found.append(f"{side}: wrong replies")
            if any(sample["errors"] for sample in samples):
                found.append(f"{side}: error replies")
        return found

    def lost(self):
        return max(sample["lost"] for samples in self.samples.values() for sample in samples)


class Goal:
    """Goal of a row: met(comparison) is true where it is reached. `text` is for the table."""

    def __init__(self, text, met):
        self.text, self.met = text, met

    def judge(self, comparison):
        """The verdict in words."""
        return self.word(self.met(comparison))

    @staticmethod
    def word(met):
        return "met" if met else "**missed**"


class RateGoal(Goal):
    """The rate of `side` is to be `at_least` times that of the fastest of its rivals.

    Where the load was the limit for one of these sides, rates prove nothing. With `or_cpu` it is the
    server's CPU for an operation that is compared there, with that of the cheapest rival.
    """

    def __init__(self, text, at_least, *rivals, side="eddy", or_cpu=False):
        super().__init__(text, lambda comparison: comparison.ratio(
            side, comparison.best(rivals)).median >= at_least)
        self.at_least, self.rivals, self.side, self.or_cpu = at_least, rivals, side, or_cpu

    def judge(self, comparison):
        if not comparison.is_void(self.side, *self.rivals):
            return super().judge(comparison)
        if not self.or_cpu:
            return "void"
        least = min(map(comparison.cost, self.rivals))
        return self.word(comparison.cost(self.side) <= least / self.at_least) + " by CPU"


class NearEpoll(RateGoal):
    """Goal of each row that runs on both: io_uring is hardly slower than epoll anywhere."""

    def __init__(self, text, side, epoll):
        super().__init__(text, 0.97, epoll, side=side, or_cpu=True)
        self.epoll = epoll


def near_epoll(text="≥ 0.97 × epoll", side="eddy", epoll="eddy epoll"):
    return NearEpoll(text, side, epoll)


def verdict(met, void, faults, disturbed=False):
    if faults:
        return "INVALID: " + ", ".join(faults)
    if void:
        return "void: the load was the limit"
    if disturbed:
        return "void: other load was there"
    return {True: "met", False: "missed", None: ""}[met]
