#!/usr/bin/env python3
"""The commands of docs/operations.md that need neither systemd nor packages: each runs as it stands there, but for ports,
in the order of the page, beside a daemon that takes the service's place."""

import os
import re
import socket

import harness
from harness import free_port
from proxy_page_test import Page, commands

PARTS = ("Installing", "One file", "Programs", "Console", "Upgrade")


def is_run(command):
    """True for the program's own commands that end."""
    words = command.removeprefix("sudo ").split()
    return words[:1] == ["eddy"] and not {"-f", "--socket"} & set(words) and not command.endswith("&")


class Operations(Page):
    tools = ("bash", "python3")

    def setUp(self):
        super().setUp()
        # Commands of the page are root's, since the service's socket is.
        folder = self.folder()
        with open(os.path.join(folder, "sudo"), "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nexec "$@"\n')
        os.chmod(file.name, 0o755)
        self.assertEqual(self.shell.run(f"export PATH='{folder}':\"$PATH\""), (0, ""))

    def as_here(self, text):
        return re.sub(r"\b(?:6379|8000|9000|9090)\b", lambda found: self.ports.setdefault(found[0], str(free_port())), text)

    def test_each_command_of_the_program_works(self):
        all_of_them = [(command, printed if printed == "PONG" else None)
                       for part in PARTS for command, printed in commands("operations.md", part) if is_run(command)]
        self.assertGreater(len(all_of_them), 10)
        self.assertEqual([printed for _, printed in all_of_them if printed], ["PONG"])
        # The program that is watched is no runtime.
        with socket.create_server(("127.0.0.1", int(self.as_here("9000")))):
            self.run_each([("eddy daemon &", None), *all_of_them])


if __name__ == "__main__":
    harness.main()
