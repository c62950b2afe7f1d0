#!/usr/bin/env python3
"""Proxied responses and real clients: Node's fetch and http.request, Python's http.client and curl see the whole of a
response that is whole, and an error where it broke off."""

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
import unittest

import harness
from harness import DEADLINE_S, eventually
from streaming_abuse_test import Api, saying, stall
from streaming_test import hand_over

TYPE = b"Content-Type: text/plain\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\n" + TYPE + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
WHOLE = CHUNKED + b"6\r\n world\r\n0\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\n" + TYPE + b"Content-Length: 11\r\n\r\nhello"
UNSIZED = b"HTTP/1.1 200 OK\r\n" + TYPE + b"Connection: close\r\n\r\nhello world"

# A backend's answer; true if it is whole.
ANSWERS = {
    "whole chunks": (saying(WHOLE), True),
    "chunks that break off": (saying(CHUNKED), False),
    "chunks that stop": (saying(CHUNKED, ends=stall), False),
    "a whole length": (saying(SIZED, b" world"), True),
    "a length that breaks off": (saying(SIZED), False),
    "an end by the close": (saying(UNSIZED), True),
}

# Prints a line for fetch() and one for http.request(): the text, or that it failed.
NODE = """
const http = require("http");
const url = process.argv[1];
(async () => {
    try {
        console.log("fetched", await (await fetch(url)).text());
    } catch (error) {
        console.log("failed");
    }
    const request = http.get(url, (response) => {
        let text = "";
        response.on("data", (piece) => { text += piece; });
        response.on("end", () => console.log("got", text));
        response.on("error", () => console.log("failed"));
    });
    request.on("error", () => {});  // of the parser; the response has one, too
})();
"""


# Requests of which most wait for the one connection of an agent; prints how many texts were whole.
NODE_AGAIN = """
const http = require("http");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const get = () => new Promise((done, fail) => {
    http.get(process.argv[1], { agent }, (response) => {
        let text = "";
        response.on("data", (piece) => { text += piece; });
        response.on("end", () => done(text));
        response.on("error", fail);
    }).on("error", fail);
});
(async () => {
    const texts = Array.from({ length: 20 }, get);
    for (let i = 0; i < 20; ++i) texts.push(get(), fetch(process.argv[1]).then((response) => response.text()));
    const other = (await Promise.all(texts)).filter((text) => text !== "hello world");
    console.log(other.length === 0 ? "all 60" : other);
})().catch((error) => { console.log(String(error), error.cause); });
"""


class WebServer:
    """Hands each client over at `path` with what its request says of itself."""

    def __init__(self, path):
        self.path = path
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.serving = threading.Thread(target=self.serve, daemon=True)
        self.serving.start()

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.serving.join(DEADLINE_S)
        self.listening.close()

    def serve(self):
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            # The runtime may have been stopped.
            with client, contextlib.suppress(OSError):
                client.settimeout(DEADLINE_S)
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(65536)
                method, _, version = head.split(b"\r\n")[0].decode().split(" ")
                message = {"request_method": method, "http_version": version}
                hand_over(self.path, [client.fileno()], json.dumps(message).encode())


