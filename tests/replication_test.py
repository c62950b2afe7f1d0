#!/usr/bin/env python3
"""Caches and real Redis and Valkey servers that replicate each other, in both directions, under random writes."""

import os
import re
import socket
import threading
import unittest

import harness
from cache_client import Client, Redis, Traffic, client_of
from harness import connect, eventually, free_port

ROUNDS = int(os.environ.get("EDDY_REPLICATION_ROUNDS", "20"))


def have_same_data(master, replica):
    """Waits until the replica has all that the master has, and compares."""
    def same():
        told, has = master.info("replication"), replica.info("replication")
        return (has.get("master_link_status") == "up" and
                told["master_repl_offset"] == has["slave_repl_offset"])
    # Keys that expire are removed by the master, which sends a DEL.
    def equal():
        eventually(same, "the replica to have everything")
        return master("DEBUG", "DIGEST") == replica("DEBUG", "DIGEST")
    eventually(equal, "the same data")


class Stranger:
    """A replica by hand: each step is the test's."""

    def __init__(self, test, port):
        self.client = Client(port)
        test.addCleanup(self.close)
        test.assertEqual(self.client("REPLCONF", "capa", "eof", "capa", "psync2"), "+OK")

    def close(self):
        self.client.close()

    def line(self):
        """The next one that is not empty: empty ones say that the other is alive."""
        while True:
            line = self.client.stream.readline()
            if not line:
                raise ConnectionError("the connection ended")
            if line.strip():
                return line.strip().decode()

    def ask(self, replication_id, offset):
        self.client.send("PSYNC", replication_id, offset)
        return self.line()

    def take_copy(self):
        """After +FULLRESYNC. Returns the dataset, as a dump file has it."""
        mark = self.line().removeprefix("$EOF:").encode()
        received = bytearray()
        while (end := received.find(mark, max(0, len(received) - 65536 - len(mark)))) < 0:
            piece = self.client.stream.read1(65536)
            if not piece:
                raise ConnectionError("the connection ended")
            received += piece
        return bytes(received[:end])

    def acknowledge(self, *what):
        self.client.send("REPLCONF", "ACK", *what)


class Replication(harness.EddyTest):
    def cache(self, daemon, name, *more):
        port = free_port()
        daemon.must("create", "cache", name, "-p", str(port), "--mode", "admin", "-s", *more)
        client = client_of(self, port)
        self.assertEqual(client("CONFIG", "SET", "repl-diskless-sync-delay", "0"), "+OK")
        return client

    def replicate(self, replica, master):
        self.assertEqual(replica("REPLICAOF", "127.0.0.1", master.port), "+OK")
        eventually(lambda: replica.info("replication")["master_link_status"] == "up", "the link")

    def write(self, client, seed, rounds=ROUNDS):
        traffic = Traffic(seed)
        for _ in range(rounds):
            client.all(traffic.batch(100))
        client("SELECT", "0")


