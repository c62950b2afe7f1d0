#!/usr/bin/env python3
"""The headline ratios of docs/benchmarks.md, as a table and a figure, from the tables of docs/benchmarks/.

Each run that changes a table brings them up to date; `python3 bench/headlines.py` does so by hand. A ratio is
above 1 where Eddy is better.
"""

import glob
import os
import re

import harness
import report

PAGE = os.path.join(harness.ROOT, "docs/benchmarks.md")
FIGURE = os.path.join(harness.ROOT, "docs/figures/headlines.svg")
UNTRUSTED = "the figures are not to be trusted"
# Labels and rivals, the logarithmic scale, then ratios at the right.
RIVALS, LEFT, PLOT, WIDTH, TOP, STEP = 318, 430, 400, 960, 84, 22


class Headline:
    """One line: what was measured, against what, and the rows of a benchmark's table that it sums up.

    With `under`, the ratios are quotients of two rows or columns; otherwise `over` is a column of ratios.
    """

    def __init__(self, label, rival, benchmark, rows, over, under=None, link=""):
        self.label, self.rival, self.benchmark, self.rows = label, rival, benchmark, rows
        self.over, self.under, self.link = over, under, link

    def ratios(self, table):
        rows = [row for label, row in table.items() if re.fullmatch(self.rows, label)]
        if self.under is None:
            found = [number(row[self.over]) for row in rows]
        elif self.over in next(iter(table.values())):
            found = [number(row[self.over]) / number(row[self.under]) for row in rows]
        else:  # a column of the table, in the rows of two sides
            over, under = ({label.removesuffix(side): row for label, row in table.items() if label.endswith(side)}
                           for side in (f": {self.over}", f": {self.under[0]}"))
            found = [number(over[label][self.under[1]]) / number(under[label][self.under[1]])
                     for label in over if label in under and re.fullmatch(self.rows, label)]
        if not found:
            raise harness.Failure(f"no row of {self.benchmark} is named {self.rows}")
        return found


P50, M_S = "p50 µs", "M/s"
ROUND_TRIP, ONE_WAY = "4 B there, 1 KiB back", "64 B one way"
HEADLINES = (
    Headline("commands, 100 in a pipeline", "Redis 7.0", "resp", ".*, P=100", "eddy / redis", link="cache.md#cache-commands-a-second"),
    Headline("commands, 10 in a pipeline", "Redis 7.0", "resp", ".*, P=10", "eddy / redis", link="cache.md#cache-commands-a-second"),
    Headline("commands, one at a time", "Redis 7.0", "resp", ".*, P=1", "eddy / redis", link="cache.md#cache-commands-a-second"),
    Headline("SETs, append-only file, always, one at a time", "Redis 7.0", "durable", "SET, always, P=1", "eddy / redis",
             link="cache.md#cache-with-an-append-only-file"),
    Headline("SETs, append-only file, otherwise", "Redis 7.0", "durable", "SET, (?!always, P=1$).*", "eddy / redis",
             link="cache.md#cache-with-an-append-only-file"),
    Headline("a cache's second thread, two shared cores", "one thread", "threads", ".*", "2 threads / 1", link="cache.md#cache-threads"),
    Headline("memory of a key", "Redis 7.0", "memory", "bytes a key", "redis", "eddy", link="cache.md#memory-and-idling"),
    Headline("memory of a connection to the cache", "Redis 7.0", "memory", "bytes a connection, cache", "redis", "eddy",
             link="cache.md#memory-and-idling"),
    Headline("wait of others: DEL, FLUSHALL, snapshot, expiry", "Redis 7.0", "stalls",
             "longest PING (of another client meanwhile|during a snapshot of .*|until they are freed|in 2 s in which .*)",
             "redis", "eddy", link="cache.md#stalls"),
    Headline("TCP echo", "Asio", "echo", ".*: eddy", "to Asio", link="library.md#echo-the-library-alone"),
    Headline("TLS echo", "Asio", "tls", ".*: eddy", "to Asio", link="library.md#tls"),
    Headline("UDP echo", "Asio", "udp", ".*: eddy", "to Asio", link="library.md#udp-echo-the-library-alone"),
    Headline("UDP echo, datagrams joined by the kernel", "Asio", "udp", r"\d × 32.*: eddy segments", "to Asio",
             link="library.md#udp-echo-the-library-alone"),
    Headline("blocking sockets: echo, connect and close", "Asio", "blocking", "(echo|churn).*: eddy", "rate to Asio's",
             link="library.md#blocking-sockets-and-idle-waits"),
    Headline("poll of a loop with nothing to do", "Asio", "blocking", "idle wait: eddy", "rate to Asio's",
             link="library.md#blocking-sockets-and-idle-waits"),
    Headline("timers: arm, cancel, put off", "Asio", "timers", "(arm|put).*", "asio ns", "eddy ns", link="library.md#timers"),
    Headline("HTTP: echo and files", "the best of nginx, h2o, hyper, fasthttp, Bun", "http", "(echo|static)(?!.*by wrk).*: eddy",
             "to the best rival", link="web.md#http-and-websocket-servers"),
    Headline("HTTPS: files", "the best of nginx, h2o, fasthttp, Bun", "http", "HTTPS(?!.*by wrk).*: eddy", "to the best rival",
             link="web.md#http-and-websocket-servers"),
    Headline("WebSocket echo", "the better of Bun, fasthttp", "http", "WebSocket.*: eddy", "to the best rival",
             link="web.md#http-and-websocket-servers"),
    Headline("a site's second thread, two shared cores", "one thread", "http_threads", ".*", "2 threads / 1", link="web.md#site-threads"),
    Headline("streams: CPU of the daemon", "Go", "handoff", ".*", "go", ("eddy", "CPU % of a core"), link="streaming.md"),
    Headline("streams: CPU of the daemon, openai", "Rust", "handoff", ".*", "rust", ("eddy", "CPU % of a core"), link="streaming.md"),
    Headline("shared memory: round trip", "a Unix socket", "shm", ROUND_TRIP, "Unix socket", ("eddy", P50), link="shared-memory.md"),
    Headline("shared memory: round trip", "Aeron", "shm", ROUND_TRIP, "Aeron", ("eddy", P50), link="shared-memory.md"),
    Headline("shared memory: 64 B one way, copied", "Aeron", "shm", ONE_WAY, "eddy", ("Aeron", M_S), link="shared-memory.md"),
    Headline("shared memory: connect and close", "a Unix socket", "shm", "connect and close", "Unix socket", ("eddy", P50),
             link="shared-memory.md"),
)


