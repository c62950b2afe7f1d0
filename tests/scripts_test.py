#!/usr/bin/env python3
"""Scripts that would crash a daemon or keep it from everything else: deep recursion, endless time."""

import signal
import threading
import time

import harness
from cache_client import Client
from harness import eventually, free_port

ENDLESS = "while true do end"
ENDLESS_WRITER = "redis.call('SET', 'x', 1) while true do end"
# Callbacks nested some levels deeper than the limit of 200, and no deeper. Without an end, recursion through coroutines
# overflowed the native stack of other servers that run scripts, where a coroutine began to count its levels anew.
ONE_MORE = "n = n + 1 if n > 220 then return end"
RECURSIONS = [
    f"local n = 0 {script}"
    for script in (
        f"local function f() {ONE_MORE} string.gsub('a', 'a', f) end f()",
        f"local function f() {ONE_MORE} coroutine.wrap(f)() end f()",
        "return (string.gsub('hello', 'l', setmetatable({}, {__index = function(t, k) "
        f"{ONE_MORE} return string.gsub(k, 'l', t) end}})))",
        f"local function f() {ONE_MORE} table.sort({{2, 1}}, f) end f()",
        f"local function f() {ONE_MORE} local ok, why = load(f) if not ok then error(why, 0) end end f()",
    )
]


@harness.needs("scripts")
@harness.on_each_backend
class Scripts(harness.EddyTest):
    def client(self, port):
        made = Client(port)
        self.addCleanup(made.close)
        return made

    def cache(self, daemon, name, *flags):
        port = free_port()
        daemon.must("create", "cache", name, "-p", str(port), *flags, "-s")
        return self.client(port)

    def endless(self, port, script=ENDLESS_WRITER):
        """Has a script run that ends only with its cache, and returns when it runs."""
        runs = self.client(port)
        runs.send("EVAL", script, "0")
        looker = self.client(port)
        eventually(lambda: looker("SCRIPT", "KILL").startswith("-UNKILLABLE"), "the script")
        return runs

    def test_recursion_beyond_the_limit_is_an_error(self):
        for threads in ("1", "3"):
            daemon = self.daemon()
            cache = self.cache(daemon, "c", "--threads", threads)
            for script in RECURSIONS:
                for command in ("EVAL", "EVAL_RO"):
                    self.assertIn("C stack overflow", cache(command, script, "0"), script)
                function = "#!lua name=l\nredis.register_function('f', function() " + script + " end)"
                self.assertEqual(cache("FUNCTION", "LOAD", "REPLACE", function), b"l")
                self.assertIn("C stack overflow", cache("FCALL", "f", "0"), script)
                self.assertEqual(cache("FUNCTION", "DELETE", "l"), "+OK")
            load = f"#!lua name=l\nlocal n = 0 local function f() {ONE_MORE} ('a'):gsub('a', f) end f()"
            self.assertIn("C stack overflow", cache("FUNCTION", "LOAD", load))
            self.assertEqual(cache("PING"), "+PONG")

    def test_an_endless_script_holds_up_its_own_cache_alone(self):
        for threads in ("1", "3"):
            for threshold in ("0", "9223372036854", "9223372036854775807"):
                daemon = self.daemon()
                cache = self.cache(daemon, "c", "--threads", threads)
                other = self.cache(daemon, "other")
                self.assertEqual(cache("CONFIG", "SET", "busy-reply-threshold", threshold), "+OK")
                self.endless(cache.port)
                cache.send("GET", "x")
                for i in range(1, 101):
                    self.assertEqual(other("INCR", "n"), i)
                self.assertEqual(sorted(daemon.list()), ["c", "other"])
                daemon.must("stop", "c")
                self.assertEqual(other("INCR", "n"), 101)
                daemon.stop()

    def test_a_daemon_with_an_endless_script_ends_by_a_signal(self):
        for threads in ("1", "3"):
            daemon = self.daemon()
            cache = self.cache(daemon, "c", "--threads", threads)
            self.assertEqual(cache("CONFIG", "SET", "busy-reply-threshold", "9223372036854"), "+OK")
            self.endless(cache.port)
            daemon.signal(signal.SIGTERM)
            daemon.wait()

    def test_clients_wait_below_the_threshold_and_see_a_script_whole(self):
        for threads in ("1", "3"):
            daemon = self.daemon()
            cache = self.cache(daemon, "c", "--threads", threads)
            # On a busy machine a script may take longer than the default, 5 s.
            self.assertEqual(cache("CONFIG", "SET", "busy-reply-threshold", "600000"), "+OK")
            script = "redis.call('INCR', 'x') for i = 1, 3e6 do math.abs(i) end redis.call('INCR', 'x') return 'done'"
            seen, ended = [], threading.Event()

            def look(port):
                mine = Client(port)
                while not ended.is_set():
                    seen.append(mine("GET", "x"))
                mine.close()

            lookers = [threading.Thread(target=look, args=(cache.port,)) for _ in range(4)]
            for each in lookers:
                each.start()
            try:
                for _ in range(10):
                    self.assertEqual(cache("EVAL", script, "0"), b"done")
            finally:
                ended.set()
                for each in lookers:
                    each.join()
            self.assertTrue(seen)
            self.assertTrue(all(each is None or int(each) % 2 == 0 for each in seen), set(seen))

    def test_clients_get_busy_above_the_threshold(self):
        for threads in ("1", "3"):
            daemon = self.daemon()
            cache = self.cache(daemon, "c", "--threads", threads)
            self.assertEqual(cache("CONFIG", "SET", "busy-reply-threshold", "300"), "+OK")
            killed = self.client(cache.port)
            began = time.monotonic()
            killed.send("EVAL", ENDLESS, "0")
            # It may not have come yet.
            eventually(lambda: str(cache("GET", "x")).startswith("-BUSY"), "BUSY")
            self.assertGreaterEqual(time.monotonic() - began, 0.3)
            self.assertEqual(cache("SCRIPT", "KILL"), "+OK")
            self.assertIn("Script killed by user", killed.reply())
            self.assertIsNone(cache("GET", "x"))


if __name__ == "__main__":
    harness.main()
