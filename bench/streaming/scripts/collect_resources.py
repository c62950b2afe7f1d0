#!/usr/bin/env python3
"""Resource collection: a sample of a process and all its descendants each interval, as a line of CSV.

Usage: collect_resources.py PID OUTPUT.csv [METRICS_PORT]

Sizes and CPU times are sums over the processes, so memory that forked workers share counts once for each.
"""

import contextlib
import os
import re
import signal
import sys
import time
import urllib.request

COLUMNS = "timestamp,rss_kb,vsz_kb,threads,utime,stime,cpu_pct,active_conns"
SCRAPE_WITHIN_S = 2
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


def tree(pid):
    """The process and its descendants; those of all its threads."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{parent}/task/{thread}/children") as file:
                    found += map(int, file.read().split())
    return found


class Usage:
    """Resources that the processes hold and have used. `is_alive` is false once the first has ended."""

    def __init__(self, pid):
        self.rss_kb = self.vsz_kb = self.threads = self.utime = self.stime = 0
        self.is_alive = False
        for one in tree(pid):
            try:
                with open(f"/proc/{one}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()  # from the third on: proc_pid_stat(5)
            except OSError:
                continue
            self.is_alive |= one == pid and fields[0] not in "ZX"
            self.utime += int(fields[11])
            self.stime += int(fields[12])
            self.threads += int(fields[17])
            self.vsz_kb += int(fields[20]) // 1024
            self.rss_kb += int(fields[21]) * PAGE_KB


def active_connections(port):
    """The connections of the daemon's metrics; empty where there are none."""
    if not port:
        return ""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SCRAPE_WITHIN_S) as response:
            text = response.read().decode(errors="replace")
    except OSError:
        return ""
    values = re.findall(r"^daemon_active_connections(?:\{[^}]*\})? ([0-9.e+]+)$", text, re.M)
    return str(int(sum(map(float, values)))) if values else ""


def collect(pid, path, port, interval_s):
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    signal.signal(signal.SIGINT, lambda *_: stopping.append(True))
    with open(path, "w", encoding="ascii", buffering=1) as out:
        print(COLUMNS, file=out)
        last = last_time = None
        due = time.monotonic()
        while True:
            now, usage = time.monotonic(), Usage(pid)
            if not usage.is_alive:
                return
            ticks = usage.utime + usage.stime
            share = 100 * (ticks - last) / TICKS_A_SECOND / (now - last_time) if last is not None else 0.0
            last, last_time = ticks, now
            seconds, nanoseconds = divmod(time.time_ns(), 10**9)
            print(f"{seconds}.{nanoseconds:09},{usage.rss_kb},{usage.vsz_kb},{usage.threads},{usage.utime},{usage.stime},"
                  f"{share:.1f},{active_connections(port)}", file=out)
            due = max(due + interval_s, time.monotonic())
            while not stopping and time.monotonic() < due:
                time.sleep(min(0.05, max(0, due - time.monotonic())))
            if stopping:
                return


def main():
    if len(sys.argv) not in (3, 4) or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    pid, path, port = int(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else ""
    if not Usage(pid).is_alive:
        sys.exit(f"collect_resources.py: there is no process {pid}")
    collect(pid, path, port, float(os.environ.get("INTERVAL", "1")))


if __name__ == "__main__":
    main()
