"""Report of a benchmark: a table in Markdown, JSON and a figure."""

import datetime
import glob
import html
import json
import math
import os
import platform
import re
import subprocess
import textwrap

import harness

PAGES = "docs/benchmarks"


# --- The machine ------------------------------------------------------------------------------

def first_line(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, cwd=harness.ROOT).stdout.strip().split("\n")[0]
    except OSError:
        return ""


def packaged(name):
    """The version of an installed package, without what the distribution adds."""
    return first_line("dpkg-query", "-W", "-f", "${Version}", name).split("-")[0].split("+")[0]


def machine():
    """The machine that the figures depend on, as a dictionary of texts."""
    with open("/proc/cpuinfo") as file:
        cpu = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    with open("/proc/meminfo") as file:
        memory_kib = int(file.readline().split()[1])
    try:
        with open("/etc/os-release") as file:
            system = re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read(), re.M).group(1)
    except (OSError, AttributeError):
        system = "Linux"
    virtual = first_line("systemd-detect-virt", "--vm")
    redis = re.search(r"v=(\S+)", first_line("redis-server", "--version"))
    valkey = re.search(r"v=(\S+)", first_line(harness.VALKEY, "--version") if harness.VALKEY else "")
    memcached = packaged("memcached")
    asio = None
    headers = os.environ.get("EDDY_ASIO_INCLUDE") or "/usr/include"
    try:
        with open(os.path.join(headers, "asio/version.hpp")) as file:
            asio = re.search(r"ASIO_VERSION (\d+)", file.read())
    except OSError:
        pass
    number = int(asio.group(1)) if asio else 0
    boost = packaged("libboost-dev")
    libuv = packaged("libuv1-dev")
    commit = first_line("git", "rev-parse", "--short=12", "HEAD")
    if commit and first_line("git", "status", "--porcelain", "--untracked-files=no"):
        commit += " with changes"
    found = {
        "cpu": " ".join(cpu.group(1).split()) if cpu else platform.machine(),
        "cores": f"{os.cpu_count()} cores",
        "virtual": f"virtual ({virtual})" if virtual not in ("", "none") else "",
        "memory": f"{memory_kib / 2**20:.1f} GiB",
        "kernel": f"Linux {platform.release()}",
        "system": system,
        "redis": f"redis-server {redis.group(1)}" if redis else "",
        "valkey": f"Valkey {valkey.group(1)}" if valkey else "",
        "memcached": f"memcached {memcached}" if memcached else "",
        "asio": f"Asio {number // 100000}.{number // 100 % 1000}.{number % 100}" if number else "",
        "boost": f"Boost {boost}" if boost else "",
        "libuv": f"libuv {libuv}" if libuv else "",
        "eddy": first_line(harness.EDDY, "version") or "eddy",
        "commit": f"commit {commit}" if commit else "",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }
    return {key: text for key, text in found.items() if text}


# --- Text -------------------------------------------------------------------------------------

