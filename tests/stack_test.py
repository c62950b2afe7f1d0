#!/usr/bin/env python3
"""`eddy up`, `down`, `diff`, `validate` and `export`: the runtimes of a file, all or none of the changes; files that
change, vanish or are none; faults with their places; a full disk, and kills at any moment."""

import contextlib
import itertools
import json
import os
import pty
import random
import shutil
import socket
import subprocess
import threading
import time

import harness
from cache_client import client_of
from harness import BINARY, connect, eventually, free_port, read_line

# Kills of the daemon in the middle of a change; the goal is 200.
KILLS = int(os.environ.get("EDDY_KILLS", "20"))

SCRIPTS = "scripts" in harness.parts()


class Stack(harness.EddyTest):
    """A daemon, and a folder of files."""

    def setUp(self):
        self.place = self.folder()
        self.eddy = self.daemon()

    def path(self, name="eddy.toml"):
        return os.path.join(self.place, name)

    def write(self, text, name="eddy.toml"):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def up(self, *words, **more):
        return self.eddy.run("up", self.path(), *words, **more)

    def must_up(self, *words, **more):
        return self.eddy.must("up", self.path(), *words, **more)


class Up(Stack):
    def test_a_file_is_brought_about_changed_and_taken_down(self):
        cache, site, proxy, server = (free_port() for _ in range(4))
        self.write("hello", "public/index.html")
        script = "function on_message(client, text) self.send(client, 'got ' .. text) end\n" if SCRIPTS else ""
        self.write(script, "chat.lua")
        lua = "lua = \"chat.lua\"\n" if SCRIPTS else ""
        text = (f"stack = \"shop\"\n[cache.db]\nport = {cache}\nmaxmemory = \"1G\"\n[http.site]\nport = {site}\n"
                f"root = \"public\"\n[proxy.gw]\nport = {proxy}\nprotocol = \"http\"\nbackend = \"site\"\n"
                f"[server.chat]\nport = {server}\nowner = \"gw\"\ngroup = \"g\"\n{lua}")
        self.eddy.must("create", "server", "other", "-p", str(free_port()), "-s")
        self.write(text)
        self.assertEqual(self.eddy.run("diff", self.path()).status, 1)
        self.assertIn("4 created, 0 unchanged", self.must_up())
        self.assertEqual({each["status"] for each in self.eddy.list().values()}, {"running"})
        self.assertEqual(self.eddy.show("chat")["owner"], "gw")
        with connect(proxy) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertTrue(harness.all_of(client).endswith(b"hello"))
        if SCRIPTS:
            with connect(server) as client:
                client.sendall(b"one\n")
                self.assertEqual(read_line(client), "got one")
        before = self.eddy.list()
        self.assertIn("nothing to change, 4 unchanged", self.must_up())
        self.assertEqual(self.eddy.run("diff", self.path()).status, 0)
        self.assertEqual({name: each["id"] for name, each in self.eddy.list().items()},
                         {name: each["id"] for name, each in before.items()})
        # A live option, and one that is not.
        self.write(text.replace("1G", "2G").replace("group = \"g\"", "max_line = \"2k\""))
        self.assert_refused(self.up(), 1, "chat: it restarts for --max-line: connections are closed after up to 1s")
        self.assertEqual(self.eddy.show("db")["options"]["maxmemory"], "1G", "all or nothing")
        out = self.must_up("--yes")
        self.assertIn("maxmemory: \"1G\" -> \"2G\"", out)
        self.assertIn("~ server chat: changed, restarted", out)
        self.assertEqual(self.eddy.show("db")["options"]["maxmemory"], "2G")
        self.assertEqual(self.eddy.show("chat")["group"], "")
        # One that vanishes, and one that is to be stopped.
        self.write(text.partition("[server")[0].replace("[http.site]", "[http.site]\nstart = false"))
        refused = self.up()
        self.assert_refused(refused, 1, "site: it is stopped", "chat: it is stopped and removed", "eddy up --yes")
        self.assertEqual(len(self.eddy.list()), 5, "nothing was changed")
        self.must_up("--yes")
        self.assertNotIn("chat", self.eddy.list())
        self.assertEqual(self.eddy.show("site")["status"], "stopped")
        self.assertIn("3 removed", self.eddy.must("down", self.path(), "--yes"))
        self.assertEqual(list(self.eddy.list()), ["other"])
        self.assertEqual(self.eddy.show("other")["status"], "running")

    def test_programs(self):
        """A path from the file's folder, which is its working folder, or a name in $PATH."""
        self.write("#!/bin/sh\necho here $(pwd) $1\nexec sleep 1000\n", "web")
        os.chmod(self.path("web"), 0o755)
        text = ("stack = \"x\"\n[program.web]\ncommand = \"./web\"\narg = [\"one\"]\nenv_file = \"env\"\n"
                "[program.idle]\ncommand = \"sleep\"\narg = [\"1000\"]\nowner = \"web\"\non_parent_stop = \"keep\"\n")
        self.write(text)
        self.write("A=b\n", "env")
        self.must_up()
        eventually(lambda: f"out: here {self.place} one" in self.eddy.must("logs", "web"), "its output")
        shown = self.eddy.show("web")["options"]
        self.assertEqual((shown["command"], shown["directory"]), (self.path("web"), self.place))
        self.assertEqual(self.eddy.show("idle")["on_parent_stop"], "keep")
        self.assertIn("nothing to change, 2 unchanged", self.must_up())
        # The same from another place, by what an export says.
        exported = self.eddy.must("export")
        self.assertIn("on_parent_stop = \"keep\"", exported)
        self.write(exported, "copy/eddy.toml")
        self.assertEqual(self.eddy.run("diff", self.path("copy/eddy.toml"), "--stack", "x").status, 0)
        self.write(text.replace("\"keep\"", "\"remove\"").replace("one", "two"))
        said = self.eddy.run("diff", self.path()).out
        self.assertIn("on_parent_stop: \"keep\" -> \"remove\"", said)
        self.assertIn("arg: [\"one\"] -> [\"two\"]", said)
        self.must_up()
        eventually(lambda: f"out: here {self.place} two" in self.eddy.must("logs", "web"), "its output")
        for faulty, told in (("\"./none\"", "there is no program"), ("\"no-such-program\"", "in $PATH"),
                             ("\"web\"", "is ./web"), ("\"./env\"", "chmod +x")):
            self.write(f"stack = \"x\"\n[program.web]\ncommand = {faulty}\n")
            self.assertIn(told, self.eddy.run("validate", self.path()).err)
        self.write("stack = \"x\"\n[program.web]\ncommand = \"./web\"\non_parent_stop = \"never\"\n")
        self.assertIn("on_parent_stop may be stop, remove, keep", self.eddy.run("validate", self.path()).err)

    def test_a_renamed_runtime_needs_its_new_name_in_the_file(self):
        port = free_port()
        text = f"stack = \"x\"\n[server.old]\nport = {port}\n"
        self.write(text)
        self.must_up()
        renamed = self.eddy.run("rename", "old", "new")
        self.assertEqual(renamed.status, 0)
        self.assertIn("it is of the stack \"x\"", renamed.err)
        self.assert_refused(self.up(), 1, "new: it is stopped and removed")
        self.write(text.replace("old", "new"))
        self.assertIn("nothing to change, 1 unchanged", self.must_up())
        self.write(text)
        self.must_up("--yes")
        self.assertEqual({name: each["port"] for name, each in self.eddy.list().items()}, {"old": port})

    def test_risks_are_named_with_what_would_be_lost(self):
        port = free_port()
        self.write(f"[cache.db]\nport = {port}\n")
        created = self.up()
        self.assertIn("db keeps nothing on disk", created.err)
        self.assertIn("dir = \"", created.err)
        self.assertRegex(self.eddy.must("logs", "db"), r"created\n.* started")
        client = client_of(self, port)
        with contextlib.closing(client):
            client("SET", "a", "1")
            eventually(lambda: self.eddy.show("db")["connections"] == 1, "the client")
            refused = self.eddy.run("down", self.path())
            self.assert_refused(refused, 1, "1 connection is closed, and 1 key is lost: it has no --dir")
            # A restart keeps the keys, and closes the connection.
            self.write(f"[cache.db]\nport = {port}\nthreads = 2\n")
            self.assert_refused(self.up(), 1, "it restarts for --threads", "1 connection is closed", "its keys stay")
            self.assertEqual(client("GET", "a"), b"1")
        self.must_up("-y")
        with contextlib.closing(client_of(self, port)) as client:
            self.assertEqual(client("GET", "a"), b"1")

    def test_a_terminal_is_asked(self):
        self.write(f"stack = \"x\"\n[server.a]\nport = {free_port()}\n")
        self.must_up()

        def down(answer):
            end, terminal = pty.openpty()
            process = subprocess.Popen([BINARY, "down", self.path()], env=self.eddy.environment(), stdin=terminal,
                                       stdout=subprocess.PIPE, stderr=terminal)
            os.close(terminal)
            asked = b""
            while b"[y/N]" not in asked:
                asked += os.read(end, 4096)
            os.write(end, answer)
            out, _ = process.communicate(timeout=harness.DEADLINE_S)
            os.close(end)
            return process.returncode, out.decode(), asked.decode()
        status, out, asked = down(b"n\n")
        self.assertIn("a: it is stopped and removed", asked)
        self.assertEqual((status, out, list(self.eddy.list())), (1, "", ["a"]))
        status, out, _ = down(b"y\n")
        self.assertEqual((status, list(self.eddy.list())), (0, []), out)

    def test_ports_pass_from_one_to_another(self):
        one, two, three = (free_port() for _ in range(3))
        self.write(f"[server.a]\nport = {one}\n[server.b]\nport = {two}\n")
        self.must_up()
        # b moves to a third one, a takes its port, and a new one takes that of a.
        self.write(f"[server.a]\nport = {two}\n[server.b]\nport = {three}\n[server.c]\nport = {one}\n")
        self.must_up("--yes")
        self.assertEqual({name: each["port"] for name, each in self.eddy.list().items()},
                         {"a": two, "b": three, "c": one})
        # The port of one that goes.
        self.write(f"[server.d]\nport = {two}\n[server.b]\nport = {three}\n")
        self.must_up("--yes")
        self.assertEqual({name: each["port"] for name, each in self.eddy.list().items()}, {"d": two, "b": three})

    def ports(self):
        return {name: each["port"] for name, each in self.eddy.list().items()}

    def test_ports_are_exchanged(self):
        one, two, three = (free_port() for _ in range(3))
        self.write(f"[cache.a]\nport = {one}\n[server.b]\nport = {two}\n[server.c]\nport = {three}\n")
        self.must_up()
        with contextlib.closing(client_of(self, one)) as client:
            client("SET", "a", "1")
            eventually(lambda: self.eddy.show("a")["connections"] == 1, "the client")
            self.write(f"[cache.a]\nport = {two}\n[server.b]\nport = {three}\n[server.c]\nport = {one}\n")
            # The cache, which any restart closes, is the one of the three that stops for it.
            self.assert_refused(self.up(), 1, "a: it stops for a moment, to exchange addresses with others: "
                                "1 connection is closed", "clients that connect meanwhile are refused; its keys stay",
                                "b: it restarts for --port")
            self.assertEqual(self.ports(), {"a": one, "b": two, "c": three})
            self.assertEqual(client("GET", "a"), b"1")
        self.must_up("--yes")
        self.assertEqual(self.ports(), {"a": two, "b": three, "c": one})
        self.assertEqual({each["status"] for each in self.eddy.list().values()}, {"running"})
        with contextlib.closing(client_of(self, two)) as client:
            self.assertEqual(client("GET", "a"), b"1")
        for port in (one, three):
            connect(port).close()
        self.assertIn("nothing to change, 3 unchanged", self.must_up())
        self.eddy.stop()
        self.eddy.start()
        self.assertEqual(self.ports(), {"a": two, "b": three, "c": one})

    def test_a_failed_exchange_leaves_all_as_it_was(self):
        one, two, three = (free_port() for _ in range(3))
        text = f"[cache.a]\nport = {one}\n[cache.b]\nport = {two}\n"
        self.write(text)
        self.must_up()
        for port in (one, two):
            with contextlib.closing(client_of(self, port)) as client:
                client("SET", "port", str(port))
        folder = self.folder()
        with open(os.path.join(folder, "dump.rdb"), "wb") as dump:
            dump.write(b"no dump at all")
        # The last to start, since b takes its address: its file is read by the start alone.
        self.write(f"[cache.a]\nport = {two}\n[cache.b]\nport = {three}\n[cache.d]\nport = {one}\n"
                   f"dir = \"{folder}\"\n[cache.c]\nport = 0\n")
        self.assert_refused(self.up("--yes"), 2, "All is as it was before")
        self.write(f"[cache.a]\nport = {two}\n[cache.b]\nport = {one}\n[cache.d]\nport = {three}\n"
                   f"dir = \"{folder}\"\n")
        self.assert_refused(self.up("--yes"), 2, "All is as it was before")
        self.assertEqual(self.ports(), {"a": one, "b": two})
        for port in (one, two):
            with contextlib.closing(client_of(self, port)) as client:
                self.assertEqual(client("GET", "port"), str(port).encode())

    def test_a_type_changes(self):
        port, other = free_port(), free_port()
        folder = self.folder()
        with open(os.path.join(folder, "dump.rdb"), "wb") as dump:
            dump.write(b"no dump at all")
        self.write(f"[cache.a]\nport = {port}\nreplicate_password = \"s3cret\"\nreplicate = \"127.0.0.1:1\"\n"
                   f"[cache.k]\nport = {other}\n[server.child]\nport = 0\nowner = \"a\"\n")
        self.must_up()
        with contextlib.closing(client_of(self, other)) as client:
            client("SET", "k", "1")
        eventually(lambda: self.eddy.json("stats", "k")["keys"] == 1, "its key")
        rest = f"[server.child]\nport = 0\nowner = \"a\"\n[server.k]\nport = {other}\n"
        self.write(f"[server.a]\nport = {port}\n" + rest)
        refused = self.up()
        self.assert_refused(refused, 1, "a: it is stopped, and its type becomes server",
                            "k: it is stopped, and its type becomes server: ", "1 key is lost: it has no --dir")
        self.assertNotIn("child:", refused.err)
        # A step that fails puts the type back, with its keys.
        self.write(f"[server.a]\nport = {free_port()}\n" + rest + f"[cache.z]\nport = {port}\ndir = \"{folder}\"\n")
        self.assert_refused(self.up("--yes"), 2, "All is as it was before")
        self.assertEqual({name: each["type"] for name, each in self.eddy.list().items()},
                         {"a": "cache", "k": "cache", "child": "server"})
        with contextlib.closing(client_of(self, other)) as client:
            self.assertEqual(client("GET", "k"), b"1")
        before = self.eddy.show("a")["id"]
        self.write(f"[server.a]\nport = {port}\n" + rest)
        out = self.must_up("--yes")
        self.assertIn("~ server a: changed, restarted", out)
        self.assertIn("type: \"cache\" -> \"server\"", out)
        self.assertNotIn("s3cret", out)
        for runtime in ("a", "k"):
            shown = self.eddy.show(runtime)
            self.assertEqual((shown["type"], shown["status"]), ("server", "running"))
        with connect(port) as one, connect(port) as two:
            one.sendall(b"hello\n")
            self.assertEqual(read_line(two), "hello")
        self.assertEqual(self.eddy.show("a")["id"], before)
        self.assertEqual(self.eddy.show("child")["owner"], "a")
        self.assertIn("its type changes from cache to server", self.eddy.must("logs", "a"))
        self.assertIn("nothing to change, 3 unchanged", self.must_up())
        self.eddy.stop()
        self.eddy.start()
        self.assertEqual({each["type"] for each in self.eddy.list().values()}, {"server"})
        # One that does not run, and one that is not to run any more; the ports change hands with the types.
        self.eddy.must("stop", "k")
        self.write(f"[cache.a]\nport = {other}\nstart = false\n[http.k]\nport = {port}\nroot = \"{self.place}\"\n"
                   "[server.child]\nport = 0\n")
        self.must_up("--yes")
        self.assertEqual({name: (each["type"], each["status"]) for name, each in self.eddy.list().items()},
                         {"a": ("cache", "stopped"), "k": ("http", "running"), "child": ("server", "running")})

    def test_sockets_of_programs_are_exchanged(self):
        one, two = free_port(), free_port()
        self.write("#!/bin/sh\nexec sleep 1000\n", "web")
        os.chmod(self.path("web"), 0o755)

        def text(first, second):
            return "".join(f"[program.{name}]\ncommand = \"./web\"\nlisten = [\":{port}\"]\n"
                           for name, port in (("a", first), ("b", second)))
        self.write(text(one, one))
        self.assert_refused(self.up(), 1, "is the address of \"a\", too")
        self.write(text(one, two))
        self.must_up()
        self.write(text(two, one))
        self.assert_refused(self.up(), 1, "a: it stops for a moment, to exchange addresses")
        self.must_up("--yes")
        self.assertEqual(self.ports(), {"a": two, "b": one})
        self.assertEqual({each["status"] for each in self.eddy.list().values()}, {"running"})

    def test_faults_are_all_found_before_the_first_change(self):
        taken, port, foreign = free_port(), free_port(), free_port()
        self.eddy.must("create", "server", "other", "-p", str(taken), "-s")
        self.write(f"[cache.a]\nport = {port}\n[server.b]\nport = {port}\n[server.c]\nport = {taken}\nowner = \"d\"\n"
                   "[server.d]\nport = 99999\nowner = \"c\"\n[server.e]\nowner = \"nobody\"\nport = 0\n")
        refused = self.up()
        self.assertEqual(refused.status, 1)
        for text in ("eddy.toml:4:1: b: ", "is the address of \"a\", too", "eddy.toml:6:1: c: ",
                     "is the address of \"other\", too", "eddy.toml:5:9: c: it would own its own owner",
                     "eddy.toml:9:1: d: --port cannot be 99999", "eddy.toml:11:9: e: there is no runtime \"nobody\""):
            self.assertIn(text, refused.err)
        self.assertEqual(list(self.eddy.list()), ["other"])
        with socket.create_server(("127.0.0.1", foreign)):
            self.write(f"[server.a]\nport = {port}\n[server.b]\nport = {foreign}\n")
            self.assert_refused(self.up(), 1, "is in use by another program")
        self.assertEqual(list(self.eddy.list()), ["other"])
        self.write(f"[server.other]\nport = {port}\n[serve.b]\n[server.a]\nprot = 1\n")
        self.assert_refused(self.up(), 1, "did you mean server?", "did you mean port?")
        self.write(f"[server.other]\nport = {port}\n")
        self.assert_refused(self.up(), 1, "made by hand; --adopt")
        self.must_up("--adopt", "--yes")
        self.assertEqual(self.eddy.show("other")["port"], port)

    def test_a_check_needs_no_daemon(self):
        self.write("[cache.a]\nport = 1\n[cache.b]\nport = 1\nmaxmemory = \"much\"\n")
        environment = {"EDDY_SOCKET": self.path("none.sock")}
        checked = self.eddy.run("validate", self.path(), env=environment)
        self.assert_refused(checked, 1, "eddy.toml:5:1: b: --maxmemory cannot be \"much\"")
        self.write("[cache.a]\nport = 1\n[cache.b]\nport = 1\n")
        self.assert_refused(self.eddy.run("validate", self.path(), env=environment), 1,
                            "is the address of \"a\", too")
        self.write("[cache.a]\nport = 1\nowner = \"elsewhere\"\n")
        self.assertIn("1 runtimes, no mistakes", self.eddy.must("validate", self.path(), env=environment))
        self.assertEqual(self.eddy.run("up", self.path(), env=environment).status, 2)
        self.assertEqual(self.eddy.run("diff", self.path(), env=environment).status, 2)

    def test_an_export_makes_the_same_runtimes_elsewhere(self):
        one, two, three = (free_port() for _ in range(3))
        self.eddy.must("create", "cache", "db", "-p", str(one), "--replicate-password", "s3cret", "--replicate",
                       "127.0.0.1:1", "--maxmemory", "1G", "-g", "g")
        self.eddy.must("create", "server", "a.b", "-p", str(two), "-s", "--owner", "db")
        self.eddy.must("create", "proxy", "gw", "-p", str(three), "--protocol", "http", "--backend", "a.b",
                       "--redirect", "/x=https://$host", "-s")
        text = self.eddy.must("export")
        self.assertNotIn("s3cret", text)
        self.write(text)
        other = self.daemon()
        secret = {"EDDY_DB_REPLICATE_PASSWORD": "s3cret"}
        self.assert_refused(other.run("up", self.path(), "--no-start"), 1, "the secret of db in replicate_password")
        other.must("up", self.path(), "--no-start", env=secret)

        def shape(of):
            return {name: (each["type"], each["owner"], each["group"], each["options"])
                    for name, each in of.list().items()}
        self.assertEqual(shape(other), shape(self.eddy))
        with open(os.path.join(other.state, "runtimes", "db.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["options"]["replicate_password"], "s3cret")
        # The same daemon takes them over by --adopt, and has no difference then.
        self.must_up("--adopt", env=secret)
        self.assertEqual(self.eddy.run("diff", self.path(), env=secret).status, 0)
        diff = self.eddy.run("diff", self.path(), env={"EDDY_DB_REPLICATE_PASSWORD": "another"})
        self.assertIn("replicate_password: another secret", diff.out)
        self.assertNotIn("s3cret", diff.out)

    def test_a_step_that_fails_undoes_the_others(self):
        ports = [free_port() for _ in range(3)]
        self.write(f"[server.a]\nport = {ports[0]}\n[server.b]\nport = {ports[1]}\n")
        self.must_up()
        with connect(ports[1]) as client:
            folder = self.folder()
            with open(os.path.join(folder, "dump.rdb"), "wb") as dump:
                dump.write(b"no dump at all")
            # Its file is read by the start alone.
            self.write(f"[server.a]\nport = {ports[0]}\nmax_connections = 7\n[server.b]\nport = {ports[1]}\n"
                       f"[cache.c]\nport = {ports[2]}\ndir = \"{folder}\"\n")
            self.assertNotEqual(self.up().status, 0)
            self.assertIn("All is as it was before", self.up().err)
            self.assertEqual(sorted(self.eddy.list()), ["a", "b"])
            self.assertNotIn("max_connections", self.eddy.show("a")["options"])
            eventually(lambda: self.eddy.show("b")["connections"] == 1, "the client stays")
            client.sendall(b"still here\n")

    def test_the_lua_form_does_the_same(self):
        if not SCRIPTS:
            self.skipTest("no scripts in this build")
        ports = ", ".join(str(free_port()) for _ in range(3))
        self.write(f"daemon{{name = 'x'}}\nlocal all = {{}}\nfor i, port in ipairs{{{ports}}} do\n"
                   "  all['s' .. i] = {type = 'server', port = port, owner = i > 1 and 's1' or nil}\nend\n"
                   "runtimes(all)\n", "m.lua")
        path = self.path("m.lua")
        self.assertIn("3 created", self.eddy.must("up", path))
        self.assertIn("nothing to change", self.eddy.must("up", path))
        self.assertEqual(self.eddy.show("s2")["owner"], "s1")
        self.write("local done, why = eddy.create('server', 'x', {port = 1})\nassert(not done)\nerror(why)\n", "m.lua")
        self.assert_refused(self.eddy.run("up", path), 1, "declares runtimes by runtimes{}")
        self.write("runtimes{a = {type = 'server', prot = 1}}", "m.lua")
        self.assert_refused(self.eddy.run("validate", path), 1, "m.lua: a: a server has no option \"prot\"")
        for endless, told in (("while true do end\n", "computes for too long"),
                              ("local text = ('x'):rep(1000000)\nwhile true do runtimes{a = {type = text}} end\n",
                               "at most 32 MiB together"),
                              ("while true do eddy.sleep(1) end\n", "has not ended after 20 s")):
            self.write(endless, "m.lua")
            refused = self.eddy.run("validate", path)
            self.assertEqual(refused.status, 1, refused)
            # A busy machine reaches the limit of time first.
            self.assertRegex(refused.err, told + "|has not ended after 20 s")

    def test_files_that_are_none(self):
        os.mkfifo(self.path())
        self.assert_refused(self.up(), 1, "FIFO")
        os.unlink(self.path())
        os.symlink("eddy.toml", self.path())
        self.assertEqual(self.up().status, 1)
        os.unlink(self.path())
        with open(self.path(), "wb") as file:
            file.truncate(1 << 40)
        self.assert_refused(self.up(), 1, "more than 4 MiB")
        os.unlink(self.path())
        self.assert_refused(self.up(), 1, "there is none")
        for text in ("a = " + "[" * 17, "[" + "a." * 16 + "b]", "\0", "[cache.a\nport = 1", "x" * 4_000_000):
            self.write(text)
            refused = self.up()
            self.assertEqual(refused.status, 1, refused)
            self.assertIn("eddy.toml", refused.err)
        self.assertEqual(self.eddy.list(), {})

    def test_ten_thousand_runtimes_are_refused_by_a_named_limit(self):
        port = free_port()
        self.eddy.must("create", "cache", "other", "-p", str(port), "-s")
        self.write("".join(f"[server.s{i}]\nport = 0\n" for i in range(10_000)))
        refused = self.up()
        self.assertEqual(refused.status, 1, refused)
        self.assertRegex(refused.err, "10000 runtimes.*at most")
        self.assertEqual(list(self.eddy.list()), ["other"])

    def test_two_hundred_runtimes(self):
        self.write("".join(f"[server.s{i}]\nport = 0\n" for i in range(200)))
        self.assertIn("200 created", self.must_up())
        self.assertIn("nothing to change, 200 unchanged", self.must_up())
        self.assertIn("200 removed", self.eddy.must("down", self.path(), "--yes"))


class Watch(Stack):
    def begin(self, *words):
        process = subprocess.Popen([BINARY, "up", self.path(), "--watch", *words], env=self.eddy.environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, readers = [], []
        for stream in (process.stdout, process.stderr):
            readers.append(threading.Thread(target=lambda of=stream: self.lines.extend(line.decode() for line in of)))
            readers[-1].start()
        self.addCleanup(self.end, process, readers)
        self.process = process
        self.await_text("watching")

    def end(self, process, readers):
        process.terminate()
        process.wait(harness.DEADLINE_S)
        for each in readers:
            each.join()
        process.stdout.close()
        process.stderr.close()

    def await_text(self, text):
        eventually(lambda: any(text in line for line in list(self.lines)), text)

    def replace(self, text):
        """As editors and configuration tools do."""
        self.write(text, "new")
        os.rename(self.path("new"), self.path())

    def test_changes_are_applied_and_mistakes_are_not(self):
        port, other = free_port(), free_port()
        text = f"include = [\"conf.d/*.toml\"]\n[server.a]\nport = {port}\n"
        self.write(text)
        os.mkdir(self.path("conf.d"))
        self.begin()
        self.replace(text + "max_connections = 7\n")
        eventually(lambda: self.eddy.show("a")["options"].get("max_connections") == 7, "replaced by a rename")
        self.write(text + "max_connections = 8\n")
        eventually(lambda: self.eddy.show("a")["options"].get("max_connections") == 8, "written in place")
        self.write(f"[server.b]\nport = {other}\n", "conf.d/b.toml")
        eventually(lambda: "b" in self.eddy.list(), "a new include")
        self.write(text + "max_connections = oops\n")
        self.await_text("stay as they are")
        os.unlink(self.path())
        self.await_text("there is none")
        self.assertEqual(sorted(self.eddy.list()), ["a", "b"])
        self.assertIsNone(self.process.poll())
        self.replace(text + "max_connections = 9\n")
        eventually(lambda: self.eddy.show("a")["options"].get("max_connections") == 9, "back again")
        # A removal is refused without --yes, and the watch continues.
        os.unlink(self.path("conf.d/b.toml"))
        self.await_text("b: it is stopped and removed")
        self.assertIn("b", self.eddy.list())
        self.write(f"[server.b]\nport = {other}\nmax_connections = 5\n", "conf.d/b.toml")
        eventually(lambda: self.eddy.show("b")["options"].get("max_connections") == 5, "the watch continues")

    def test_a_folder_that_is_made_anew_is_followed(self):
        port, other = free_port(), free_port()
        text = f"stack = \"x\"\ninclude = [\"conf.d/*.toml\"]\n[server.a]\nport = {port}\nmax_connections = "
        self.write(text + "5\n", "site/eddy.toml")
        os.symlink("site/eddy.toml", self.path())
        os.mkdir(self.path("conf.d"))
        self.begin()
        shutil.rmtree(self.path("site"))
        self.await_text("there is none")
        self.write(text + "6\n", "site/eddy.toml")
        eventually(lambda: self.eddy.show("a")["options"]["max_connections"] == 6, "made anew")
        self.write(text + "7\n", "site/eddy.toml")
        eventually(lambda: self.eddy.show("a")["options"]["max_connections"] == 7, "followed again")
        os.rename(self.path("conf.d"), self.path("old"))
        self.write(f"[server.b]\nport = {other}\n", "conf.d/b.toml")
        eventually(lambda: "b" in self.eddy.list(), "an include of another folder")

    def test_links_are_followed(self):
        port = free_port()
        text = f"stack = \"x\"\n[server.a]\nport = {port}\n"
        for version in ("one", "two"):
            self.write(text + f"max_connections = {len(version) + ord(version[0])}\n", f"{version}/eddy.toml")
        # As Kubernetes mounts configuration: a link to a folder is replaced.
        os.symlink("one", self.path("data"))
        os.symlink("data/eddy.toml", self.path())
        self.begin()
        self.assertEqual(self.eddy.show("a")["options"]["max_connections"], 114)
        os.symlink("two", self.path("new"))
        os.rename(self.path("new"), self.path("data"))
        eventually(lambda: self.eddy.show("a")["options"]["max_connections"] == 119, "another folder")
        self.write(text + "max_connections = 5\n", "two/eddy.toml")
        eventually(lambda: self.eddy.show("a")["options"]["max_connections"] == 5, "the link's target")

    def test_a_script_is_loaded_again(self):
        if not SCRIPTS:
            self.skipTest("no scripts in this build")
        port = free_port()
        script = "function on_message(client, text) self.send(client, '{} ' .. text) end\n"
        self.write(script.format("first"), "chat.lua")
        self.write(f"[server.a]\nport = {port}\nlua = \"chat.lua\"\n")
        self.begin("--yes")

        def answer():
            with connect(port) as client:
                client.sendall(b"x\n")
                return read_line(client)
        self.assertEqual(answer(), "first x")
        self.write(script.format("second"), "chat.lua")
        eventually(lambda: answer() == "second x", "the new script")
        # Modules of a folder.
        self.write("return 'module'\n", "modules/words.lua")
        self.write("local words = require('words')\n" + script.format("' .. words .. '"), "chat.lua")
        self.write(f"[server.a]\nport = {port}\nlua = \"chat.lua\"\nlua_path = [\"modules\"]\n")
        eventually(lambda: answer() == "module x", "the script with its module")
        self.write("return 'other'\n", "modules/words.lua")
        eventually(lambda: answer() == "other x", "the new module")

    def test_a_script_of_hooks_is_loaded_again(self):
        if not SCRIPTS:
            self.skipTest("no scripts in this build")
        port = free_port()
        script = "function on_miss(key) return '{}' end\n"
        self.write(script.format("first"), "hooks.lua")
        self.write(f"[cache.db]\nport = {port}\nhooks = \"hooks.lua\"\n")
        self.begin()
        client = client_of(self, port)
        self.assertEqual(client("GET", "a"), b"first")
        self.write(script.format("second"), "hooks.lua")
        keys = itertools.count()
        eventually(lambda: client("GET", f"k{next(keys)}") == b"second", "the new script")


class Kills(Stack):
    def test_a_full_disk_changes_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small disk needs root")
        disk = self.folder()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no disk can be mounted here: {mounted.stderr!r}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        self.eddy = self.daemon(state=os.path.join(disk, "state"))
        port = free_port()
        self.write(f"[server.a]\nport = {port}\n")
        self.must_up()
        with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        self.write(f"[server.a]\nport = {port}\nmax_connections = 7\n[server.b]\nport = {free_port()}\n")
        self.assert_refused(self.up(), 2, "disk is full", "All is as it was before")
        self.assertEqual(list(self.eddy.list()), ["a"])
        self.assertNotIn("max_connections", self.eddy.show("a")["options"])
        os.unlink(os.path.join(disk, "filler"))
        self.must_up()
        self.assertEqual(sorted(self.eddy.list()), ["a", "b"])

    def test_a_client_that_is_killed_leaves_all_or_nothing(self):
        self.write("".join(f"[server.s{i}]\nport = 0\n" for i in range(100)))
        for turn in range(5):
            client = subprocess.Popen([BINARY, "up", self.path()], env=self.eddy.environment(),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.02 * turn)
            client.kill()
            client.wait()

            def is_settled():
                there = self.eddy.list()
                stored = [name for name in os.listdir(os.path.join(self.eddy.state, "runtimes")) if name[0] != "."]
                return len(there) == len(stored) and {each["status"] for each in there.values()} <= {"running"}
            eventually(is_settled, "all or nothing")
            self.assertIn(len(self.eddy.list()), (0, 100))
            # The next one is not held up.
            self.must_up()
            self.eddy.must("down", self.path(), "--yes")

    def test_a_kill_leaves_the_old_or_the_new_state(self):
        chance = random.Random(1)
        ports = [free_port() for _ in range(10)]

        def text(generation):
            # Each generation edits some, removes one and makes one.
            names = [f"s{i}" for i in range(8)] + [f"g{generation}"]
            return "stack = \"k\"\n" + "".join(
                f"[server.{name}]\nport = {ports[i]}\nmax_connections = {1000 + generation}\n"
                for i, name in enumerate(names))

        def shape():
            return {name: each["options"]["max_connections"] for name, each in self.eddy.list().items()}

        def expected(generation):
            return {name: 1000 + generation for name in [f"s{i}" for i in range(8)] + [f"g{generation}"]}
        self.write(text(0))
        began = time.monotonic()
        self.must_up("--yes")
        longest = time.monotonic() - began
        generation, seen = 0, {"old": 0, "new": 0}
        for turn in range(KILLS):
            self.write(text(generation + 1))
            client = subprocess.Popen([BINARY, "up", self.path(), "--yes"], env=self.eddy.environment(),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.random() * longest * 1.5)
            self.eddy.kill()
            client.wait(harness.DEADLINE_S)
            self.eddy.start()
            found = shape()
            self.assertIn(found, (expected(generation), expected(generation + 1)), f"turn {turn}")
            self.assertEqual({each["status"] for each in self.eddy.list().values()}, {"running"})
            is_new = found == expected(generation + 1)
            seen["new" if is_new else "old"] += 1
            generation += 1 if is_new else 0
        print(f"{KILLS} kills: {seen}")


if __name__ == "__main__":
    harness.main()
