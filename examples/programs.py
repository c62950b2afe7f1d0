"""Fixtures of the example programs' tests: a server that is started on a free port, and its clients."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from harness import DEADLINE_S, eventually, free_port, sanitized  # noqa: E402, F401


def connect(port):
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    except ConnectionRefusedError:
        return None


def receive(peer, size):
    """Exactly `size` bytes, or fewer at the end."""
    received = b""
    while len(received) < size:
        piece = peer.recv(size - len(received))
        if not piece:
            break
        received += piece
    return received


class ServerTest(unittest.TestCase):
    """A test with the server `program`, which takes its port and these `arguments`."""

    program = None
    arguments = ()

    def setUp(self):
        self.port = free_port()
        self.server = subprocess.Popen([self.program, str(self.port), *self.arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.client().close()

    def stop(self):
        self.server.kill()
        self.server.communicate()

    def client(self):
        def try_again():
            self.assertIsNone(self.server.poll(), "the server has ended")
            return connect(self.port)

        peer = eventually(try_again, "a connection to the server")
        self.addCleanup(peer.close)
        return peer

    def second_on_the_same_port(self):
        """Result of a second server, whose port is taken."""
        return subprocess.run([self.program, str(self.port), *self.arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=DEADLINE_S)


class Browser:
    """A page in headless Chromium, driven by the DevTools protocol over pipes: descriptors 3 and 4 of the browser."""

    def __init__(self, url):
        self.profile = tempfile.mkdtemp()
        to_browser, self.to = os.pipe()
        self.source, from_browser = os.pipe()

        def install_pipes():
            # Copies of high numbers first, as 3 or 4 may be one of the two.
            low = [os.dup2(fd, number) for fd, number in ((to_browser, 103), (from_browser, 104))]
            for fd, number in zip(low, (3, 4)):
                os.dup2(fd, number)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--user-data-dir=" + self.profile, "--remote-debugging-pipe", "about:blank"],
            env=dict(os.environ, HOME=self.profile), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=install_pipes, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.received = b""
        self.last_id = 0
        target = self.call("Target.createTarget", url=url)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.source)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            text, zero, rest = self.received.partition(b"\0")
            if not zero:
                piece = os.read(self.source, 65536)
                if not piece:
                    raise AssertionError("the browser has ended")
                self.received += piece
                continue
            self.received = rest
            answer = json.loads(text)
            if answer.get("id") == self.last_id:
                return answer["result"]

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page; "" while it has none."""
        return self.call("Runtime.evaluate", self.session, expression=expression)["result"].get("value", "")

    def screenshot(self, path):
        """Writes a picture of the page, as PNG."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", self.session)["data"]))


def main(test):
    """Runs the tests of a module whose last argument is the program."""
    test.program = sys.argv.pop()
    unittest.main()
