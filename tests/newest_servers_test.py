#!/usr/bin/env python3
"""Caches beside the newest Redis and Valkey: each replicates the other, and takes the other's files and payloads.

Hashes with expiring fields go along wherever both sides have a form for them.
"""

import os
import unittest

import harness
from cache_client import Redis, client_of
from harness import eventually, free_port

AT_MS = 4_102_444_800_000  # the year 2100


def fill(client, with_ends=True):
    """Values of all types, small and large; with times of fields if they are wanted."""
    def must(*words):
        reply = client(*words)
        assert not (isinstance(reply, str) and reply.startswith("-")), (words[0], words[1], reply)
        return reply

    must("SET", "text", "value")
    must("SET", "binary", bytes(range(256)), "PXAT", AT_MS)
    must("SET", "number", -32769)
    must("SET", "packed", "ab" * 5000)
    for size in (3, 700):
        names = [f"{'x' * (i % 90)}{i}" for i in range(size)]
        must("RPUSH", f"list {size}", *names)
        must("SADD", f"set {size}", *names)
        must("SADD", f"numbers {size}", *range(size))
        must("HSET", f"hash {size}", *[word for each in names for word in (each, each)])
        must("ZADD", f"sorted {size}", *[word for i, each in enumerate(names) for word in (i * 0.25 - 9, each)])
        for i in range(size):
            must("XADD", f"stream {size}", f"{1000 + i // 3}-{i % 3 + 1}", "a", i, "b", names[i])
        must("XGROUP", "CREATE", f"stream {size}", "g", 0)
        must("XREADGROUP", "GROUP", "g", "one", "COUNT", 2, "STREAMS", f"stream {size}", ">")
        must("XDEL", f"stream {size}", "1000-1")
        if with_ends:
            must("HSET", f"ends {size}", *[word for each in names for word in (each, "v" * 70)])
            must("HPEXPIREAT", f"ends {size}", AT_MS, "FIELDS", 1, names[0])
            must("HPEXPIREAT", f"ends {size}", AT_MS + 7, "FIELDS", 1, names[2])
            must("PEXPIREAT", f"ends {size}", AT_MS + 9)
    must("SELECT", 3)
    must("SET", "third", "value")
    must("SELECT", 0)


def value_of(client, kind, key):
    """The value of a key as a client sees it, the same wherever its data are the same."""
    if kind == "+string":
        return client("GET", key)
    if kind == "+list":
        return client("LRANGE", key, 0, -1)
    if kind == "+set":
        return sorted(client("SMEMBERS", key))
    if kind == "+zset":
        return client("ZRANGE", key, 0, -1, "WITHSCORES")
    if kind == "+stream":
        groups = [dict(zip(group[0::2], group[1::2])) for group in client("XINFO", "GROUPS", key)]
        return (client("XRANGE", key, "-", "+"), groups, client("XPENDING", key, "g") if groups else None)
    pairs = client("HGETALL", key)
    fields = sorted(pairs[0::2])
    ends = client("HPEXPIRETIME", key, "FIELDS", len(fields), *fields)
    without = isinstance(ends, str)  # Valkey 8 has no such command
    return dict(zip(pairs[0::2], pairs[1::2])), [-1] * len(fields) if without else ends


def content(client):
    found = {}
    for database in (0, 3):
        client("SELECT", database)
        for key in client("KEYS", "*"):
            kind = client("TYPE", key)
            found[database, key] = kind, value_of(client, kind, key), client("PEXPIRETIME", key)
    client("SELECT", 0)
    return found


