#!/usr/bin/env python3
"""Servers of lines: Eddy's, with and without a script, against a plain loop of epoll in one thread."""

import os
import sys

import harness
import report
from harness import Load, Program, RateGoal, sample

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
from dev import rivals  # noqa: E402

PLAIN, LUA = "epoll", "eddy with Lua"
RESTY, CACHE = "lua-resty-redis", "eddy.cache"
DRIVERS = "build/rivals/lua-drivers/usr/share/lua/5.1"
MOST = "12000"


def load(label, flags, script, *goals, plain="line_epoll", unit="msg/s"):
    """`script` is the Lua side's; `plain` the loop's program and flags."""
    sides = {PLAIN: plain, "eddy": None, LUA: script}
    if "--mode echo" in flags:
        del sides["eddy"]  # without a script it forwards to others alone
    return Load(label, f"line_load {flags}", sides, *goals, judged="eddy" if "eddy" in sides else LUA, rivals=(PLAIN,),
                unit=unit)


LEVEL = RateGoal("≥ 1.00 × epoll", 1.0, PLAIN, or_cpu=True)
LUA_090 = RateGoal("with Lua ≥ 0.90 ×", 0.9, PLAIN, side=LUA, or_cpu=True)
ACCEPT_090 = RateGoal("with Lua ≥ 0.90 × without", 0.9, "eddy", side=LUA, or_cpu=True)


def at_least(deliveries, side):
    return harness.Goal(f"{side} ≥ {deliveries / 1e6:.0f} M/s", lambda found: found.of(side).median >= deliveries)


LOADS = [
    load("connections, 16 at a time", "--mode connect --senders 16", "count.lua", LEVEL, ACCEPT_090, unit="conn/s"),
    load("connections, 2,000 at once", "--mode connect --senders 2000", "count.lua", LEVEL, LUA_090, unit="conn/s"),
    load("connections, 5,000 at once", "--mode connect --senders 5000", "count.lua", LEVEL, LUA_090, unit="conn/s"),
    load("one client, 64 B", "--mode broadcast --payload 64", "broadcast.lua", LEVEL, LUA_090),
    load("one client, 1 KiB", "--mode broadcast --payload 1024", "broadcast.lua", LEVEL, LUA_090),
    load("100 clients", "--mode broadcast --senders 100 --window 20", "broadcast.lua", LEVEL, LUA_090),
    load("50 receivers", "--mode broadcast --receivers 50", "broadcast.lua", LEVEL, LUA_090, at_least(6e6, "eddy"),
         at_least(6e6, LUA)),
    load("5,000 receivers", "--mode broadcast --receivers 5000 --window 100", "broadcast.lua", LEVEL, LUA_090,
         at_least(6e6, "eddy"), at_least(6e6, LUA)),
    load("echo, one line at a time", "--mode echo --window 1", "echo.lua",
         RateGoal("≥ 0.95 ×", 0.95, PLAIN, side=LUA), plain="line_epoll --echo 1"),
    load("echo, 50 clients", "--mode echo --senders 50 --window 1", "echo.lua",
         RateGoal("≥ 0.95 ×", 0.95, PLAIN, side=LUA), plain="line_epoll --echo 1"),
    load("echo, lines under way", "--mode echo --senders 16 --window 1000 --payload 32", "echo.lua",
         at_least(2e6, LUA), plain="line_epoll --echo 1"),
]

# Each side has a descriptor for each client, which some systems do not allow.
MANY = load("10,000 receivers", "--mode broadcast --receivers 10000 --window 50", "broadcast.lua", LEVEL, LUA_090)

# The same script but for one line: a thousand GETs in a row for each message. Redis has the load's core, which waits
# meanwhile.
GETS = Load("1,000 GETs of a script a message", "line_load --mode echo --window 1",
            {RESTY: "gets_redis.lua", CACHE: "gets_cache.lua"}, RateGoal("≥ 10 × lua-resty-redis", 10, RESTY, side=CACHE),
            judged=CACHE, rivals=(RESTY,), unit="msg/s")


class Getting(harness.Eddy):
    """A server with a script that reads a key: of a cache beside it, or of Redis over loopback."""

    def __init__(self, core, side, script):
        super().__init__(core, runtime=None)
        self.name, self.script, self.redis = side, script, None

    def after_start(self):
        script = os.path.join(HERE, "server", self.script)
        if self.name == RESTY:
            cores = sorted(os.sched_getaffinity(0))
            self.redis = harness.Redis(next((each for each in cores if each != self.core), self.core))
            self.redis.__enter__()
            with open(script, encoding="utf-8") as file:
                script = self.written("gets.lua", file.read().replace("PORT", str(self.redis.port)))
        else:
            self.create("cache", "db")
        self.port = self.create("server", "bench", "--lua", script, "--lua-time", "60s", "--lua-path",
                                os.path.abspath(DRIVERS))

    def __exit__(self, *of):
        super().__exit__(*of)
        if self.redis:
            self.redis.__exit__(*of)


def start(core, side, command):
    if side in (RESTY, CACHE):
        return Getting(core, side, command)
    if side == PLAIN:
        return Program(core, side, command)
    more = ["--lua", os.path.join(HERE, "server", command)] if side == LUA else []
    made = harness.Eddy(core, "--max-connections", MOST, *more, runtime="server")
    made.name = side
    return made


class Row(report.Row):
    def json(self):
        return {"row": self.load.label, "goals": self.goals, "samples": self.comparison.samples}


def main():
    chosen = harness.begin(__doc__)
    loads = [*LOADS, MANY, GETS]
    if not chosen.render:
        rivals.lua_drivers()
        if (most := harness.raise_descriptor_limit()) < int(MOST):
            print(f"a process may open {most} files: no row of {MANY.label}", file=sys.stderr)
            loads.remove(MANY)
    rows = [Row(load, comparison) for load, _, comparison in sample(chosen, loads, start)]
    columns = [report.SERVER, report.RATE, ("to epoll", report.to_rival), report.REMARK, report.COST,
               *report.CPU]
    return report.leave_servers("server", chosen, rows, columns, "Servers of lines on one core", "Eddy to epoll",
                                "Rates of servers of lines in multiples of a plain loop")


if __name__ == "__main__":
    harness.run(main)