class BesideServers:
    """Needs Replication and the name of a `program`."""

    def server(self, *arguments):
        server = Redis(self, *arguments, program=self.program)
        return server, client_of(self, server.port)

    def test_a_cache_replicates(self):
        _, master = self.server()
        replica = self.cache(self.daemon(), "db")
        replica("SET", "its own", "goes")
        self.write(master, 1)
        self.replicate(replica, master)
        self.assertEqual(replica("EXISTS", "its own"), 0)
        self.write(master, 2)
        have_same_data(master, replica)
        self.assertTrue(replica("SET", "a", "b").startswith("-READONLY"))
        self.assertEqual(replica("ROLE")[:4], [b"slave", b"127.0.0.1", master.port, b"connected"])
        self.assertEqual(master("WAIT", "1", "10000"), 1)
        # Both continue where they were.
        writer = client_of(self, master.port)
        writing = threading.Thread(target=self.write, args=(writer, 3))
        writing.start()
        for _ in range(3):
            master("CLIENT", "KILL", "TYPE", "replica")
            eventually(lambda: replica.info("replication")["master_link_status"] == "up")
        writing.join()
        have_same_data(master, replica)
        self.assertEqual(master.info("stats")["sync_full"], "1")
        self.assertGreaterEqual(int(master.info("stats")["sync_partial_ok"]), 1)
        # Moving over: it stays as it is, and takes writes.
        self.assertEqual(replica("REPLICAOF", "NO", "ONE"), "+OK")
        self.assertEqual(replica("SET", "a", "b"), "+OK")
        self.assertEqual(replica("ROLE")[0], b"master")

    def test_it_replicates_a_cache(self):
        master = self.cache(self.daemon(), "db")
        _, replica = self.server()
        self.write(master, 1)
        self.replicate(replica, master)
        self.write(master, 2)
        have_same_data(master, replica)
        told = master.info("replication")
        self.assertEqual(told["connected_slaves"], "1")
        self.assertIn("state=online", told["slave0"])
        self.assertIn(f"port={replica.port}", told["slave0"])
        self.assertEqual(master("WAIT", "1", "10000"), 1)
        writer = client_of(self, master.port)
        writing = threading.Thread(target=self.write, args=(writer, 3))
        writing.start()
        for _ in range(3):
            master("CLIENT", "KILL", "TYPE", "replica")
            eventually(lambda: replica.info("replication")["master_link_status"] == "up")
        writing.join()
        have_same_data(master, replica)
        self.assertEqual(master.info("stats")["sync_full"], "1")
        self.assertGreaterEqual(int(master.info("stats")["sync_partial_ok"]), 1)

    def test_a_replica_that_asks_from_a_wrong_place(self):
        """It gets everything again, as from a real server, and other clients do not notice."""
        # The disk takes the copies, since a real server would wait for others before it sends them.
        _, theirs = self.server("--repl-diskless-sync", "no")
        ours = self.cache(self.daemon(), "db")
        answers = []
        for master in (ours, theirs):
            self.assertEqual(master("CONFIG", "SET", "repl-backlog-size", "16kb"), "+OK")
            master("SET", "a", "1")
            first = Stranger(self, master.port)
            self.assertRegex(first.ask("?", "-1"), "^[+]FULLRESYNC [0-9a-f]{40} [0-9]+$")
            first.close()
            for _ in range(20):
                master("SET", "filler", "x" * 10_000)
            eventually(lambda at=master: int(at.info("replication")["repl_backlog_first_byte_offset"]) > 1,
                       "the backlog to forget")
            told = master.info("replication")
            its_id, offset = told["master_replid"], int(told["master_repl_offset"])
            answers.append([])
            for asked in ((its_id, offset + 1), (its_id.upper(), offset + 1), (its_id, offset + 2),
                          (its_id, offset + 10**12), (its_id, 2**63 - 1),
                          (its_id, 2**63), (its_id, 1), (its_id, 0), (its_id, -5), (its_id, "x"), ("f" * 40, 1),
                          ("f" * 40, offset + 1), (its_id[:-1], offset + 1), ("x" * 10_000, offset + 1),
                          ("", offset + 1), ("?", -1), ("?", offset + 1)):
                stranger = Stranger(self, master.port)
                answer = stranger.ask(*asked)
                if answer.startswith("+FULLRESYNC"):
                    self.assertEqual(answer, f"+FULLRESYNC {its_id} {offset}", asked)
                    answer = "+FULLRESYNC"
                answers[-1].append(answer.split()[0])
                stranger.close()
                self.assertEqual(master("GET", "a"), b"1")
            eventually(lambda at=master: at.info("replication")["connected_slaves"] == "0", "the end of all")
            self.assertEqual(master.info("stats")["sync_partial_ok"], "2")
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0].count("+CONTINUE"), 2)

    def test_a_chain_of_both(self):
        daemon = self.daemon()
        _, first = self.server()
        second = self.cache(daemon, "second")
        _, third = self.server()
        fourth = self.cache(daemon, "fourth")
        self.write(first, 1)
        self.replicate(second, first)
        self.replicate(third, second)
        self.replicate(fourth, third)
        self.write(first, 2)
        for each in (second, third, fourth):
            have_same_data(first, each)
        ids = {each.info("replication")["master_replid"] for each in (first, second, third, fourth)}
        self.assertEqual(len(ids), 1)
        # After each promotion, the others continue with it: the data is not sent again.
        self.assertEqual(second("REPLICAOF", "NO", "ONE"), "+OK")
        self.write(second, 3)
        for each in (third, fourth):
            have_same_data(second, each)
        self.assertEqual(second.info("stats")["sync_full"], "1")
        # The old one may have expired keys meanwhile, and need all.
        self.replicate(first, second)
        for each in (first, third, fourth):
            have_same_data(second, each)

    def test_messages_and_the_end_of_keys_reach_replicas(self):
        daemon = self.daemon()
        master = self.cache(daemon, "master")
        replica = self.cache(daemon, "replica")
        _, theirs = self.server()
        self.replicate(replica, master)
        self.replicate(theirs, master)
        for each in (replica, theirs):
            listener = client_of(self, each.port)
            listener("SUBSCRIBE", "news")
            master("PUBLISH", "news", "today")
            self.assertEqual(listener.reply(), [b"message", b"news", b"today"])
        master("SET", "short", "1", "PX", "50")
        master("SET", "long", "1", "PX", "100000")
        eventually(lambda: replica("GET", "short") is None, "the key's end")
        eventually(lambda: replica("DBSIZE") == 1 and theirs("DBSIZE") == 1, "its removal")
        self.assertEqual(replica("PEXPIRETIME", "long"), master("PEXPIRETIME", "long"))
        have_same_data(master, replica)
        have_same_data(master, theirs)

    def test_functions_are_replicated(self):
        daemon = self.daemon()
        _, theirs = self.server()
        cache = self.cache(daemon, "cache")
        library = "#!lua name={0}\nredis.register_function{{function_name='{0}', " \
                  "callback=function() return '{0}' end, flags={{'no-writes'}}}}"
        if str(cache("FUNCTION", "LOAD", library.format("its_own"))).startswith("-"):
            self.skipTest("this eddy was built without scripts")
        theirs("FUNCTION", "LOAD", library.format("first"))
        self.replicate(cache, theirs)
        theirs("FUNCTION", "LOAD", library.format("second"))
        have_same_data(theirs, cache)
        for name in ("first", "second"):
            self.assertEqual(cache("FCALL_RO", name, "0"), name.encode())
        self.assertTrue(cache("FCALL_RO", "its_own", "0").startswith("-"))
        # And back again.
        cache("REPLICAOF", "NO", "ONE")
        theirs("FUNCTION", "FLUSH")
        self.replicate(theirs, cache)
        cache("FUNCTION", "LOAD", library.format("third"))
        cache("FUNCTION", "DELETE", "first")
        have_same_data(cache, theirs)
        for name in ("second", "third"):
            self.assertEqual(theirs("FCALL_RO", name, "0"), name.encode())
        self.assertTrue(theirs("FCALL_RO", "first", "0").startswith("-"))

    def test_a_big_copy_while_much_is_written(self):
        daemon = self.daemon()
        master = self.cache(daemon, "master")
        for base in range(0, 60000, 1000):
            master.all([("SET", f"key {i}", "v" * (i % 300)) for i in range(base, base + 1000)])
        replica = self.cache(daemon, "replica")
        _, theirs = self.server()
        stop = threading.Event()

        def write():
            client, traffic = Client(master.port), Traffic(5)
            while not stop.is_set():
                client.all(traffic.batch(100))
                client.all([("APPEND", f"key {i}", "!") for i in range(0, 60000, 997)])
            client.close()
        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.replicate(replica, master)
            self.replicate(theirs, master)
        finally:
            stop.set()
            writer.join()
        have_same_data(master, replica)
        have_same_data(master, theirs)

    def test_a_password_and_the_flags(self):
        server, master = self.server("--requirepass", "secret")
        master("AUTH", "secret")
        master("SET", "a", "1")
        daemon = self.daemon()
        replica = self.cache(daemon, "db", "--replicate", f"127.0.0.1:{server.port}")
        eventually(lambda: "NOAUTH" in daemon.must("logs", "db"), "the refusal in the log")
        self.assertEqual(replica("CONFIG", "SET", "masterauth", "secret"), "+OK")
        eventually(lambda: replica("GET", "a") == b"1", "the key")
        other = self.cache(daemon, "other", "--replicate", f"127.0.0.1:{server.port}",
                           "--replicate-user", "default", "--replicate-password", "secret")
        eventually(lambda: other("GET", "a") == b"1", "the key")


