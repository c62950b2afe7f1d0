#!/usr/bin/env python3
"""A cache in front of real PostgreSQL and SQLite: the scripts of examples/hooks, backends that are slow, away
and back again."""

import glob
import os
import re
import select
import shutil
import sqlite3
import subprocess
import threading
import time
import unittest

import harness
from cache_client import Client
from harness import DEADLINE_S, eventually, free_port
from mariadb import MariaDb
from postgres import Postgres

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
EXAMPLES = os.path.realpath(os.path.join(ROOT, "examples", "hooks"))


def library_is_missing(name):
    """Why a script cannot load the library, or None; asked of a folder that Debian puts it in."""
    if glob.glob(f"/usr/lib/*/lua/5.1/luasql/{name}.so"):
        return None
    return f"there is no luasql.{name} for Lua 5.1: apt install lua-sql-{name}"


class Table(Postgres):
    """A server with the table of examples/hooks/postgres.lua."""

    def value(self, key):
        return self.sql(f"SELECT convert_from(value, 'UTF8') FROM kv WHERE key = '{key}'")

    def lock(self):
        """Lets every statement on the table wait; the process whose end ends that."""
        session = subprocess.Popen([os.path.join(self.bin, "psql"), "-Xqt"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=self.environment)
        session.stdin.write(b"BEGIN; LOCK TABLE kv IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n")
        session.stdin.flush()
        while b"locked" not in session.stdout.readline():
            pass
        return session


def unlock(session):
    session.stdin.write(b"ROLLBACK;\n")
    session.stdin.close()
    session.wait(DEADLINE_S)
    session.stdout.close()


class HooksTest(harness.EddyTest):
    def cache(self, daemon, script, *flags):
        self.port = free_port()
        if "--hook-deadline" not in flags:
            flags += ("--hook-deadline", f"{DEADLINE_S}s")
        made = daemon.run("create", "cache", "c", "-p", str(self.port), "--hooks", script, "-s", *flags)
        if made.status != 0 and "built without scripts" in made.err:
            self.skipTest("this program was built without scripts")
        self.assertEqual(made.status, 0, made)
        return self.client()

    def client(self):
        client = Client(self.port)
        self.addCleanup(client.close)
        return client

    def in_environment(self, **values):
        for name, value in values.items():
            before = os.environ.get(name)
            os.environ[name] = value
            self.addCleanup(os.environ.__setitem__ if before is not None else os.environ.pop, name,
                            *([before] if before is not None else []))


@harness.on_each_backend
class Names(HooksTest):
    """Scripts without a database: what is checked of them before they are run."""

    FAULTS = (("x = 1\nfunction on_mis(key) end", "hooks.lua:2: there is no callback on_mis; did you mean on_miss?"),
              ("function on_miss(key)\n  self.lgo(key)\nend",
               "hooks.lua:2: there is no function self.lgo; did you mean self.log?"))

    def setUp(self):
        if "scripts" not in harness.parts():
            self.skipTest("no scripts in this build")
        self.script = os.path.join(self.folder(), "hooks.lua")

    def write(self, text):
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def test_wrong_names_are_refused_before_anything_changes(self):
        daemon = self.daemon()
        for flags in (), ("-s",):
            for text, fault in (*self.FAULTS, ("function on_miss(", "hooks.lua:2: ")):
                self.write(text)
                for option in "--hooks", "--lua":
                    made = daemon.run("create", "cache", "c", "-p", str(free_port()), option, self.script, *flags)
                    self.assert_refused(made, 1, fault)
                self.assertEqual(daemon.list(), {})
                self.assert_refused(daemon.run("lua", "check", self.script), 1, fault)
        self.write("function on_miss(key) return 'old' end")
        c = self.cache(daemon, self.script)
        self.assertEqual(c("GET", "a"), b"old")
        before = daemon.show("c")["options"]
        for text, fault in self.FAULTS:
            self.write(text)
            for command in (("edit", "c", "--hook-retries", "3"), ("reload", "c"), ("reload-lua", "c")):
                self.assert_refused(daemon.run(*command), 1, fault)
            self.assertEqual(c("GET", "b"), b"old", "by a connection that nothing has ended")
            self.assertEqual(daemon.show("c")["options"], before)
            self.assert_refused(daemon.run("lua", "check", "--type", "cache", self.script), 1,
                                fault.replace("there is no callback", "a cache runtime has no callback"))
        # An edit of a stopped cache is checked, too.
        daemon.must("stop", "c")
        self.assert_refused(daemon.run("edit", "c", "--hook-retries", "3"), 1, self.FAULTS[-1][1])
        self.write("function on_miss(key) return 'new' end")
        daemon.must("edit", "c", "--hook-retries", "3")
        daemon.must("start", "c")
        self.assertEqual(self.client()("GET", "a"), b"new")

    def test_one_that_only_fails_is_seen_and_its_lines_are_in_the_log(self):
        daemon = self.daemon()
        self.write("function on_miss(key) self.log('warn', 'asked') if key ~= 'good' then error('no answer') end return 1 end")
        c = self.cache(daemon, self.script)
        for i in range(10):
            self.assertTrue(c("GET", f"k{i}").startswith("-ERR on_miss failed"))
        eventually(lambda: "the last 10 calls of its script failed" in daemon.must("ls", "--wide"), "it says so")
        self.assertIn("hooks: warn: asked", daemon.must("logs", "c"))
        self.assertEqual(c("GET", "good"), b"1")
        eventually(lambda: "calls of its script failed" not in daemon.must("ls", "--wide"), "it has recovered")


@harness.on_each_backend
class PostgresHooks(HooksTest):
    SCRIPT = os.path.join(EXAMPLES, "postgres.lua")

    def setUp(self):
        missing = library_is_missing("postgres")
        if missing:
            self.skipTest(missing)
        self.postgres = Table()
        self.addCleanup(self.postgres.remove)
        self.postgres.start()
        self.postgres.sql("CREATE TABLE kv (key bytea PRIMARY KEY, value bytea NOT NULL, expires timestamptz)")
        self.in_environment(PGHOST=self.postgres.folder, PGUSER="eddy", PGDATABASE="postgres", PGPORT="5432")

    def drained(self, daemon):
        eventually(lambda: daemon.json("stats", "c")["hook_queued_keys"] == 0, "the queue is empty")

    def test_reading_writing_deleting_expiring(self):
        self.postgres.sql("INSERT INTO kv VALUES ('greeting', 'hello'), ('binary', '\\x00ff0a')")
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT)
        self.assertEqual(c("GET", "greeting"), b"hello")
        self.assertEqual(c("MGET", "binary", "none", "greeting"), [b"\x00\xff\n", None, b"hello"])
        self.assertEqual(c("TTL", "greeting"), -1)
        self.assertEqual(c("SET", "greeting", "good day"), "+OK")
        self.assertEqual(c("APPEND", "greeting", "!"), 9)
        eventually(lambda: self.postgres.value("greeting") == "good day!", "it is written")
        every_byte = bytes(range(256))
        self.assertEqual(c("SET", every_byte, every_byte), "+OK")
        eventually(lambda: self.postgres.sql("SELECT count(*) FROM kv WHERE key = value") == "1", "it, too")
        self.assertEqual(c("DEL", "binary"), 1)
        eventually(lambda: self.postgres.sql("SELECT count(*) FROM kv WHERE key = 'binary'") == "0", "it is gone")
        self.assertEqual(c("SET", "short", "life", "EX", 1000), "+OK")
        eventually(lambda: self.postgres.value("short") == "life", "it is written")
        self.assertEqual(c("PEXPIRE", "short", 50), 1)
        eventually(lambda: self.postgres.sql("SELECT count(*) FROM kv WHERE key = 'short'") == "0",
                   "the row goes with the key")
        self.assertEqual(c("SET", "long", "life", "EX", 1000), "+OK")
        self.drained(daemon)
        # A second cache finds what the first has left.
        daemon.must("reload", "c", "--discard-keys")
        c = self.client()
        self.assertEqual(c("GET", "greeting"), b"good day!")
        self.assertEqual(c("GET", every_byte), every_byte)
        self.assertEqual(c("GET", "long"), b"life")
        self.assertTrue(900 < c("TTL", "long") <= 1000)
        self.assertEqual(c("INCR", "n"), 1)
        self.drained(daemon)
        self.assertEqual(daemon.json("stats", "c")["hook_errors_total"], 0)
        self.assertEqual(daemon.metric("eddy_cache_hook_lost_total", runtime="c", type="cache"), 0)

    def test_a_slow_backend_answers_within_the_deadline(self):
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT, "--hook-deadline", "300ms")
        self.postgres.sql("INSERT INTO kv VALUES ('a', 'one')")
        eventually(lambda: c("GET", "other") is None, "the first connection")
        locked = self.postgres.lock()
        try:
            self.assertTrue(c("GET", "a").startswith("-ERR on_miss did not answer in time"))
            other = self.client()
            self.assertEqual(other("SET", "b", "1"), "+OK")
            self.assertEqual(other("GET", "b"), b"1")
        finally:
            unlock(locked)
        eventually(lambda: c("GET", "a") == b"one", "it is answered again")
        eventually(lambda: self.postgres.value("b") == "1", "and what was written meanwhile is there")
        self.drained(daemon)

    def test_away_and_back(self):
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT, "--hook-fallback", "stale", "--hook-deadline", "20s")
        self.postgres.sql("INSERT INTO kv VALUES ('a', 'old', now() + interval '6 seconds')")
        self.assertEqual(c("GET", "a"), b"old")
        self.assertEqual(c("SET", "kept", "1"), "+OK")
        eventually(lambda: c("EXISTS", "a") == 0, "it has expired")
        self.drained(daemon)
        self.postgres.stop()
        self.assertEqual(c("GET", "a"), b"old", "the stale value")
        self.assertTrue(c("GET", "unknown").startswith("-ERR on_miss failed"))
        for i in range(50):
            self.assertEqual(c("SET", f"k{i}", i), "+OK")
        self.assertEqual(c("DEL", "kept"), 1)
        self.assertEqual(c("GET", "kept"), None, "its deletion is on the way")
        eventually(lambda: daemon.json("stats", "c")["hook_retries_total"] > 0, "it is tried again")
        self.assertIn("hooks: failed: ", daemon.must("logs", "c"))
        self.postgres.start()
        eventually(lambda: self.postgres.sql("SELECT count(*) FROM kv WHERE key LIKE 'k%'") == "50",
                   "all is written")
        self.drained(daemon)
        self.assertEqual(self.postgres.value("k49"), "49")
        eventually(lambda: c("GET", "unknown") is None, "misses are answered again")
        self.assertEqual(daemon.json("stats", "c")["hook_lost_total"], 0)

    def test_a_stop_flushes(self):
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT, "--hook-flush", "50s")
        for i in range(500):
            c("SET", f"k{i}", "v")
        daemon.must("stop", "c")
        self.assertEqual(self.postgres.sql("SELECT count(*) FROM kv WHERE value = 'v'"), "500")
        # So does the daemon's end; without a backend its log names the lost keys.
        daemon.must("start", "c")
        self.client()("SET", "last", "1")
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(self.postgres.value("last"), "1")
        daemon.start()
        daemon.must("edit", "c", "--hook-flush", "200ms")
        self.postgres.stop()
        self.client()("SET", "lost", "1")
        daemon.must("stop", "c")
        self.assertRegex(daemon.must("logs", "c"), r"hooks: 1 changes were not passed to the script .*: lost")

    def test_many_clients(self):
        self.postgres.sql("INSERT INTO kv SELECT convert_to('k' || i, 'UTF8'), convert_to('v' || i, 'UTF8') "
                          "FROM generate_series(0, 199) i")
        daemon = self.daemon()
        self.cache(daemon, self.SCRIPT, "--hook-threads", "4", "--hook-deadline", "50s")
        faults = []

        def work(seed):
            client = Client(self.port)
            try:
                for i in range(200):
                    key = (i * 13 + seed) % 200
                    if client("GET", f"k{key}") != b"v%d" % key:
                        faults.append(key)
            finally:
                client.close()
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(DEADLINE_S)
        self.assertEqual(faults, [])
        self.assertEqual(daemon.json("stats", "c")["hook_misses_total"], 200, "each was asked for once")


