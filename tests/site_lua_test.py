#!/usr/bin/env python3
"""Lua on sites: the example of docs/scripting.md, scripts that are loaded again under their clients, and scripts that go wrong."""

import http.client
import json
import os
import threading

import harness
from harness import eventually, free_port

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@harness.needs("scripts")
class Scripted(harness.EddyTest):
    def setUp(self):
        self.root = self.folder()
        self.path = os.path.join(self.folder(), "site.lua")
        self.running = self.daemon()
        self.port = free_port()

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def create(self, script, *flags):
        self.write(script)
        self.running.must("create", "http", "x", "-p", str(self.port), "--lua", self.path, *flags, "-s")

    def connection(self):
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.DEADLINE_S)
        self.addCleanup(made.close)
        return made

    def ask(self, method, target, body=None, headers=None, over=None):
        """(status, content as JSON or text, headers)"""
        over = over or self.connection()
        over.request(method, target, json.dumps(body) if isinstance(body, dict) else body, headers or {})
        response = over.getresponse()
        text = response.read().decode()
        is_json = text and response.getheader("Content-Type") == "application/json"
        return response.status, json.loads(text) if is_json else text, response.headers

    def get(self, target, over=None):
        return self.ask("GET", target, over=over)[:2]


@harness.on_each_backend
class OnEachBackend(Scripted):
    def test_the_example(self):
        with open(os.path.join(self.root, "index.html"), "w", encoding="utf-8") as file:
            file.write("<p>notes")
        with open(os.path.join(ROOT, "examples/lua/api.lua"), encoding="utf-8") as file:
            self.create(file.read(), "--root", self.root)
        over = self.connection()
        self.assertEqual(self.get("/", over), (200, "<p>notes"))
        self.assertEqual(self.get("/notes", over), (200, {"count": 0, "notes": {}}))
        for text in ("{", "[]", '{"text": 1}'):
            self.assertEqual(self.ask("POST", "/notes", text, over=over)[:2], (400, {"error": "a note is JSON with a text"}))
        status, note, headers = self.ask("POST", "/notes", {"text": "hello"}, {"x-name": "Ann"}, over)
        self.assertEqual((status, note), (201, {"id": 1, "text": "hello", "by": "Ann"}))
        self.assertEqual(headers["Location"], "/notes/1")
        self.assertEqual(self.get("/notes/1", over), (200, note))
        status, content, headers = self.ask("HEAD", "/notes", over=over)
        self.assertEqual((status, content), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 50)
        status, _, headers = self.ask("PUT", "/notes", "x", over=over)
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD, POST"))
        self.assertEqual(self.ask("DELETE", "/notes/1", over=over)[:2], (204, ""))
        self.assertEqual(self.get("/notes/1", over), (404, {"error": "no such note"}))
        self.assertEqual(self.get("/none", over)[0], 404)

    def test_waits_for_another_site_beside_other_requests(self):
        self.create("""
            function on_http_request(r)
                if r.path == "/inner" then eddy.sleep(0.01) return 200, {path = r.path} end
                local got, why = eddy.http("http://127.0.0.1:%d/inner")
                return got and got.status or 502, got and got.body or why
            end""" % self.port)
        self.assertEqual(self.get("/outer"), (200, '{"path":"\\/inner"}'))
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.get("/outer")[0])) for _ in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(answers, [200] * 20)

    def test_is_loaded_again_while_requests_come(self):
        """No request is lost, and no connection."""
        self.create("function on_http_request(r) return 200, r.body .. ' 0' end")
        failures = []
        stop = threading.Event()

        def talk():
            over = self.connection()
            i = 0
            while not stop.is_set():
                i += 1
                status, text, _ = self.ask("POST", "/", str(i), over=over)
                if status != 200 or not text.startswith(f"{i} "):
                    failures.append((i, status, text))

        threads = [threading.Thread(target=talk) for _ in range(8)]
        for each in threads:
            each.start()
        try:
            for version in range(1, 11):
                self.write("function on_http_request(r) return 200, r.body .. ' %d' end" % version)
                self.running.must("reload-lua", "x")
                self.assertEqual(self.ask("POST", "/", "a")[1], f"a {version}")
        finally:
            stop.set()
            for each in threads:
                each.join()
        self.assertEqual(failures, [])


class GoneWrong(Scripted):
    def test_a_file_with_a_mistake_leaves_the_present_script(self):
        self.create("function on_http_request(r) return 200, 'old' end")
        self.write("function on_http_request(")
        refused = self.running.run("reload-lua", "x")
        self.assert_refused(refused, 1, "goes on as before", "site.lua:1: ")
        self.assertEqual(self.get("/"), (200, "old"))

    def test_failures_are_in_the_journal_alone(self):
        self.create("""
            function on_http_request(r)
                if r.path == "/error" then error("a secret") end
                if r.path == "/loop" then while true do end end
                if r.path == "/split" then return 200, "x", {["X-A"] = "b\\r\\n\\r\\nX-C: d"} end
                return 200, "ok"
            end""", "--lua-time", "50ms")
        def is_noted(target, why):
            """At most one line a second is written of a callback."""
            status, text, headers = self.ask("GET", target)
            self.assertEqual((status, text), (500, "500 Internal Server Error\n"), target)
            self.assertNotIn("X-C", headers)
            self.assertEqual(self.get("/"), (200, "ok"))
            return why in self.running.must("logs", "x")

        for target, why in (("/error", "site.lua:3: a secret"), ("/loop", "site.lua:4: it computes for too long"),
                            ("/split", "the header X-A cannot be sent")):
            eventually(lambda target=target, why=why: is_noted(target, why), why)
        self.assertEqual(self.running.metric("eddy_http_script_errors_total", runtime="x", type="http", reason="script_killed"), 0)

    def test_a_site_needs_a_folder_or_a_script(self):
        refused = self.running.run("create", "http", "y", "-p", str(free_port()))
        self.assert_refused(refused, 1, "--root DIR or --lua FILE")
        refused = self.running.run("create", "http", "y", "-p", str(free_port()), "--root", self.root, "--lua-body", "1M")
        self.assert_refused(refused, 1, "--lua-body has no effect without --lua")

    def test_large_content_is_refused(self):
        self.create("function on_http_request(r) return 200, #r.body end", "--lua-body", "10000")
        self.assertEqual(self.ask("POST", "/", "x" * 10000)[:2], (200, "10000"))
        self.assertEqual(self.ask("POST", "/", "x" * 10001)[0], 413)


if __name__ == "__main__":
    harness.main()
