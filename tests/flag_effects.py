"""Shared by tests of flags: the list of flags with a test of their effect, and runtimes with flags."""

import re

import harness
from harness import free_port

CLAIMED = set()


def effect_of(where, *names):
    """Says that a test shows the effect of these flags of a command."""
    CLAIMED.update((where, name) for name in names)
    return lambda test: test


def flags_in(help_text):
    """The long flags of a help text's tables, without those of every command."""
    own = help_text.split("Flags of every command:")[0]
    return set(re.findall(r"^ {1,6}(?:-\w, )?--([\w-]+)", own, re.M))


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class FlagTest(harness.EddyTest):
    def create(self, daemon, kind, name="r", *flags, port=None):
        port = port or free_port()
        daemon.must("create", kind, name, "-p", str(port), "-s", *flags)
        return port
