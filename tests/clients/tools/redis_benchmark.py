"""redis-benchmark with its whole default set, and its common options."""

import csv
import subprocess

from steps import CA, PORT, check, finish, needs, say, step


BASE = ["redis-benchmark", "-p", str(PORT), "-e", "--csv"]
if CA is not None:
    BASE += ["--tls", "--cacert", CA]


def bench(*words):
    """The rows of --csv as {test: requests a second}; any error of the server ends it."""
    done = subprocess.run([*BASE, *words], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode, 0, done.stdout[-1000:] + done.stderr[-1000:])
    check("Error from server" in done.stdout + done.stderr, False, done.stdout[-1000:] + done.stderr[-1000:])
    rows = list(csv.reader(line for line in done.stdout.splitlines() if line.startswith('"')))
    check(rows[0][:2], ["test", "rps"])
    return {row[0]: float(row[1]) for row in rows[1:]}


def whole_default_set():
    results = bench("-n", "2000")
    # MSET and the four LRANGEs come last: nothing of the set is left out.
    for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET",
                 "SPOP", "ZADD", "ZPOPMIN", "LRANGE_100 (first 100 elements)", "LRANGE_600 (first 600 elements)",
                 "MSET (10 keys)"):
        check(results.get(name, 0) > 0, True, f"{name} in {results}")


def pipelined():
    check(len(bench("-n", "20000", "-P", "100", "-r", "1000", "-t", "set,get,lpush,lpop,sadd,hset")), 6)


def many_clients():
    check(len(bench("-n", "5000", "-c", "500", "-t", "set,get")), 2)


def large_values():
    check(len(bench("-n", "500", "-d", "100000", "-t", "set,get")), 2)


def threads():
    check(len(bench("-n", "5000", "--threads", "2", "-t", "set,get")), 2)


def a_connection_each():
    check(len(bench("-n", "500", "-k", "0", "-t", "ping")), 2)


def database():
    check(len(bench("-n", "500", "--dbnum", "3", "-t", "set")), 1)


def own_command():
    check(len(bench("-n", "1000", "-r", "100", "zadd", "bench", "__rand_int__", "member:__rand_int__")), 1)


def scripts():
    needs("eval")
    check(len(bench("-n", "1000", "eval", "return redis.call('incr', KEYS[1])", "1", "scripted")), 1)


say("version " + subprocess.run(["redis-benchmark", "--version"], capture_output=True, text=True, check=True)
    .stdout.split()[1])
for function in [whole_default_set, pipelined, many_clients, large_values, threads, a_connection_each, database,
                 own_command, scripts]:
    step(function.__name__.replace("_", " "), function)
finish()
