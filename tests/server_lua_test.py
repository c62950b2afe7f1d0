#!/usr/bin/env python3
"""Lua on servers: real clients over TCP, TLS, Unix sockets, WebSocket and UDP, scripts that are loaded again under them, and
scripts that go wrong."""

import os
import re
import socket
import threading
import time

import harness
from harness import connect, eventually, free_port, read_line
from server_web_test import TEXT, Web

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ECHO = "function on_message(client, text) self.send(client, text) end\n"


@harness.needs("scripts")
class Scripted(harness.EddyTest):
    flags = ()  # the daemon's

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def create(self, script, *flags, name="x", expect=0):
        if not hasattr(self, "running"):
            self.root = self.folder()
            self.path = os.path.join(self.root, "chat.lua")
            self.running = self.daemon(flags=list(self.flags))
        self.write(script)
        made = self.running.run("create", "server", name, *flags, "--lua", self.path, "-s")
        self.assertEqual(made.status, expect, made)
        return made

    def on_port(self, script, *flags, **more):
        self.port = free_port()
        self.create(script, "-p", str(self.port), *flags, **more)

    def reload(self, script):
        self.write(script)
        return self.running.run("reload-lua", "x")

    def logs(self):
        return self.running.must("logs", "x")

    def errors(self, reason):
        return self.running.metric("eddy_server_script_errors_total", runtime="x", type="server", reason=reason)

    def ask(self, client, text):
        client.sendall(text.encode() + b"\n")
        return read_line(client)


@harness.on_each_backend
class OverEachTransport(Scripted):
    def test_tcp(self):
        self.on_port("function on_connect(c) self.send(c, 'welcome ' .. c) end\n" + ECHO)
        with connect(self.port) as one, connect(self.port) as two:
            self.assertEqual(self.ask(one, "hello"), "welcome 1")
            self.assertEqual(read_line(one), "hello")
            self.assertEqual(read_line(two), "welcome 2")
            one.sendall(b"a\nb\r\n\nlast")
            one.shutdown(socket.SHUT_WR)
            self.assertEqual(harness.all_of(one), b"a\nb\n\nlast\n")

    def test_a_broadcast_reaches_a_client_that_has_sent_its_last(self):
        self.on_port("function on_message(c, text) self.broadcast(text) end")
        with connect(self.port) as one:
            one.sendall(b"a\nlast\n")
            one.shutdown(socket.SHUT_WR)
            self.assertEqual(harness.all_of(one), b"a\nlast\n")

    def test_unix(self):
        path = os.path.join(self.folder(), "s")
        self.create(ECHO + "function on_connect(c) self.set_data(c, 'ip', self.peer_ip(c)) end\n", "--unix", path)
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(harness.DEADLINE_S)
            one.connect(path)
            self.assertEqual(self.ask(one, "hello"), "hello")

    @harness.needs("tls")
    def test_tls(self):
        made = harness.Certificates(self.folder())
        self.on_port(ECHO, "--tls", "--cert", made.cert, "--key", made.key)
        with made.connect(self.port) as one:
            self.assertEqual(self.ask(one, "hello"), "hello")

    def test_websockets_beside_raw_clients(self):
        self.on_port("""
            function on_connect(c) self.send(c, "welcome") self.join_group(c, "all") end
            function on_message(c, text)
                self.send(c, "you said " .. text) self.broadcast("all " .. text) self.group_send("all", "group")
            end
            function on_disconnect(c) self.log("left " .. c) end""")
        with connect(self.port) as raw, connect(self.port) as over:
            web = Web(over)
            self.assertEqual(web.receive(), (TEXT, b"welcome"), "what was sent before the request")
            web.send(TEXT, b"hi")
            for text in (b"you said hi", b"all hi", b"group"):
                self.assertEqual(web.receive(), (TEXT, text))
            for text in ("welcome", "all hi", "group"):
                self.assertEqual(read_line(raw), text)
        eventually(lambda: "left 1" in self.logs() and "left 2" in self.logs(), "on_disconnect of both")

    def test_files_beside_a_script(self):
        root = self.folder()
        with open(os.path.join(root, "index.html"), "w", encoding="utf-8") as file:
            file.write("<p>hello")
        self.on_port(ECHO, "--http", root)
        with connect(self.port) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(b"<p>hello", harness.all_of(one))

    def test_udp(self):
        self.port = free_port(socket.SOCK_DGRAM)
        self.create("""
            function on_message(c, text)
                if text == "all" then self.broadcast("to all") else self.send(c, text) end
            end
            function on_send(text) return text ~= "none" and "sent " .. text end
            function on_disconnect(c) self.log("left " .. c) end""", "-p", str(self.port), "--udp")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.settimeout(harness.DEADLINE_S)
            one.connect(("127.0.0.1", self.port))
            for text, answer in ((b"hello", b"hello"), (b"again", b"again"), (b"all", b"to all")):
                one.send(text)
                self.assertEqual(one.recv(100), answer)
            for text in ("none", "outside"):
                self.running.must("send", "x", text)
            self.assertEqual(one.recv(100), b"sent outside")
            self.assertEqual(self.reload("function on_message(c, text) self.send(c, 'new ' .. text) end").status, 0)
            one.send(b"hello")
            self.assertEqual(one.recv(100), b"new hello")
        self.running.must("stop", "x")

    def test_several_threads(self):
        self.on_port("""
            function on_connect(c) self.join_group(c, "all") end
            function on_message(c, text) self.group_send("all", text) end""", "--threads", "2")
        clients = [connect(self.port) for _ in range(8)]
        for each in clients:
            self.addCleanup(each.close)
        eventually(lambda: self.running.show("x")["connections"] == 8, "all clients")
        clients[0].sendall(b"hello\n")
        for each in clients:
            self.assertEqual(read_line(each), "hello")
        self.assertEqual(self.reload(ECHO).status, 0)
        for each in clients:
            self.assertEqual(self.ask(each, "x"), "x")


