#!/usr/bin/env python3
"""FAILOVER between caches, real Redis and Valkey servers while clients write: nothing is lost."""

import os
import signal
import threading
import time

import harness
from cache_client import Client, Redis, client_of
from harness import eventually
from replication_test import Replication, have_same_data

WRITERS = 4


class Writer(threading.Thread):
    """Sets one key after the other, at whichever server accepts it, until it is stopped."""

    def __init__(self, number, ports):
        super().__init__()
        self.number, self.ports = number, ports
        self.written, self.refused, self.longest_s = 0, 0, 0.0
        self.stops = threading.Event()
        self.trouble = None

    def run(self):
        clients = [Client(port) for port in self.ports]
        at = 0
        try:
            while not self.stops.is_set():
                before = time.monotonic()
                reply = clients[at]("SET", f"{self.number}:{self.written}", "v")
                self.longest_s = max(self.longest_s, time.monotonic() - before)
                if reply == "+OK":
                    self.written += 1
                elif reply.startswith("-READONLY"):
                    self.refused += 1
                    at = 1 - at
                else:
                    raise AssertionError(reply)
        except (OSError, AssertionError) as error:
            self.trouble = error
        finally:
            for each in clients:
                each.close()


class Failover(Replication):
    def await_online(self, master):
        """A replica whose own link is up is online once its master has read that it loaded the copy."""
        eventually(lambda: "state=online" in master.info("replication").get("slave0", ""), "its replica is online")

    def hand_over(self, master, replica, *how):
        """FAILOVER from the one to the other, while many write."""
        master("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        self.await_online(master)
        master("FLUSHALL")
        writers = [Writer(number, (master.port, replica.port)) for number in range(WRITERS)]
        for each in writers:
            each.start()
        try:
            eventually(lambda: min(each.written for each in writers) > 100, "writes")
            self.assertEqual(master("FAILOVER", *how), "+OK")
            eventually(lambda: master.info("replication")["master_failover_state"] == "no-failover", "the end")
            self.assertEqual(master("ROLE")[:3], [b"slave", b"127.0.0.1", replica.port])
            self.assertEqual(replica("ROLE")[0], b"master")
            enough = [each.written + 100 for each in writers]
            eventually(lambda: all(each.written > least or each.trouble
                                   for each, least in zip(writers, enough)), "writes at the new master")
        finally:
            for each in writers:
                each.stops.set()
            for each in writers:
                each.join()
        for each in writers:
            self.assertIsNone(each.trouble)
            self.assertEqual(each.refused, 1, "one refusal tells where to go")
        self.assertEqual(replica("DBSIZE"), sum(each.written for each in writers))
        have_same_data(replica, master)
        # There was no full synchronization.
        self.assertEqual(replica.info("stats")["sync_full"], "0")
        self.assertEqual(replica.info("stats")["sync_partial_ok"], "1")


class BesideServers:
    """Needs Failover and the name of a `program`."""

    def pair(self):
        server = Redis(self, program=self.program)
        other, own = client_of(self, server.port), self.cache(self.daemon(), "db")
        return server, other, own

    def test_a_cache_takes_over(self):
        _, other, own = self.pair()
        self.replicate(own, other)
        self.hand_over(other, own, "TO", "127.0.0.1", own.port)

    def test_a_cache_fails_over(self):
        _, other, own = self.pair()
        self.replicate(other, own)
        self.hand_over(own, other)

    def test_one_that_does_not_answer_is_not_waited_for_longer_than_was_said(self):
        server, other, own = self.pair()
        self.replicate(other, own)
        self.await_online(own)
        os.kill(server.process.pid, signal.SIGSTOP)
        own("SET", "k", "v")
        self.assertEqual(own("FAILOVER", "TIMEOUT", "300"), "+OK")
        writer = client_of(self, own.port)
        writer.send("SET", "k", "w")
        self.assertEqual(own("GET", "k"), b"v")
        self.assertEqual(writer.reply(), "+OK")
        self.assertEqual(own("GET", "k"), b"w")
        self.assertEqual(own.info("replication")["master_failover_state"], "no-failover")
        self.assertEqual(own("ROLE")[0], b"master")
        os.kill(server.process.pid, signal.SIGCONT)
        have_same_data(own, other)


    def test_one_that_does_not_answer_is_given_the_lead_by_force(self):
        server, other, own = self.pair()
        self.replicate(other, own)
        self.await_online(own)
        os.kill(server.process.pid, signal.SIGSTOP)
        own("SET", "k", "v")
        self.assertEqual(own("FAILOVER", "TO", "127.0.0.1", other.port, "FORCE", "TIMEOUT", "300"), "+OK")
        writer = client_of(self, own.port)
        writer.send("SET", "k", "w")
        eventually(lambda: own.info("replication")["master_failover_state"] == "failover-in-progress", "the time")
        os.kill(server.process.pid, signal.SIGCONT)
        self.assertTrue(writer.reply().startswith("-READONLY"))
        self.assertEqual(other("ROLE")[0], b"master")
        self.assertEqual(own("ROLE")[:3], [b"slave", b"127.0.0.1", other.port])
        have_same_data(other, own)
        # A write that had reached it by then is there.
        self.assertIn(other("GET", "k"), (b"v", None))


@harness.on_each_backend
class BesideRedis(BesideServers, Failover):
    program = "redis-server"


@harness.on_each_backend
class BesideValkey(BesideServers, Failover):
    program = os.environ.get("EDDY_VALKEY", "valkey-server")


@harness.on_each_backend
class AmongCaches(Failover):
    def test_the_master_changes_there_and_back(self):
        daemon = self.daemon()
        first, second = self.cache(daemon, "first"), self.cache(daemon, "second")
        self.replicate(second, first)
        self.hand_over(first, second)
        self.assertEqual(first("CONFIG", "RESETSTAT"), "+OK")
        self.assertEqual(second("CONFIG", "RESETSTAT"), "+OK")
        self.hand_over(second, first, "TO", "127.0.0.1", first.port)
        told = daemon.must("logs", "second") + daemon.must("logs", "first")
        self.assertEqual(told.count("is master from now on"), 2)

    def test_a_replica_that_refuses_leaves_all_as_it_was(self):
        daemon = self.daemon()
        first, second = self.cache(daemon, "first"), self.cache(daemon, "second")
        self.replicate(second, first)
        self.await_online(first)
        # It does not let the master in.
        second("CONFIG", "SET", "requirepass", "secret")
        first("SET", "k", "v")
        self.assertEqual(first("FAILOVER"), "+OK")
        eventually(lambda: "given up" in daemon.must("logs", "first"), "the end")
        self.assertEqual(first("SET", "k", "w"), "+OK")
        self.assertEqual(first("ROLE")[0], b"master")
        second("AUTH", "secret")
        have_same_data(first, second)
        self.assertEqual(second.info("stats")["sync_full"], "0")

    def test_one_that_is_gone_leaves_all_as_it_was(self):
        daemon = self.daemon()
        first, second = self.cache(daemon, "first"), self.cache(daemon, "second")
        second("CONFIG", "SET", "replica-announce-port", "1")
        self.replicate(second, first)
        self.await_online(first)
        first("SET", "k", "v")
        self.assertEqual(first("FAILOVER"), "+OK")
        eventually(lambda: "cannot be reached" in daemon.must("logs", "first"), "the end")
        self.assertEqual(first("SET", "k", "w"), "+OK")
        have_same_data(first, second)


if __name__ == "__main__":
    harness.main()