def rate(value):
    """Three figures and a unit: 3.42 M, 215 k."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{figures(value / size)} {unit}"
    return figures(value)


def figures(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(value, form=rate):
    """`median (low–high)`, or the value alone when there is but one."""
    if len(value.values) == 1:
        return form(value.median)
    return f"{form(value.median)} ({form(value.low)}–{form(value.high)})"


def times(value):
    return f"{value:.2f} ×"


def share(value):
    """A ratio that may be far below 1: 0.00018 ×, 0.24 ×, 2006 ×."""
    return f"{value:.{max(1 - math.floor(math.log10(value)), 2)}f} ×" if 0 < value < 1 else f"{figures(value)} ×"


def ratio(value):
    """`3.42 × (3.31–3.50)`."""
    return times(value.median) if len(value.values) == 1 else f"{times(value.median)} ({value.low:.2f}–{value.high:.2f})"


def table(header, rows):
    """A Markdown table; figures are to the right of the first column."""
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def word(text):
    """A label as one word for a PERF line."""
    return re.sub(r"[^\w.]+", "_", text.replace("×", "x")).strip("_").lower()


def perf_meta(name, chosen, loads):
    """Prints what was run, and what was not and why, for other programs: loads are {label: flags}."""
    print(f"PERF_META_ASYNC scenario={name} io_uring={'refused' if chosen.refused else 'available'} "
          f"repeats={chosen.pairs} quick={'yes' if chosen.quick else 'no'} "
          f"server_core={chosen.server_core} load_core={chosen.load_core}")
    for label, flags in loads.items():
        values = re.findall(r"--([\w-]+) (\S+)", flags)
        print(" ".join([f"PERF_META_ASYNC scenario={name} row={word(label)}",
                        *(f"{key.replace('-', '_')}={value}" for key, value in values)]))
    for side, reason in chosen.skipped.items():
        print(f"PERF_SKIP scenario={name} target={word(side)} reason={word(reason)}")


def perf_values(name, label, unit, values, ratios=(), more=None):
    """Prints the turns and the median of each target, and the paired ratios, (side, rival, median) each.

    `values` are {target: what its turns gave}; more(target, number) is the rest of a turn's line.
    """
    for target, turns in values.items():
        head = f"scenario={name} row={word(label)} target={word(target)}"
        for number, value in enumerate(turns):
            print(f"PERF_RUN {head} run={number + 1} {unit}={value:.1f}{more(target, number) if more else ''}")
        print(f"PERF_MEDIAN {head} {unit}={harness.Spread(turns).median:.1f}")
    for side, rival, value in ratios:
        print(f"PERF_PAIRED_MEDIAN scenario={name} row={word(label)} ratio={word(side)}/{word(rival)} value={value:.4f}")


def perf_lines(name, chosen, rows):
    """Prints what other programs may want to read: what was run, each turn, medians, paired ratios."""
    perf_meta(name, chosen, {row.load.label: row.load.program for row in rows})
    for row in rows:
        samples, rival = row.comparison.samples, row.load.rivals[0]
        own = [side for side in samples if side == row.load.judged or side.startswith("eddy")]
        pairs = [(side, rival) for side in own]
        pairs += [(goal.side, goal.epoll) for goal in row.load.goals if isinstance(goal, harness.NearEpoll)]
        perf_values(name, row.load.label, "ops_per_second",
                    {each: [sample["ops_per_second"] for sample in turns] for each, turns in samples.items()},
                    [(*pair, row.comparison.ratio(*pair).median) for pair in pairs],
                    lambda each, number: f" p50_us={samples[each][number]['p50_us']:.2f} "
                                         f"p99_us={samples[each][number]['p99_us']:.2f}")


# --- Rows of servers --------------------------------------------------------------------------

class Row:
    """The servers under one load. The judged one is held against the load's goals."""

    def __init__(self, load, comparison):
        self.load, self.comparison = load, comparison
        self.ratio = comparison.ratio(load.judged, load.rivals[0])
        self.limited = comparison.is_void(load.judged, *load.rivals)
        self.goals = {goal.text: goal.judge(comparison) for goal in load.goals}
        faults = comparison.faults()
        self.verdict = harness.verdict(None, False, faults) if faults else "; ".join(
            f"{text}: {judged}" for text, judged in self.goals.items())

    def remark(self, side):
        """Remark on a side's rate, and the verdict beside the judged one."""
        void = "the load was the limit" if self.comparison.is_void(side) else ""
        return "; ".join(filter(None, (void, self.verdict))) if side == self.load.judged else void

    def group(self):
        rates = {side: self.comparison.of(side) for side in self.comparison.samples}
        return Group(self.load.label, [(side, value, rate(value.median)) for side, value in rates.items()],
                     self.load.rivals[0],
                     note=times(self.ratio.median) + (" (void)" if self.limited else ""))


