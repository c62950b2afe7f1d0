"""redis-cli in the modes that people use."""

import json
import os
import subprocess
import time

from steps import CA, DEADLINE_S, PORT, RESP, check, eventually, finish, needs, restart_server, say, step

BASE = ["redis-cli", "-p", str(PORT)] + (["-3"] if RESP == 3 else [])
if CA is not None:
    BASE += ["--tls", "--cacert", CA]


def cli(*words, stdin=b"", more=()):
    """The output as bytes, without its last line end."""
    done = subprocess.run([*BASE, *more, *words], input=stdin, capture_output=True, timeout=DEADLINE_S, check=False)
    return (done.stdout + done.stderr).removesuffix(b"\n")


def text(*words, **how):
    return cli(*words, **how).decode()


def commands():
    check(text("ping"), "PONG")
    check(text("set", "k", "zażółć"), "OK")
    check(text("get", "k"), "zażółć")
    check(text("get", "none"), "")
    check(text("rpush", "list", "a", "b"), "2")
    check(text("lrange", "list", "0", "-1"), "a\nb")
    check(text("incr", "list"), "WRONGTYPE Operation against a key holding the wrong kind of value\n")
    check(text("-n", "3", "set", "only", "here"), "OK")
    check(text("exists", "only"), "0")
    check(text("-r", "3", "incr", "counter"), "1\n2\n3")


def outputs():
    check(text("--no-raw", "get", "k"), '"za\\xc5\\xbc\\xc3\\xb3\\xc5\\x82\\xc4\\x87"')
    check(text("--no-raw", "lrange", "list", "0", "-1"), '1) "a"\n2) "b"')
    check(text("--csv", "lrange", "list", "0", "-1"), '"a","b"')
    check(json.loads(text("--json", "lrange", "list", "0", "-1")), ["a", "b"])
    cli("hset", "h", "a", "1")
    check(json.loads(text("--json", "hgetall", "h")), {"a": "1"})
    cli("zadd", "z", "1.5", "a")
    check(text("--no-raw", "zscore", "z", "a"), "(double) 1.5" if RESP == 3 else '"1.5"')


def standard_input():
    check(cli("-x", "set", "blob", stdin=bytes(range(256))), b"OK")
    check(cli("get", "blob"), bytes(range(256)))
    check(text(stdin=b"set typed 1\nincr typed\nget typed\n"), "OK\n2\n2")
    large = b"x" * (8 << 20)
    check(cli("-x", "set", "large", stdin=large), b"OK")
    check(len(cli("get", "large")), len(large))
    cli("del", "large")


def mass_insertion():
    lines = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\nx\r\n" % (len(key), key)
                     for key in (b"pipe:%d" % i for i in range(20000)))
    check("errors: 0, replies: 20000" in text("--pipe", stdin=lines), True)
    check("errors: 1, replies: 2" in text("--pipe", stdin=b"SET a b\r\nLPUSH a b\r\n"), True)


def scans():
    check(len(set(text("--scan", "--pattern", "pipe:*").split())), 20000)
    check(text("--scan", "--pattern", "none*"), "")


def big_keys():
    cli("rpush", "longest", *map(str, range(100)))
    answer = text("--bigkeys")
    check("Biggest   list found" in answer and "longest" in answer, True, answer[-1500:])
    answer = text("--memkeys")
    check("Biggest string found" in answer, True, answer[-1500:])
    check("-------- summary -------" in text("--memkeys-samples", "5"), True)


def latency():
    # Without a terminal it measures for one interval and ends.
    answer = text("--latency", "-i", "0.3")
    check(len(answer.split()) >= 4, True, answer)


