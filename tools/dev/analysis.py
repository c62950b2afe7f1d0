"""Analysis of the code: clang-tidy, and the lines that the tests reach."""

import os

from dev import apt, building, packages
from dev.output import say
from dev.processes import foreground

COVERED_LAYERS = ("base", "io", "net", "tls")


def lint(pattern="", *_):
    """clang-tidy on the files that match, or on src/ without its tests."""
    apt.need(*packages.BUILD, *packages.test(), *packages.bench(), *packages.LINT)
    building.require(building.configure("release", "-DEDDY_TESTS=ON"))
    return foreground([f"run-clang-tidy-{packages.CLANG}", "-p", "build/release", "-quiet",
                       "-j", str(building.jobs()),
                       pattern or rf"{os.getcwd()}/src/(?!.*_test\.cpp)"])


def coverage():
    apt.need(*packages.BUILD, *packages.test())
    say("Building the tests of " + " ".join(COVERED_LAYERS))
    building.require(building.configure(
        "coverage", "-DEDDY_TESTS=ON", "-DEDDY_LAYERS=" + ";".join(COVERED_LAYERS)))
    for layer in COVERED_LAYERS:
        building.require(building.compile_targets("coverage", f"{layer}_test"))
    status = foreground(["python3", "tools/coverage.py", "build/coverage",
                         "--html", "build/coverage/coverage", *COVERED_LAYERS])
    if status == 0:
        say("Line by line: build/coverage/coverage/index.html")
    return status
