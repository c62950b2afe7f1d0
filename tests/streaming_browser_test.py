#!/usr/bin/env python3
"""Stream runtimes and a browser: a Python web server hands headless Chromium's connections over, and the page shows
tokens as they come."""

import importlib.util
import os
import shutil
import socket
import sys
import threading
import unittest

import harness
from harness import DEADLINE_S, eventually
from streaming_test import EXAMPLES

sys.path.append(os.path.join(EXAMPLES, ".."))
from programs import Browser  # noqa: E402

if not shutil.which("chromium"):
    print("skipped: there is no chromium (apt: chromium)", file=sys.stderr)

# Shows each token that comes, by fetch() and by EventSource.
PAGE = b"""<!doctype html><title>tokens</title><p id=fetched></p><p id=events></p><script>
const show = (where, data) => { where.textContent += data === "[DONE]" ? "." : JSON.parse(data).content; };
const read = async () => {
    const reader = (await fetch("/stream?user=7&prompt=fetch")).body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\\n\\n");
        text = parts.pop();
        for (const each of parts) if (each.startsWith("data: ")) show(fetched, each.slice(6));
    }
};
read();
const source = new EventSource("/stream?user=7&prompt=events");
source.onmessage = ({ data }) => { show(events, data); if (data === "[DONE]") source.close(); };
</script>"""


def example():
    spec = importlib.util.spec_from_file_location("hand_over", os.path.join(EXAMPLES, "hand_over.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model:
    """An API of chat completions that sends to all of its clients what it is given, when it is given."""

    def __init__(self, path):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen()
        self.clients = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            client.settimeout(DEADLINE_S)
            request = b""
            while b'"stream":true' not in request:
                request += client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            self.clients.append(client)

    def say(self, token):
        for each in self.clients:
            each.sendall(b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % token)

    def end(self):
        for each in self.clients:
            each.sendall(b"data: [DONE]\n\n")
            each.close()

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium (apt: chromium)")
@harness.on_each_backend
class Browsers(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()
        self.path = os.path.join(self.folder(), "s")

    def web_server(self):
        """The example's, with a page; returns its URL."""
        sender, path = example(), self.path

        class Handler(sender.Handler):
            def do_GET(self):
                if self.path.startswith("/stream"):
                    sys.argv = ["hand_over.py", "", path]  # as on the example's command line
                    super().do_GET()
                    return
                self.send_response(200 if self.path == "/" else 404)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(PAGE if self.path == "/" else b"")

            def log_message(self, *_):
                pass

        server = sender.Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}/"

    def create(self, *flags):
        self.running.must("create", "stream", "llm", "--handoff", f"unix://{self.path}", *flags, "-s")

    @staticmethod
    def await_text(page, text):
        for part in ("fetched", "events"):
            eventually(lambda: page.evaluate(f"{part}.textContent") == text, f"{text!r} in {part}")

    def test_a_page_shows_each_token_before_the_next_is_sent(self):
        at = os.path.join(self.folder(), "api")
        model = Model(at)
        self.addCleanup(model.close)
        self.create("--source", "openai", "--source-url", "http://model/v1", "--source-socket", at)
        with Browser(self.web_server()) as page:
            eventually(lambda: len(model.clients) == 2, "the page's requests")
            shown = ""
            for token in ("Hello", ", ", "Grüße", "!"):
                model.say(token.encode())
                shown += token
                self.await_text(page, shown)
            model.end()
            self.await_text(page, shown + ".")
        eventually(lambda: self.running.show("llm")["connections"] == 0, "the end of both streams")

    def test_a_page_shows_the_first_token_while_the_second_is_an_hour_away(self):
        self.create("--delay", "1h")
        with Browser(self.web_server()) as page:
            for part in ("fetch", "events"):
                eventually(lambda: f"Prompt: {part}" in page.evaluate("document.body.innerText"), f"the token of {part}")
            self.assertEqual(self.running.show("llm")["connections"], 2)
        eventually(lambda: self.running.show("llm")["connections"] == 0, "the hang-up of a browser that has ended")


if __name__ == "__main__":
    harness.main()