def first_lines(*words, lines=1):
    """The first output of a mode without an end."""
    process = subprocess.Popen([*BASE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        return "".join(process.stdout.readline().decode() for _ in range(lines))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def statistics():
    answer = first_lines("--stat", "-i", "0.1", lines=4)
    check("keys" in answer and "clients" in answer, True, answer)
    keys = answer.splitlines()[2].split()[0]
    check(int(keys) > 20000, True, answer)


def listening():
    process = subprocess.Popen([*BASE, "--csv", "psubscribe", "n*s"], stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        if line.startswith(b"Reading messages"):
            line = process.stdout.readline()
        check(line, b'"psubscribe","n*s",1\n')
        eventually(lambda: text("publish", "news", "hello") == "1", "a subscriber")
        check(process.stdout.readline(), b'"pmessage","n*s","news","hello"\n')
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    process = subprocess.Popen([*BASE, "monitor"], stdout=subprocess.PIPE)
    try:
        check(process.stdout.readline(), b"OK\n")
        cli("set", "watched", "1")
        line = process.stdout.readline().decode()
        while "watched" not in line:
            line = process.stdout.readline().decode()
        check(line.split("] ")[1], '"set" "watched" "1"\n')
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def transactions():
    check(text(stdin=b"multi\nset t 1\nincr t\nexec\n"), "OK\nQUEUED\nQUEUED\nOK\n2")
    start = time.monotonic()
    check(text("blpop", "empty", "0.2"), "")
    check(time.monotonic() - start >= 0.19, True)


def password():
    check(text("config", "set", "requirepass", "sesame"), "OK")
    try:
        check(text("get", "k").startswith("NOAUTH Authentication required.\n"), True)
        check(text("-a", "sesame", "--no-auth-warning", "ping"), "PONG")
        check(text("--user", "default", "--pass", "sesame", "--no-auth-warning", "ping"), "PONG")
        scheme = "redis" if CA is None else "rediss"
        check(text("-u", f"{scheme}://default:sesame@127.0.0.1:{PORT}/0", "--no-auth-warning", "ping"), "PONG")
        check("WRONGPASS" in text("-a", "wrong", "--no-auth-warning", "ping"), True)
    finally:
        cli("-a", "sesame", "--no-auth-warning", "config", "set", "requirepass", "")


def restart():
    process = subprocess.Popen([*BASE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        process.stdin.write(b"ping\n")
        process.stdin.flush()
        check(process.stdout.readline(), b"PONG\n")
        restart_server()
        # It says that the connection broke, and connects again by itself.
        def connected():
            process.stdin.write(b"set after 1\n")
            process.stdin.flush()
            return process.stdout.readline() == b"OK\n"
        eventually(connected, "a reconnect")
        process.stdin.close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def scripts():
    needs("eval")
    path = f"/tmp/eddy-cli-{os.getpid()}.lua"
    with open(path, "w", encoding="ascii") as file:
        file.write("return {KEYS[1], ARGV[1]}")
    try:
        check(text("--eval", path, "k", ",", "v"), "k\nv")
    finally:
        os.remove(path)


def snapshot():
    needs("psync", "sync")
    # Or a server waits for five seconds for more replicas to come.
    check(text("config", "set", "repl-diskless-sync-delay", "0"), "OK")
    path = f"/tmp/eddy-cli-{os.getpid()}.rdb"
    try:
        answer = text("--rdb", path)
        check("Transfer finished with success" in answer, True, answer)
        checked = subprocess.run(["redis-check-rdb", path], capture_output=True, check=False)
        check(checked.returncode, 0, checked.stdout.decode()[-500:])
    finally:
        if os.path.exists(path):
            os.remove(path)


def functions():
    needs("function")
    check(text("-x", "function", "load", "replace", stdin=b"#!lua name=clilib\nredis.register_function('f', function(k, a) return a[1] end)"),
          "clilib")
    check(text("fcall", "f", "0", "x"), "x")


def help_pages():
    # An interactive redis-cli asks for COMMAND DOCS at its start.
    check("summary" in text("command", "docs", "get"), True)


say("version " + subprocess.run(["redis-cli", "--version"], capture_output=True, text=True, check=True).stdout.split()[1])
for function in [commands, outputs, standard_input, mass_insertion, scans, big_keys, latency, statistics, listening,
                 transactions, password, restart, scripts, snapshot, functions, help_pages]:
    step(function.__name__.replace("_", " "), function)
finish()
