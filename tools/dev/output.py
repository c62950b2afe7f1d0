"""Output of the command: lines for the user, failures, durations, and ends of logs."""

import collections
import os
import sys

USAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "usage.txt")


class Failure(Exception):
    """An error with a reason for the user: `eddy-dev: REASON`, and the status is 1."""


def prepare():
    """Standard output and error in UTF-8; bytes that are none pass through unchanged."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def say(text="", file=None):
    """One line, at once: children write to the same terminal or file."""
    print(text, file=file or sys.stdout, flush=True)


def warn(text):
    say(text, file=sys.stderr)


def usage():
    """The text of `./eddy-dev help`, without the end of its last line."""
    with open(USAGE, encoding="utf-8") as file:
        return file.read().rstrip("\n")


def minutes(seconds):
    """A duration as `M:SS`."""
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02}"


def read_lines(path):
    """The lines of a log, without their ends. Fails with OSError where there is none."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


def show_tail(path, count, file=None):
    """The last `count` lines of a log; nothing where there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as log:
            lines = collections.deque(log, count)
    except OSError:
        return
    for line in lines:
        say(line.rstrip("\n"), file=file)
