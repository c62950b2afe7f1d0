"""Real PostgreSQL for the tests of the whole program: a server of a test's own, as an unprivileged user, without a TCP port."""

import glob
import os
import pwd
import shutil
import subprocess
import unittest

import harness
from harness import DEADLINE_S, eventually


class Postgres:
    """A server of its own, on a Unix socket in a folder of its own."""

    first = None  # the folder with the data of a new server

    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        path = found[-1] if found else shutil.which("initdb")
        if path is None:
            raise unittest.SkipTest("there is no PostgreSQL: apt install postgresql")
        self.bin = os.path.dirname(path)
        self.run_as = []
        self.folder = harness.tempfile.mkdtemp(prefix="eddy-")
        self.account = None
        if harness.is_root():
            try:
                account = self.account = pwd.getpwnam("postgres")
            except KeyError:
                raise unittest.SkipTest("there is no user postgres to run PostgreSQL as") from None
            self.give(self.folder)
            self.run_as = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}",
                           "--clear-groups"]
        self.data = os.path.join(self.folder, "data")
        self.process = None
        self.environment = dict(os.environ, PGHOST=self.folder, PGUSER="eddy", PGDATABASE="postgres",
                                PGPORT="5432")
        if Postgres.first is None:
            # initdb takes seconds: the tests after the first one copy what it has made.
            Postgres.first = harness.tempfile.TemporaryDirectory(prefix="eddy-")
            self.give(Postgres.first.name)
            self.tool("initdb", "-D", self.made(), "-U", "eddy", "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
        subprocess.run([*self.run_as, "cp", "-a", self.made(), self.data], check=True)

    @staticmethod
    def made():
        return os.path.join(Postgres.first.name, "data")

    def give(self, folder):
        if self.account is not None:
            os.chown(folder, self.account.pw_uid, self.account.pw_gid)

    def tool(self, name, *words, **more):
        return subprocess.run([*self.run_as, os.path.join(self.bin, name), *words], check=True,
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=DEADLINE_S, env=self.environment, **more).stdout.decode()

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(
            [*self.run_as, os.path.join(self.bin, "postgres"), "-D", self.data, "-k", self.folder,
             "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=20"],
            cwd=self.folder, stdout=self.log, stderr=self.log)

        def ready():
            if self.process.poll() is not None:
                raise AssertionError("PostgreSQL ended: " + open(self.log.name, encoding="utf-8").read())
            return subprocess.run([os.path.join(self.bin, "pg_isready"), "-q"], check=False,
                                  env=self.environment).returncode == 0
        eventually(ready, "PostgreSQL is ready")

    def stop(self):
        if self.process is None:
            return
        # SIGQUIT: at once, as by a failure.
        self.process.send_signal(harness.signal.SIGQUIT)
        self.process.wait(DEADLINE_S)
        self.process = None
        self.log.close()

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def socket(self):
        """The path of its Unix socket."""
        return os.path.join(self.folder, ".s.PGSQL.5432")

    def sql(self, statement):
        return subprocess.run([os.path.join(self.bin, "psql"), "-XqtA", "-c", statement], check=True,
                              stdout=subprocess.PIPE, env=self.environment,
                              timeout=DEADLINE_S).stdout.decode().strip()
