#!/usr/bin/env python3
"""Real sentinels that watch caches: a master that dies or is cut off is replaced, what was
acknowledged by WAIT is kept, and the old one comes back as a replica.

Failovers take as long as sentinels take, and these distrust a machine that stalls: EDDY_FAILOVERS=20 runs
so many in a row. Without it only the cut link is tried.
"""

import os
import shutil
import subprocess

import harness
from cache_client import Client, client_of
from harness import eventually, free_port

FAILOVERS = int(os.environ.get("EDDY_FAILOVERS", "0"))
SENTINELS = 3
CACHES = 3
# One is enough, as it is the sentinels that take the time.
BACKEND = os.environ.get("EDDY_BACKEND", "auto")


def local():
    """The address of no server yet: (port, host), as Client takes it."""
    return free_port(), "127.0.0.1"


class Node:
    """A cache in a daemon of its own, which can be killed; maybe in a network namespace."""

    def __init__(self, test, place, namespace=None):
        self.test = test
        self.place = place
        self.prefix = ["ip", "netns", "exec", namespace] if namespace else []
        self.daemon = harness.Daemon(backend=test.backend, folder=test.folder())
        command = self.daemon.command
        self.daemon.command = lambda: [*self.prefix, *command()]
        test.addCleanup(self.end)
        self.daemon.start()
        port, host = place
        self.daemon.must("create", "cache", "db", "-p", str(port), "--bind", host, "--mode", "admin",
                         "--protected-mode", "no", "-s")

    def client(self):
        return client_of(self.test, *self.place)

    def configure(self, *words):
        """By CONFIG SET."""
        client = self.client()
        self.test.assertEqual(client("CONFIG", "SET", *words), "+OK")
        client.close()

    def follow(self, place):
        client = self.client()
        self.test.assertEqual(client("REPLICAOF", place[1], place[0]), "+OK")
        client.close()

    def ask_at_home(self, *words):
        """The reply as redis-cli prints it, which runs in the node's namespace: no cut keeps it out."""
        port, host = self.place
        done = subprocess.run([*self.prefix, "redis-cli", "-h", host, "-p", str(port), *words],
                              stdout=subprocess.PIPE, check=True, timeout=harness.DEADLINE_S)
        return done.stdout.decode().strip()

    def kill(self):
        self.daemon.kill()

    def come_back(self):
        self.daemon.start()

    def end(self):
        if self.daemon.process is not None:
            self.daemon.stop()


def answer_of(place, *words):
    """The reply, or None without a server."""
    try:
        client = Client(*place, timeout_s=5)
    except OSError:
        return None
    try:
        return client(*words)
    except OSError:
        return None
    finally:
        client.close()


