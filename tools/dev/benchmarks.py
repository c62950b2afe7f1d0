"""Benchmarks: the scripts bench/run_NAME.py."""

import glob
import os
import re

from dev import apt, building, packages, rivals
from dev.output import Failure, read_lines, say
from dev.processes import foreground, replace

FOLDER = "bench"


def describe(script):
    """A Python script's first sentence, or the first comment after its first line."""
    for line in read_lines(script)[1:6]:
        if found := re.match(r'(?:# +|""")([^"]+)', line):
            return found[1]
    return ""


def scripts():
    return sorted(glob.glob(f"{FOLDER}/run_*.py"))


def show():
    say("./eddy-dev bench NAME, where NAME is `all`, one after another in about an hour, "
        "or one of:")
    for script in scripts():
        name = script.removeprefix(f"{FOLDER}/run_").removesuffix(".py")
        say(f"    {name:<16} {describe(script)}")


def _build():
    say("Building the benchmarks")
    asio = rivals.asio()
    rivals.valkey_8()
    building.require(
        building.configure("release", "-DEDDY_BENCH=ON", f"-DEDDY_ASIO_INCLUDE={asio}")
        and building.compile_targets("release", "all"))
    os.environ["EDDY_BINARY"] = os.path.abspath(building.PROGRAM)
    os.environ["EDDY_BENCH_DIR"] = os.path.abspath("build/release/bench")
    os.environ["EDDY_ASIO_INCLUDE"] = asio


def bench(name="", *arguments):
    """Lists the benchmarks, or runs one, or all."""
    if not name:
        show()
        return 0
    chosen = scripts() if name == "all" else [f"{FOLDER}/run_{name}.py"]
    if not chosen or not os.path.exists(chosen[0]):
        raise Failure(f"there is no benchmark {name}; `./eddy-dev bench` lists those there are")
    apt.need(*packages.BUILD, *packages.bench(), *packages.test())
    _build()
    if name != "all":
        replace(["python3", chosen[0], *arguments])
    has_failed = False
    for script in chosen:
        say(f"--- {script}")
        has_failed |= foreground(["python3", script, *arguments]) != 0
    return 1 if has_failed else 0
