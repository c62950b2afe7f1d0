"""Suites that others made: client libraries, and public conformance suites."""

from dev import apt, building, packages
from dev.output import Failure, usage, warn
from dev.processes import replace

CLIENTS = ["python3", "tests/clients/run.py"]


def clients(*arguments):
    """The cache with the clients and libraries that people use."""
    if arguments[:1] in (("--list",), ("--help",), ("-h",)):
        replace([*CLIENTS, *arguments])
    if arguments[:1] == ("--install",):
        arguments = arguments[1:]
        apt.need(*packages.CLIENTS)
    apt.need(*packages.BUILD, *packages.test())
    building.use_built_program()
    replace([*CLIENTS, *arguments])


def conformance(suite="", *arguments):
    """`websocket` [CASE...], or `redis` [--redis] [--slow] [UNIT...]."""
    if suite == "redis":
        apt.need(*packages.BUILD, "redis-server", "redis-tools", "tcl")
        building.use_built_program()
        replace(["python3", "tests/redis_suite.py", *arguments])
    if suite != "websocket":
        warn(usage())
        raise Failure("the conformance suites are websocket and redis")
    apt.need(*packages.BUILD, *packages.test())
    building.require(building.configure_release("-DEDDY_TESTS=ON")
                     and building.compile_targets("release", "websocket_conformance"))
    replace(["python3", "tests/autobahn.py", "build/release/test/websocket_conformance",
             *arguments])
