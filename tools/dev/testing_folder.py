"""Working folder of a test: empty, with stand-ins for programs first in PATH."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock


# First lines of a Python program that gets signals: a parent may have had them ignored.
DEFAULT_SIGNALS = """
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
"""


class FolderTest(unittest.TestCase):
    """The working directory is a new folder, and the environment has no EDDY_*, until its end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="eddy-dev-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.folder = os.path.realpath(folder.name)
        os.chdir(self.folder)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("EDDY_")}
        patch = mock.patch.dict(os.environ, {**environment, "PATH": path}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, path, text=""):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def stand_in(self, name, script="exit 0"):
        """A program. Each call is a line of the file `calls`."""
        record = f"echo {name} \"$@\" >>'{self.folder}/calls'"
        self.write(f"bin/{name}", f"#!/bin/sh\n{record}\n{script}\n")
        os.chmod(f"bin/{name}", 0o755)

    def calls(self):
        """The calls since the last poll."""
        if not os.path.exists("calls"):
            return []
        found = self.read("calls").splitlines()
        os.remove("calls")
        return found

    def said(self, function, *arguments):
        """Result of the function, and the output of this process meanwhile."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = function(*arguments)
        return result, out.getvalue()
