#!/usr/bin/env python3
"""Build and tests of the Java module: by Maven, into the build's folder, on the oldest and the newest JDK from 17 on.

Skips what is not there, with the reason.
"""

import os
import re
import shutil
import subprocess
import unittest

from harness import BINARY, SCRIPT_TIMEOUT_S
from jdks import OLDEST, jdks

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.dirname(os.path.abspath(BINARY))


class Java(unittest.TestCase):
    def test_passes_its_tests(self):
        found = jdks()
        if not found:
            self.skipTest(f"there is no JDK of {OLDEST} or later")
        if not shutil.which("mvn"):
            self.skipTest("there is no Maven")
        for feature in sorted({min(found), max(found)}):
            with self.subTest(jdk=feature):
                print(f"JDK {feature}: {self.run_tests(found[max(found)], found[feature])}", flush=True)

    def run_tests(self, compiler, runtime):
        command = ["mvn", "-B", "-f", os.path.join(ROOT, "java", "pom.xml"), f"-Deddy.build={BUILD}/java",
                   f"-Djvm={runtime}/bin/java"]
        echo = os.path.join(BUILD, "examples", "shm_echo")
        if os.path.exists(echo):
            command.append(f"-Deddy.echo={echo}")
        done = subprocess.run([*command, "verify"], env=dict(os.environ, JAVA_HOME=compiler), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SCRIPT_TIMEOUT_S // 2)
        if done.returncode != 0 and re.search(r"Could not (resolve|transfer)|Non-resolvable|cannot access .* in offline mode", done.stdout):
            self.skipTest("Maven cannot fetch what the build needs")
        self.assertEqual(done.returncode, 0, done.stdout[-20_000:])
        counts = re.findall(r"Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+", done.stdout)
        self.assertTrue(counts, done.stdout[-20_000:])
        return counts[-1]


if __name__ == "__main__":
    unittest.main()
