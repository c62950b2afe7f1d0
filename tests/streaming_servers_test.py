#!/usr/bin/env python3
"""Stream runtimes behind web servers (docs/streaming-servers.md): gunicorn and Node hand their clients over, nginx in front."""

import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode, urlsplit

import harness
from harness import DEADLINE_S, connect, eventually, free_port
from other_proxies import OtherProxiesTest

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "streaming")


class Checking(BaseHTTPRequestHandler):
    """An application that checks the user and has nginx ask another server, as PHP-FPM would."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("X-Accel-Redirect", f"/hand-over?{urlsplit(self.path).query}")
        self.end_headers()

    def log_message(self, *ignored):
        pass


class StreamingServers(OtherProxiesTest):
    def setUp(self):
        self.path = os.path.join(self.folder(), "handoff.sock")
        self.running = self.daemon()

    def create(self, *flags):
        self.running.must("create", "stream", "llm", "--handoff", f"unix://{self.path}", *flags, "-s")

    def web_server(self, *command, **environment):
        port = free_port()
        server = subprocess.Popen([word.format(port=port) for word in command], cwd=EXAMPLES,
                                  env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **environment),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        def end():
            server.terminate()
            server.communicate(timeout=DEADLINE_S)
        self.addCleanup(end)
        self.serves(port, server)
        return port

    def python(self):
        return self.web_server(sys.executable, "hand_over.py", "{port}", self.path)

    def gunicorn(self, *flags):
        found = subprocess.run([sys.executable, "-c", "import gunicorn"], stderr=subprocess.DEVNULL)
        if found.returncode != 0:
            self.skipTest("this Python has no gunicorn")
        return self.web_server(sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:{port}", *flags,
                               "hand_over_wsgi:application", HANDOFF=self.path)

    @staticmethod
    def request(port, method="GET", target="/?user=7&prompt=hello", content=b""):
        client = connect(port)
        client.sendall(b"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
            method.encode(), target.encode(), len(content), content))
        return client

    @staticmethod
    def read_until(client, what):
        got = b""
        while what not in got:
            more = client.recv(1 << 16)
            if not more:
                raise AssertionError(f"the end came after {got!r}")
            got += more
        return got

    def assert_whole(self, port, **request):
        """The client gets the stream's head and events, and nothing else."""
        with self.request(port, **request) as client:
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        self.assertEqual(answer.count(b"HTTP/1."), 1, answer)
        self.assertRegex(answer, rb"^HTTP/1\.1 200 OK\r\n")
        self.assertIn(b"Content-Type: text/event-stream\r\n", answer)
        self.assertIn(b"Prompt: hello", answer)
        self.assertIn(b"data: [DONE]\n\n", answer)

    def assert_live(self, port, **request):
        """The first event comes when it is sent, since the next takes an hour; the client's hang-up ends the stream."""
        with self.request(port, **request) as client:
            self.read_until(client, b"Prompt: hello")
            eventually(lambda: self.running.show("llm")["connections"] == 1, "the stream")
        eventually(lambda: self.running.show("llm")["connections"] == 0, "the hang-up")

    def test_nginx_in_front_passes_events_on_and_hang_ups(self):
        behind, port = self.python(), free_port()
        self.nginx(port, f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }}")
        self.create("--delay", "1h")
        self.assert_live(port)
        self.running.must("remove", "llm", "--yes")
        self.create("--delay", "1ms")
        self.assert_whole(port)

    def test_an_application_behind_fastcgi_has_nginx_ask_another_server(self):
        application = ThreadingHTTPServer(("127.0.0.1", free_port()), Checking)
        serving = threading.Thread(target=application.serve_forever)
        serving.start()
        self.addCleanup(application.server_close)
        self.addCleanup(serving.join)
        self.addCleanup(application.shutdown)
        behind, port = self.python(), free_port()
        self.nginx(port, f"server {{ listen 127.0.0.1:{port};",
                   f"location / {{ proxy_pass http://127.0.0.1:{application.server_port}; }}",
                   "location = /hand-over {", "internal;", f"proxy_pass http://127.0.0.1:{behind};",
                   "proxy_pass_request_body off;", 'proxy_set_header Content-Length "";', "} }")
        self.create("--delay", "1ms")
        self.assert_whole(port, method="POST", content=b"a=b")
        with self.request(port, target="/hand-over?" + urlencode({"user": "7"})) as client:
            self.assertIn(b" 404 ", self.read_until(client, b"\r\n"))

    def test_gunicorn_hands_clients_over(self):
        self.create("--delay", "100ms", "--messages", "5")
        for flags in ((), ("--worker-class", "gthread", "--threads", "2")):
            port = self.gunicorn(*flags)
            self.assert_whole(port)
            self.assert_whole(port, method="POST", content=b"a=b")
            with self.request(port, target="/") as client:
                self.assertIn(b" 401 ", self.read_until(client, b"\r\n"))

    def test_node_hands_clients_over(self):
        if not shutil.which("node"):
            self.skipTest("there is no node")
        self.create("--delay", "100ms", "--messages", "5")
        port = self.web_server("node", "hand_over.mjs", "{port}", self.path)
        self.assert_whole(port)
        self.assert_whole(port, method="POST", content=b"a=b")
        with self.request(port, target="/") as client:
            self.assertIn(b" 401 ", self.read_until(client, b"\r\n"))
        # The web server answers where there is no runtime.
        self.running.must("stop", "llm")
        with self.request(port) as client:
            self.assertIn(b" 503 ", self.read_until(client, b"\r\n"))


if __name__ == "__main__":
    harness.main()