class RatioRow(Row):
    """Servers whose judged one may have a RateGoal against its rival, which stands beside the ratio.

    The verdict on it comes first, those on other goals follow in words.
    """

    def __init__(self, load, comparison):
        super().__init__(load, comparison)
        main = next((goal for goal in load.goals if load.rivals[0] in goal.rivals), None)
        self.goal = main.at_least if main else None
        first = harness.verdict(main.met(comparison) if main else None, self.limited, comparison.faults())
        others = [] if comparison.faults() else [f"{goal.text}: {self.goals[goal.text]}"
                                                 for goal in load.goals if goal is not main]
        self.verdict = "; ".join(filter(None, [first, *others]))

    def remark(self, side):
        return self.verdict if side == self.load.judged else "void" if self.comparison.is_void(side) else ""

    def json(self):
        return {"row": self.load.label, "judged": self.load.judged, "to_asio": self.ratio.json(), "goal": self.goal,
                "goals": self.goals, "verdict": self.verdict, "samples": self.comparison.samples}

    def group(self):
        group = super().group()
        group.goal, group.note = self.goal, times(self.ratio.median) + (f" (goal {self.goal} ×)" if self.goal else "")
        return group


class BestRow(Row):
    """Servers whose judged one is held against the best of its rivals; load.best_goal is the ratio it is to reach, or None."""

    def json(self):
        return {"row": self.load.label, "judged": self.load.judged, "goals": self.goals, "verdict": self.verdict,
                "samples": self.comparison.samples}

    def group(self):
        group = super().group()
        best = self.comparison.best(self.load.rivals)
        group.rival, group.goal = best, self.load.best_goal
        group.note = times(self.comparison.ratio(self.load.judged, best).median)
        return group


def to_best(row, side):
    """The ratio of the rates of a side and the best rival."""
    return ratio(row.comparison.ratio(side, row.comparison.best(row.load.rivals)))


def to_rival(row, side):
    return ratio(row.comparison.ratio(side, row.load.rivals[0]))


def to_epoll(row, side):
    """The ratio of a side on io_uring to the same program on epoll."""
    epoll = next((goal.epoll for goal in row.load.goals
                  if isinstance(goal, harness.NearEpoll) and goal.side == side), None)
    return ratio(row.comparison.ratio(side, epoll)) if epoll in row.comparison.samples else ""


def to_goal(row, side):
    """The ratio to the rival, and the goal beside the judged one."""
    return to_rival(row, side) + (f" (goal {row.goal})" if row.goal and side == row.load.judged else "")


def median(field, form):
    """A cell with the median of a field."""
    return lambda row, side: format(row.comparison.of(side, field).median, form)


# Columns: the header, and what gives the cell's text for a row and a side.
TO_EPOLL = ("uring to epoll", to_epoll)
SERVER = ("load: server", lambda row, side: f"{row.load.label}: {side}")
RATE = ("rate", lambda row, side: f"{spread(row.comparison.of(side))} {row.load.unit}")
REMARK = ("", lambda row, side: row.remark(side))
COST = ("server ns an operation", median("server_ns_per_op", ".0f"))
CPU = (("server CPU", median("server_cpu", ".2f")), ("load CPU", median("generator_cpu", ".2f")))


def latency(row, side):
    """Both, or nothing of a load that measures none."""
    both = [row.comparison.of(side, field).median for field in ("p50_us", "p99_us")]
    return " / ".join(f"{each:.0f}" for each in both) if any(both) else ""


LATENCY = ("p50 / p99 µs", latency)


def table_of(rows, columns):
    """A line a server of each row."""
    return table([header for header, _ in columns],
                 [[cell(row, side) for _, cell in columns] for row in rows for side in row.comparison.samples])


def leave_servers(name, chosen, rows, columns, title, at_right, alt):
    """leave() for rows of servers, compared by their rates. `at_right` says what the figure's ratios are."""
    perf_lines(name, chosen, rows)
    return leave(name, chosen, table_of(rows, columns), {"rows": [row.json() for row in rows]},
                 bars(title, f"median, whiskers from the least to the greatest; at the right, {at_right}",
                      [row.group() for row in rows]),
                 alt, [row.comparison for row in rows])


# --- Where it goes ----------------------------------------------------------------------------