class Watched(harness.EddyTest):
    """Base of the tests with sentinels."""

    backend = BACKEND

    def setUp(self):
        if FAILOVERS == 0:
            self.skipTest("takes a minute: EDDY_FAILOVERS=2 runs it")
        if shutil.which("redis-server") is None:
            self.skipTest("redis-server, which is sentinel as well, is not installed")
        super().setUp()

    def start_sentinels(self, master, host="127.0.0.1"):
        """Their places."""
        places = []
        for _ in range(SENTINELS):
            port = free_port()
            path = os.path.join(self.folder(), "sentinel.conf")
            # After a new master is announced to a sentinel, it may take a second, its pause between attempts to
            # connect, before it asks it: with 1000 it took that one for dead, too, and replaced it at once.
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"port {port}\nbind {host}\nprotected-mode no\ndir {os.path.dirname(path)}\n"
                           f"sentinel monitor db {master[1]} {master[0]} 2\n"
                           "sentinel down-after-milliseconds db 3000\n"
                           "sentinel failover-timeout db 6000\n"
                           "sentinel parallel-syncs db 2\n")
            process = subprocess.Popen(["redis-server", path, "--sentinel"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            places.append((port, host))
        return places

    @staticmethod
    def master_of(sentinel):
        told = answer_of(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "db")
        return (int(told[1]), told[0].decode()) if isinstance(told, list) else None

    def agreed(self, sentinels, place):
        eventually(lambda: {self.master_of(s) for s in sentinels} == {place}, "the sentinels to agree", 120)
        self.has_role(place, b"master")

    def promoted(self, sentinels, lost):
        """The master in the place of a lost one, as soon as all sentinels agree."""
        chosen = eventually(lambda: next(
            (each for each in {self.master_of(s) for s in sentinels}
             if each not in (None, lost)), None), "another master", 120)
        self.agreed(sentinels, chosen)
        return chosen

    def fail_over(self, sentinels, to):
        """As an operator asks for it, once the sentinel that is asked would choose the replica."""
        def may_lead():
            for flat in answer_of(sentinels[0], "SENTINEL", "REPLICAS", "db"):
                told = {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}
                if (int(told["port"]), told["ip"]) == to:
                    return (told["flags"] == told["role-reported"] == "slave" and
                            told["master-link-status"] == "ok")
            return False
        eventually(may_lead, "the sentinel to see a replica that may lead", 120)

        def leads():
            if {self.master_of(each) for each in sentinels} == {to}:
                return True
            # It gives up what takes it too long on a busy machine; then the operator asks again.
            if "failover_in_progress" not in self.state_of(sentinels[0]).get("flags", ""):
                answer_of(sentinels[0], "SENTINEL", "FAILOVER", "db")
            return False
        eventually(leads, "the sentinels to agree", 240)
        self.has_role(to, b"master")

    @staticmethod
    def state_of(sentinel):
        flat = answer_of(sentinel, "SENTINEL", "MASTER", "db")
        if not isinstance(flat, list):
            return {}
        return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}

    def everybody_knows(self, sentinels, replicas):
        def known():
            for each in sentinels:
                told = self.state_of(each)
                if (told.get("num-other-sentinels") != str(SENTINELS - 1) or
                        told.get("num-slaves") != str(replicas) or
                        told.get("flags") != "master"):
                    return False
            return True
        eventually(known, "the sentinels to know each other and all caches", 120)

    def write_acknowledged(self, place, number):
        """Writes until something is acknowledged by a replica; returns the number."""
        def attempt():
            try:
                client = Client(*place, timeout_s=10)
            except OSError:
                return False
            try:
                return (client("SET", f"kept {number}", number) == "+OK" and
                        client("WAIT", "1", "5000") >= 1)
            except (OSError, TypeError):
                return False
            finally:
                client.close()
        eventually(attempt, "an acknowledged write", 120)

    @staticmethod
    def has_role(place, role):
        """Asks by new connections: a sentinel that changes a role closes the existing ones."""
        def has_it():
            told = answer_of(place, "ROLE")
            return isinstance(told, list) and told[0] == role
        eventually(has_it, f"the role {role.decode()}", 120)

    def has_kept(self, promoted, number):
        """All that was acknowledged so far."""
        for old in range(number + 1):
            self.assertEqual(promoted("GET", f"kept {old}"), str(old).encode())

    def follows(self, node, master):
        """A client of a node that was the master, as soon as it has got the data of the next one."""
        self.has_role(node.place, b"slave")
        client = node.client()
        eventually(lambda: client.info("replication").get("master_link_status") == "up", "its link", 120)
        told = client.info("replication")
        # Its log shows whether a sentinel sent it elsewhere, or it began so.
        self.assertEqual((int(told["master_port"]), told["master_host"]), master,
                         node.daemon.must("logs", "db"))
        return client


class Sentinels(Watched):
    def test_a_master_that_dies_is_replaced(self):
        places = [local() for _ in range(CACHES)]
        nodes = {place: Node(self, place) for place in places}
        for place in places[1:]:
            nodes[place].follow(places[0])
        sentinels = self.start_sentinels(places[0])
        self.everybody_knows(sentinels, CACHES - 1)
        master = places[0]
        for number in range(FAILOVERS):
            self.write_acknowledged(master, number)
            nodes[master].kill()
            chosen = self.promoted(sentinels, master)
            promoted = nodes[chosen].client()
            self.has_kept(promoted, number)
            nodes[master].come_back()
            old_master = self.follows(nodes[master], chosen)
            eventually(lambda: old_master("GET", f"kept {number}") == str(number).encode(),
                       "its data", 120)
            for client in (promoted, old_master):
                client.close()
            master = chosen
            self.everybody_knows(sentinels, CACHES - 1)

    def test_a_planned_failover(self):
        places = [local() for _ in range(2)]
        nodes = {place: Node(self, place) for place in places}
        nodes[places[1]].follow(places[0])
        sentinels = self.start_sentinels(places[0])
        self.everybody_knows(sentinels, 1)
        self.write_acknowledged(places[0], 1)
        self.fail_over(sentinels, places[1])
        for client in (nodes[places[1]].client(), self.follows(nodes[places[0]], places[1])):
            self.assertEqual(client("GET", "kept 1"), b"1")


class Network(harness.EddyTest):
    """A network namespace at the end of a link that can be cut."""

    backend = BACKEND

    def setUp(self):
        super().setUp()
        if not harness.is_root() or shutil.which("ip") is None:
            self.skipTest("network namespaces need root and iproute2")
        if shutil.which("redis-cli") is None:
            self.skipTest("redis-cli, which asks within the namespace, is not installed")
        self.name = f"eddy{os.getpid()}"
        made = subprocess.run(["ip", "netns", "add", self.name], stderr=subprocess.PIPE,
                              check=False)
        if made.returncode != 0:
            self.skipTest(f"no network namespace here: {made.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.name], check=False)
        octet = os.getpid() % 250
        self.outer, self.inner, self.second = (f"10.211.{octet}.{i}" for i in (1, 2, 3))
        self.link = f"ed{os.getpid()}"
        # The kernel takes its time with a namespace's end, and the next test's link has the same name.
        self.addCleanup(subprocess.run, ["ip", "link", "del", self.link], stderr=subprocess.DEVNULL,
                        check=False)
        for words in (f"link add {self.link} type veth peer name {self.link}i",
                      f"link set {self.link}i netns {self.name}",
                      f"addr add {self.outer}/24 dev {self.link}",
                      f"addr add {self.second}/24 dev {self.link}",
                      f"link set {self.link} up",
                      f"netns exec {self.name} ip addr add {self.inner}/24 dev {self.link}i",
                      f"netns exec {self.name} ip link set {self.link}i up",
                      f"netns exec {self.name} ip link set lo up"):
            done = subprocess.run(["ip", *words.split()], stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                self.skipTest(f"no veth pair here: {done.stderr.decode().strip()}")

    def cut(self):
        subprocess.run(["ip", "link", "set", self.link, "down"], check=True)

    def heal(self):
        subprocess.run(["ip", "link", "set", self.link, "up"], check=True)

    def node_inside(self):
        return Node(self, (free_port(), self.inner), self.name)

    def node_outside(self, host):
        return Node(self, (free_port(), host))


class Partition(Network):
    """The master's network is cut: it continues alone, and has replicas again when the cut is healed."""

    def setUp(self):
        super().setUp()
        self.inside, self.outside = self.node_inside(), self.node_outside(self.outer)
        self.master, self.replica = self.inside.client(), self.outside.client()
        self.inside.configure("repl-diskless-sync-delay", "0")
        self.outside.follow(self.inside.place)
        eventually(lambda: self.replica.info("replication")["master_link_status"] == "up", "the first copy")
        self.master("SET", "a", "1")
        eventually(lambda: self.replica("GET", "a") == b"1", "the key")
        # Not before, as that copy may take a slow machine longer. It holds for a wait that has begun.
        for each in (self.inside, self.outside):
            each.configure("repl-timeout", "2", "repl-ping-replica-period", "1")

    def test_a_cut_link_times_out_and_goes_on_where_it_was(self):
        self.cut()
        eventually(lambda: self.replica.info("replication")["master_link_status"] == "down",
                   "the loss to be noticed")
        self.heal()
        master = self.inside.client()
        master("SET", "a", "2")
        eventually(lambda: self.replica("GET", "a") == b"2", "the change")
        self.assertEqual(master.info("stats")["sync_full"], "1")

    def test_a_master_without_replicas_refuses_writes_if_told_so(self):
        self.inside.configure("min-replicas-to-write", "1", "min-replicas-max-lag", "2")
        eventually(lambda: self.master("SET", "a", "2") == "+OK", "a replica that is near enough")
        self.cut()
        eventually(lambda: self.inside.ask_at_home("SET", "a", "3").startswith("NOREPLICAS"), "the refusal")
        self.heal()
        master = self.inside.client()
        eventually(lambda: master("SET", "a", "4") == "+OK", "the replica to be back")
        eventually(lambda: self.replica("GET", "a") == b"4", "the change")


class WatchedPartition(Watched, Network):
    """Sentinels and replicas are on one side of the cut, the master alone on the other."""

    def test_a_master_that_is_cut_off_is_replaced_and_follows_once_it_is_back(self):
        inside = self.node_inside()
        # A replica connects from the first address: the second one's is known by what it announces.
        outside = [self.node_outside(host) for host in (self.outer, self.second)]
        outside[1].configure("replica-announce-ip", self.second, "replica-announce-port", outside[1].place[0])
        # An operator's failover goes to the one inside, so that it can be cut off again.
        inside.configure("replica-priority", "1")
        nodes = {node.place: node for node in (inside, *outside)}
        for node in outside:
            node.follow(inside.place)
        sentinels = self.start_sentinels(inside.place, self.outer)
        self.everybody_knows(sentinels, len(outside))
        told = answer_of(sentinels[0], "SENTINEL", "REPLICAS", "db")
        self.assertEqual({each[1].decode() for each in told},
                         {f"{host}:{port}" for port, host in (node.place for node in outside)})
        for number in range(FAILOVERS):
            if number > 0:
                self.fail_over(sentinels, inside.place)
                self.everybody_knows(sentinels, len(outside))
            self.write_acknowledged(inside.place, number)
            self.cut()
            chosen = self.promoted(sentinels, inside.place)
            self.assertEqual(inside.ask_at_home("ROLE").split()[0], "master")
            self.assertEqual(inside.ask_at_home("SET", "alone", str(number)), "OK")
            promoted = nodes[chosen].client()
            self.has_kept(promoted, number)
            self.assertEqual(promoted("SET", "meanwhile", number), "+OK")
            self.heal()
            old_master = self.follows(inside, chosen)
            self.has_kept(old_master, number)
            self.assertEqual(old_master.all([("GET", "meanwhile"), ("GET", "alone")]),
                             [str(number).encode(), None])
            for client in (promoted, old_master):
                client.close()
            self.everybody_knows(sentinels, len(outside))


if __name__ == "__main__":
    harness.main()
