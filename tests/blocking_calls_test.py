#!/usr/bin/env python3
"""Functions of scripts on threads of their own (eddy.blocking): drivers in C, with real databases; and threads that do not
return."""

import os
import time
import unittest

import harness
from harness import connect, eventually, free_port, read_line
from postgres import Postgres


def has_driver(name):
    return any(os.path.exists(f"{folder}/luasql/{name}.so") for folder in
               ("/usr/lib/x86_64-linux-gnu/lua/5.1", "/usr/lib/aarch64-linux-gnu/lua/5.1", "/usr/lib/lua/5.1"))


@harness.needs("scripts")
@harness.on_each_backend
class Blocking(harness.EddyTest):
    def server(self, script, *flags):
        self.running = self.daemon()
        path = os.path.join(self.folder(), "s.lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        self.port = free_port()
        self.running.must("create", "server", "x", "-p", str(self.port), "--lua", path, "--lua-unsafe", *flags, "-s")

    def ask(self, client, text):
        client.sendall(text.encode() + b"\n")
        return read_line(client)

    @unittest.skipUnless(has_driver("sqlite3"), "there is no lua-sql-sqlite3")
    def test_sqlite(self):
        self.server("""
            local file = "%s/db"
            local function query(sql)
                return eddy.blocking(function(text)
                    -- Globals are the thread's: the connection is opened once.
                    if not db then db = require("luasql.sqlite3").sqlite3():connect(file) end
                    local cursor = assert(db:execute(text))
                    if type(cursor) == "number" then return cursor end
                    local rows = {}
                    local row = cursor:fetch({}, "a")
                    while row do
                        rows[#rows + 1] = row
                        row = cursor:fetch({}, "a")
                    end
                    cursor:close()
                    return rows
                end, sql)
            end
            function on_start() query("create table t (name text, n int)") end
            function on_message(c, text)
                query("insert into t values ('" .. text .. "', " .. c .. ")")
                local rows = query("select * from t order by name")
                self.send(c, #rows .. " " .. rows[1].name)
            end""" % self.folder())
        with connect(self.port) as one:
            self.assertEqual(self.ask(one, "b"), "1 b")
            self.assertEqual(self.ask(one, "a"), "2 a")
            one.sendall(b"it's\n")
            eventually(lambda: "syntax error" in self.running.must("logs", "x"), "the error of SQLite is in the journal")
            self.assertEqual(self.ask(one, "c"), "3 a")
        self.assertTrue(self.running.show("x")["options"]["lua_unsafe"])

    @unittest.skipUnless(has_driver("postgres"), "there is no lua-sql-postgres")
    def test_postgres(self):
        database = Postgres()
        self.addCleanup(database.remove)
        database.start()
        self.server("""
            function on_message(c, text)
                local version, name = eddy.blocking(function(host, what)
                    local luasql = require("luasql.postgres")
                    local db = assert(luasql.postgres():connect("dbname=postgres user=eddy host=" .. host))
                    local row = assert(db:execute("select '" .. what .. "' as name, pg_sleep(0.05)")):fetch({}, "a")
                    db:close()
                    return 1, row.name
                end, "%s", text)
                self.send(c, name)
            end""" % database.folder)
        with connect(self.port) as one:
            self.assertEqual(self.ask(one, "hello"), "hello")

    def test_others_run_and_a_stop_waits_for_no_thread(self):
        self.server("""
            function on_message(c, text)
                if text == "stuck" then eddy.blocking(function() os.execute("sleep 20") end) end
                self.send(c, text)
            end""")
        with connect(self.port) as stuck, connect(self.port) as other:
            stuck.sendall(b"stuck\n")
            for i in range(20):
                self.assertEqual(self.ask(other, str(i)), str(i))
            began = time.monotonic()
            self.running.must("stop", "x")
            self.assertLess(time.monotonic() - began, 30)


if __name__ == "__main__":
    harness.main()