class MariaDbHooks(HooksTest):
    SCRIPT = os.path.join(EXAMPLES, "mariadb.lua")

    def setUp(self):
        missing = library_is_missing("mysql")
        if missing:
            self.skipTest(missing)
        self.mariadb = MariaDb()
        self.addCleanup(self.mariadb.remove)
        self.mariadb.start()
        self.mariadb.sql("CREATE DATABASE shop")
        self.sql("CREATE TABLE kv (name VARBINARY(700) PRIMARY KEY, value LONGBLOB NOT NULL, expires DOUBLE) ENGINE=InnoDB")
        self.in_environment(MYSQL_UNIX_PORT=self.mariadb.socket, MYSQL_USER=self.mariadb.user, MYSQL_DATABASE="shop")

    def sql(self, statement):
        return self.mariadb.sql("USE shop; " + statement)

    def value(self, key):
        return self.sql(f"SELECT value FROM kv WHERE name = '{key}'")

    def test_reading_writing_deleting_expiring(self):
        self.sql("INSERT INTO kv VALUES ('greeting', 'hello', NULL), ('binary', x'00ff0a', NULL)")
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT)
        self.assertEqual(c("MGET", "binary", "none", "greeting"), [b"\x00\xff\n", None, b"hello"])
        self.assertEqual(c("APPEND", "greeting", "!"), 6)
        eventually(lambda: self.value("greeting") == "hello!", "it is written")
        every_byte = bytes(range(256))
        self.assertEqual(c("SET", every_byte, every_byte, "EX", 1000), "+OK")
        eventually(lambda: self.sql("SELECT count(*) FROM kv WHERE name = value") == "1", "it, too")
        self.assertEqual(c("DEL", "binary"), 1)
        eventually(lambda: self.sql("SELECT count(*) FROM kv WHERE name = 'binary'") == "0", "it is gone")
        daemon.must("reload", "c", "--discard-keys")
        c = self.client()
        self.assertEqual(c("GET", every_byte), every_byte)
        self.assertTrue(900 < c("TTL", every_byte) <= 1000)
        self.assertEqual(daemon.json("stats", "c")["hook_errors_total"], 0)

    def test_away_and_back(self):
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT)
        self.assertIsNone(c("GET", "a"))
        self.mariadb.stop()
        self.assertTrue(c("GET", "unknown").startswith("-ERR on_miss failed"))
        for i in range(50):
            self.assertEqual(c("SET", f"k{i}", i), "+OK")
        self.mariadb.start()
        eventually(lambda: self.sql("SELECT count(*) FROM kv") == "50", "all is written")
        eventually(lambda: c("GET", "unknown") is None, "misses are answered again")
        self.assertEqual(daemon.json("stats", "c")["hook_lost_total"], 0)