def number(cell):
    """The figure that a cell begins with; units of the two sides of a quotient are the same."""
    return float(re.match(r"[\d ]+(?:\.\d+)?", cell).group(0).replace(" ", ""))


def blocks():
    """{benchmark: the text between its markers} of all pages."""
    found = {}
    for path in glob.glob(os.path.join(harness.ROOT, "docs/benchmarks/*.md")):
        with open(path, encoding="utf-8") as file:
            for match in re.finditer(r"<!-- (\w+):begin -->\n(.*?)<!-- \1:end -->", file.read(), re.S):
                found[match.group(1)] = match.group(2)
    return found


def rows_of(block):
    """{label: {column: cell}} of all tables of a block. `load: side` is the label where a side has a column of its own."""
    rows, header, load = {}, None, ""
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            header = None
        elif header is None:
            header = cells
        elif not cells[0].startswith("---"):
            load = cells[0] or load
            label = f"{load}: {cells[1].split(' × ')[0]}" if header[:2] == ["load", "daemon"] else load
            rows[label] = dict(zip(header, cells))
    return rows


def span(ratios):
    low, high = report.figures(min(ratios)), report.figures(max(ratios))
    return f"{low} ×" if low == high else f"{low}–{high} ×"


def figure(lines):
    """Bars from the least to the greatest ratio on a logarithmic scale."""
    share, scale = report.powers(min(min(ratios) for _, ratios, _ in lines), max(max(ratios) for _, ratios, _ in lines))
    bottom = TOP + STEP * len(lines)
    height = bottom + 44
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           report.text_at(20, 28, "Eddy against others", size=17, weight="600"),
           report.text_at(20, 48, "from the least to the greatest ratio of a benchmark's rows; right of 1 Eddy is better", fill="#64748b")]
    for value in scale:
        x = LEFT + PLOT * share(value)
        out += [f'<path d="M{x:.1f} {TOP - 10}V{bottom}" stroke="{"#0f172a" if value == 1 else "#e2e8f0"}"/>',
                report.text_at(x, bottom + 16, f"{value:g}", anchor="middle", fill="#64748b")]
    out.append(report.text_at(LEFT + PLOT / 2, bottom + 36, "times the other", anchor="middle", fill="#64748b"))
    for index, (headline, ratios, mark) in enumerate(lines):
        y = TOP + STEP * index
        low, high = (LEFT + PLOT * share(value) for value in (min(ratios), max(ratios)))
        fill = "#dc2626" if max(ratios) < 0.97 else "#0f766e" if min(ratios) > 1.03 else "#94a3b8"
        rival = headline.rival if len(headline.rival) < 20 else "the best"
        out += [report.text_at(RIVALS, y + 9, headline.label, anchor="end"),
                report.text_at(RIVALS + 12, y + 9, rival, fill="#64748b"),
                f'<rect x="{low - 4:.1f}" y="{y - 1}" width="{high - low + 8:.1f}" height="12" rx="4" fill="{fill}"/>',
                report.text_at(WIDTH - 20, y + 9, span(ratios) + mark, anchor="end", weight="600")]
    return "\n".join(out + ["</svg>", ""])


def headlines():
    """The lines of the page, and the figure."""
    found = blocks()
    lines = [(each, each.ratios(rows_of(found[each.benchmark])), " †" if UNTRUSTED in found[each.benchmark] else "") for each in HEADLINES]
    table = report.table(["", "against", "Eddy, from row to row"],
                         [[f"[{each.label}](benchmarks/{each.link})", each.rival, span(ratios) + mark] for each, ratios, mark in lines])
    return f"{table}\n\n![Eddy's ratios to others, on a logarithmic scale](figures/headlines.svg)", figure(lines)


def write():
    text, svg = headlines()
    report.replace(PAGE, "headlines", text)
    with open(FIGURE, "w", encoding="utf-8") as file:
        file.write(svg)


if __name__ == "__main__":
    write()