@harness.on_each_backend
class LoadedAgain(Scripted):
    CLIENTS, LINES = 50, 400

    def test_while_clients_send(self):
        """No connection is lost, and no message is lost or doubled."""
        self.on_port("function on_message(c, text) self.send(c, '0 ' .. text) end")
        failures = []

        def talk():
            try:
                with connect(self.port) as one:
                    for number in range(self.LINES):
                        one.sendall(b"%d\n" % number)
                        version, answer = read_line(one).split()
                        assert int(answer) == number and int(version) >= 0, (version, answer)
            except (OSError, AssertionError, ValueError) as error:
                failures.append(error)

        threads = [threading.Thread(target=talk) for _ in range(self.CLIENTS)]
        for each in threads:
            each.start()
        version = 0
        while any(each.is_alive() for each in threads):
            version += 1
            made = self.reload(f"function on_message(c, text) self.send(c, '{version} ' .. text) end")
            self.assertEqual(made.status, 0, made)
        for each in threads:
            each.join()
        self.assertEqual(failures, [])
        counted = self.running.json("stats", "x", "--json")
        counted = counted[0] if isinstance(counted, list) else counted
        self.assertEqual(counted["connections_total"], self.CLIENTS)
        self.assertEqual(counted["messages_in"], self.CLIENTS * self.LINES)
        self.assertEqual(counted["messages_out"], self.CLIENTS * self.LINES)

    def test_a_script_with_a_mistake_leaves_the_present_one(self):
        self.on_port("count = 0 function on_message(c, text) count = count + 1 self.send(c, 'old ' .. count) end")
        with connect(self.port) as one:
            self.assertEqual(self.ask(one, "x"), "old 1")
            for text, why in (("function on_message(c, text", "chat.lua:1: "), ("\n\nerror('no')", "chat.lua:3: no"),
                              ("function on_reload(old) old.count.x = 1 end", "chat.lua:1: "),
                              ("function on_start() unknown() end", "chat.lua:1: "), ("on_message = 7", "is no function")):
                self.assert_refused(self.reload(text), 1, "goes on as before", why)
            os.unlink(self.path)
            self.assert_refused(self.running.run("reload-lua", "x"), 1, "goes on as before", "cannot be read")
            self.assertEqual(self.ask(one, "x"), "old 2")
            made = self.reload("function on_reload(old) count = old.count + 10 end\n"
                               "function on_message(c, text) count = count + 1 self.send(c, 'new ' .. count) end")
            self.assertEqual(made.status, 0, made)
            self.assertEqual(self.ask(one, "x"), "new 13")
            # `eddy reload` reads the script, too.
            self.write(ECHO)
            self.running.must("reload", "x")
            self.assertEqual(self.ask(one, "x"), "x")

    def test_a_script_that_is_mended_after_a_restart_starts(self):
        self.on_port(ECHO)
        self.assertEqual(self.running.stop(), 0)
        self.write("function on_message(")
        self.running.start()
        self.assert_refused(self.running.run("start", "x"), 1, "chat.lua:1: ")
        self.write(ECHO)
        self.running.must("start", "x")
        with connect(self.port) as one:
            self.assertEqual(self.ask(one, "x"), "x")

    def test_what_runs_no_script_is_refused(self):
        self.on_port(ECHO)
        self.running.must("create", "server", "plain", "-p", str(free_port()), "-s")
        self.running.must("create", "cache", "c", "-p", str(free_port()), "-s")
        self.assert_refused(self.running.run("reload-lua", "plain"), 1, "plain runs no script")
        self.assert_refused(self.running.run("reload-lua", "c"), 1, "c runs no script; `eddy edit c --lua FILE` gives it one")
        self.running.must("stop", "x")
        self.assert_refused(self.running.run("reload-lua", "x"), 1, "not running")
        self.assert_refused(self.running.run("reload-lua", "nothing"), 1, "nothing")

    def test_takes_no_memory_again_and_again(self):
        self.on_port(ECHO)
        with connect(self.port) as one:
            for _ in range(20):
                self.running.request("POST", "/v1/runtimes/x/reload-lua")
            self.assertEqual(self.ask(one, "x"), "x")
            before = self.running.resident_kib()
            used = self.running.metric("eddy_server_script_memory_bytes", runtime="x", type="server")
            for _ in range(int(os.environ.get("EDDY_RELOADS", 200 if harness.sanitized() else 2000))):
                self.running.request("POST", "/v1/runtimes/x/reload-lua")
            self.assertEqual(self.ask(one, "x"), "x")
            self.assertLess(self.running.metric("eddy_server_script_memory_bytes", runtime="x", type="server"), used + 4096)
            if not harness.sanitized():
                self.assertLess(self.running.resident_kib(), before + 4096)


