#!/usr/bin/env python3
"""Moving from a real Redis to a cache and back, by the steps of docs/cache-migration.md, while clients write and
read: nothing that was acknowledged is lost, and nothing is done twice.
"""

import contextlib
import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time

import harness
from cache_client import Client, Redis, client_of
from harness import eventually, free_port

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "cache-migration.md")
WRITERS = 4
COUNTERS = 10
# Longer than the steps can take, as in the document: until the old server takes no writes any more.
PAUSE_MS = 600_000


class Writer(threading.Thread):
    """Increments counters of its own on the server of its port, and checks each reply against the acknowledged value
    before. A delayed or refused command is tried again, as by a client with a retry.
    """

    def __init__(self, number, port):
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.names = [f"counter {number} {i}" for i in range(COUNTERS)]
        # The acknowledged value, and how many increments ended without a reply since.
        self.acknowledged = dict.fromkeys(self.names, 0)
        self.unanswered = dict.fromkeys(self.names, 0)
        # Overwritten, so that an older value that comes late would be seen; and what it may be now.
        self.latest = f"latest {number}"
        self.latest_values = [None]
        self.count = 0
        self.refusals = 0
        self.problem = None
        self.stopping = threading.Event()
        # Under the lock: where to write, and the connection, which others may close.
        self.lock = threading.Lock()
        self.port = port
        self.client = None
        self.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                try:
                    self.write_once(self.connected())
                except (OSError, ValueError):
                    # The connection was closed, maybe by switch_to().
                    self.disconnect()
                    time.sleep(0.001)
        except Exception as problem:
            self.problem = problem
        finally:
            self.disconnect()

    def connected(self):
        with self.lock:
            if self.client is None:
                self.client = Client(self.port)
            return self.client

    def disconnect(self):
        with self.lock:
            if self.client is not None:
                self.client.close()
            self.client = None

    def write_once(self, client):
        name = self.random.choice(self.names)
        self.unanswered[name] += 1
        reply = client("INCR", name)
        if self.is_refused(reply):
            self.unanswered[name] -= 1
            return
        before, unsure = self.acknowledged[name], self.unanswered[name]
        if not (isinstance(reply, int) and before < reply <= before + unsure):
            raise AssertionError(f"{name} was acknowledged as {before}, then {reply!r} came")
        self.acknowledged[name], self.unanswered[name] = reply, 0
        tried = b"%d %d" % (self.count, reply)
        self.latest_values.append(tried)
        reply = client("SET", self.latest, tried, "GET")
        if self.is_refused(reply):
            self.latest_values.remove(tried)
            return
        if reply not in self.latest_values[:-1]:
            raise AssertionError(f"{self.latest} was {reply}, but one of {self.latest_values} was due")
        self.latest_values = [tried]
        self.count += 1

    def is_refused(self, reply):
        """By a server that is read-only."""
        if not isinstance(reply, str):
            return False
        if not reply.startswith("-READONLY"):
            raise AssertionError(f"a write was answered with {reply}")
        self.refusals += 1
        time.sleep(0.001)
        return True

    def switch_to(self, port):
        """Writes there from now on; what is under way on the old connection may stay without a reply."""
        with self.lock:
            self.port = port
            if self.client is not None:
                with contextlib.suppress(OSError):  # it has ended already
                    self.client.socket.shutdown(socket.SHUT_RDWR)

    def check(self, client):
        """The server's values must be the acknowledged ones, but for commands that were never answered."""
        if self.problem is not None:
            raise self.problem
        for name in self.names:
            value = int(client("GET", name) or 0)
            least, most = self.acknowledged[name], self.acknowledged[name] + self.unanswered[name]
            if not least <= value <= most:
                raise AssertionError(f"{name} is {value}; acknowledged was {least}, {most} at most")
        value = client("GET", self.latest)
        if value not in self.latest_values:
            raise AssertionError(f"{self.latest} is {value}, but one of {self.latest_values} was due")


class Reader(threading.Thread):
    """Reads a counter, which may never be refused, missing or fall back."""

    def __init__(self, name, port):
        super().__init__(daemon=True)
        self.name_read = name
        self.port = port
        self.count = 0
        self.problem = None
        self.stopping = threading.Event()
        self.start()

    def run(self):
        last, client, at = 0, None, None
        try:
            while not self.stopping.is_set():
                port = self.port
                if port != at:
                    if client is not None:
                        client.close()
                    # Another server may be behind the one before by what is under way.
                    client, at, last = Client(port), port, 0
                value = client("GET", self.name_read)
                if not isinstance(value, bytes) or int(value) < last:
                    raise AssertionError(f"{value!r} was read after {last}")
                last = int(value)
                self.count += 1
        except Exception as problem:
            self.problem = problem
        finally:
            if client is not None:
                client.close()


