#!/usr/bin/env python3
"""Drivers of Debian for OpenResty and LuaSocket, unchanged, in scripts of servers: a real Redis and a real memcached
that answer, end in the middle, stall, and are not there; requests to a site; and modules."""

import os
import shutil
import socket
import subprocess
import unittest

import harness
from cache_client import Redis
from harness import connect, eventually, free_port, read_line

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# As `./eddy-dev test` unpacks them.
MODULES = os.path.join(ROOT, "build/rivals/lua-drivers/usr/share/lua/5.1")


def missing(module):
    return not os.path.exists(f"{MODULES}/{module}.lua")


@harness.needs("scripts")
@harness.on_each_backend
class Drivers(harness.EddyTest):
    def server(self, script, *flags):
        self.running = self.daemon()
        path = os.path.join(self.folder(), "s.lua")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        self.port = free_port()
        self.running.must("create", "server", "x", "-p", str(self.port), "--lua", path, "--lua-path", MODULES, *flags, "-s")

    def ask(self, text, client=None):
        if client is None:
            with connect(self.port) as made:
                return self.ask(text, made)
        client.sendall(text.encode() + b"\n")
        return read_line(client)

    @unittest.skipIf(missing("nginx/redis"), "there is no lua-nginx-redis")
    def test_redis(self):
        redis = Redis(self)
        self.server("""
            local redis = require("nginx.redis")
            function on_message(client, text)
                local r = redis:new()
                r:set_timeout(5000)
                assert(r:connect("127.0.0.1", %d))
                assert(r:set("k", text))
                r:init_pipeline()
                r:get("k")
                r:get("none")
                r:lpush("l", "a", "b")
                local all = assert(r:commit_pipeline())
                local wrong, why = r:incr("k")
                self.send(client, table.concat({all[1], tostring(all[2] == ngx.null), all[3], tostring(wrong),
                                                r:get_reused_times()}, " "))
                assert(r:set_keepalive(10000, 10))
            end""" % redis.port)
        with connect(self.port) as client:
            self.assertEqual(self.ask("a b", client), "a b true 2 false 0")
            self.assertEqual(self.ask("second", client), "second true 4 false 1")

    @unittest.skipIf(missing("redis"), "there is no lua-redis")
    def test_redis_by_luasocket(self):
        redis = Redis(self)
        self.server("""
            local redis = require("redis")
            function on_message(client, text)
                local r = redis.connect("127.0.0.1", %d)
                r:set("k", text)
                self.send(client, r:get("k") .. " " .. tostring(r:get("none")))
            end""" % redis.port)
        self.assertEqual(self.ask("hello"), "hello nil")

    @unittest.skipIf(missing("nginx/memcached") or not shutil.which("memcached"), "there is no lua-nginx-memcached")
    def test_memcached(self):
        port = free_port()
        memcached = subprocess.Popen(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-U", "0"])
        self.addCleanup(memcached.wait)
        self.addCleanup(memcached.kill)
        eventually(lambda: is_open(port), "memcached listens")
        self.server("""
            local memcached = require("nginx.memcached")
            function on_message(client, text)
                local m = memcached:new()
                m:set_timeout(5000)
                assert(m:connect("127.0.0.1", %d))
                assert(m:set("a key", text))
                self.send(client, (m:get("a key")))
                assert(m:set_keepalive(1000, 10))
            end""" % port)
        self.assertEqual(self.ask("hello"), "hello")

    @unittest.skipIf(missing("nginx/redis"), "there is no lua-nginx-redis")
    def test_a_server_that_is_not_there_stalls_or_ends(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.server("""
                local redis = require("nginx.redis")
                function on_message(client, text)
                    local r = redis:new()
                    r:set_timeout(text == "stall" and 50 or 20000)
                    local is_open, why = r:connect("127.0.0.1", text == "absent" and 1 or %d)
                    if is_open then is_open, why = r:get("k") end
                    self.send(client, text .. " " .. tostring(is_open) .. " " .. why)
                end""" % listener.getsockname()[1])
            self.assertEqual(self.ask("absent"), "absent nil connection refused")
            self.assertEqual(self.ask("stall"), "stall nil timeout")
            listener.accept()[0].close()
            with connect(self.port) as waiting, connect(self.port) as other:
                waiting.sendall(b"end\n")
                peer = listener.accept()[0]
                # While the script waits, another client of its loop is served.
                self.assertEqual(self.ask("absent", other), "absent nil connection refused")
                peer.recv(1000)
                peer.sendall(b"$10\r\nhalf")
                peer.close()
                self.assertEqual(read_line(waiting), "end nil closed")

    def test_requests(self):
        folder = self.folder()
        with open(os.path.join(folder, "a"), "w", encoding="utf-8") as file:
            file.write("from the site")
        site = free_port()
        self.server("""
            function on_message(client, text)
                local got, why = eddy.http{url = "http://127.0.0.1:%d/" .. text, timeout = 5000}
                self.send(client, got and got.status .. " " .. got.body or why)
            end""" % site)
        self.running.must("create", "http", "site", "-p", str(site), "--root", folder, "-s")
        self.assertEqual(self.ask("a"), "200 from the site")
        self.assertTrue(self.ask("b").startswith("404 "))

    @harness.needs("tls")
    def test_certificates_are_verified(self):
        """By eddy.http() always, by the handshake of a socket where it is asked to."""
        made, folder, site = harness.Certificates(self.folder()), self.folder(), free_port()
        with open(os.path.join(folder, "a"), "w", encoding="utf-8") as file:
            file.write("from the site")
        before = os.environ.get("SSL_CERT_FILE")
        self.addCleanup(lambda: os.environ.pop("SSL_CERT_FILE") if before is None else
                        os.environ.__setitem__("SSL_CERT_FILE", before))
        for is_known in True, False:
            # The system's authorities are those of the environment.
            os.environ["SSL_CERT_FILE"] = made.ca if is_known else made.client_cert
            self.server("""
                local port = %d
                function on_message(client, text)
                    if text == "http" then
                        local got, why = eddy.http{url = "https://localhost:" .. port .. "/a", timeout = 20000}
                        return self.send(client, got and got.status .. " " .. got.body or "no: " .. why)
                    end
                    local s = eddy.tcp()
                    s:settimeout(20000)
                    assert(s:connect("127.0.0.1", port))
                    local name, verified = text:match("^(%%S+) (%%S+)$")
                    local is_secure, why = s:sslhandshake(nil, name, verified == "verified")
                    if not is_secure then return self.send(client, "no: " .. why) end
                    s:send("GET /a HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
                    self.send(client, (s:receive()))
                end""" % site)
            self.running.must("create", "http", "site", "-p", str(site), "--root", folder, "--tls", "--cert", made.cert,
                              "--key", made.key, "-s")
            answers = [self.ask(each) for each in ("http", "localhost verified", "other.example verified", "other.example any")]
            if is_known:
                self.assertEqual(answers[:2], ["200 from the site", "HTTP/1.1 200 OK"])
            else:
                self.assertEqual([each[:4] for each in answers[:2]], ["no: "] * 2, answers)
            self.assertEqual(answers[2][:4], "no: ", answers)
            self.assertEqual(answers[3], "HTTP/1.1 200 OK")
            self.running.stop()

    def test_a_module_that_is_not_there(self):
        self.server("function on_message(client, text) self.send(client, select(2, pcall(require, 'none'))) end")
        self.assertIn(f"module 'none' not found: no file {MODULES}/none.lua", self.ask("x"))


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