@harness.on_each_backend
class BesideRedis(BesideServers, Replication):
    program = "redis-server"


@harness.on_each_backend
class BesideValkey(BesideServers, Replication):
    program = os.environ.get("EDDY_VALKEY", "valkey-server")


@harness.on_each_backend
class ByTls(Replication):
    """The certificates are for another name than the address that the replicas know: the signer counts."""

    def setUp(self):
        self.made = harness.Certificates(self.folder())
        self.cert, self.key = self.made.named("db.example")
        self.flags = ["--tls-cert-file", self.cert, "--tls-key-file", self.key, "--tls-ca-cert-file", self.made.ca,
                      "--tls-replication", "yes"]

    def client(self, port):
        context = self.made.context(own=True)
        context.check_hostname = False

        def attempt():
            try:
                made = Client(port, over=context.wrap_socket(connect(port)))
                return made if made("PING") == "+PONG" else None
            except OSError:
                return None
        made = eventually(attempt, f"an answer by TLS on port {port}")
        self.addCleanup(made.close)
        return made

    def cache(self, daemon, name, *more):
        port = free_port()
        created = daemon.run("create", "cache", name, "--tls-port", str(port), "--mode", "admin", "-s",
                             *self.flags, *more)
        if "does not have" in created.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(created.status, 0, created)
        client = self.client(port)
        self.assertEqual(client("CONFIG", "SET", "repl-diskless-sync-delay", "0"), "+OK")
        return client

    def redis(self):
        port = free_port()
        Redis(self, "--tls-port", str(port), "--port", "0", *self.flags)
        return self.client(port)

    def check(self, master, replica):
        self.write(master, 1)
        self.replicate(replica, master)
        self.write(master, 2)
        have_same_data(master, replica)
        self.assertEqual(master("WAIT", "1", "10000"), 1)
        self.assertIn(f"port={replica.port},", master.info("replication")["slave0"])

    def test_a_cache_replicates(self):
        self.check(self.redis(), self.cache(self.daemon(), "db"))

    def test_it_replicates_a_cache(self):
        self.check(self.cache(self.daemon(), "db"), self.redis())

    def test_among_caches(self):
        daemon = self.daemon()
        self.check(self.cache(daemon, "master"), self.cache(daemon, "replica"))

    def test_the_master_changes_there_and_back(self):
        daemon = self.daemon()
        first, second = self.cache(daemon, "first"), self.cache(daemon, "second")
        self.replicate(second, first)
        for master, replica in ((first, second), (second, first)):
            self.write(master, master.port, 1)
            self.assertEqual(master("FAILOVER", "TO", "127.0.0.1", replica.port), "+OK")
            eventually(lambda at=master: at.info("replication")["master_failover_state"] == "no-failover", "the end")
            self.assertEqual(master("ROLE")[:3], [b"slave", b"127.0.0.1", replica.port])
            self.assertEqual(replica("ROLE")[0], b"master")
            have_same_data(replica, master)
            self.assertEqual(replica.info("stats")["sync_partial_ok"], "1")

    def test_a_master_of_another_authority_is_not_replicated_nor_sent_the_password(self):
        daemon = self.daemon()
        replica = self.cache(daemon, "replica")
        other, port = harness.Certificates(self.folder()), free_port()
        daemon.must("create", "cache", "master", "--tls-port", str(port), "--tls-cert-file", other.cert,
                    "--tls-key-file", other.key, "--tls-auth-clients", "no", "-s")
        self.assertEqual(replica("REPLICAOF", "127.0.0.1", port), "+OK")
        eventually(lambda: f"{port} by TLS (tls-replication)" in daemon.must("logs", "replica"), "the reason")
        self.assertEqual(replica.info("replication")["master_link_status"], "down")
        # Nor one that does not speak TLS, whatever it is sent.
        self.assertEqual(replica("CONFIG", "SET", "masterauth", "secret"), "+OK")
        with socket.create_server(("127.0.0.1", 0)) as plain:
            plain.settimeout(harness.DEADLINE_S)
            port = plain.getsockname()[1]
            self.assertEqual(replica("REPLICAOF", "127.0.0.1", port), "+OK")
            for _ in range(2):
                peer, _ = plain.accept()
                with peer:
                    peer.settimeout(harness.DEADLINE_S)
                    told = peer.recv(65536)
                    peer.sendall(b"-NOAUTH Authentication required.\r\n")
                    while more := peer.recv(65536):
                        told += more
                self.assertTrue(told.startswith(b"\x16\x03"), "a ClientHello (RFC 8446, section 5.1)")
                self.assertNotIn(b"secret", told)
            eventually(lambda: f"{port} by TLS (tls-replication)" in daemon.must("logs", "replica"), "the reason")


