"""Slowest steps of a build, from ninja's log."""

import os

from dev import building
from dev.output import Failure, say

DEFAULT_PRESET = "release"
DEFAULT_COUNT = 10
USAGE = "build-times takes a preset and --count N"


def parse(arguments):
    """The preset and the number of steps. Fails on anything else."""
    preset, count = DEFAULT_PRESET, DEFAULT_COUNT
    words = iter(arguments)
    for word in words:
        if word == "--count":
            number = next(words, "")
            if not number.isdecimal() or int(number) == 0:
                raise Failure(f"{USAGE}, where N is a number from 1 on")
            count = int(number)
        elif word.startswith("-"):
            raise Failure(f"{USAGE}, not {word}")
        else:
            preset = word
    return preset, count


def times(lines):
    """Seconds and output of each step as it last ran, the slowest first."""
    steps = {}
    for line in lines:
        fields = line.split("\t")
        if len(fields) == building.NINJA_FIELDS:
            begin, end, _, output, digest = fields
            steps[output] = int(begin), int(end), digest
    # A step with several outputs has a line for each.
    first = {}
    for output, step in steps.items():
        first.setdefault(step, output)
    return sorted((((end - begin) / 1000, output) for (begin, end, _), output in first.items()),
                  key=lambda step: (-step[0], step[1]))


def show(*arguments):
    preset, count = parse(arguments)
    # The log has the steps of files that were moved since, too.
    found = [step for step in times(building.ninja_steps(preset)) if os.path.exists(f"build/{preset}/{step[1]}")]
    if not found:
        raise Failure(f"build/{preset} has no times of a build")
    say(f"The slowest steps of build/{preset}, in seconds, each as it last ran:")
    for seconds, output in found[:count]:
        say(f"{seconds:9.1f}  {output}")
    say(f"{sum(seconds for seconds, _ in found):9.1f}  all {len(found)} steps, one after another")
    return 0
