#!/usr/bin/env python3
"""Scripts against a daemon: eddy lua run, its functions and its declarative form, and eddy lua check."""

import os
import re
import unittest

import harness
from harness import free_port


class LuaRun(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()

    def script(self, text, *arguments, flags=()):
        path = os.path.join(self.folder(), "s.lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.running.run("lua", "run", *flags, path, *arguments)

    def lines(self, text, *arguments, flags=()):
        answer = self.script(text, *arguments, flags=flags)
        self.assertEqual(answer.status, 0, answer.err)
        return answer.out.splitlines()

    def test_each_function(self):
        port = free_port()
        self.assertEqual(self.lines(f"""
            local name = ...
            local made = assert(eddy.create("server", name, {{port = {port}, ["max-connections"] = 5}}))
            print(made.status, made.options.max_connections)
            assert(eddy.edit(name, {{max_connections = 7}}))
            print(eddy.show(name).options.max_connections, #eddy.list(), #eddy.list("none*"))
            print(eddy.send(name, "hello"), type(eddy.stats(name)))
            assert(eddy.stop(name))
            print(eddy.show(name).status)
            assert(eddy.start(name))
            assert(eddy.reload(name))
            print(eddy.show(name).status)
            assert(eddy.remove(name))
            print(#eddy.list())""", "chat"),
            ["running\t5", "7\t1\t0", "true\ttable", "stopped", "running", "0"])

    def test_refusals_are_returned(self):
        self.assertEqual(self.lines("""
            print(eddy.show("none"))
            print((select(2, eddy.create("server", "x", {prt = 1}))))
            print(pcall(function()
                eddy.start()
            end))"""),
            ['nil\tthere is no runtime "none"; `eddy ls` shows those there are\t404',
             'unknown option "prt"; did you mean --port?',
             "false\ts.lua:5: start() takes the name of a runtime"])

    def test_runtimes_are_made_so(self):
        ports = [free_port(), free_port()]
        text = """
            daemon{name = "main"}
            runtimes{
                db = {type = "cache", port = %d, owner = "chat"},
                chat = {type = "server", port = %d, options = {["max-line"] = %s}},
                later = {type = "server", port = 0, start = false},
            }"""
        self.assertEqual(self.lines(text % (*ports, "1000")), [])
        found = self.running.list()
        self.assertEqual({name: each["status"] for name, each in found.items()},
                         {"db": "running", "chat": "running", "later": "created"})
        self.assertEqual(found["db"]["owner"], "chat")
        self.running.must("stop", "chat")
        self.assertEqual(self.lines(text % (*ports, "2000")), [], "a second time")
        self.assertEqual(self.running.list()["chat"]["status"], "running")
        self.assertEqual(self.running.list()["chat"]["options"]["max_line"], "2000")

    def test_mistakes_name_the_line(self):
        for text, said in (("\nruntimes{{name = 'a'}}", "s.lua:2: each runtime needs a name and a type"),
                           ("runtimes{a = {type = 'srver'}}", "a: there is no type"),
                           ("runtimes{a = {type = 'server', owner = 'b'}, b = {type = 'server', owner = 'a'}}",
                            "are a circle"),
                           ("\neddy.list({})", "s.lua:2: list() takes a pattern"),
                           ("\neddy.create('server', 'a', 5)", "s.lua:2: create() takes"),
                           ("\neddy.create{type = 'server', name = 'a', options = 5}", "s.lua:2: the options of a are no table"),
                           ("\nruntimes{a = {type = 'server', options = 5}}", "s.lua:2: the options of a are no table"),
                           ("daemon{cluster = '/x'}", "daemon{} has no cluster here"),
                           ("\n\nerror('boom')", "s.lua:3: boom"),
                           ("x = = 1", "s.lua:1: unexpected symbol near '='")):
            answer = self.script(text)
            self.assertEqual(answer.status, 1, text)
            self.assertIn(said, answer.err, text)
            self.assertNotIn("control:", answer.err)

    def test_without_a_daemon(self):
        self.assertEqual(self.running.stop(), 0)
        answer = self.script("print(select(2, eddy.list()))")
        self.assertEqual(answer.status, 0, answer.err)
        self.assertIn("Start it with: eddy daemon", answer.out)

    def test_modules_sockets_and_sleep(self):
        folder = self.folder()
        with open(os.path.join(folder, "ping.lua"), "w", encoding="utf-8") as file:
            file.write("""
                return function(port)
                    local s = eddy.tcp()
                    assert(s:connect("127.0.0.1", port))
                    assert(s:send("PING\\r\\n"))
                    return s:receive()
                end""")
        port = free_port()
        self.running.must("create", "cache", "db", "-p", str(port), "-s")
        self.assertEqual(self.lines(f"eddy.sleep(0.01) print(require('ping')({port}))", flags=("--lua-path", folder)),
                         ["+PONG"])

    def test_check(self):
        for text, status in (("x = 1", 0), ("#!/usr/bin/eddy\nreturn ...", 0), ("x = 1 end function y()", 1),
                             ("if x then", 1), ("function (", 1)):
            answer = self.running.run("lua", "check", "-", stdin=text)
            self.assertEqual(answer.status, status, answer.err)
        self.assertIn("stdin:1: ", answer.err)
        for flags, text, fault in ((), "function on_message(c, t) end function on_miss(k) end", ""), \
                ((), "x = 1\nfunction on_mesage(c, t) end", "stdin:2: there is no callback on_mesage; did you mean on_message?"), \
                (("--type", "server"), "function on_websocket(c, r) end function on_master_auth(c, p) end function on_send(t) end", ""), \
                (("--type", "http"), "function on_http_request(r) end", ""), \
                (("--type", "stream"), "function handle(r) end function on_reload() end", ""), \
                (("--type", "stream"), "function on_message(r) end", "a stream runtime has no callback on_message"), \
                (("--type", "proxy"), "function on_proxy_request(r) end function on_proxy_response(r) end function on_route(r) end", ""), \
                (("--type", "http"), "function on_route(r) end", "an http runtime has no callback on_route"), \
                (("--type", "none"), "", 'there is no type of runtime "none"'):
            answer = self.running.run("lua", "check", *flags, "-", stdin=text)
            self.assertEqual(answer.status, 1 if fault else 0, answer.err)
            self.assertIn(fault, answer.err)
        self.assertIn("stdin: ", self.running.run("lua", "check", "-", stdin="\x1bLJ").err)
        self.assertIn("/none cannot be read: No such file", self.running.run("lua", "check", "/none").err)
        answer = self.running.run("lua", "check", "-", stdin="function on_message(c, t)\n self.brodcast(t)\nend")
        self.assertEqual(answer.status, 1)
        self.assertIn("stdin:2: there is no function self.brodcast; did you mean self.broadcast?", answer.err)
        # Servers alone have it.
        text = "function on_tick() self.multicast({}, 'x') end"
        self.assertEqual(self.running.run("lua", "check", "--type", "server", "-", stdin=text).status, 0)
        answer = self.running.run("lua", "check", "--type", "proxy", "-", stdin=text)
        self.assertIn("stdin:1: there is no function self.multicast", answer.err)
        answer = self.running.run("lua", "check", "-", stdin="function on_message(c, t)\n count = 1\nend")
        self.assertEqual(answer.status, 0)
        self.assertIn("stdin:2: warning: on_message() sets the global variable count", answer.err)

    def test_check_reads_only_what_runtimes_load(self):
        folder = self.folder()
        fifo = os.path.join(folder, "fifo.lua")
        os.mkfifo(fifo)
        self.assertIn("it is a FIFO", self.running.run("lua", "check", fifo).err)
        large = os.path.join(folder, "large.lua")
        with open(large, "w", encoding="utf-8") as file:
            file.write(" " * (4 << 20) + " ")
        answer = self.running.run("lua", "check", large)
        self.assertEqual(answer.status, 1)
        self.assertIn("has more than 4 MiB, which no runtime loads", answer.err)

    def test_the_name_of_another_program(self):
        answer = self.running.run("--lua", "-", "a", stdin="print(...)")
        self.assertEqual((answer.status, answer.out), (0, "a\n"), answer.err)


class FromSocketley(unittest.TestCase):
    """docs/from-socketley.md: the flags, callbacks and functions of Socketley, and what stands for each."""

    NAMES = """
        -p -s -o -g -b -t -u --test --log --lua --max-connections --rate-limit --global-rate-limit --idle-timeout --drain
        --reconnect --tls --cert --key --ca --mode --udp --master-pw --master-forward --http --http-cache --cache --upstream
        --backend --strategy --protocol --health-check --health-interval --health-path --health-threshold --circuit-threshold
        --circuit-timeout --retry --client-ca --client-cert --client-key --persistent --maxmemory --eviction --resp --replicate
        on_start on_stop on_tick tick_ms on_connect on_disconnect on_auth on_message on_client_message on_send on_websocket
        on_master_auth on_http_request on_route on_proxy_request on_proxy_response on_miss on_write on_delete on_expire
        broadcast send connections protocol route unroute get_route owner_send owner_broadcast disconnect peer_ip ws_headers
        clients multicast set_data get_data upstream_send upstream_broadcast upstreams join_group leave_group group_send pipe
        unpipe get set del lpush rpush lpop rpop llen sadd srem sismember scard hset hget hdel hlen expire ttl persist publish
        log create start stop remove list http set_timeout set_interval clear_timeout clear_interval json_encode json_decode
        subscribe print""".split()

    def test_each_has_its_cell(self):
        with open(os.path.join(os.path.dirname(__file__), "../docs/from-socketley.md"), encoding="utf-8") as file:
            rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in file if line.startswith("| ")]
        named = set()
        for row in rows:
            self.assertEqual(len(row), 2, row)
            there, here = (each.strip() for each in row)
            self.assertTrue(there and here, row)
            self.assertTrue(here != "–" or "cluster" in there, row)
            named.update(re.findall(r"-{0,2}[a-z][-\w]*", there))
        self.assertEqual([each for each in self.NAMES if each not in named], [])


if __name__ == "__main__":
    unittest.main()