@harness.on_each_backend
class AmongCaches(Replication):
    def test_a_command_that_fails_on_the_replica_is_counted_and_logged(self):
        daemon = self.daemon()
        master = self.cache(daemon, "db")
        replica = self.cache(daemon, "replica")
        self.replicate(replica, master)
        self.assertEqual(replica.info("stats")["unexpected_error_replies"], "0")
        self.assertEqual(replica("CONFIG", "SET", "replica-read-only", "no"), "+OK")
        replica("SET", "a", "of another type")
        for _ in range(3):
            master("RPUSH", "a", "b")
        eventually(lambda: replica.info("stats")["unexpected_error_replies"] == "3", "the errors")
        logged = f"a command of the master 127.0.0.1:{master.port} failed here"
        eventually(lambda: logged in daemon.must("logs", "replica"), "the message")
        self.assertEqual(daemon.must("logs", "replica").count(logged), 1)
        self.assertEqual(replica.info("replication")["master_link_status"], "up")

    def test_config_rewrite_keeps_the_master(self):
        daemon = self.daemon()
        master = self.cache(daemon, "master")
        replica = self.cache(daemon, "replica", "--replicate", f"127.0.0.1:{master.port}",
                              "--replicate-password", "unused")
        self.assertEqual(replica("REPLICAOF", "NO", "ONE"), "+OK")
        self.assertEqual(replica("CONFIG", "REWRITE"), "+OK")
        options = daemon.show("replica")["options"]
        self.assertNotIn("replicate", options)
        daemon.must("stop", "replica")
        daemon.must("start", "replica")
        replica = client_of(self, replica.port)
        self.assertEqual(replica("ROLE")[0], b"master")
        self.assertEqual(replica("CONFIG", "GET", "masterauth"), [b"masterauth", b"unused"])
        self.assertEqual(replica("REPLICAOF", "127.0.0.1", master.port), "+OK")
        self.assertEqual(replica("CONFIG", "REWRITE"), "+OK")
        daemon.must("stop", "replica")
        daemon.must("start", "replica")
        replica = client_of(self, replica.port)
        self.assertEqual(replica("ROLE")[:3], [b"slave", b"127.0.0.1", master.port])

    def test_a_replica_that_acknowledges_nonsense(self):
        master = self.cache(self.daemon(), "master")
        other = self.cache(self.daemon(), "other")
        # Only the writes here go into the stream.
        self.assertEqual(master("CONFIG", "SET", "repl-ping-replica-period", "3600"), "+OK")
        master("SET", "a", "1")
        stranger = Stranger(self, master.port)
        self.assertTrue(stranger.ask("?", "-1").startswith("+FULLRESYNC"))
        stranger.take_copy()

        def acknowledged():
            found = re.search(r"offset=(\d+)", master.info("replication").get("slave0", ""))
            return int(found.group(1)) if found else None

        def end():
            return int(master.info("replication")["master_repl_offset"])
        # Redis believes it, and counts it for what is written later; a cache believes what it has sent.
        for much in (end() + 10**12, 2**63 - 1):
            stranger.acknowledge(much)
            eventually(lambda: acknowledged() == end(), "what was sent to be acknowledged")
            master("SET", "a", "2")
            self.assertEqual(master("WAIT", "1", "50"), 0)
        # Invalid offsets, and lower ones than before, change nothing.
        before = acknowledged()
        for words in (("0",), ("1",), ("-1",), (-2**63,), (2**64,), ("9" * 1000,), ("x",), ("",), (b"\0\xff",),
                      ("1.5",), ("1", "FACK", "x"), ("1", "FACK", 2**63 - 1), ("x", "FACK", "x")):
            stranger.acknowledge(*words)
            self.assertEqual(master("SET", "a", "3"), "+OK")
        self.assertEqual(acknowledged(), before)
        self.assertEqual(master("WAITAOF", "0", "1", "50"), [0, 0])
        # A replica that would need a reply is closed, as Redis does.
        stranger.acknowledge()
        eventually(lambda: master.info("replication")["connected_slaves"] == "0", "it is closed")
        # Others are served, and replicate.
        self.replicate(other, master)
        have_same_data(master, other)
        self.assertGreaterEqual(master("WAIT", "1", "10000"), 1)
        self.assertEqual(other("GET", "a"), b"3")
        other("REPLICAOF", "NO", "ONE")
        eventually(lambda: master.info("replication")["connected_slaves"] == "0", "its link to end")
        # Another replica by hand, which acknowledges as often as a real one, is counted.
        honest = Stranger(self, master.port)
        self.assertTrue(honest.ask("?", "-1").startswith("+FULLRESYNC"))
        honest.take_copy()
        master("SET", "a", "4")

        def counted():
            honest.acknowledge(end())
            return master("WAIT", "1", "50") == 1
        eventually(counted, "its acknowledgement to count")

    def test_a_replica_that_does_not_read_is_closed(self):
        daemon = self.daemon()
        master = self.cache(daemon, "master")
        self.assertEqual(master("CONFIG", "SET", "client-output-buffer-limit",
                                "replica 2mb 0 0", "repl-backlog-size", "100kb"), "+OK")
        lazy = Client(master.port)
        self.addCleanup(lazy.close)
        lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy("REPLCONF", "capa", "eof", "capa", "psync2")
        lazy.send("PSYNC", "?", "-1")
        eventually(lambda: master.info("replication")["connected_slaves"] == "1", "its link")
        before = daemon.resident_kib()
        value = "x" * 100_000
        for _ in range(300):
            master("SET", "a", value)
        eventually(lambda: master.info("replication")["connected_slaves"] == "0", "it is closed")
        if not harness.sanitized():
            self.assertLess(daemon.resident_kib() - before, 40_000)
        self.assertEqual(master.info("stats")["client_output_buffer_limit_disconnections"], "1")


if __name__ == "__main__":
    harness.main()
