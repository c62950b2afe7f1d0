"""Fuzzing of the targets of build/asan, each from its corpus and with its dictionary."""

import glob
import os

from dev import apt, building, packages
from dev.output import Failure, say
from dev.processes import foreground

FOLDER = "build/asan/fuzz"
DEFAULT_S = "60"


def targets(wanted):
    """Names of the fuzz targets that were built: all, or the wanted one."""
    found = sorted(path for path in glob.glob(f"{FOLDER}/*")
                   if os.path.isfile(path) and os.access(path, os.X_OK))
    return [name for name in map(os.path.basename, found) if not wanted or name == wanted]


def command(name, length):
    """The target's command, for `length` seconds. A crash is left beside the target."""
    folders = [f"{FOLDER}/found/{name}"]
    dictionary = f"fuzz/dictionary/{name}.dict"
    if os.path.isdir(f"fuzz/corpus/{name}"):
        folders.append(f"fuzz/corpus/{name}")
    return [f"{FOLDER}/{name}", f"-max_total_time={length}", "-timeout=30", "-print_final_stats=1",
            *([f"-dict={dictionary}"] if os.path.isfile(dictionary) else []),
            f"-artifact_prefix={FOLDER}/{name}-", *folders]


def fuzz(wanted="", length="", *_):
    length = length or DEFAULT_S
    apt.need(*packages.BUILD, *packages.test())
    say("Building the fuzz targets")
    building.require(building.configure("asan") and building.compile_targets("asan", "fuzzers"))
    chosen = targets(wanted)
    if not chosen:
        raise Failure(f"there is no fuzz target {wanted or 'at all'}")
    has_failed = False
    for name in chosen:
        say(f"--- {name} for {length} s; a crash is left as {FOLDER}/{name}-*")
        os.makedirs(f"{FOLDER}/found/{name}", exist_ok=True)
        has_failed |= foreground(command(name, length)) != 0
    return 1 if has_failed else 0
