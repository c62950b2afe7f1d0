#!/usr/bin/env python3
"""The cache with those real clients that are packages of the distribution: redis-cli, redis-benchmark,
hiredis and redis-py. `./eddy-dev clients` tries the others, too.
"""

import os
import subprocess
import sys
import unittest

import harness

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "run.py")


class Clients(harness.EddyTest):
    def try_client(self, name):
        done = subprocess.run([sys.executable, RUN, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=harness.SCRIPT_TIMEOUT_S, check=False)
        if "skipped: " in done.stdout:
            self.skipTest(done.stdout.split("skipped: ")[1].splitlines()[0])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_redis_cli(self):
        self.try_client("redis-cli")

    def test_redis_benchmark(self):
        self.try_client("redis-benchmark")

    def test_hiredis(self):
        self.try_client("hiredis")

    def test_redis_py(self):
        self.try_client("redis-py-debian")


if __name__ == "__main__":
    harness.main()