def leave(name, chosen, text, data, svg, alt, comparisons=()):
    """Prints the table and stores table, JSON and figure. The program's exit status: 2 after wrong replies."""
    about = chosen.stored["machine"] if chosen.stored else machine()
    # For how much of the time a server waited for its core while others than the kernel's threads for
    # its own deferred work had it.
    lost = max((each.lost() for each in comparisons), default=None)
    quiet = ""
    if lost is not None:
        quiet = (f" A server that could have run had to wait for its core for at most {lost:.1%} of the time, "
                 "besides the kernel's threads for softirqs and RCU.")
    if lost is not None and lost > harness.QUIET_SHARE:
        quiet += " **That is other load: the figures are not to be trusted.**"
        harness.warn("other load ran beside the measurement; repeat it on a quiet machine")
    if chosen.row:
        quiet += f" Rows with \u201c{chosen.row}\u201d are newer: {machine()['commit']}."
    turns = "one turn each" if chosen.pairs == 1 else f"{chosen.pairs} turns each, median (least–greatest)"
    text = f"{text}\n\n{'; '.join(about.values())}. {turns[0].upper()}{turns[1:]}.{quiet}"
    print(f"\n{text}\n")

    complete = chosen.pairs >= harness.MIN_PAIRS and not chosen.quick and not chosen.skipped
    figure, results = ("docs/figures", "bench/results") if complete else ("build/bench", "build/bench")
    written = [store(f"{results}/{name}.json",
                     json.dumps({"benchmark": name, "machine": about, "pairs": chosen.pairs, "lost": lost, **data},
                                indent=1, ensure_ascii=False) + "\n"),
               store(f"{figure}/{name}.svg", svg)]
    if complete:
        written += insert(name, f"![{alt}](../figures/{name}.svg)\n\n{text}")
    print("Written: " + ", ".join(written))
    if not complete:
        print(f"docs/benchmarks/ stays as it is: that takes {harness.MIN_PAIRS} pairs, no --quick, io_uring and Valkey.")
    return 2 if any(each.faults() for each in comparisons) else 0


def store(path, text):
    full = os.path.join(harness.ROOT, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)
    return path


def insert(name, text):
    """Replaces the benchmark's table in its page, and the headlines. Returns what was written."""
    import headlines  # reads the tables, by this module
    page = next((page for page in glob.glob(os.path.join(harness.ROOT, PAGES, "*.md")) if replace(page, name, text)), None)
    if page is None:
        raise harness.Failure(f"no page of {PAGES} has the lines <!-- {name}:begin --> and <!-- {name}:end -->")
    headlines.write()
    return [os.path.relpath(page, harness.ROOT), os.path.relpath(headlines.PAGE, harness.ROOT)]


def replace(page, name, text):
    """Replaces what stands between the markers of a name in a page. False where there are none."""
    with open(page, encoding="utf-8") as file:
        document = file.read()
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, found, rest = document.partition(begin)
    _, also_found, tail = rest.partition(end)
    if not found or not also_found:
        return False
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{head}{begin}\n{text}\n{end}{tail}")
    return True


# --- The figure -------------------------------------------------------------------------------

