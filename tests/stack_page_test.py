#!/usr/bin/env python3
"""The tour of docs/stacks.md: each command as it stands there, but for ports, prints what the page says; and the
example of examples/stack."""

import os
import shutil

import harness
from harness import connect, free_port, read_line
from proxy_page_test import Page, commands

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "stack")


class Tour(Page):
    tools = ("bash", "curl")

    def test_every_command_prints_what_the_page_says(self):
        all_of_them = commands("stacks.md", "A tour")
        self.assertGreater(len(all_of_them), 15)
        self.run_each(all_of_them)


@harness.needs("scripts")
class Example(harness.EddyTest):
    def test_it_is_up(self):
        folder = os.path.join(self.folder(), "stack")
        shutil.copytree(EXAMPLE, folder)
        db, web, chat = (free_port() for _ in range(3))
        ports = {"DB_PORT": str(db), "WEB_PORT": str(web), "CHAT_PORT": str(chat)}
        daemon = self.daemon()
        daemon.must("validate", folder)
        self.assertIn("4 created", daemon.must("up", folder, env=ports))
        with connect(web) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(b"It is up.", harness.all_of(client))
        with connect(chat) as client:
            client.sendall(b"hello\n")
            self.assertEqual(read_line(client), "you said hello")
        self.assertIn("4 removed", daemon.must("down", folder, "--yes"))


if __name__ == "__main__":
    harness.main()
