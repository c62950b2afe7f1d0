#!/usr/bin/env python3
"""`./eddy-dev` in a checkout of its own, with stand-ins for CMake and dpkg: its calls of CMake, its
reports of a checkout that was moved, and a machine without Python."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEADLINE_S = 60


class EddyDev(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="eddy-dev-")
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(os.path.join(ROOT, "eddy-dev"), self.folder)
        shutil.copytree(os.path.join(ROOT, "tools/dev"), os.path.join(self.folder, "tools/dev"))
        self.calls = os.path.join(self.folder, "calls")
        # Everything is installed, and CMake succeeds at once.
        self.stand_in("dpkg-query", "printf 'install ok installed'")
        self.stand_in("apt-cache", "exit 1")
        self.stand_in("cmake", f"printf '%s\\n' \"$*\" >>'{self.calls}'")

    def stand_in(self, name, script):
        path = os.path.join(self.folder, "bin", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def made_before(self, *options, home=None, build="release"):
        """A build folder of an earlier run."""
        folder = os.path.join(self.folder, "build", build)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "CMakeCache.txt"), "w", encoding="utf-8") as file:
            file.write(f"CMAKE_HOME_DIRECTORY:INTERNAL={home or self.folder}\n")
            file.writelines(f"{option}\n" for option in options)

    def without_python(self):
        """A PATH with no more than the stub needs: stand-ins, and links to programs of the machine."""
        for name in ("sh", "cat", "dirname", "env", "id", "ln", "mkdir", "printf", "readlink", "tail"):
            os.symlink(shutil.which(name), os.path.join(self.folder, "bin", name))
        return os.path.join(self.folder, "bin")

    def run_dev(self, *words, path=None):
        """Exit status, what it printed, and the calls of CMake."""
        path = path or os.path.join(self.folder, "bin") + ":" + os.environ["PATH"]
        env = {**os.environ, "PATH": path}
        done = subprocess.run([os.path.join(self.folder, "eddy-dev"), *words], env=env, capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
        calls = []
        if os.path.exists(self.calls):
            with open(self.calls, encoding="utf-8") as file:
                calls = file.read().splitlines()
            os.remove(self.calls)
        return done.returncode, done.stdout + done.stderr, calls

    def test_doc_after_run_alone_needs_neither_tests_nor_benchmarks(self):
        self.made_before("EDDY_TESTS:BOOL=OFF", "EDDY_BENCH:BOOL=OFF")
        status, said, calls = self.run_dev("doc")
        self.assertEqual(status, 0, said)
        self.assertEqual(calls[0], "--preset release -DEDDY_TESTS=OFF -DEDDY_CHECK_HEADERS=OFF -DEDDY_BENCH=OFF")
        self.assertIn("--target doc", calls[1])

    def test_what_a_build_has_stays(self):
        self.made_before("EDDY_TESTS:BOOL=ON", "EDDY_BENCH:BOOL=OFF")
        for words in (["build"], ["doc"]):
            self.assertEqual(self.run_dev(*words)[2][0], "--preset release -DEDDY_BENCH=OFF")
        self.made_before("EDDY_TESTS:BOOL=ON", "EDDY_BENCH:BOOL=ON")
        self.assertEqual(self.run_dev("build")[2][0], "--preset release")

    def test_a_checkout_that_was_moved_is_told_what_to_do(self):
        for build, words in (("release", ["build"]), ("release", ["doc"]), ("package", ["package"])):
            self.made_before(home="/was/elsewhere", build=build)
            status, said, calls = self.run_dev(*words)
            self.assertEqual((status, calls), (1, []), said)
            self.assertIn("/was/elsewhere", said)
            self.assertIn(f"rm -rf {self.folder}/build/{build}", said)
            shutil.rmtree(os.path.join(self.folder, "build"))

    def test_a_link_to_the_checkout_is_no_move(self):
        link = os.path.join(self.folder, "link")
        os.symlink(self.folder, link)
        self.made_before(home=link)
        self.assertEqual(self.run_dev("build")[0], 0)

    def test_a_machine_without_python_gets_it_from_apt(self):
        path = self.without_python()
        self.stand_in("sudo", 'exec "$@"')
        self.stand_in("apt-get", f"printf 'apt-get %s\\n' \"$*\" >>'{self.calls}'\n"
                      f"[ $1 = update ] || ln -s '{sys.executable}' '{path}/python3'")
        status, said, calls = self.run_dev("build", path=path)
        self.assertEqual(status, 0, said)
        self.assertIn("Installing python3\nBuilding build/release/eddy\n", said)
        self.assertEqual(calls[:2], ["apt-get update", "apt-get install -y --no-install-recommends "
                                     "-o DPkg::Lock::Timeout=300 python3"])

    def test_help_needs_no_python(self):
        path = self.without_python()
        status, said, _ = self.run_dev("help", path=path)
        self.assertEqual(status, 0)
        self.assertEqual(said, self.run_dev("help")[1])
        self.assertIn("./eddy-dev COMMAND", said)

    def test_a_system_without_apt_needs_python(self):
        status, said, _ = self.run_dev("build", path=self.without_python())
        self.assertEqual(status, 1)
        self.assertEqual(said, "eddy-dev: this is no Debian or Ubuntu: install python3 yourself\n")


if __name__ == "__main__":
    unittest.main()
