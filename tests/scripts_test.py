#!/usr/bin/env python3
"""Scripts that would crash a daemon or keep it from everything else: deep recursion, endless time."""

import signal
import threading
import time

import harness
from cache_client import Client, client_of
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
        """Starts a script that ends only with its cache, and returns when it runs."""
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
                daemon = self.daemon(flags=("--drain", "500ms"))
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
            daemon = self.daemon(flags=("--drain", "500ms"))
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


@harness.needs("scripts")
@harness.on_each_backend
class CutScripts(harness.EddyTest):
    """Ends in the middle of a script that has written: no file has anything of it."""

    KINDS = {"always": ("--appendonly", "yes", "--appendfsync", "always"),
             "everysec": ("--appendonly", "yes", "--appendfsync", "everysec"),
             "dump": ()}
    TRANSACTION = [("MULTI",), ("SET", "y", 1), ("EVAL", ENDLESS_WRITER, 0), ("SET", "z", 1), ("EXEC",)]

    def client(self, port):
        made = Client(port)
        self.addCleanup(made.close)
        return made

    def cut(self, kind, end, threads="1", commands=(("EVAL", ENDLESS_WRITER, 0),)):
        """Runs the script, calls end(daemon, client), and looks for what a new start finds."""
        folder, port = self.folder(), free_port()
        daemon = self.daemon(folder=folder, flags=("--drain", "100ms"))
        daemon.must("create", "cache", "c", "-p", str(port), "--mode", "admin", "--dir", self.folder(),
                    "--threads", threads, *self.KINDS[kind], "-s")
        cache = self.client(port)
        self.assertEqual(cache("SET", "before", 1), "+OK")
        if kind == "dump":
            self.assertEqual(cache("SAVE"), "+OK")
        runs = self.client(port)
        for each in commands:
            runs.send(*each)
        eventually(lambda: cache("SCRIPT", "KILL").startswith("-UNKILLABLE"), "the script")
        daemon = end(daemon, cache) or daemon
        if daemon.list()["c"]["status"] == "stopped":
            daemon.must("start", "c")
        again = client_of(self, port)
        self.assertEqual(again("EXISTS", "x", "y", "z"), 0, f"{kind} {threads}")
        self.assertEqual(again("EXISTS", "before"), 1, f"{kind} {threads}")
        daemon.stop()

    def each(self, end):
        for kind in self.KINDS:
            self.cut(kind, end, "3")
            self.cut(kind, end, commands=self.TRANSACTION)

    def test_by_a_forced_stop(self):
        def stop(daemon, _):
            refused = daemon.run("stop", "c")
            self.assertNotEqual(refused.status, 0)
            self.assertIn("; wait for its end", refused.err)
            # As the text advises.
            self.assertIn("eddy stop --force c", refused.err)
            daemon.must("stop", "--force", "c")
        self.each(stop)

    def test_by_shutdown_nosave(self):
        def shut_down(daemon, cache):
            for words in (("SHUTDOWN",), ("SHUTDOWN", "SAVE"), ("SHUTDOWN", "SAVE", "NOW", "FORCE")):
                self.assertRegex(cache(*words), "^-BUSY")
            self.assertEqual(cache("SHUTDOWN", "ABORT"), "-ERR No shutdown in progress.")
            cache.send("SHUTDOWN", "NOSAVE")
            self.assertTrue(cache.ended())
            eventually(lambda: daemon.list()["c"]["status"] == "stopped", "the stop")
            self.assertIn("a script that had changed keys was cut off", daemon.run("logs", "c").out)
        self.each(shut_down)

    def test_by_shutdown_nosave_at_once(self):
        def shut_down(daemon, cache):
            cache.send("SHUTDOWN", "NOSAVE", "NOW", "FORCE")
            self.assertTrue(cache.ended())
            eventually(lambda: daemon.list()["c"]["status"] == "stopped", "the stop")
        self.each(shut_down)

    def test_by_the_end_of_the_daemon(self):
        def terminate(daemon, _):
            daemon.signal(signal.SIGTERM)
            eventually(lambda: "goes on as before" in daemon.read_log(), "the refusal")
            # As the log advises.
            daemon.signal(signal.SIGTERM)
            daemon.wait()
            return self.daemon(folder=daemon.folder)
        self.each(terminate)

    def test_by_kill_9(self):
        def kill(daemon, _):
            daemon.kill()
            return self.daemon(folder=daemon.folder)
        self.each(kill)

    def test_a_restart_is_refused_and_the_script_goes_on(self):
        def restart(daemon, cache):
            refused = daemon.run("edit", "c", "--threads", "2")
            self.assertNotEqual(refused.status, 0)
            self.assertIn("wait for its end", refused.err)
            self.assertRegex(cache("SCRIPT", "KILL"), "^-UNKILLABLE")
            daemon.must("stop", "--force", "c")
        for kind in self.KINDS:
            self.cut(kind, restart)

    def test_a_removal_is_refused_until_it_is_forced(self):
        port, folder = free_port(), self.folder()
        daemon = self.daemon(flags=("--drain", "100ms"))
        daemon.must("create", "cache", "c", "-p", str(port), "--dir", folder, "--appendonly", "yes", "-s")
        cache = self.client(port)
        runs = self.client(port)
        runs.send("EVAL", ENDLESS_WRITER, "0")
        eventually(lambda: cache("SCRIPT", "KILL").startswith("-UNKILLABLE"), "the script")
        self.assertNotEqual(daemon.run("remove", "c").status, 0)
        daemon.must("remove", "-f", "c")
        daemon.must("create", "cache", "d", "-p", str(port), "--dir", folder, "--appendonly", "yes", "-s")
        self.assertEqual(client_of(self, port)("EXISTS", "x"), 0)

    def test_a_script_that_has_not_written_is_ended_as_the_text_advises(self):
        function = "#!lua name=l\nredis.register_function('f', function() while true do end end)"
        for begin, words in ((("EVAL", ENDLESS, "0"), ("SCRIPT", "KILL")), (("FCALL", "f", "0"), ("FUNCTION", "KILL"))):
            port = free_port()
            daemon = self.daemon(flags=("--drain", "100ms"))
            daemon.must("create", "cache", "c", "-p", str(port), "--dir", self.folder(), "-s")
            cache = self.client(port)
            self.assertEqual(cache("CONFIG", "SET", "busy-reply-threshold", "50"), "+OK")
            self.assertEqual(cache("FUNCTION", "LOAD", function), b"l")
            cache("SET", "k", "1")
            runs = self.client(port)
            runs.send(*begin)
            eventually(lambda: str(cache("GET", "k")).startswith("-BUSY"), "BUSY")
            refused = daemon.run("stop", "c")
            self.assertIn("end it with " + " ".join(words), refused.err)
            self.assertEqual(cache(*words), "+OK")
            daemon.must("stop", "c")


if __name__ == "__main__":
    harness.main()