@harness.on_each_backend
class GoingWrong(Scripted):
    BODIES = {"throws": ("error('spoilt')", "script_failed"),
              "loops": ("while true do end", "script_too_long"),
              "allocates": ("local t = {} while true do t[#t + 1] = ('x'):rep(1e5) .. #t end", "script_failed"),
              "recurses": ("local function f() return 1 + f() end f()", "script_failed"),
              "calls back": ("table.sort({3, 2, 1}, function() eddy.sleep(1) end)", "script_failed")}

    def test_each_callback(self):
        first = True
        for name, (body, reason) in self.BODIES.items():
            script = f"""
                tick_ms = 10
                bad = "none"
                function on_auth(c) if bad == "on_auth" then {body} end end
                function on_connect(c) if bad == "on_connect" then {body} end end
                function on_disconnect(c) if bad == "on_disconnect" then bad = "none" {body} end end
                function on_tick(ms) if bad == "on_tick" then bad = "none" {body} end end
                function on_message(c, text)
                    if text == "timer" then self.set_timeout(1, function() {body} end)
                    elseif text == "on_message" then {body} else bad = text end
                    self.send(c, "ok " .. text)
                end"""
            if first:
                self.on_port(script, "--lua-time", "30ms", "--lua-memory", "4M")
                first = False
            for callback in ("on_message", "on_auth", "on_connect", "on_disconnect", "on_tick", "timer"):
                with self.subTest(name, callback=callback):
                    self.assertEqual(self.reload(script).status, 0)
                    before = self.errors(reason)
                    with connect(self.port) as one:
                        one.sendall(callback.encode() + b"\n")
                        if callback != "on_message":
                            self.assertEqual(read_line(one), "ok " + callback)
                        if callback in ("on_auth", "on_connect"):
                            with connect(self.port) as refused:
                                self.assertEqual(harness.all_of(refused), b"")
                        if callback == "on_message":
                            self.assertEqual(self.ask(one, "none"), "ok none", "it is served on")
                    eventually(lambda: self.errors(reason) > before, f"{callback} that {name} is counted")  # noqa: B023
        self.assertIn("the script failed: chat.lua:", self.logs())
        self.assertEqual(self.running.show("x")["status"], "running")

    def test_a_script_that_only_fails_is_shown(self):
        self.on_port("local function refuse() error('spoilt') end\n"
                     "function on_message(c, text) self.send(c, text) if text ~= 'good' then refuse() end end")

        def degraded():
            return self.running.metric("eddy_runtime_degraded", runtime="x", type="server")

        with connect(self.port) as one:
            for _ in range(10):
                self.assertEqual(self.ask(one, "bad"), "bad")
            eventually(lambda: degraded() == 1, "it is degraded")
            self.assertIn("x is running, but the last 10 calls of its script failed", self.running.run("ls", "x").err)
            self.assertIn("eddy logs x", self.running.show("x")["reason"])
            self.assertIn("chat.lua:1: spoilt; called from chat.lua:2", self.logs())
            self.assertEqual(self.ask(one, "good"), "good")
            eventually(lambda: degraded() == 0, "it is not any more")
            self.assertNotIn("reason", self.running.show("x"))

    def test_others_of_the_daemon_go_on(self):
        """A script that computes without end holds up neither a cache of the same loop nor other clients for long."""
        self.on_port("function on_message(c, text) if text == 'loop' then while true do end end self.send(c, text) end",
                     "--lua-time", "2s")
        cache = free_port()
        self.running.must("create", "cache", "c", "-p", str(cache), "-s")
        with connect(self.port) as bad, connect(cache) as good:
            bad.sendall(b"loop\nend\n")
            for _ in range(200):
                good.sendall(b"PING\r\n")
                self.assertEqual(read_line(good), "+PONG")
            self.assertEqual(self.errors("script_too_long"), 0, "it computes meanwhile")
            self.assertEqual(read_line(bad), "end")

    def test_the_control_socket_is_closed_to_scripts(self):
        self.on_port("""
            function on_message(c, path)
                local s = eddy.tcp()
                local is_open, why = s:connect("unix:" .. path)
                local text
                if is_open then
                    s:send("GET /v1/runtimes HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
                    text, why = s:receive()
                end
                self.send(c, tostring(text or why))
            end""")
        with connect(self.port) as one:
            self.assertTrue(self.ask(one, self.running.socket).startswith("HTTP/1.1 403"))
            # The socket for scripts with --lua-admin has no file; its name is no secret.
            with open("/proc/net/unix", encoding="utf-8") as file:
                names = set(re.findall(r"@eddy-[0-9a-f]{32}$", file.read(), re.M))
            answers = [self.ask(one, name) for name in names]
            self.assertEqual([each for each in answers if not each.startswith("HTTP/1.1 403")], [])

    def test_many_timers_leave_time_for_others(self):
        self.on_port("""
            for i = 1, 2000 do
                self.set_interval(1, function() local ends = os.clock() + 0.0005 while os.clock() < ends do end end)
            end\n""" + ECHO)
        # Some of these are on the same loop. All timers of a turn together would take half a second.
        for name in ("a", "b", "c", "d"):
            port = free_port()
            self.running.must("create", "server", name, "-p", str(port), "-s")
            with connect(port) as one, connect(port) as two:
                began = time.monotonic()
                for i in range(40):
                    one.sendall(b"%d\n" % i)
                    self.assertEqual(read_line(two), str(i))
                self.assertLess(time.monotonic() - began, 10)

    def test_timers_that_begin_timers_have_a_limit(self):
        self.on_port("""
            local refused = 0
            local function again()
                if not pcall(self.set_timeout, 0, again) then refused = refused + 1 end
                if not pcall(self.set_timeout, 0, again) then refused = refused + 1 end
            end
            function on_start() again() end
            function on_message(c, text) self.send(c, refused > 10 and "refused" or "not yet") end""")
        with connect(self.port) as one:
            eventually(lambda: self.ask(one, "x") == "refused", "the limit is met")

    def test_each_client_has_its_end_at_a_stop(self):
        self.on_port("n = 0 function on_disconnect(c) for i = 1, 100000 do end n = n + 1 self.log('left ' .. n) end\n" + ECHO)
        clients = [connect(self.port) for _ in range(300)]
        for each in clients:
            self.assertEqual(self.ask(each, "x"), "x")
        self.running.must("stop", "x")
        self.assertIn("left 300\n", self.logs())
        for each in clients:
            each.close()

    def test_what_a_failed_callback_has_opened_is_closed(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.on_port("function on_message() assert(eddy.tcp():connect('127.0.0.1', %d)) error('x') end"
                         % listener.getsockname()[1])
            with connect(self.port) as one:
                one.sendall(b"x\n")
                with listener.accept()[0] as peer:
                    peer.settimeout(harness.DEADLINE_S)
                    self.assertEqual(peer.recv(1), b"")

    def test_sockets_without_end(self):
        with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
            self.on_port("""
                local all = {}
                function on_message(c, text)
                    local opened, why = 0
                    for i = 1, 1e9 do
                        local s, made
                        s, why = eddy.tcp()
                        if s then made, why = s:connect("127.0.0.1", %d) end
                        if not made then break end
                        all[#all + 1] = s
                        opened = opened + 1
                    end
                    self.send(c, opened .. " " .. tostring(why))
                end""" % listener.getsockname()[1])
            with connect(self.port) as one, connect(self.port) as two:
                for each in (one, two):
                    opened, why = self.ask(each, "x").split(" ", 1)
                    self.assertLessEqual(int(opened), 1000)
                    self.assertNotEqual(why, "nil")
                # They end with the call, whatever the script keeps of them.
                self.assertGreater(int(self.ask(one, "x").split()[0]), 900)

    def test_handles_of_clients_that_have_gone(self):
        self.on_port("""
            kept = {}
            function on_connect(c) kept[#kept + 1] = c end
            function on_message(c, text)
                local sent = 0
                for _, each in ipairs(kept) do
                    if self.send(each, text) then sent = sent + 1 end
                    self.set_data(each, "k", 1) self.get_data(each, "k") self.peer_ip(each) self.groups(each)
                    if each ~= c then self.disconnect(each) self.join_group(each, "g") end
                end
                self.send(c, "sent " .. sent .. " of " .. #kept)
            end""")
        for _ in range(20):
            connect(self.port).close()
        eventually(lambda: self.running.metric("eddy_runtime_connections_total", runtime="x", type="server") == 20, "they came")
        eventually(lambda: self.running.show("x")["connections"] == 0, "they went")
        with connect(self.port) as one:
            self.assertEqual(self.ask(one, "x"), "x")
            self.assertEqual(read_line(one), "sent 1 of 21")

    def test_a_thousand_leave_during_a_broadcast(self):
        self.on_port("function on_message(c, text) for i = 1, 100 do self.broadcast(text .. i) end self.send(c, 'end')"
                     " end\n"
                     "function on_disconnect(c) self.broadcast('gone') end")
        clients = [connect(self.port) for _ in range(1000)]
        eventually(lambda: self.running.show("x")["connections"] == 1000, "they came")
        clients[0].sendall(b"x\n")
        for each in clients[1:]:
            each.close()
        line = read_line(clients[0])
        while line != "end":
            line = read_line(clients[0])
        clients[0].close()
        eventually(lambda: self.running.show("x")["connections"] == 0, "they went")

    def test_refused_at_creation(self):
        refused = self.create("function on_message(", "-p", str(free_port()), expect=1)
        self.assertIn("--lua: chat.lua:1: ", refused.err)
        self.assertFalse(self.running.list())
        refused = self.running.run("create", "server", "y", "-p", str(free_port()), "--lua", self.path + "x", "-s")
        self.assert_refused(refused, 1, "--lua: ", "cannot be read")


class Examples(Scripted):
    """The scripts that docs/scripting.md shows."""

    def example(self, name):
        with open(os.path.join(ROOT, "examples", "lua", name), encoding="utf-8") as file:
            return file.read()

    def test_the_page_shows_them(self):
        with open(os.path.join(ROOT, "docs", "scripting.md"), encoding="utf-8") as file:
            page = file.read()
        shown = re.findall(r"<!-- examples/lua/(\w+\.lua) -->\n```lua\n(.*?)```", page, re.S)
        files = [each for each in os.listdir(os.path.join(ROOT, "examples", "lua")) if each.endswith(".lua")]
        self.assertEqual(sorted(name for name, _ in shown), sorted(files))
        for name, text in shown:
            self.assertEqual(text, self.example(name), name)

    def test_rooms(self):
        self.on_port(self.example("rooms.lua"))
        with connect(self.port) as ann, connect(self.port) as bob:
            for each in (ann, bob):
                self.assertIn("welcome to the lobby", read_line(each))
            self.assertEqual(self.ask(ann, "/nick ann"), "you are ann")
            self.assertEqual(self.ask(bob, "hi"), "guest2: hi")
            self.assertEqual(read_line(ann), "guest2: hi")
            self.assertEqual(sorted(self.ask(ann, "/who").split(", ")), ["ann", "guest2"])
            self.assertEqual(self.ask(bob, "/join garden"), "guest2 joins garden")
            self.assertEqual(self.ask(ann, "/unknown"), "ann: /unknown")
            self.assertEqual(self.ask(ann, "/join garden"), "ann joins garden")
            self.assertEqual(read_line(bob), "ann joins garden")
            ann.close()
            self.assertEqual(read_line(bob), "ann leaves")

    def test_doors(self):
        self.on_port(self.example("doors.lua"), "--mode", "master")
        with connect(self.port) as one:
            with self.assertRaisesRegex(AssertionError, "403 Forbidden"):
                Web(one, "/?token=t-eve")
            eventually(lambda: b"a token is needed" in one.recv(4096), "the reason")
        with connect(self.port) as raw, connect(self.port) as over:
            ann = Web(over, "/?token=t-ann", "Sec-WebSocket-Protocol: chat.v1, chat.v2\r\n")
            self.assertIn("Sec-WebSocket-Protocol: chat.v2", ann.fields)
            self.assertEqual(self.ask(raw, "master sesame"), "master: denied")
            ann.send(TEXT, b"master sesame")
            self.assertEqual(ann.receive(), (TEXT, b"master: ok"))
            ann.send(TEXT, b"hello")
            self.assertEqual(ann.receive(), (TEXT, b"ann: hello"))
            self.assertEqual(read_line(raw), "ann: hello")
            self.assertIn("delivered to 2", self.running.must("send", "x", "lunch"))
            self.running.must("send", "x", "")
            self.assertEqual(read_line(raw), "operator: lunch")
            self.assertEqual(ann.receive(), (TEXT, b"operator: lunch"))

    def test_paths(self):
        self.on_port(self.example("paths.lua"))
        with connect(self.port) as one, connect(self.port) as two, connect(self.port) as three:
            garden, kitchen, other = Web(one, "/garden"), Web(two, "/kitchen"), Web(three, "/garden")
            garden.send(TEXT, b"roses")
            self.assertEqual(other.receive(), (TEXT, b"roses"))
            self.assertEqual(garden.receive(), (TEXT, b"roses"))
            kitchen.send(TEXT, b"bread")
            self.assertEqual(kitchen.receive(), (TEXT, b"bread"))
            other.send(TEXT, b"tulips")
            self.assertEqual(garden.receive(), (TEXT, b"tulips"))

    def test_limit(self):
        self.on_port(self.example("limit.lua"))
        with connect(self.port) as one:
            self.assertEqual(read_line(one), "password?")
            self.assertEqual(self.ask(one, "x"), "wrong")
            self.assertEqual(harness.all_of(one), b"")
        with connect(self.port) as one:
            self.assertEqual(read_line(one), "password?")
            self.assertEqual(self.ask(one, "open sesame"), "welcome")
            one.sendall(b"x\n" * 100)
            rest = harness.all_of(one).split(b"\n")
            self.assertEqual(rest[-2:], [b"too much", b""])
            self.assertLess(len(rest), 40)
        self.assertIn("script warn: client 2 of 127.0.0.1 says too much", self.logs())

    def test_visits(self):
        self.on_port(self.example("visits.lua"), "--threads", "2")
        with connect(self.port) as one, connect(self.port) as two:
            self.assertIn('no cache: there is no runtime "db"', self.ask(one, "x"))
            self.running.must("create", "cache", "db", "-p", str(free_port()), "-s")
            self.assertEqual(self.ask(one, "x"), "message 1 of 127.0.0.1")
            self.assertEqual(self.ask(two, "x"), "message 2 of 127.0.0.1")
            self.assertEqual(self.ask(two, "top"), "127.0.0.1 2")
            self.running.must("stop", "db")
            self.assertIn('no cache: "db" does not run', self.ask(one, "x"))
            self.running.must("start", "db")
            self.assertEqual(self.ask(two, "x"), "message 1 of 127.0.0.1")
        self.assertEqual(self.running.metric("eddy_cache_script_commands_total", runtime="db", type="cache"), 2)

    def test_relay(self):
        script = self.example("relay.lua")
        self.on_port(script, "--threads", "2", name="a")
        first = self.port
        self.on_port(script, name="b")
        with connect(first) as one, connect(first) as two, connect(self.port) as three:
            eventually(lambda: self.running.list()["a"]["connections"] == 2 and
                       self.running.list()["b"]["connections"] == 1, "all are connected")
            for client, name in ((one, "a"), (two, "a"), (three, "b")):
                client.sendall(b"hello\n")
                for each in (one, two, three):
                    self.assertEqual(read_line(each), name + ": hello")

    def test_meters(self):
        self.on_port(self.example("meters.lua"), "--threads", "2")
        with connect(self.port) as one, connect(self.port) as two:
            for client in (one, two):
                self.assertEqual(self.ask(client, "open sesame"), "welcome")
            self.assertEqual(self.ask(one, "x" * 20), "wrong")

            def value(metric, name):
                return self.running.metric("eddy_server_script_" + metric, runtime="x", type="server", name=name)

            self.assertEqual(value("counter_total", "logins"), 2)
            self.assertEqual(value("counter_total", "refused_logins"), 1)
            self.assertEqual(value("gauge", "longest_message_bytes"), 20 + len("open sesame"))
            self.assertEqual(self.reload(self.example("meters.lua")).status, 0)
            self.assertEqual(self.ask(two, "open sesame"), "welcome")
            self.assertEqual(value("counter_total", "logins"), 3)
        self.assertIn("logins", self.running.must("stats", "x"))

    def test_lobby(self):
        self.on_port(ECHO, name="echo")
        self.on_port(self.example("lobby.lua"), "--threads", "2")
        with connect(self.port) as one:
            self.assertEqual(read_line(one), "welcome; /play NAME")
            self.assertEqual(self.ask(one, "/play eco"), 'not there: there is no runtime "eco"; did you mean "echo"?')
            self.assertEqual(self.ask(one, "/play echo"), "you are in echo")
            self.assertEqual(self.ask(one, "/play chess"), "/play chess")
            self.running.must("stop", "echo")

            def is_back():
                return self.ask(one, "hello") == "first /play NAME"

            eventually(is_back, "the script has the client's messages")

    def test_matches(self):
        self.on_port(self.example("matches.lua"), "--lua-admin")
        self.assertEqual(self.running.json("show", "x")["options"]["lua_admin"], True)
        with connect(self.port) as one, connect(self.port) as two:
            self.assertEqual(self.ask(one, "x"), "new NAME")
            one.sendall(b"new chess\n")
            eventually(lambda: self.running.list().get("match-chess", {}).get("connections") == 1, "it is there")
            self.assertEqual(self.running.json("show", "match-chess")["owner"], "x")
            self.assertIn('not made: there is a runtime "match-chess" already', self.ask(two, "new chess"))
            self.running.must("edit", "x", "--unset", "lua-admin")
        with connect(self.port) as one:
            one.sendall(b"new chess\n")
            eventually(lambda: "give its runtime --lua-admin" in self.running.must("logs", "x"), "it is refused")

    def test_a_script_that_loads_itself_again(self):
        self.on_port("""
            loads = 0
            function on_message(c, text)
                if text == "load" then
                    local done, why = eddy.reload_lua(self.name)
                    self.send(c, done and "done" or why)
                else
                    self.send(c, text .. " " .. loads)
                end
            end
            function on_reload(old) loads = old.loads + 1 end""", "--lua-admin")
        with connect(self.port) as one, connect(self.port) as two:
            for count in range(1, 4):
                self.assertEqual(self.ask(one, "load"), "done")
                self.assertEqual(self.ask(two, "hello"), f"hello {count}")

    def test_a_script_that_loads_itself_again_as_it_is_loaded(self):
        self.on_port("""
            eddy.set_timeout(0, function() eddy.reload_lua(self.name) end)
            function on_reload(old) eddy.set_timeout(0, function() eddy.reload_lua(self.name) end) end\n""" + ECHO,
                     "--lua-admin")
        eventually(lambda: self.running.metric("eddy_server_script_reloads_total", runtime="x", type="server") > 20,
                   "it loads itself again")
        with connect(self.port) as one:
            for count in range(20):
                self.assertEqual(self.ask(one, f"{count}"), f"{count}")
        self.running.must("stop", "x")
        self.assertEqual(self.running.show("x")["status"], "stopped")

    def test_runtimes_without_end(self):
        self.flags = ["--max-runtimes", "100"]
        self.on_port("""
            function on_message(c, text)
                if text ~= "make" then return self.send(c, text) end
                for count = 1, 1e9 do
                    local made, why = eddy.create("server", "m" .. count, {port = 0, start = false, owner = self.name})
                    if not made then return self.send(c, count .. ": " .. why) end
                end
            end""", "--lua-admin")
        with connect(self.port) as one, connect(self.port) as two:
            one.sendall(b"make\n")
            self.assertEqual(self.ask(two, "others go on"), "others go on")
            self.assertIn("100: there are 100 runtimes, which is the limit", read_line(one))
            self.running.must("remove", "--force", "x")
        self.assertEqual(self.running.list(), {})

    def test_the_socket_of_such_scripts_is_for_them_alone(self):
        self.on_port(ECHO, "--lua-admin")
        with open("/proc/net/unix", encoding="utf-8") as file:
            names = re.findall(r"@(eddy-[0-9a-f]{32})$", file.read(), re.M)
        self.assertTrue(names)
        for name in names:  # other daemons may run
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(harness.DEADLINE_S)
                try:
                    one.connect("\0" + name)
                except ConnectionRefusedError:
                    continue  # it has ended meanwhile
                one.sendall(b"GET /v1/runtimes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 403 ", harness.all_of(one).split(b"\r\n")[0])


if __name__ == "__main__":
    harness.main()