@harness.on_each_backend
class SqliteHooks(HooksTest):
    SCRIPT = os.path.join(EXAMPLES, "sqlite.lua")

    def setUp(self):
        missing = library_is_missing("sqlite3")
        if missing:
            self.skipTest(missing)
        self.file = os.path.join(self.folder(), "kv.sqlite")
        self.in_environment(KV_FILE=self.file)

    def rows(self, statement, *values):
        db = sqlite3.connect(self.file, timeout=DEADLINE_S)
        try:
            with db:
                return db.execute(statement, values).fetchall()
        finally:
            db.close()

    def test_reading_writing_deleting(self):
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT)
        self.assertEqual(c("GET", "a"), None)
        self.rows("INSERT INTO kv VALUES (?, ?, NULL)", b"b", b"\x00two\xff")
        self.assertEqual(c("GET", "b"), b"\x00two\xff")
        self.assertEqual(c("TTL", "b"), -1)
        # For five seconds, which a busy disk may need for the row.
        keys = iter(range(1000))

        def is_remembered():
            key = b"late-%d" % next(keys)
            self.assertEqual(c("GET", key), None)
            self.rows("INSERT INTO kv VALUES (?, ?, NULL)", key, b"late")
            return c("GET", key) is None

        eventually(is_remembered, "that it was not there is remembered")
        self.assertEqual(c("SET", "a", "mine"), "+OK")
        eventually(lambda: self.rows("SELECT value FROM kv WHERE key = ?", b"a") == [(b"mine",)], "it is there")
        self.assertEqual(c("DEL", "b"), 1)
        eventually(lambda: self.rows("SELECT * FROM kv WHERE key = ?", b"b") == [], "it is gone")
        self.assertIn("hook_changes:", c("INFO", "hooks").decode())
        self.assertEqual(c("SET", "e", "ends", "EX", "1000"), "+OK")
        ends = eventually(lambda: self.rows("SELECT expires FROM kv WHERE key = ?", b"e"), "it is there")[0][0]
        self.assertLess(abs(ends - time.time() - 1000), DEADLINE_S)
        self.rows("UPDATE kv SET expires = expires - 2000 WHERE key = ?", b"e")
        c("FLUSHALL")
        self.assertEqual(c("GET", "e"), None, "it is over")

        def has_gone():  # a row that was written more than a second late stays behind
            self.assertEqual(c("SET", "e", "short", "PX", "50"), "+OK")
            end = time.monotonic() + 5
            while self.rows("SELECT * FROM kv WHERE key = ?", b"e") and time.monotonic() < end:
                time.sleep(0.02)
            return not self.rows("SELECT * FROM kv WHERE key = ?", b"e")
        eventually(has_gone, "it has gone with the key")

    def test_changes_are_written_together(self):
        daemon = self.daemon()
        c = self.cache(daemon, os.path.join(EXAMPLES, "write_behind.lua"))
        self.assertIsNone(c("GET", "a"))
        every_byte = bytes(range(256))
        for i in range(100):
            self.assertEqual(c("SET", f"k{i}", i), "+OK")
        self.assertEqual(c("SET", every_byte, every_byte), "+OK")
        eventually(lambda: self.rows("SELECT count(*) FROM kv") == [(101,)], "all are written")
        # While another program has the file, they wait.
        holder = sqlite3.connect(self.file, timeout=DEADLINE_S, isolation_level=None)
        self.addCleanup(holder.close)
        holder.execute("BEGIN IMMEDIATE")
        self.assertEqual(c("SET", "k1", "later"), "+OK")
        self.assertEqual(c("DEL", "k2"), 1)
        eventually(lambda: daemon.json("stats", "c")["hook_tick_errors_total"] > 0, "a tick has failed")
        self.assertIsNone(c("GET", "k2"), "what is kept counts")
        holder.execute("ROLLBACK")
        eventually(lambda: self.rows("SELECT value FROM kv WHERE key = ?", b"k1") == [(b"later",)], "it is written")
        self.assertEqual(self.rows("SELECT * FROM kv WHERE key = ?", b"k2"), [])
        self.assertEqual(c("SET", "last", "1"), "+OK")
        daemon.must("stop", "c")
        self.assertEqual(self.rows("SELECT value FROM kv WHERE key = ?", b"last"), [(b"1",)])
        daemon.must("start", "c")
        self.assertEqual(self.client()("GET", every_byte), every_byte)

    def test_a_faulty_script_is_not_reloaded(self):
        daemon = self.daemon()
        script = os.path.join(self.folder(), "hooks.lua")
        shutil.copy(self.SCRIPT, script)
        c = self.cache(daemon, script)
        self.assertEqual(c("SET", "a", "1"), "+OK")
        with open(script, "a") as file:
            file.write("function (")
        self.assert_refused(daemon.run("reload", "c"), 1, "was not reloaded, and goes on as before", "hooks.lua:")
        self.assertEqual(c("GET", "a"), b"1")

    def test_an_edit_is_refused_while_the_script_does_not_load(self):
        daemon = self.daemon()
        script = os.path.join(self.folder(), "hooks.lua")
        shutil.copy(self.SCRIPT, script)
        c = self.cache(daemon, script)
        self.assertEqual(c("SET", "a", "1"), "+OK")
        for line, reason in (("error('the database is down')", "the database is down"),
                             ("on_miss, on_write, on_delete, on_expire = nil", "defines none of on_miss")):
            with open(script, "a") as file:
                file.write(line + "\n")
            for flags in ((), ("--dry-run",)):
                self.assert_refused(daemon.run("edit", "c", "--threads", "2", *flags), 1, "keeps its old options", reason)
            self.assertEqual(c("GET", "a"), b"1", "by a connection that no restart has ended")
            shutil.copy(self.SCRIPT, script)
        daemon.must("edit", "c", "--threads", "2")
        self.assertEqual(self.client()("GET", "a"), b"1")

    def test_a_changed_script_is_reloaded_beside_the_clients(self):
        daemon = self.daemon()
        script = os.path.join(self.folder(), "hooks.lua")
        shutil.copy(self.SCRIPT, script)
        c = self.cache(daemon, script)
        self.assertEqual(c("SET", "kept", "1"), "+OK")
        self.assertIsNone(c("GET", "absent"))
        with open(script, "a") as file:
            file.write("function on_miss(key) return 'made of ' .. key end\n")
        daemon.must("reload", "c")
        self.assertEqual(c("GET", "another"), b"made of another")
        self.assertEqual(c("GET", "kept"), b"1")
        self.assertEqual(c("SET", "late", "2"), "+OK")
        eventually(lambda: self.rows("SELECT count(*) FROM kv WHERE key = ?", b"late") == [(1,)], "it is written")
        # Other functions need a restart, which keeps the keys.
        with open(script, "a") as file:
            file.write("on_miss = nil\n")
        daemon.must("reload", "c")
        c = self.client()
        self.assertIsNone(c("GET", "other"))
        self.assertEqual(c("GET", "kept"), b"1")

    def test_a_locked_file_is_written_later(self):
        daemon = self.daemon()
        c = self.cache(daemon, self.SCRIPT)
        holder = sqlite3.connect(self.file, timeout=DEADLINE_S, isolation_level=None)
        self.addCleanup(holder.close)
        holder.execute("BEGIN IMMEDIATE")
        for i in range(20):
            self.assertEqual(c("SET", f"k{i}", i), "+OK")
        eventually(lambda: daemon.json("stats", "c")["hook_errors_total"] > 0, "the file is busy")
        holder.execute("COMMIT")
        eventually(lambda: self.rows("SELECT count(*) FROM kv") == [(20,)], "all is written")