COLOURS = {"epoll": "#94a3b8", "eddy": "#0f766e", "eddy epoll": "#5eaaa3", "eddy spinning": "#134e4a", "eddy without polling": "#99c2bd", "eddy with Lua": "#1d4ed8",
           "eddy segments": "#1d4ed8",
           "eddy, same memory": "#5eaaa3", "eddy, s3fifo": "#1d4ed8", "1 thread": "#94a3b8", "2 threads": "#0f766e",
           "eddy epoll segments": "#93c5fd", "redis": "#94a3b8", "valkey": "#c4b5fd",
           "memcached": "#d6a85c", "asio": "#94a3b8", "boost": "#64748b",
           "libuv": "#c4b5fd", "copied": "#94a3b8", "zero copy": "#0f766e", "raw epoll": "#d6a85c", "raw uring": "#b7791f", "asleep": "#94a3b8",
           "spinning": "#0f766e", "nginx": "#94a3b8", "h2o": "#64748b", "hyper": "#b7791f", "fasthttp": "#60a5fa",
           "bun": "#c4b5fd", "go": "#60a5fa", "rust": "#b7791f", "python": "#d6a85c", "php": "#c4b5fd",
           "eddy asymmetric": "#0d9488", "eddy in place": "#5eaaa3", "eddy asymmetric in place": "#99c2bd", "eddy Java": "#1d4ed8",
           "eddy Java 17": "#93c5fd", "eddy Java in batches": "#3b82f6",
           "eddy Java in place": "#60a5fa", "Aeron": "#c026d3", "Aeron in place": "#e879f9", "Unix socket": "#64748b",
           "TCP": "#94a3b8", "NIO Unix": "#b7791f", "NIO Unix spinning": "#d6a85c", "NIO TCP": "#9a3412", "NIO TCP spinning": "#fb923c"}
# For sides without one above, in the order of the legend.
PALETTE = ("#7c3aed", "#60a5fa", "#b7791f", "#c026d3", "#9a3412", "#64748b", "#99c2bd", "#fb923c")
BAR, GAP, GROUP_GAP = 15, 3, 18
LEFT, PLOT, WIDTH = 205, 400, 860       # labels, bars, then the columns of values and notes
VALUES, NOTES = LEFT + PLOT + 72, LEFT + PLOT + 92
LINE, LETTERS = 14, 25                  # height of a label's line, and the letters that fit to the left of the bars


class Group:
    """Bars that are compared with each other. `bars` are (side, Spread, text); the rival's is 1.

    `goal` is a ratio to the rival, or None; `note` stands at the right, as "3.4 × (goal 3 ×)".
    """

    def __init__(self, label, bars, rival, goal=None, note=""):
        self.label, self.bars, self.rival, self.goal, self.note = label, bars, rival, goal, note

    def unit(self):
        return next(value.median for side, value, _ in self.bars if side == self.rival)

    def lines(self):
        """The label in lines that fit to the left of the bars."""
        # No line ends within a number such as 2 000 000.
        whole_numbers = re.sub(r"(?<=\d) (?=\d{3}\b)", "\xa0", self.label)
        return [line.replace("\xa0", " ") for line in textwrap.wrap(whole_numbers, LETTERS)]


# Steps of the scale below bars, in multiples of the rival.
STEPS = (0.2, 0.25, 0.5, *(digit * 10 ** power for power in range(9) for digit in (1, 2, 5)))


def linear(most):
    """(share of the plot's width by value, values of the scale) up to a value."""
    step = next(s for s in STEPS if most / s <= 8)
    return lambda value: value / most, [i * step for i in range(int(most / step) + 1)]


def powers(least, most):
    """The same on a logarithmic scale, from the power of ten below `least`."""
    first = math.floor(math.log10(least))
    decades = math.log10(most) - first
    return lambda value: (math.log10(value) - first) / decades, [10.0 ** n for n in range(first, math.floor(math.log10(most)) + 1)]


def range_of(groups):
    """(least, most) ratio to draw; the least is above 0, since a logarithmic scale has no other."""
    ratios = [each / group.unit() for group in groups for _, value, _ in group.bars for each in (value.low, value.high)]
    ratios += [group.goal for group in groups if group.goal]
    return min((each for each in ratios if each > 0), default=1), max(ratios) * 1.02


def head(title, subtitle, height, legends, colours):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           text_at(20, 28, title, size=17, weight="600"), text_at(20, 48, subtitle, fill="#64748b")]
    for side, (legend, line) in legends.items():
        out += [f'<rect x="{legend}" y="{61 + line}" width="11" height="11" rx="2" fill="{colours[side]}"/>',
                text_at(legend + 16, 71 + line, side)]
    return out


