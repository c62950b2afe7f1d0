#!/usr/bin/env python3
"""Completion in bash, zsh and fish themselves, and the manual pages of commands."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

import harness
from flag_effects import FlagTest
from harness import free_port


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Completion(FlagTest):
    def setUp(self):
        super().setUp()
        self.running = self.daemon()
        self.running.must("create", "cache", "db", "-p", str(free_port()), "-g", "data", "-s")
        self.running.must("create", "server", "chat", "-p", str(free_port()))
        # The scripts call the program by the name that is typed.
        self.bin = self.folder()
        os.symlink(os.path.abspath(harness.BINARY), os.path.join(self.bin, "eddy"))
        self.environment = dict(self.running.environment(), HOME=self.bin, TERM="dumb",
                                PATH=self.bin + ":" + os.environ["PATH"])

    def output(self, *words, **more):
        done = subprocess.run(words, env=self.environment, capture_output=True, timeout=harness.DEADLINE_S, check=False, **more)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.decode()

    def test_complete(self):
        def words(*line):
            return [each.split("\t")[0] for each in self.running.must("complete", "--", *line).splitlines()]
        self.assertEqual(words("re"), ["restart", "reload", "reload-lua", "remove", "rename"])
        self.assertEqual(words("stop", ""), ["db"])
        self.assertEqual(words("stop", "@"), ["@data"])
        self.assertEqual(words("edit", "db", "--evic"), ["--eviction"])
        self.assertEqual(words("edit", "chat", "--evic"), [])
        self.assertIn("allkeys-lru", words("create", "cache", "x", "--eviction", ""))
        self.assertEqual(words("create", "cache", "x", "--dir", ""), [":files"])
        self.assertEqual(words("create", "server", "x", "--cache", ""), ["db"])
        self.assertEqual(words("create", "http", "x", "--cache", ""), [], "it is a size")
        self.assertEqual(words("create", "proxy", "x", "--backend", ":1,c"), [":1,chat"])
        for line in (("create", "server", "x", "--lua", ""), ("create", "cache", "x", "--hooks", ""), ("create", "cache", "x", "--lua="), ("--lua", ""),
                     ("lua", "run", ""), ("lua", "check", "")):
            self.assertEqual(words(*line), [":files"], line)
        self.assertEqual(words("top", "--sort=p"), ["--sort=p50", "--sort=p99"])
        absent = self.running.run("complete", "--", "--socket", "/nowhere/s", "stop", "")
        self.assertEqual((absent.status, absent.out, absent.err), (0, "", ""), "it is silent without a daemon")

    def test_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("complete -- ", self.running.must("completion", shell))
        self.assert_refused(self.running.run("completion", "tcsh"), 1, "bash, zsh and fish")

    @needs("bash")
    def test_bash(self):
        def words(*line):
            script = ('source <(eddy completion bash)\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _eddy\n'
                      'printf "%s\\n" "${COMPREPLY[@]}"')
            return self.output("bash", "--norc", "-c", script, "bash", *line).split()
        self.assertEqual(words("eddy", "sto"), ["stop"])
        self.assertEqual(words("eddy", "stop", ""), ["db"])
        self.assertEqual(words("eddy", "create", "cac"), ["cache"])
        self.assertEqual(words("eddy", "top", "--sort", "=", "p9"), ["p99"], "bash takes --sort=p9 apart")
        self.assertEqual(words("eddy", "top", "--sort", "="),
                         ["name", "type", "connections", "requests", "messages", "in", "out", "p50", "p99", "memory", "errors"])
        self.assertEqual(words("eddy", "create", "cache", "x", "--dir", self.bin + "/ed"), [self.bin + "/eddy"])

    @needs("fish")
    def test_fish(self):
        def words(line):
            script = 'eddy completion fish | source; complete -C "$argv[1]"'
            return [each.split("\t")[0] for each in self.output("fish", "--no-config", "-c", script, line).splitlines()]
        self.assertEqual(words("eddy sto"), ["stop"])
        self.assertEqual(words("eddy stop "), ["db"])
        self.assertEqual(words("eddy start c"), ["chat"])
        self.assertIn("--eviction", words("eddy edit db --ev"))
        self.assertEqual(words(f"eddy create cache x --dir {self.bin}/ed"), [f"{self.bin}/eddy"])

    @needs("zsh")
    def test_zsh(self):
        master, terminal = pty.openpty()
        shell = subprocess.Popen(["zsh", "-f", "-i"], env=self.environment, stdin=terminal, stdout=terminal, stderr=terminal,
                                 start_new_session=True, cwd=self.bin)
        os.close(terminal)
        self.addCleanup(os.close, master)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)

        def until(text):
            shown, end = b"", time.monotonic() + harness.DEADLINE_S
            while text not in shown:
                self.assertLess(time.monotonic(), end, shown)
                if select.select([master], [], [], 1)[0]:
                    shown += os.read(master, 65536)
            return shown
        os.write(master, b"PS1='> '; autoload -U compinit; compinit -u -D; source <(eddy completion zsh); echo re''ady\n")
        until(b"ready")
        for typed, whole in ((b"eddy sto\t", b"stop "), (b"eddy stop \t", b"db "), (b"eddy create cac\t", b"che "),
                             (b"eddy top --sort=p9\t", b"9 "), (b"eddy create cache x --dir ed\t", b"dy")):
            os.write(master, typed)
            until(whole)
            os.write(master, b"\x15")  # an empty line

    def test_manual_pages(self):
        folder = self.folder()
        self.running.must("help", "--man", "--all", folder)
        names = sorted(os.listdir(folder))
        self.assertIn("eddy-create.1", names)
        self.assertIn("eddy-bench-http.1", names)
        overview = self.running.must("help").split("Commands:")[1].split("Types of runtime:")[0]
        listed = {line.split()[0] for line in overview.splitlines() if re.match("  [a-z]", line)}
        self.assertEqual(listed - {name[5:-2] for name in names}, set())
        with open(os.path.join(folder, "eddy-create.1"), encoding="utf-8") as page:
            self.assertEqual(page.read(), self.running.must("help", "--man", "create"))
        for program, words in (("mandoc", ["-Tlint", "-Wwarning"]), ("man", ["--warnings", "-l", "-Tutf8"])):
            if not shutil.which(program):
                continue
            for name in names:
                done = subprocess.run([program, *words, os.path.join(folder, name)], capture_output=True, check=False,
                                      env=dict(os.environ, MANPAGER="cat", LC_ALL="C.UTF-8"), timeout=harness.DEADLINE_S)
                said = done.stderr if program == "man" else done.stdout + done.stderr
                self.assertEqual((done.returncode, said), (0, b""), name)
        self.assert_refused(self.running.run("help", "--man"), 1, "eddy help --man create")


if __name__ == "__main__":
    harness.main()
