#!/usr/bin/env python3
"""The beginning of docs/scripting.md: each command as it stands there, but for ports, prints what the page says."""

import os
import re

import harness
from harness import free_port
from proxy_page_test import Page, commands

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


class Scripting(Page):
    tools = ("bash", "nc")

    def as_here(self, text):
        return re.sub(r"\b900\d\b", lambda found: self.ports.setdefault(found[0], str(free_port())), text)

    @harness.needs("scripts")
    def test_every_command_prints_what_the_page_says(self):
        everything = commands("scripting.md", "From an empty folder")
        shown = [at for at, (command, _) in enumerate(everything) if command.startswith("$ ")]
        self.assertEqual(len(shown), 2)
        # The mistake, which is refused, and the refusal below it.
        mistake, refused = (everything[at][0].removeprefix("$ ") for at in shown)
        message = everything[shown[1] + 1][0]
        self.run_each(everything[:shown[0]] + [(mistake, None)])
        status, out = self.shell.run(refused)
        self.assertNotEqual(status, 0)
        self.assertEqual(out.strip(), message)
        self.run_each([("echo hello | nc -N 127.0.0.1 9000", ": hello"), (f"ln -s '{ROOT}/examples' examples", None),
                       *everything[shown[1] + 2:]])


if __name__ == "__main__":
    harness.main()