@harness.on_each_backend
class ProxiedResponses(harness.EddyTest):
    def setUp(self):
        self.path = os.path.join(self.folder(), "s")
        self.running = self.daemon()
        self.web = WebServer(self.path)
        self.addCleanup(self.web.close)

    def serve(self, behave):
        """Another backend, of which clients of the web server get the responses."""
        api = Api(behave)
        self.addCleanup(api.close)
        if not hasattr(self, "api"):
            self.running.must("create", "stream", "p", "--handoff", f"unix://{self.path}", "--source", "proxy",
                              "--source-url", api.url, "--source-timeout", "1s", "-s")
        else:
            self.running.must("edit", "p", "--source-url", api.url)
        self.api = api

    def answers(self):
        for what, (behave, is_whole) in ANSWERS.items():
            self.serve(behave)
            yield what, is_whole

    def curl(self, *flags):
        if not shutil.which("curl"):
            self.skipTest("there is no curl")
        return subprocess.run(["curl", "-sS", "--max-time", str(DEADLINE_S), *flags, self.web.url], capture_output=True,
                              timeout=2 * DEADLINE_S, check=False)

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_node_notices_where_one_breaks_off(self):
        for what, is_whole in self.answers():
            done = subprocess.run(["node", "-e", NODE, self.web.url], capture_output=True, text=True, timeout=DEADLINE_S,
                                  check=False)
            expected = "fetched hello world\ngot hello world\n" if is_whole else "failed\nfailed\n"
            self.assertEqual(done.stdout, expected, (what, done.stderr))

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_node_sends_no_request_over_a_connection_that_ends(self):
        # Nor does the runtime send one to the API so: it closes behind each answer, and says it.
        self.serve(saying(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)))
        self.running.must("edit", "p", "--source-timeout", "1m")
        done = subprocess.run(["node", "-e", NODE_AGAIN, self.web.url], capture_output=True, text=True, timeout=DEADLINE_S,
                              check=False)
        self.assertEqual(done.stdout, "all 60\n", done.stderr)

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_node_notices_where_a_stop_cuts_one(self):
        self.serve(saying(CHUNKED, ends=stall))
        self.running.must("edit", "p", "--source-timeout", "1h")
        with subprocess.Popen(["node", "-e", NODE, self.web.url], stdout=subprocess.PIPE, text=True) as node:
            eventually(lambda: self.running.metric("eddy_stream_chunks_sent_total", runtime="p", type="stream") == 2,
                       "the head and a chunk")
            self.running.must("stop", "p")
            self.assertEqual(node.stdout.readline(), "failed\n")
            node.kill()

    def test_http_client_notices_where_one_breaks_off(self):
        for what, is_whole in self.answers():
            connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=DEADLINE_S)
            self.addCleanup(connection.close)
            connection.request("GET", "/")
            answer = connection.getresponse()
            if is_whole:
                self.assertEqual(answer.read(), b"hello world", what)
                continue
            with self.assertRaises(http.client.IncompleteRead, msg=what):
                answer.read()

    def test_curl_notices_where_one_breaks_off(self):
        for what, is_whole in self.answers():
            done = self.curl()
            self.assertEqual(done.stdout, b"hello world" if is_whole else b"hello", what)
            self.assertIn(done.returncode, (0,) if is_whole else (18, 56), (what, done.stderr))

    def test_clients_of_http_1_0_get_no_chunks(self):
        for what, is_whole in self.answers():
            done = self.curl("-0", "-i")
            self.assertNotIn(b"Transfer-Encoding", done.stdout)
            # A reset, without which it would seem whole; it may cost what was sent before.
            self.assertIn(done.returncode, (0,) if is_whole else (18, 56), (what, done.stderr))
            if is_whole:
                self.assertTrue(done.stdout.endswith(b"\r\n\r\nhello world"), done.stdout)

    def test_fields_and_statuses_pass(self):
        fields = {"Retry-After": "61", "Location": "/there", "WWW-Authenticate": "Bearer", "Allow": "GET",
                  "x-request-id": "r1", "x-ratelimit-remaining-requests": "0"}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.serve(saying(b"HTTP/1.1 429 Too Many Requests\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: x-hop\r\n"
                          b"X-Hop: 1\r\n" + head.encode() + b"Content-Length: 4\r\n\r\nslow"))
        connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=DEADLINE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/")
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.read()), (429, b"slow"))
        for name, value in fields.items():
            self.assertEqual(answer.getheader(name), value)
        self.assertEqual(answer.headers.get_all("Set-Cookie"), ["a=1", "b=2"])
        self.assertIsNone(answer.getheader("X-Hop"))

    def test_responses_without_content_have_none(self):
        self.serve(saying(b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n"))
        done = self.curl("-i")
        self.assertEqual((done.returncode, done.stdout[-4:]), (0, b"\r\n\r\n"), done)
        self.serve(saying(WHOLE))
        done = self.curl("-I")
        self.assertEqual((done.returncode, done.stdout[-4:]), (0, b"\r\n\r\n"), done)
        self.assertIn(b"Transfer-Encoding: chunked", done.stdout)
        eventually(lambda: self.api.open == 0, "the backend has no connection")


if __name__ == "__main__":
    harness.main()