@harness.on_each_backend
class Moving(harness.EddyTest):
    def setUp(self):
        self.redis = Redis(self)
        self.old = client_of(self, self.redis.port)
        self.running = self.daemon()
        # A ping in the stream just before a change of roles would have all data sent again.
        self.old("CONFIG", "SET", "repl-ping-replica-period", "3600")
        self.threads = []
        self.addCleanup(self.end)

    def cache(self, *flags):
        port = free_port()
        self.running.must("create", "cache", "db", "-p", str(port), *flags, "-s")
        client = client_of(self, port)
        self.assertEqual(client("CONFIG", "SET", "repl-diskless-sync-delay", "0",
                                "repl-ping-replica-period", "3600"), "+OK")
        return client

    def end(self):
        for each in self.threads:
            each.stopping.set()
        for each in self.threads:
            each.join(harness.DEADLINE_S)

    def begin(self, at):
        """Writers and readers on a server that has data already."""
        at.all([("SET", f"key {i}", "v" * (i % 200)) for i in range(20_000)])
        self.writers = [Writer(number, at.port) for number in range(WRITERS)]
        self.threads += self.writers
        eventually(lambda: all(each.acknowledged[each.names[0]] for each in self.writers), "writes")
        self.readers = [Reader(each.names[0], at.port) for each in self.writers[:2]]
        self.threads += self.readers

    def go_on(self):
        """Returns when all have written and read more without an error."""
        def counts():
            return [each.count for each in self.writers + self.readers]
        before = counts()

        def went_on():
            for each in self.threads:
                if each.problem is not None:
                    raise each.problem
            return all(now > then + 20 for now, then in zip(counts(), before))
        eventually(went_on, "everybody to go on")

    def until_it_has_all(self, old, new):
        """docs/cache-migration.md, step 2."""
        eventually(lambda: new.info("replication")["master_link_status"] == "up", "the link")
        eventually(lambda: new("DBSIZE") == old("DBSIZE"), "the keys")
        self.go_on()

    @staticmethod
    def has_whole_stream(old, new):
        return old.info("replication")["master_repl_offset"] == new.info("replication")["master_repl_offset"]

    def read_from(self, new):
        for each in self.readers:
            each.port = new.port
        self.go_on()

    def move(self, old, new, retire):
        """docs/cache-migration.md, steps 2 to 5; `retire` has the old one take no writes any more."""
        self.until_it_has_all(old, new)
        self.read_from(new)
        self.assertEqual(old("CLIENT", "PAUSE", PAUSE_MS, "WRITE"), "+OK")
        eventually(lambda: self.has_whole_stream(old, new), "the end of the stream")
        self.assertEqual(new("REPLICAOF", "NO", "ONE"), "+OK")
        for each in self.writers:
            each.switch_to(new.port)
        retire()
        self.go_on()

    @staticmethod
    def follow_instead(old, new):
        """A way to retire that keeps the old one: it is read-only when its pause ends."""
        if old("REPLICAOF", "127.0.0.1", new.port) != "+OK" or old("CLIENT", "UNPAUSE") != "+OK":
            raise AssertionError("the old server does not follow the new one")

    def check_all(self, *servers):
        """Stops all; what was acknowledged is on each of the servers."""
        self.end()
        for each in self.threads:
            if each.problem is not None:
                raise each.problem
        master = servers[0]
        for server in servers:
            eventually(lambda at=server: self.has_whole_stream(master, at), "the end of the stream")
            for each in self.writers:
                each.check(server)
            self.assertEqual(server("DEBUG", "DIGEST"), master("DEBUG", "DIGEST"))

    def test_from_redis_and_back(self):
        self.begin(self.old)
        ours = self.cache("--mode", "admin", "--replicate", f"127.0.0.1:{self.old.port}")
        self.move(self.old, ours, self.redis.kill)
        self.assertEqual(ours("CONFIG", "REWRITE"), "+OK")
        self.assertNotIn("replicate", self.running.show("db")["options"])
        # Back, to one that begins empty.
        self.redis.start()
        new = client_of(self, self.redis.port)
        self.assertEqual(new("REPLICAOF", "127.0.0.1", ours.port), "+OK")
        self.move(ours, new, lambda: self.running.must("stop", "db"))
        self.check_all(new)

    def test_the_old_server_follows_and_takes_over_again(self):
        self.begin(self.old)
        ours = self.cache("--mode", "admin", "--replicate", f"127.0.0.1:{self.old.port}")
        self.move(self.old, ours, lambda: self.follow_instead(self.old, ours))
        self.move(ours, self.old, lambda: self.follow_instead(ours, self.old))
        self.check_all(self.old, ours)
        # Each continued where it was: no full synchronization.
        self.assertEqual(self.old.info("stats")["sync_full"], "1")
        self.assertEqual(ours.info("stats")["sync_full"], "0")

    def test_writers_who_hear_late_of_the_move_are_refused_and_lose_nothing(self):
        self.begin(self.old)
        ours = self.cache("--mode", "admin", "--replicate", f"127.0.0.1:{self.old.port}")
        *self.writers, late = self.writers
        self.move(self.old, ours, lambda: self.follow_instead(self.old, ours))
        eventually(lambda: late.refusals > 10, "refusals")
        late.switch_to(ours.port)
        self.writers.append(late)
        self.go_on()
        self.check_all(ours, self.old)


