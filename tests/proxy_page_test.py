#!/usr/bin/env python3
"""The tutorial of docs/proxy.md: each command as it stands there, but for ports, prints what the page says."""

import os
import re
import shutil
import signal
import subprocess

import harness
from harness import eventually, free_port

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs")
TOOLS = ("bash", "curl", "openssl", "python3")


def commands(page, part):
    """The commands of a part of a page, each with the text that it prints, or None."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        part = file.read().partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    part = re.sub(r"^```.*?^```$", "", part, flags=re.M | re.S)
    return [re.fullmatch(r"(.*?)(?: +# (.+))?", line[4:]).groups()
            for line in part.splitlines() if line.startswith("    ")]


class Shell:
    """A shell that runs one command after the other, in a folder and a process group of its own."""

    END = "end-of-command"

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        cwd=folder, env=environment, start_new_session=True, text=True)

    def run(self, command):
        """Its status and what was printed meanwhile."""
        self.process.stdin.write(f"{command}\necho {self.END} $?\n")
        self.process.stdin.flush()
        out, status = "", None
        # A daemon is used once it says so.
        last = "eddy daemon ready" if "eddy daemon &" in command else ""
        while status is None or last not in out:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the shell has ended: {out}")
            before, found, rest = line.partition(self.END)
            out += before
            if found:
                status = int(rest)
        return status, out

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.kill()  # it ignores SIGTERM
        self.process.wait()
        self.process.stdin.close()
        # Until the daemon and the programs have ended.
        self.process.stdout.read()
        self.process.stdout.close()


class Page(harness.EddyTest):
    """A test that runs the commands of a page in a shell."""

    tools = ("bash",)

    def setUp(self):
        for tool in self.tools:
            if not shutil.which(tool):
                self.skipTest(f"there is no {tool}")
        folder, programs = self.folder(), self.folder()
        os.symlink(os.path.abspath(harness.BINARY), os.path.join(programs, "eddy"))
        environment = dict(os.environ, PATH=programs + ":" + os.environ["PATH"], EDDY_SOCKET=os.path.join(folder, "s.sock"),
                           EDDY_STATE_DIR=os.path.join(folder, "state"))
        self.shell = Shell(folder, environment)
        self.addCleanup(self.shell.close)
        self.ports = {}

    def as_here(self, text):
        """With other ports."""
        return re.sub(r"\b[78]\d\d\d\b", lambda found: self.ports.setdefault(found[0], str(free_port())), text)

    def run_each(self, all_of_them):
        for command, printed in all_of_them:
            command = self.as_here(command)

            def succeeds(command=command, printed=printed):
                status, out = self.shell.run(command)
                if printed is None:
                    self.assertEqual(status, 0, f"{command}: {out}")
                return printed is None or (status == 0 and self.as_here(printed) in out)
            # A program may have to start before, and a backend to fail.
            eventually(succeeds, f"{command} prints {printed!r}")


class Tutorial(Page):
    tools = TOOLS

    def test_every_command_prints_what_the_page_says(self):
        if "tls" not in harness.parts():
            self.skipTest("this build has no TLS")
        all_of_them = commands("proxy.md", "HTTP in ten minutes")
        self.assertGreater(len(all_of_them), 20)
        self.run_each(all_of_them)


if __name__ == "__main__":
    harness.main()
