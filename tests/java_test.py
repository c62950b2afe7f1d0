#!/usr/bin/env python3
"""Build and tests of the Java module: by Maven, into the build's folder, on the oldest and the newest JDK from 17 on.
Beside a cache over shared memory, for Jedis, and a proxy over shared memory to real PostgreSQL, for its driver.

Skips what is not there, with the reason. EDDY_KILLS is the number of peers that are killed.
"""

import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import BINARY, SCRIPT_TIMEOUT_S, free_port
from jdks import OLDEST, jdks
from postgres import Postgres
from shm_client import port_name

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.dirname(os.path.abspath(BINARY))


def c_compiler():
    """The compiler that builds the library for JDK 17: Eddy's own build needs no `cc`."""
    return next((name for name in ("cc", "gcc", "clang", "clang-19") if shutil.which(name)), "cc")


class Java(harness.EddyTest):
    def test_passes_its_tests(self):
        found = jdks()
        if not found:
            self.skipTest(f"there is no JDK of {OLDEST} or later")
        if not shutil.which("mvn"):
            self.skipTest("there is no Maven")
        daemon = self.daemon()
        self.environment = daemon.environment()
        servers = [f"-Deddy.program={os.path.abspath(BINARY)}", self.cache(daemon), *self.database(daemon)]
        for feature in sorted({min(found), max(found)}):
            with self.subTest(jdk=feature):
                print(f"JDK {feature}: {self.run_tests(found[max(found)], found[feature], servers)}", flush=True)

    def cache(self, daemon):
        port = free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "--shm", "-s")
        return f"-Deddy.cache={port_name(port)}"

    def database(self, daemon):
        """None where there is no PostgreSQL."""
        try:
            postgres = Postgres()
        except unittest.SkipTest as reason:
            print(f"without a database: {reason}", flush=True)
            return []
        self.addCleanup(postgres.remove)
        postgres.start()
        port = free_port()
        daemon.must("create", "proxy", "gw", "-p", str(port), "--backend", f"unix://{postgres.socket()}", "--shm", "-s")
        return [f"-Deddy.database={port_name(port)}"]

    def run_tests(self, compiler, runtime, servers):
        command = ["mvn", "-B", "-f", os.path.join(ROOT, "java", "pom.xml"), f"-Deddy.build={BUILD}/java",
                   f"-Deddy.cc={c_compiler()}", f"-Djvm={runtime}/bin/java", *servers]
        echo = os.path.join(BUILD, "examples", "shm_echo")
        if os.path.exists(echo):
            command.append(f"-Deddy.echo={echo}")
        if "EDDY_KILLS" in os.environ:
            command.append(f"-Deddy.kills={os.environ['EDDY_KILLS']}")
        done = subprocess.run([*command, "verify"], env=dict(self.environment, JAVA_HOME=compiler), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SCRIPT_TIMEOUT_S // 2)
        if done.returncode != 0 and re.search(r"Could not (resolve|transfer)|Non-resolvable|cannot access .* in offline mode", done.stdout):
            self.skipTest("Maven cannot fetch what the build needs")
        self.assertEqual(done.returncode, 0, done.stdout[-20_000:])
        counts = re.findall(r"Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+", done.stdout)
        self.assertTrue(counts, done.stdout[-20_000:])
        return counts[-1]


if __name__ == "__main__":
    unittest.main()