def page_commands():
    """The commands of docs/cache-migration.md on moving, in order: for each of its parts a list of blocks."""
    with open(PAGE, encoding="utf-8") as page:
        whole = page.read()
    parts = {}
    for part in whole.split("\n## ")[1:]:
        title, text = part.split("\n", 1)
        blocks, previous = [], ""
        for line in text.splitlines():
            found = re.match(r" {4,7}(?=(eddy|redis-cli|cp|mkdir) )(.*)", line)
            if found and not previous:
                blocks.append([])
            if found:
                blocks[-1].append(found.group(2))
            previous = line.strip() and found
        parts[title] = blocks
    return parts


class MovingByThePage(harness.EddyTest):
    """Each command as it stands in docs/cache-migration.md, but for ports, hosts and folders."""

    KEYS = 2000

    def setUp(self):
        if shutil.which("redis-cli") is None:
            self.skipTest("redis-cli is not installed")
        self.redis = Redis(self)
        self.running = self.daemon()
        self.port = free_port()
        # Neither it nor what is above it is there.
        self.disk = os.path.join(self.folder(), "lib", "eddy", "db")
        # Under the name that the page has.
        self.programs = self.folder()
        os.symlink(os.path.abspath(harness.BINARY), os.path.join(self.programs, "eddy"))
        self.old = client_of(self, self.redis.port)
        self.old.all([("SET", f"key {i}", i) for i in range(self.KEYS)])
        self.old("CONFIG", "SET", "repl-ping-replica-period", "3600")

    def run_line(self, line):
        """Its output, or None when it has failed."""
        for text, here in (("-h 10.0.0.1 -p 6379", f"-p {self.redis.port}"),
                           ("10.0.0.1:6379", f"127.0.0.1:{self.redis.port}"),
                           ("-p 6379", f"-p {self.redis.port}"), ("-p 6380", f"-p {self.port}"),
                           ("HOST 6380", f"127.0.0.1 {self.port}"),
                           ("/var/lib/eddy/db", self.disk), ("/var/lib/redis", self.redis.folder)):
            line = line.replace(text, here)
        path = self.programs + ":" + os.environ["PATH"]
        done = subprocess.run(["sh", "-c", line], env=dict(self.running.environment(), PATH=path),
                              capture_output=True, timeout=harness.DEADLINE_S, check=False)
        out = done.stdout.decode().strip()
        return out if done.returncode == 0 and not out.startswith("ERR") else None

    def must_run(self, block):
        """A line that waits, by grep, is repeated until it succeeds."""
        outputs = []
        for line in block:
            if "grep" in line:
                outputs.append(eventually(lambda line=line: self.run_line(line), line))
            else:
                outputs.append(self.run_line(line))
                self.assertIsNotNone(outputs[-1], line)
        return outputs

    def until_equal(self, block):
        """The last two lines show the same."""
        def are_equal():
            *_, one, other = self.must_run(block)
            return one == other
        eventually(are_equal, " and ".join(block))

    def check_keys(self, port, count):
        client = client_of(self, port)
        self.assertEqual(client("DBSIZE"), count)
        self.assertEqual(client("GET", "key 7"), b"7")
        return client

    def check_kept(self, count):
        """Over a stop, and as a master."""
        self.assertEqual(os.stat(self.disk).st_mode & 0o777, 0o700)
        self.assertNotIn("replicate", self.running.show("db")["options"])
        self.running.must("stop", "db")
        self.running.must("start", "db")
        self.assertEqual(self.check_keys(self.port, count).info("replication")["role"], "master")

    def test_the_page_has_these_parts(self):
        self.assertEqual(sorted(page_commands()),
                         ["By one command", "With a stop, by the dump file", "Without a stop"])

    def test_without_a_stop(self):
        create, wait, hold, lead, keep, end, back = page_commands()["Without a stop"]
        self.must_run(create)
        self.until_equal(wait)
        self.must_run(hold[:1])
        self.until_equal(hold[1:])
        self.must_run(lead)
        new = self.check_keys(self.port, self.KEYS)
        self.must_run(keep)
        self.assertEqual(new("SET", "later", "1"), "+OK")
        eventually(lambda: self.old("GET", "later") == b"1", "the old one to follow")
        self.assertEqual(new.info("stats")["sync_full"], "0")
        self.run_line(end[0])
        self.redis.process.wait(harness.DEADLINE_S)
        self.redis.start()
        again = client_of(self, self.redis.port)
        self.must_run(back)
        eventually(lambda: again("DBSIZE") == self.KEYS + 1, "the way back")
        self.check_kept(self.KEYS + 1)

    def test_by_one_command(self):
        (block,) = page_commands()["By one command"]
        self.must_run(block)
        self.check_kept(self.KEYS)

    def test_by_the_dump_file(self):
        there, back = page_commands()["With a stop, by the dump file"]
        *_, size = self.must_run(there)
        self.assertEqual(size, str(self.KEYS))
        self.check_keys(self.redis.port, self.KEYS)("SET", "later", "1")
        self.must_run(back)
        self.redis.start()
        self.check_keys(self.redis.port, self.KEYS + 1)


if __name__ == "__main__":
    harness.main()
