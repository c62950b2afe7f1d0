"""Steps with their output in a log: progress is one line on a terminal, else one each 30 s."""

import os
import re
import subprocess
import sys
import time

from dev.output import minutes, say
from dev.processes import NOT_FOUND, group, status_of

LOGS = "build/log"
REPORT_S = 30
# At most this much of the log's end is searched for the progress.
PROGRESS_BYTES = 65_536
PROGRESS_LINES = 5
# As ninja and run_tests.py print it.
PROGRESS = re.compile(r"^(?:\[[0-9]+/[0-9]+\]| *[0-9]+/[0-9]+ Test)", re.M)
CLEAR_REST = "\x1b[K"


def log_of(step):
    return f"{LOGS}/{step}.log"


def progress(path):
    """The last mark of progress in a log's end, such as `[12/345]`, or an empty text."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - PROGRESS_BYTES))
            end = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = end.removesuffix("\n").split("\n")[-PROGRESS_LINES:]
    marks = PROGRESS.findall("\n".join(lines).replace("\r", "\n"))
    return marks[-1] if marks else ""


def _wait(child, seconds):
    """The status, or None if the child has not ended by then."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _follow(child, path):
    begin, report = time.monotonic(), REPORT_S
    on_terminal = sys.stdout.isatty()
    elapsed = 0.0
    # Short steps are polled often: their end is shown at once.
    while (status := _wait(child, 0.1 if elapsed < 2 else 1)) is None:
        elapsed = time.monotonic() - begin
        if on_terminal:
            sys.stdout.write(f"\r    {minutes(elapsed)}  {progress(path)}  {CLEAR_REST}")
            sys.stdout.flush()
        elif elapsed >= report:
            say(f"    {minutes(elapsed)}  {progress(path)}")
            report += REPORT_S
    return status_of(status)


def logged(step, command):
    """The status of a command whose output goes to the step's log. Shows its progress."""
    os.makedirs(LOGS, exist_ok=True)
    path = log_of(step)
    with open(path, "wb") as log:
        try:
            with group(command, stdin=subprocess.DEVNULL, stdout=log,
                       stderr=subprocess.STDOUT) as child:
                return _follow(child, path)
        except FileNotFoundError:
            log.write(f"eddy-dev: {command[0]}: command not found\n".encode())
            return NOT_FOUND
        finally:
            if sys.stdout.isatty():
                sys.stdout.write(f"\r{CLEAR_REST}")
                sys.stdout.flush()
