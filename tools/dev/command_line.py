"""Command line: the commands by name, and the status of each."""

import os
import signal
import sys

from dev import (analysis, apt, benchmarks, build_times, building, demo, formatting, fuzzing,
                 output, packages, packaging, processes, suites, testing)
from dev.output import Failure, say, usage, warn


def install(*_):
    apt.need(*packages.BUILD, *packages.test(), *packages.bench(), *packages.LINT,
             *packages.PACKAGING)
    return 0


def build(*_):
    building.build()
    say(f"Built {building.PROGRAM}")
    return 0


def show_help(*_):
    say(usage())
    return 0


# Each takes the words after its name, and returns the status.
COMMANDS = {
    "install": install,
    "build": build,
    "build-times": build_times.show,
    "run": lambda *_: demo.run(),
    "test": testing.test,
    "bench": benchmarks.bench,
    "clients": suites.clients,
    "conformance": suites.conformance,
    "fuzz": fuzzing.fuzz,
    "coverage": lambda *_: analysis.coverage(),
    "doc": lambda *_: building.reference(),
    "package": packaging.package,
    "format": lambda *_: formatting.rewrite(),
    "lint": analysis.lint,
    "help": show_help,
    "-h": show_help,
    "--help": show_help,
}


def dispatch(arguments):
    """The status of the command that the words name."""
    name, *rest = arguments or ["help"]
    name = name or "help"
    # `clients` has a help of its own.
    if rest[:1] in (["-h"], ["--help"]) and name != "clients":
        return show_help()
    if name not in COMMANDS:
        warn(usage())
        raise Failure(f"there is no command {name}")
    return COMMANDS[name](*rest)


def main(arguments):
    output.prepare()
    processes.raise_interrupts()
    try:
        return dispatch(arguments)
    except Failure as failure:
        warn(f"eddy-dev: {failure}")
        return 1
    except processes.Interrupted as interrupt:
        processes.end_by(interrupt.number)
    except BrokenPipeError:
        # The buffered output has no reader, and must not be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        processes.end_by(signal.SIGPIPE)
    except OSError as error:
        warn(f"eddy-dev: {error}")
    return 1