@harness.on_each_backend
class StuckHooks(HooksTest):
    # The second call waits in fflush(3) for the file that the first one reads, and holds the list of all files,
    # which exit(3) waits for.
    SCRIPT = '''
        function on_miss(key)
            if key == 'read' then return io.open(FIFO, 'r+'):read(1) end
            return io.popen('true'):read('*a')
        end'''

    def test_a_daemon_ends_without_calls_that_do_not_return(self):
        daemon = self.daemon(flags=("--drain", "1s"))
        fifo = os.path.join(self.folder(), "fifo")
        script = os.path.join(self.folder(), "hooks.lua")
        os.mkfifo(fifo)
        with open(script, "w") as file:
            file.write(f"FIFO = '{fifo}'\n{self.SCRIPT}")
        self.cache(daemon, script)
        with harness.connect(self.port) as one, harness.connect(self.port) as two:
            one.sendall(b"GET read\r\n")
            # Once it reads, others wait for it.
            def is_stuck():
                two.sendall(b"GET %f\r\n" % time.monotonic())
                return not select.select([two], [], [], 1)[0] or not two.recv(1000)
            eventually(is_stuck, "a call that waits for the other one")
            daemon.process.terminate()
            self.assertEqual(daemon.process.wait(DEADLINE_S), 0)
        with open(os.path.join(daemon.folder, "log"), encoding="utf-8") as file:
            log = file.read()
        self.assertRegex(log, r"warn +c +a call of its script does not return; the daemon ends without it\n")
        self.assertTrue(log.endswith("daemon  stopped\n"), log)


class Documentation(unittest.TestCase):
    def test_the_page_shows_the_scripts_that_run_here(self):
        with open(os.path.join(ROOT, "docs", "hooks.md"), encoding="utf-8") as file:
            page = file.read()
        blocks = re.findall(r"<!-- (examples/hooks/\w+\.lua) -->\n```lua\n(.*?)```", page, re.S)
        self.assertEqual(len(blocks), 1)
        for path, block in blocks:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                self.assertEqual(block, file.read(), path)


if __name__ == "__main__":
    harness.main()
