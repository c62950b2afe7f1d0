"""Real MariaDB for the tests of the whole program: a server of a test's own, on a Unix socket alone."""

import os
import pwd
import shutil
import subprocess
import unittest

import harness
from harness import DEADLINE_S, eventually


class MariaDb:
    first = None  # the folder with the data of a new server

    def __init__(self):
        # Debian keeps the server out of the search path of users.
        found = [shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
                 for name in ("mariadbd", "mariadb-install-db", "mariadb")]
        if not all(found):
            raise unittest.SkipTest("there is no MariaDB: apt install mariadb-server-core mariadb-client-core")
        self.server, self.install, self.client = found
        self.folder = harness.tempfile.mkdtemp(prefix="eddy-")
        self.data = os.path.join(self.folder, "data")
        self.socket = os.path.join(self.folder, "socket")
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.process = None
        if MariaDb.first is None:
            MariaDb.first = harness.tempfile.TemporaryDirectory(prefix="eddy-")
            subprocess.run([self.install, "--no-defaults", f"--datadir={self.made()}", f"--user={self.user}", "--skip-test-db",
                            "--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=3 * DEADLINE_S)
        shutil.copytree(self.made(), self.data)

    @staticmethod
    def made():
        return os.path.join(MariaDb.first.name, "data")

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.server, "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}", "--skip-networking",
                 f"--user={self.user}", f"--pid-file={self.folder}/pid", "--innodb-flush-log-at-trx-commit=0",
                 "--innodb-buffer-pool-size=8M"], stdout=log, stderr=log)

        def ready():
            if self.process.poll() is not None:
                raise AssertionError("MariaDB ended: " + open(log.name, encoding="utf-8").read())
            return self.run("SELECT 1").returncode == 0
        eventually(ready, "MariaDB is ready")

    def run(self, statement):
        return subprocess.run([self.client, "--no-defaults", f"--socket={self.socket}", f"--user={self.user}", "-NB", "-e", statement],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S)

    def sql(self, statement):
        """The output of a statement, without the last line's end."""
        done = self.run(statement)
        if done.returncode != 0:
            raise AssertionError(f"{statement}: {done.stderr}")
        return done.stdout.rstrip("\n")

    def stop(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait(DEADLINE_S)
        self.process = None

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
