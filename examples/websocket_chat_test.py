#!/usr/bin/env python3
"""Starts the chat over WebSocket and enters it, in a browser too.

Usage: websocket_chat_test.py PROGRAM. EDDY_SCREENSHOT names a file for a picture of the page.
"""

import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
import urllib.request

import programs

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
TEXT, CLOSE = 1, 8


class Peer:
    """A client of the WebSocket at /chat."""

    def __init__(self, connection):
        self.connection = connection
        self.received = b""
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall((f"GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                            f"Sec-WebSocket-Protocol: chat.example\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.received:
            self.more()
        head, self.received = self.received.split(b"\r\n\r\n", 1)
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        assert head.startswith(b"HTTP/1.1 101 ") and accept in head, head

    def more(self):
        piece = self.connection.recv(65536)
        if not piece:
            raise EOFError("the server has closed")
        self.received += piece

    def send(self, kind, payload):
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.connection.sendall(struct.pack("!BB", 0x80 | kind, 0x80 | len(payload)) + mask + masked)

    def receive(self):
        while len(self.received) < 2 or len(self.received) < 2 + self.received[1]:
            self.more()
        size = self.received[1]
        frame, self.received = self.received[:2 + size], self.received[2 + size:]
        return frame[0] & 0xf, frame[2:]


class WebsocketChat(programs.ServerTest):
    def enter(self):
        return Peer(self.client())

    def test_gives_each_message_to_all(self):
        first, second = self.enter(), self.enter()
        first.send(TEXT, b"Ada: hello")
        self.assertEqual(first.receive(), (TEXT, b"Ada: hello"))
        self.assertEqual(second.receive(), (TEXT, b"Ada: hello"))
        second.send(CLOSE, struct.pack("!H", 1000))
        self.assertEqual(second.receive(), (CLOSE, struct.pack("!H", 1000)))
        first.send(TEXT, b"still here")
        self.assertEqual(first.receive(), (TEXT, b"still here"))

    def test_refuses_what_is_no_upgrade(self):
        over = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.addCleanup(over.close)
        over.request("GET", "/chat")
        got = over.getresponse()
        self.assertEqual((got.status, got.getheader("Sec-WebSocket-Version")), (426, "13"))

    @unittest.skipUnless(BROWSER, "there is no Chromium to open the page")
    def test_is_used_by_a_browser(self):
        listener = self.enter()
        folder = tempfile.mkdtemp(prefix="eddy-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 f"--user-data-dir={folder}"]
        page = f"http://127.0.0.1:{self.port}/?name=Ada&say=hello%20from%20a%20browser"
        browser = subprocess.Popen([*words, "--remote-debugging-port=0", page], start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(browser.wait)
        self.addCleanup(os.killpg, browser.pid, signal.SIGKILL)
        self.assertEqual(listener.receive(), (TEXT, b"Ada: hello from a browser"))
        listener.send(TEXT, b"Bob: hello Ada")

        def title():
            # The page counts what it has received.
            try:
                with open(os.path.join(folder, "DevToolsActivePort")) as file:
                    port = int(file.readline())
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
                    return any(tab["title"] == "Chat (2)" for tab in json.load(answer))
            except (OSError, ValueError):
                return False

        programs.eventually(title, "the page to receive both messages")
        if picture := os.environ.get("EDDY_SCREENSHOT"):
            subprocess.run([*words, f"--user-data-dir={folder}/second", f"--screenshot={picture}",
                            "--virtual-time-budget=3000", page], capture_output=True, timeout=programs.DEADLINE_S)


if __name__ == "__main__":
    programs.main(WebsocketChat)