class Beside:
    """Needs harness.EddyTest, and the `variable` that names a server."""

    maxDiff = 4000
    has_ends = True  # of hashes' fields
    takes_our_ends = True  # by RESTORE

    def setUp(self):
        self.program = os.environ.get(self.variable, "")
        if not self.program:
            self.skipTest(f"{self.variable} names no server; ./eddy-dev test fetches one")
        self.running = self.daemon()

    def server(self, *arguments, folder=None):
        started = Redis(self, *arguments, program=self.program, folder=folder)
        return started, client_of(self, started.port)

    def cache(self, name="db", *more):
        port = free_port()
        self.running.must("create", "cache", name, "-p", str(port), "--mode", "admin", "-s", *more)
        client = client_of(self, port)
        self.assertEqual(client("CONFIG", "SET", "repl-diskless-sync-delay", "0"), "+OK")
        return client

    def replicate(self, replica, master):
        self.assertEqual(replica("REPLICAOF", "127.0.0.1", master.port), "+OK")
        eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link")

    def assert_holds(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, value in expected.items():
            self.assertEqual(found[name], value, name)

    def same(self, one, other):
        self.assert_holds(content(one), content(other))

    def until_caught_up(self, replica, master):
        def caught_up():
            has = replica.info("replication")
            return (has["master_link_status"] == "up" and
                    has["slave_repl_offset"] == master.info("replication")["master_repl_offset"])
        eventually(caught_up, "the replica to have everything")

    def test_a_cache_replicates_it(self):
        _, master = self.server()
        fill(master, self.has_ends)
        replica = self.cache()
        replica("SET", "its own", "goes")
        self.replicate(replica, master)
        self.assertEqual(replica("EXISTS", "its own"), 0)
        self.same(replica, master)
        # The stream behind the copy.
        master("SET", "later", "value")
        if self.has_ends:
            master("HSET", "later hash", "f", "v", "g", "w")
            master("HPEXPIREAT", "later hash", AT_MS + 11, "FIELDS", 1, "f")
            master("HPERSIST", "ends 3", "FIELDS", 1, "0")
        self.until_caught_up(replica, master)
        self.same(replica, master)
        self.assertEqual(master("WAIT", 1, 10000), 1)
        self.assertEqual(master.info("stats")["sync_full"], "1")

    def test_it_replicates_a_cache(self):
        master = self.cache()
        fill(master, self.has_ends)
        _, replica = self.server()
        self.replicate(replica, master)
        self.same(replica, master)
        master("SET", "later", "value")
        if self.has_ends:
            master("HSET", "later hash", "f", "v", "g", "w")
            master("HPEXPIREAT", "later hash", AT_MS + 11, "FIELDS", 1, "f")
        self.until_caught_up(replica, master)
        self.same(replica, master)
        self.assertEqual(master("WAIT", 1, 10000), 1)
        self.assertEqual(master.info("stats")["sync_full"], "1")
        self.assertNotIn("expiring fields", self.running.must("logs", "db"))

    def test_a_cache_loads_its_dump(self):
        folder = self.folder()
        server, theirs = self.server(folder=folder)
        fill(theirs, self.has_ends)
        self.assertEqual(theirs("SAVE"), "+OK")
        expected = content(theirs)
        server.kill()
        self.assert_holds(content(self.cache("db", "--dir", folder)), expected)

    def test_a_cache_loads_its_append_only_file(self):
        folder = self.folder()
        server, theirs = self.server("--appendonly", "yes", folder=folder)
        fill(theirs, self.has_ends)
        self.assertIn("started", theirs("BGREWRITEAOF"))
        eventually(lambda: theirs.info()["aof_rewrite_in_progress"] == "0"
                   and theirs.info()["aof_rewrite_scheduled"] == "0", "the rewrite")
        theirs("SET", "behind the base", "value")
        expected = content(theirs)
        theirs.close()
        server.stop()
        self.assert_holds(content(self.cache("db", "--dir", folder, "--appendonly", "yes")), expected)

    def test_payloads_go_both_ways(self):
        _, theirs = self.server()
        fill(theirs, self.has_ends)
        ours = self.cache()
        for key in theirs("KEYS", "*"):
            self.assertEqual(ours("RESTORE", key, 0, theirs("DUMP", key)), "+OK", key)
            kind = theirs("TYPE", key)
            self.assertEqual(value_of(ours, kind, key), value_of(theirs, kind, key), key)
            back = theirs("RESTORE", "copy", 0, ours("DUMP", key), "REPLACE")
            if key.startswith(b"ends") and not self.takes_our_ends:
                self.assertIn("payload version", back)
                continue
            self.assertEqual(back, "+OK", key)
            self.assertEqual(value_of(theirs, kind, "copy"), value_of(theirs, kind, key), key)

    def test_keys_move_here_by_migrate(self):
        _, theirs = self.server()
        fill(theirs, self.has_ends)
        # The TTL of a key goes as the time that is left.
        expected = {name: value[:2] for name, value in content(theirs).items() if name[0] == 0}
        ours = self.cache()
        self.assertEqual(theirs("MIGRATE", "127.0.0.1", ours.port, "", 0, 20000, "KEYS", *theirs("KEYS", "*")), "+OK")
        self.assert_holds({name: value[:2] for name, value in content(ours).items()}, expected)


class BesideRedis82(Beside, harness.EddyTest):
    variable = "EDDY_REDIS_8_2"


class BesideRedis86(Beside, harness.EddyTest):
    variable = "EDDY_REDIS_8_6"

    def test_streams_come_with_the_identities_of_their_producers_left_out(self):
        _, theirs = self.server()
        for identity in ("first", "second", "first"):
            theirs("XADD", "s", "IDMP", "producer", identity, "*", "f", identity)
        self.assertEqual(theirs("XLEN", "s"), 2)
        replica = self.cache()
        self.replicate(replica, theirs)
        self.assertEqual(replica("XRANGE", "s", "-", "+"), theirs("XRANGE", "s", "-", "+"))
        other = self.cache("other")
        self.assertEqual(other("RESTORE", "s", 0, theirs("DUMP", "s")), "+OK")
        self.assertEqual(other("XRANGE", "s", "-", "+"), theirs("XRANGE", "s", "-", "+"))

    def produce(self, theirs, begin):
        """New and repeated messages of idempotent producers; returns the number of entries."""
        for i in range(begin, begin + 20):
            for _ in range(1 + i % 3):
                theirs("XADD", "s", "IDMP", "producer", f"identity {i}", "*", "f", i)
                theirs("XADD", "s", "KEEPREF", "IDMPAUTO", "other", "MAXLEN", "~", 1000, "*", "f", i, "g", "v")
        theirs("MULTI")
        theirs("XADD", "s", "IDMP", "producer", f"of {begin}", "*", "f", "v")
        theirs("XADD", "s", "IDMP", "producer", f"of {begin}", "*", "f", "v")
        theirs("EXEC")
        theirs("EVAL", "redis.call('XADD', KEYS[1], 'IDMPAUTO', 'script', '*', 'f', ARGV[1])", 1, "s", begin)
        return 20 * 2 + 2

    def test_entries_of_idempotent_producers_are_replicated_once_with_their_ids(self):
        _, theirs = self.server()
        count = self.produce(theirs, 0)
        replica = self.cache("db", "--appendonly", "yes", "--dir", self.folder())
        # The first messages came with the copy, without their identities.
        self.replicate(replica, theirs)
        theirs("XADD", "s", "IDMP", "producer", "identity 3", "*", "f", "repeated")
        count += self.produce(theirs, 100)
        self.until_caught_up(replica, theirs)
        expected = theirs("XRANGE", "s", "-", "+")
        self.assertEqual(len(expected), count)
        self.assertEqual(replica("XRANGE", "s", "-", "+"), expected)
        self.assertEqual(replica.info("stats")["unexpected_error_replies"], "0")
        # And by its own file.
        self.running.must("stop", "db")
        self.running.must("start", "db")
        again = client_of(self, replica.port)
        self.assertEqual(again("XRANGE", "s", "-", "+"), expected)

    def test_its_append_only_file_has_the_entries_of_idempotent_producers(self):
        folder = self.folder()
        server, theirs = self.server("--appendonly", "yes", "--aof-use-rdb-preamble", "no", folder=folder)
        self.produce(theirs, 0)
        expected = theirs("XRANGE", "s", "-", "+")
        theirs.close()
        server.stop()
        ours = self.cache("db", "--dir", folder, "--appendonly", "yes")
        self.assertEqual(ours("XRANGE", "s", "-", "+"), expected)


class BesideValkey91(Beside, harness.EddyTest):
    variable = "EDDY_VALKEY_9_1"
    takes_our_ends = False

    def test_a_replica_redirects_clients_that_can_be_redirected(self):
        master = self.cache("master")
        ours = self.cache()
        _, theirs = self.server()
        self.replicate(ours, master)
        self.replicate(theirs, master)
        self.assertEqual([each("CLIENT", "CAPA", "redirect") for each in (ours, theirs)], ["+OK"] * 2)
        address = f"-REDIRECT 127.0.0.1:{master.port}"
        self.assertEqual(ours("GET", "k"), address)
        for command in ("GET k", "SET k v", "PING", "EVAL_RO return(1) 0", "EVAL return(1) 0", "MULTI", "GET k", "EXEC",
                        "SCAN 0", "DBSIZE", "PUBLISH a b", "WATCH k", "SCRIPT LOAD return(1)", "GET", "FLUSHALL",
                        "OBJECT ENCODING k", "XADD s * f v", "MEMORY USAGE k", "PFCOUNT k", "FUNCTION FLUSH",
                        "READONLY", "GET k", "SET k v", "MULTI", "GET k", "SET k v", "EXEC", "DBSIZE",
                        "READWRITE", "GET k", "READONLY", "RESET", "GET k"):
            self.assertEqual(ours(*command.split()), theirs(*command.split()), command)
        # Others are answered here.
        self.assertIsNone(client_of(self, ours.port)("GET", "k"))

    def test_a_field_without_an_end_in_time_has_the_latest(self):
        """Valkey takes any time; here there is a last one, in the year 10889."""
        _, theirs = self.server()
        theirs("HSET", "h", "f", "v")
        theirs("HPEXPIREAT", "h", 2**63 - 1, "FIELDS", 1, "f")
        replica = self.cache()
        self.replicate(replica, theirs)
        self.assertEqual(replica("HPEXPIRETIME", "h", "FIELDS", 1, "f"), [2**48 - 2])


class BesideValkey81(Beside, harness.EddyTest):
    variable = "EDDY_VALKEY_8_1"
    has_ends = False

    def test_the_log_says_once_that_it_cannot_take_expiring_fields(self):
        master = self.cache()
        _, replica = self.server()
        self.replicate(replica, master)
        master("HSET", "h", "f", "v", "g", "w")
        master("HPEXPIREAT", "h", AT_MS, "FIELDS", 1, "f")
        said = f"the replica 127.0.0.1:{replica.port} is Valkey 8, which cannot take the expiring fields of hashes"
        eventually(lambda: said in self.running.must("logs", "db"), "the message")
        # Nor the copy.
        replica("REPLICAOF", "NO", "ONE")
        replica("REPLICAOF", "127.0.0.1", master.port)
        eventually(lambda: int(master.info("stats")["sync_full"]) >= 3, "it has asked again")
        self.assertEqual(self.running.must("logs", "db").count("expiring fields"), 1)
        # Without them it can.
        master("DEL", "h")
        eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link")


if __name__ == "__main__":
    harness.main()
    unittest.main(verbosity=2)
