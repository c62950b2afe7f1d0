#!/usr/bin/env python3
"""The console: its guard, and what its page does in headless Chromium."""

import contextlib
import http.client
import json
import os
import shutil
import socket
import sys
import unittest
from urllib.parse import urlsplit

import harness
from harness import eventually, free_port
from streaming_test import EXAMPLES

sys.path.append(os.path.join(EXAMPLES, ".."))
from programs import Browser  # noqa: E402

if not shutil.which("chromium"):
    print("skipped: there is no chromium (apt: chromium)", file=sys.stderr)


class ConsoleTest(harness.EddyTest):
    def open(self, running, *flags):
        opened = running.run("console", *flags)
        self.assertEqual(opened.status, 0, opened)
        url = opened.out.strip()
        parts = urlsplit(url)
        self.assertEqual(parts.hostname, "127.0.0.1", url)
        return url, parts.port, parts.fragment

    def ask(self, port, path, method="GET", body=None, **fields):
        """Status, fields and content of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
        try:
            connection.putrequest(method, path, skip_host="Host" in fields)
            for name, value in fields.items():
                connection.putheader(name.replace("_", "-"), value)
            content = (body or "").encode()
            connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()


class Guard(ConsoleTest):
    def test_nothing_without_the_token(self):
        running = self.daemon()
        _, port, token = self.open(running)
        self.assertEqual(len(token), 64)
        right = f"Bearer {token}"
        self.assertEqual(self.ask(port, "/v1/runtimes", Authorization=right)[0], 200)
        wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
        for fields in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {wrong}"},
                       {"Authorization": f"Bearer {token}0"}, {"Authorization": f"Basic {token}"}, {"Authorization": token},
                       {"Cookie": f"token={token}"}, {"Eddy_Key": token}):
            for path in ("/v1/runtimes", "/v1/daemon", f"/v1/runtimes?token={token}", "/v1/console"):
                status, _, text = self.ask(port, path, **fields)
                self.assertEqual(status, 401, f"{path} {fields}: {text}")
                self.assertNotIn(token, text)
        self.assertEqual(self.ask(port, "/v1/runtimes/x", "DELETE")[0], 401)
        self.assertEqual(self.ask(port, "/metrics", Authorization=right)[0], 404)

    def test_a_port_that_is_taken(self):
        running = self.daemon()
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            self.assert_refused(running.run("console", "-p", str(port)), 1, "the console could not be opened",
                                f"port {port} is in use by another program", "take another port with -p")

    def test_pages_of_strangers(self):
        running = self.daemon()
        _, port, token = self.open(running)
        right = f"Bearer {token}"
        # A name of a stranger that leads here, and one without a port.
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
            for path in ("/", "/v1/runtimes"):
                self.assertEqual(self.ask(port, path, Host=host, Authorization=right)[0], 403, host)
        self.assertEqual(self.ask(port, "/", Host=f"localhost:{port}")[0], 200)
        # No page of another origin may send the token's field: what it would have to ask for is not granted.
        status, fields, _ = self.ask(port, "/v1/runtimes", "OPTIONS", Origin="https://evil.example",
                                     Access_Control_Request_Method="GET", Access_Control_Request_Headers="authorization")
        self.assertEqual(status, 401)
        self.assertFalse([name for name in fields if name.lower().startswith("access-control")])
        for path in ("/", "/console.js", "/console.css", "/v1/runtimes"):
            _, fields, _ = self.ask(port, path, Authorization=right)
            policy = fields["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(fields["X-Content-Type-Options"], "nosniff")
            self.assertEqual(fields["Cache-Control"], "no-store")

    def test_silent_connections_keep_no_page_out(self):
        running = self.daemon()
        _, port, token = self.open(running)
        with contextlib.ExitStack() as held:
            silent = [held.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(100)]
            # Strangers that are refused and stay, and some whose body never comes; others have been replaced by now.
            asked = f"GET /v1/runtimes HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"
            begun = f"POST /v1/runtimes HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 9\r\n\r\n"
            for i, each in enumerate(silent):
                with contextlib.suppress(OSError):
                    each.sendall((asked if i % 2 else begun).encode())
            self.assertEqual(self.ask(port, "/v1/runtimes", Authorization=f"Bearer {token}")[0], 200)

    def test_open_and_close(self):
        running = self.daemon()
        port = free_port()
        first = self.open(running, "--port", str(port))
        self.assertEqual(first[1], port)
        self.assertEqual(self.open(running), first, "it is open already")
        refused = running.run("console", "--port", str(free_port()))
        self.assertEqual(refused.status, 1)
        self.assertIn(f"open on port {port}", refused.err)
        # The console itself neither shows its token nor ends.
        for method in ("GET", "POST", "DELETE"):
            for path in ("/v1/console", "/v1/%63onsole"):
                self.assertEqual(self.ask(port, path, method, Authorization=f"Bearer {first[2]}")[0], 403, path)
        self.assertEqual(running.run("console", "--close").status, 0)
        with self.assertRaises(ConnectionRefusedError):
            self.ask(port, "/")
        second = self.open(running, "--port", str(port))
        self.assertNotEqual(second[2], first[2])
        self.assertEqual(self.ask(port, "/v1/daemon", Authorization=f"Bearer {first[2]}")[0], 401)
        self.assertEqual(running.run("console", "--port", "65536").status, 1)

    def test_a_stop_with_an_open_page(self):
        running = self.daemon()
        _, port, token = self.open(running)
        self.assertEqual(running.run("create", "server", "s", "-p", str(free_port()), "-s").status, 0)
        following = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
        following.request("GET", "/v1/runtimes/s/logs?follow=true", headers={"Authorization": f"Bearer {token}"})
        answer = following.getresponse()
        self.assertIn(b"created", answer.readline())
        running.stop()
        following.close()

    def test_commands_of_a_cache(self):
        running = self.daemon()
        _, port, token = self.open(running)
        self.assertEqual(running.run("create", "cache", "db", "-p", str(free_port()), "-s").status, 0)
        self.assertEqual(running.run("create", "server", "s", "-p", str(free_port()), "-s").status, 0)

        def command(*words, of="db"):
            status, _, text = self.ask(port, f"/v1/runtimes/{of}/command", "POST", json.dumps({"command": words}),
                                       Authorization=f"Bearer {token}")
            return status, json.loads(text)
        self.assertEqual(command("SET", "k", "1"), (200, {"reply": "OK"}))
        self.assertEqual(command("INCR", "k"), (200, {"reply": 2}))
        self.assertEqual(command("GET", "none"), (200, {"reply": None}))
        self.assertEqual(command("RPUSH", "l", "a", "b"), (200, {"reply": 2}))
        self.assertEqual(command("LRANGE", "l", "0", "-1"), (200, {"reply": ["a", "b"]}))
        self.assertIn("WRONGTYPE", command("GET", "l")[1]["reply"]["error"])
        for words in (("SUBSCRIBE", "x"), ("CONFIG", "GET", "*"), ("EVAL", "return 1", "0"), ("NOSUCH",), ("BLPOP", "l", "0")):
            self.assertEqual(command(*words)[0], 400, words)
        self.assertEqual(command("GET", "k", of="s")[0], 400)
        self.assertEqual(command("GET", "k", of="nobody")[0], 404)
        for body in ("{}", '{"command": []}', '{"command": [1]}', '{"command": "GET k"}'):
            self.assertEqual(self.ask(port, "/v1/runtimes/db/command", "POST", body, Authorization=f"Bearer {token}")[0], 400)
        command("SET", "large", "x" * 600_000)
        command("APPEND", "large", "x" * 600_000)
        self.assertEqual(command("GET", "large")[0], 507)
        self.assertEqual(running.run("stop", "db", "--force").status, 0)
        self.assertEqual(command("GET", "k")[0], 409)


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium (apt: chromium)")
class Page(ConsoleTest):
    def text(self, page, selector):
        return page.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")

    def names(self, page):
        return page.evaluate("[...document.querySelectorAll('td.name')].map(each => each.textContent).join()")

    def choose(self, page, name):
        page.evaluate(f"[...document.querySelectorAll('td.name button')].find(each => each.textContent === {name!r}).click()")
        eventually(lambda: self.text(page, "#one-title").startswith(name), f"{name} is shown")

    def press(self, page, key):
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", page.session, type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"Enter": 13, "Tab": 9}.get(key, 0), text="\r" if key == "Enter" else "")

    def test_a_runtime_is_created_edited_used_and_removed(self):
        running = self.daemon()
        ports = [free_port() for _ in range(2)]
        self.assertEqual(running.run("create", "server", "chat", "-p", str(ports[0]), "-s").status, 0)
        url, _, token = self.open(running)
        with Browser(url) as page:
            eventually(lambda: self.names(page) == "chat", "the server is shown")
            self.assertNotIn(token, page.evaluate("location.href"), "the address shows no token")

            page.evaluate("document.getElementById('create').click()")
            page.evaluate("document.getElementById('field-Name').value = 'db'")
            page.evaluate("const type = document.getElementById('field-Type'); type.value = 'cache'; type.onchange()")
            page.evaluate(f"document.getElementById('field---port').value = '{ports[0]}'")
            page.evaluate("document.getElementById('form-ok').click()")
            eventually(lambda: "could not be started" in self.text(page, "#form-error"), "the taken port is said")
            eventually(lambda: self.names(page) == "chat,db", "it was created, as the daemon says")
            page.evaluate("document.querySelector('#form [value=cancel]').click()")

            self.choose(page, "db")
            self.assertIn("port", self.text(page, "#one-reason"))
            page.evaluate("document.querySelector('[data-do=edit]').click()")
            page.evaluate(f"document.getElementById('field---port').value = '{ports[1]}'")
            page.evaluate("document.getElementById('form-ok').click()")
            eventually(lambda: not page.evaluate("document.getElementById('form').open"), "it is edited")
            page.evaluate("document.querySelector('[data-do=start]').click()")
            eventually(lambda: self.text(page, "#one-status") == "running", "it runs")
            self.assertEqual(json.loads(running.run("show", "db").out)["options"]["port"], ports[1])

            page.evaluate("document.getElementById('tab-Prompt').click()")
            for command in ('SET greeting "hello <b>you</b>"', "GET greeting"):
                page.evaluate(f"document.querySelector('#panel input').value = {command!r}")
                page.evaluate("document.querySelector('#panel .prompt button').click()")
            eventually(lambda: '"hello <b>you</b>"' in self.text(page, "#panel pre").split("> GET greeting")[-1], "its reply")
            self.assertEqual(running.run("db", "db", "GET", "greeting").out.strip(), "hello <b>you</b>")
            eventually(lambda: page.evaluate("[...document.querySelectorAll('#plots figure:not([hidden])')].length") >= 3,
                       "plots are shown")

            page.evaluate("document.querySelector('[data-do=remove]').click()")
            self.assertIn("db", self.text(page, "#form-title"))
            page.evaluate("document.getElementById('form-ok').click()")
            page.evaluate("document.getElementById('field-Even if data is lost').checked = true")
            page.evaluate("document.getElementById('form').open && document.getElementById('form-ok').click()")
            eventually(lambda: self.names(page) == "chat", "it is removed")

    def test_logs_are_followed_and_websockets_tried(self):
        running, port = self.daemon(), free_port()
        self.assertEqual(running.run("create", "server", "chat", "-p", str(port), "--http", self.folder(), "-s").status, 0)
        url = self.open(running)[0]
        with Browser(url) as page:
            eventually(lambda: self.names(page) == "chat", "the server is shown")
            self.choose(page, "chat")
            eventually(lambda: "started" in self.text(page, "#panel pre"), "its log is shown")
            running.run("stop", "chat")
            eventually(lambda: "stopped" in self.text(page, "#panel pre"), "its log is followed")
            eventually(lambda: self.text(page, "#one-status") == "stopped", "its state is followed")
            running.run("start", "chat")
            eventually(lambda: self.text(page, "#one-status") == "running", "its state is followed")
            page.evaluate("document.getElementById('tab-WebSocket').click()")
            page.evaluate("document.querySelector('#panel .prompt button').click()")
            eventually(lambda: "--origins" in self.text(page, "#panel pre"), "the page is of another port")
            origin = page.evaluate("location.origin")
            self.assertEqual(running.run("edit", "chat", "--origins", origin).status, 0)
            page.evaluate("document.querySelector('#panel .prompt button').click()")
            eventually(lambda: "connected" in self.text(page, "#panel pre"), "the WebSocket is open")
            self.assertEqual(running.run("send", "chat", "hello, page").status, 0)
            eventually(lambda: "< hello, page" in self.text(page, "#panel pre"), "the message has come")

    def test_the_keyboard_alone(self):
        running = self.daemon()
        self.assertEqual(running.run("create", "server", "chat", "-p", str(free_port()), "-s").status, 0)
        url = self.open(running)[0]
        with Browser(url) as page:
            eventually(lambda: self.names(page) == "chat", "the server is shown")
            for _ in range(30):
                if page.evaluate("document.activeElement.textContent") == "chat":
                    break
                self.press(page, "Tab")
            self.assertEqual(page.evaluate("document.activeElement.textContent"), "chat")
            self.press(page, "Enter")
            eventually(lambda: self.text(page, "#one-title").startswith("chat"), "it is shown")
            self.assertEqual(page.evaluate("document.activeElement.id"), "one-title")
            # Each control has a name for screen readers.
            page.evaluate("document.getElementById('create').click()")
            nameless = page.evaluate(
                "[...document.querySelectorAll('button,input,select,textarea,canvas')].filter(each => each.offsetParent && "
                "!each.textContent.trim() && !each.labels?.length && !each.getAttribute('aria-label')).length")
            self.assertEqual(nameless, 0)

    def test_a_closed_console_is_said(self):
        running = self.daemon()
        port = free_port()
        url = self.open(running, "--port", str(port))[0]
        with Browser(url) as page:
            eventually(lambda: page.evaluate("document.getElementById('empty').hidden") is False, "there is nothing yet")
            running.run("console", "--close")
            eventually(lambda: "does not answer" in self.text(page, "#state"), "that is said")
            self.open(running, "--port", str(port))
            eventually(lambda: "no longer valid" in self.text(page, "#state"), "the new token is asked for")
        with Browser(f"http://127.0.0.1:{port}/") as page:
            eventually(lambda: page.evaluate("document.getElementById('no-token').hidden") is False, "the token is missing")


if __name__ == "__main__":
    harness.main()