def bars(title, subtitle, groups, logarithmic=False):
    """An SVG of horizontal bars: each group in units of its rival, whiskers from least to greatest."""
    least, most = range_of(groups)
    share, scale = powers(least, most) if logarithmic else linear(most)
    height_of = {id(g): max(len(g.bars) * (BAR + GAP) - GAP, len(g.lines()) * LINE) for g in groups}
    sides = list(dict.fromkeys(side for group in groups for side, _, _ in group.bars))
    legends, legend_end = legend_of(sides)
    colours = colours_of(sides)
    top = 92 + legend_end[1]
    bottom = top + sum(height_of.values()) + GROUP_GAP * (len(groups) - 1) + 10

    def x(value):
        # A difference of two measurements may be 0 or below, which is the left end of each scale.
        return LEFT + (PLOT * share(value) if value > 0 else 0)

    out = head(title, subtitle, bottom + 50, legends, colours)
    if any(group.goal for group in groups):
        legend, line = legend_end
        out += [f'<path d="M{legend + 4} {60 + line}v13" stroke="#dc2626" stroke-width="2" stroke-dasharray="3 2"/>',
                text_at(legend + 12, 71 + line, "goal")]
    for value in scale:
        out += [f'<path d="M{x(value):.1f} {top - 6}V{bottom}" stroke="#e2e8f0"/>',
                text_at(x(value), bottom + 16, f"{value:.9f}".rstrip("0").rstrip("."), anchor="middle", fill="#64748b")]
    rivals = " or ".join(dict.fromkeys(group.rival for group in groups))
    out.append(text_at(LEFT + PLOT / 2, bottom + 36, f"times {rivals}", anchor="middle", fill="#64748b"))

    y = top
    for group in groups:
        size = height_of[id(group)]
        out += bars_of(group, y, size, x, colours)
        y += size + GROUP_GAP
    return "\n".join(out + ["</svg>", ""])


def bars_of(group, y, size, x, colours):
    """The bars of a group at `y`, `size` high, with its label at the left and its note at the right."""
    unit, lines = group.unit(), group.lines()
    out = [text_at(LEFT - 10, y + size / 2 + 4 + LINE * (index - (len(lines) - 1) / 2), line, anchor="end", weight="600")
           for index, line in enumerate(lines)]
    if group.note:
        out.append(text_at(NOTES, y + size / 2 + 4, group.note, weight="600"))
    first = y + (size - len(group.bars) * (BAR + GAP) + GAP) / 2
    for index, (side, value, label) in enumerate(group.bars):
        at = first + index * (BAR + GAP)
        middle = at + BAR / 2
        out.append(f'<rect x="{LEFT}" y="{at:g}" width="{max(x(value.median / unit) - LEFT, 1):.1f}" '
                   f'height="{BAR}" rx="2" fill="{colours[side]}"/>')
        if value.high > value.low:
            low, high = x(value.low / unit), x(value.high / unit)
            out.append(f'<path d="M{low:.1f} {middle:g}H{high:.1f}M{low:.1f} {middle - 3:g}v6M{high:.1f} {middle - 3:g}v6" '
                       'stroke="#0f172a" stroke-opacity=".55" fill="none"/>')
        out.append(text_at(VALUES, at + 12, label, anchor="end"))
    if group.goal:
        out.append(f'<path d="M{x(group.goal):.1f} {y - 4}v{size + 8}" stroke="#dc2626" stroke-width="2" '
                   'stroke-dasharray="3 2"/>')
    return out


def legend_of(sides):
    """Places (x, y below the first line) of the legend's sides by name, and of what follows them."""
    places, x, line = {}, 20, 0
    for side in sides:
        width = 34 + 7 * len(side)
        if x + width > WIDTH:
            x, line = 20, line + 18
        places[side] = x, line
        x += width
    return places, (x, line)


def colours_of(sides):
    """A colour for each side of a figure; no two have the same."""
    own = {side: COLOURS[side] for side in sides if side in COLOURS}
    rest = iter([each for each in PALETTE if each not in own.values()])
    return {side: own[side] if side in own else next(rest) for side in sides}


def text_at(x, y, text, anchor="start", size=12, weight="normal", fill="#0f172a"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{fill}">{html.escape(text)}</text>')
