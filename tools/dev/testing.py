"""Run of the chosen test stages; the last line is the count."""

import os
import re
import time

from dev import apt, building, packages, stages, steps, tally
from dev.output import Failure, minutes, read_lines, say

SLOWEST = 10
# The build of the release fails, and so would the sanitized ones.
NOT_BUILT = 2
TEST_TIME = re.compile(r" *[0-9]+/[0-9]+ Test (.*) [^ ]+ +([0-9.]+) sec")


def choose(arguments):
    """The stages that the options name, the last option first. Fails on any other word."""
    every = stages.FIRST + stages.MORE
    sets = {"--quick": stages.QUICK, "--all": every, "--more": stages.MORE}
    chosen = stages.FIRST
    words = iter(arguments)
    for word in words:
        if word in sets:
            chosen = sets[word]
        elif word == "--only":
            stage = next(words, "")
            if stage not in every:
                raise Failure("--only takes one of: " + " ".join(every))
            chosen = (stage,)
        else:
            raise Failure(f"test takes --quick, --all, --more or --only STAGE, not {word}")
    return chosen


def note_folder():
    """Names the folder that the compiler's cache serves: see .ci/run."""
    cache = os.environ.get("CCACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ccache")
    if os.path.isdir(cache):
        with open(f"{cache}/eddy-folder", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{os.getcwd()}\n")


def slowest(lines):
    """The lines `SECONDS NAME` that are the greatest."""
    def order(line):
        return float(line.split(" ", 1)[0]), line

    return sorted(lines, key=order, reverse=True)[:SLOWEST]


def test_times(logs):
    """`SECONDS NAME` of each test that ran."""
    found = (TEST_TIME.fullmatch(line) for log in logs for line in read_lines(log))
    return [f"{match[2]} {match[1]}" for match in found if match]


def _show_slowest(title, lines):
    say()
    say(title)
    for line in slowest(lines):
        say(f"    {line}")


def test(*arguments):
    begin = time.monotonic()
    chosen = choose(arguments)
    apt.need(*packages.BUILD, *packages.test())
    if compiler := packages.compiler():
        apt.need(compiler)
    note_folder()
    # Several runs with one count, as .ci/run has them.
    count = tally.Tally(os.environ.get("EDDY_TEST_TALLY", ""))
    os.makedirs(steps.LOGS, exist_ok=True)
    with open(building.STEPS, "w", encoding="utf-8"):
        pass
    run = stages.Stages(count)
    for stage in chosen:
        run.run(stage)
        # Where the plain build fails, the sanitized ones fail too, only later.
        if run.is_release_built is False:
            break
    count.save()
    if built := read_lines(building.STEPS):
        _show_slowest("The slowest build steps, in seconds:", built)
    if run.logs:
        _show_slowest("The slowest tests, in seconds:", test_times(run.logs))
    say()
    say(f"Summary after {minutes(time.monotonic() - begin)}:")
    for line in count.summary:
        say(f"    {line}")
    say(count.last_line())
    if run.is_release_built is False:
        return NOT_BUILT
    return 0 if count.is_good() else 1
