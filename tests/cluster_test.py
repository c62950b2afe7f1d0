#!/usr/bin/env python3
"""Clusters of real daemons on one machine, over a folder: they find each other, proxies use the groups of all, and members
that are killed, stop, are upgraded or lose the folder."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import threading
import time

import harness
from harness import DEADLINE_S, eventually, free_port
from upgrade_test import Heir, adopt_orphans


class Requests:
    """GET requests to a port, one after the other on connections of their own, until it is closed."""

    def __init__(self, port):
        self.port, self.bodies, self.failures = port, [], []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *ignored):
        self.is_over.set()
        self.thread.join()

    def _run(self):
        while not self.is_over.is_set():
            try:
                self.bodies.append(get(self.port))
            except (OSError, AssertionError, http.client.HTTPException) as failure:
                self.failures.append(repr(failure))
            time.sleep(0.002)


def get(port, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode()
        if response.status != 200:
            raise AssertionError(f"status {response.status}: {body}")
        return body


class ClusterTest(harness.EddyTest):
    def setUp(self):
        self.parent = self.folder()
        self.shared = os.path.join(self.parent, "cluster")
        os.mkdir(self.shared)

    def flags(self, name, *more):
        return ["--name", name, "--cluster", self.shared, "--advertise", "127.0.0.1", *more]

    def member(self, name, *more, **options):
        return self.daemon(flags=self.flags(name, *more), **options)

    def site(self, daemon, name="web", group="front", text=None):
        """A site that serves its own name, or `text`."""
        root = os.path.join(daemon.folder, name)
        os.makedirs(root, exist_ok=True)
        with open(os.path.join(root, "index.html"), "w", encoding="ascii") as file:
            file.write(text or name)
        port = free_port()
        daemon.must("create", "http", name, "-p", str(port), "--root", root, "--group", group, "-s")
        return port

    def proxy(self, daemon, backend="@front", *more, name="px"):
        port = free_port()
        daemon.must("create", "proxy", name, "-p", str(port), "--protocol", "http", "--backend", backend, "-s", *more)
        return port

    def names(self, daemon):
        return [each["name"] for each in daemon.json("cluster", "ls")["members"]]

    def await_members(self, daemon, *names):
        eventually(lambda: self.names(daemon) == list(names), f"the members are {names}")

    def backends(self, daemon, group="front"):
        """MEMBER/NAME of the running ones."""
        return sorted(f"{each['member']}/{each['name']}" for each in daemon.json("cluster", "ps", "@" + group)["runtimes"])

    def await_backends(self, daemon, *names, group="front"):
        eventually(lambda: self.backends(daemon, group) == list(names), f"the backends are {names}")

    def answers(self, port, count=8):
        return {get(port) for _ in range(count)}

    def try_get(self, port):
        try:
            return get(port).encode()
        except AssertionError:
            return None

    def upgrade(self, daemon):
        report = daemon.json("daemon", "--upgrade")
        before, daemon.process = daemon.process, Heir(report["pid"], daemon.process)
        self.assertEqual(before.wait(DEADLINE_S), 0)


@harness.on_each_backend
class Members(ClusterTest):
    def test_they_see_each_other(self):
        a, b = self.member("a", "--label", "left"), self.member("b")
        for daemon in (a, b):
            self.await_members(daemon, "a", "b")
        self.site(b)
        self.await_backends(a, "b/web")
        table = a.must("cluster", "ls").splitlines()
        self.assertEqual(table[0].split(), ["NAME", "HOST", "STATE", "RUNNING", "RUNTIMES", "CONNECTIONS", "LABEL", "VERSION",
                                            "STARTED"])
        self.assertEqual(table[1].split()[:7], ["a", "127.0.0.1", "this", "one", "0", "0", "0"])
        self.assertEqual(table[1].split()[7], "left")
        self.assertEqual(table[2].split()[:6], ["b", "127.0.0.1", "up", "1", "1", "0"])
        self.assertIn("web", a.must("cluster", "ps"))
        self.assertIn("front", a.must("cluster", "group"))
        self.assertEqual(a.must("cluster", "group", "@front"), a.must("cluster", "group", "front"))
        self.assert_refused(a.run("cluster", "group", "none"), 1, "\"none\"", "eddy cluster group")
        shown = a.json("cluster", "show", "b")
        self.assertEqual([each["name"] for each in shown["runtimes"]], ["web"])
        self.assert_refused(a.run("cluster", "show", "bb"), 1, "did you mean \"b\"")
        stats = a.json("cluster", "stats")
        self.assertEqual((stats["members"], stats["groups"], stats["runtimes"], stats["running"]), (2, 1, 1, 1))
        self.assertIn("2 members, 1 groups", a.must("cluster", "stats"))
        b.must("stop", "web")
        eventually(lambda: a.json("cluster", "ps")["runtimes"] == [], "it has stopped")
        self.assertEqual([each["status"] for each in a.json("cluster", "ps", "--all")["runtimes"]], ["stopped"])

    def test_a_daemon_in_no_cluster_says_so(self):
        daemon = self.daemon()
        for words in (["ls"], ["ps"], ["group"], ["show", "a"], ["stats"], ["watch"]):
            self.assert_refused(daemon.run("cluster", *words), 1, "is in no cluster", "--cluster DIR")
        self.assertEqual(daemon.request("GET", "/v1/cluster")[0], 404)

    def test_a_name_that_is_taken_is_refused(self):
        a = self.member("a")
        self.await_members(a, "a")
        second = harness.Daemon(folder=self.folder(), backend=self.backend, flags=self.flags("a"))
        self.assert_does_not_start(second, r"eddy daemon: .*\ba\b.*127\.0\.0\.1")
        self.assertEqual(self.names(a), ["a"])

    def test_flags_that_cannot_be(self):
        daemon = harness.Daemon(folder=self.folder())
        for flags, text in ((["--cluster", ""], "--cluster cannot be"), (["--cluster", "http://x"], "--cluster cannot be"),
                            (["--label", "x"], "--label goes with --cluster"),
                            (["--advertise", "x"], "--advertise goes with --cluster"),
                            (self.flags("a/b"), "--name"), (self.flags("a", "--label", "a b"), "--label"),
                            (["--name", "a", "--cluster", self.shared, "--advertise", "10.0.0.1:80"], "--advertise cannot be")):
            self.assert_refused(daemon.run("daemon", *flags), 1, text)

    def test_one_that_stops_leaves_at_once(self):
        a, b = self.member("a"), self.member("b")
        self.await_members(a, "a", "b")
        self.assertEqual(b.stop(), 0)
        self.await_members(a, "a")
        kinds = [json.loads(line)["event"] for line in
                 a.must("events", "--no-follow", "--filter", "type=member", "--json").splitlines()]
        self.assertEqual(kinds, ["joined", "leaving", "left"])

    def test_changes_are_followed(self):
        a, b = self.member("a"), self.member("b")
        self.await_members(a, "a", "b")
        self.site(b)
        self.await_backends(a, "b/web")
        b.must("edit", "web", "--group", "back")
        self.await_backends(a, "b/web", group="back")
        lines = [json.loads(line) for line in a.must("cluster", "watch", "--no-follow", "--json", "b/*").splitlines()]
        self.assertEqual([(each["event"], each["name"]) for each in lines if each["event"] in ("created", "edited")],
                         [("created", "b/web"), ("edited", "b/web")])
        self.assertIn('group: "front" -> "back"', a.must("cluster", "watch", "--no-follow"))


@harness.on_each_backend
class Proxies(ClusterTest):
    def test_a_group_of_another_member_is_served(self):
        a, b = self.member("a"), self.member("b")
        port = self.proxy(a)
        self.site(b, text="from b")
        eventually(lambda: b"from b" == self.try_get(port), "the proxy has found it")
        self.site(a, name="own", text="from a")
        eventually(lambda: self.answers(port) == {"from a", "from b"}, "both serve")
        self.assertEqual({each["labels"]["backend"] for each in a.json("stats", "px")["backend_requests_total"]}, {"own", "b/web"})
        b.must("edit", "web", "--group", "back")
        eventually(lambda: self.answers(port) == {"from a"}, "the group has changed")
        b.must("edit", "web", "--group", "front")
        eventually(lambda: self.answers(port) == {"from a", "from b"}, "it is back")
        a.must("edit", "px", "--drain-backend", "b/web")
        eventually(lambda: self.answers(port) == {"from a"}, "it is drained")

    def test_a_proxy_of_the_group_is_no_backend_of_itself(self):
        a, b = self.member("a"), self.member("b")
        port = self.proxy(a, "@front", "--group", "front")
        self.site(b, text="from b")
        eventually(lambda: self.try_get(port) == b"from b", "the proxy has found it")
        self.await_backends(b, "a/px", "b/web")
        self.assertEqual(self.answers(port, 20), {"from b"})

    def test_a_member_that_is_killed(self):
        a, b, c = self.member("a"), self.member("b"), self.member("c")
        port = self.proxy(a)
        self.site(b, text="from b")
        self.site(c, text="from c")
        eventually(lambda: self.try_get(port) is not None and self.answers(port) == {"from b", "from c"}, "both serve")
        with Requests(port) as load:
            b.kill()
            began = time.monotonic()
            self.await_members(a, "a", "c")
            print(f"a member that was killed was gone after {time.monotonic() - began:.2f} s")
            before = len(load.bodies)
            eventually(lambda: len(load.bodies) > before + 50, "requests go on")
        self.assertEqual(load.failures, [])
        self.assertEqual(set(load.bodies[before + 1:]), {"from c"})
        # Its name is free, and what ran there runs again.
        b.start()
        self.await_members(a, "a", "b", "c")
        eventually(lambda: self.answers(port) == {"from b", "from c"}, "it is back")

    def test_a_member_that_stops_is_drained_first(self):
        a, b, c = self.member("a"), self.member("b"), self.member("c")
        port = self.proxy(a, "@front", "--tries", "1")
        self.site(b, text="from b")
        self.site(c, text="from c")
        eventually(lambda: self.try_get(port) is not None and self.answers(port) == {"from b", "from c"}, "both serve")
        with Requests(port) as load:
            self.assertEqual(b.stop(), 0)
            before = len(load.bodies)
            eventually(lambda: len(load.bodies) > before + 20, "requests go on")
        self.assertEqual(load.failures, [], "not even without another try")

    def test_an_upgrade_is_no_end_of_a_member(self):
        adopt_orphans()
        a, b = self.member("a"), self.member("b")
        port = self.proxy(a)
        self.site(b, text="from b")
        eventually(lambda: self.try_get(port) == b"from b", "it serves")
        before = {name: a.json("cluster", "show", name) for name in "ab"}
        with Requests(port) as load:
            for daemon in (b, a):
                self.upgrade(daemon)
                count = len(load.bodies)
                eventually(lambda: len(load.bodies) > count + 50, "requests go on")
        self.assertEqual(load.failures, [])
        self.await_members(a, "a", "b")
        for name in "ab":
            after = a.json("cluster", "show", name)
            self.assertEqual((after["id"], after["started"]), (before[name]["id"], before[name]["started"]))
        for daemon in (a, b):
            self.assertEqual(daemon.must("events", "--no-follow", "--filter", "event=left"), "")
        # The new processes follow each other.
        self.site(a, name="late")
        self.await_backends(b, "a/late", "b/web")
        b.must("stop", "web")
        self.await_backends(a, "a/late")


@harness.on_each_backend
class Folder(ClusterTest):
    def test_a_folder_that_vanishes_and_comes_back(self):
        a, b = self.member("a"), self.member("b")
        port = self.proxy(a)
        self.site(b, text="from b")
        eventually(lambda: self.try_get(port) == b"from b", "it serves")
        away = self.shared + ".away"
        with Requests(port) as load:
            os.rename(self.shared, away)
            eventually(lambda: a.json("cluster", "ls")["stale"], "it is said")
            self.assertEqual(self.names(a), ["a", "b"])
            self.assertIn("as last known", a.must("cluster", "ls"))
            self.assertIn("as last known", a.must("cluster", "ps"))
            count = len(load.bodies)
            eventually(lambda: len(load.bodies) > count + 50, "requests go on")
            os.rename(away, self.shared)
            eventually(lambda: not a.json("cluster", "ls")["stale"], "it has healed")
            self.await_members(a, "a", "b")
            count = len(load.bodies)
            eventually(lambda: len(load.bodies) > count + 20, "requests go on")
        self.assertEqual(load.failures, [])
        self.site(a, name="late")
        self.await_backends(b, "a/late", "b/web")

    def test_a_daemon_serves_without_the_folder(self):
        shutil.rmtree(self.shared)
        with open(self.shared, "w", encoding="ascii"):
            pass
        refused = harness.Daemon(folder=self.folder(), backend=self.backend, flags=self.flags("a"))
        self.assert_does_not_start(refused, "eddy daemon: .*" + os.path.basename(self.shared))


class Etcd(ClusterTest):
    """Over a real etcd."""

    def setUp(self):
        super().setUp()
        if not shutil.which("etcd"):
            self.skipTest("there is no etcd")
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.words = ["etcd", "--data-dir", os.path.join(self.parent, "etcd"), "--listen-client-urls", client,
                      "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                      "--initial-cluster", "default=" + peer, "--log-level", "error"]
        self.shared = client.replace("http", "etcd")
        self.etcd = None
        self.addCleanup(self.end_etcd)

    def start_etcd(self):
        self.etcd = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def leases(self):
        connection = http.client.HTTPConnection(self.shared.removeprefix("etcd://"), timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request("POST", "/v3/lease/leases", "{}")
            return len(json.loads(connection.getresponse().read()).get("leases", []))

    def end_etcd(self):
        if self.etcd:
            self.etcd.kill()
            self.etcd.wait()

    def test_members_of_an_etcd_that_comes_and_goes(self):
        # Away at the start: the daemons serve, and join later.
        a, b = self.member("a"), self.member("b")
        self.assertTrue(a.json("cluster", "ls")["stale"])
        port = self.proxy(a)
        self.site(b, text="from b")
        self.start_etcd()
        eventually(lambda: self.try_get(port) == b"from b", "it serves")
        self.await_members(a, "a", "b")
        # The next renewal of its lease shows that the member lives; a start does not await that.
        second = harness.Daemon(folder=self.folder(), flags=self.flags("a")).begin()
        self.assertEqual(second.wait(), 2)
        self.assertRegex(second.read_log(), r"eddy daemon: .*\ba\b.*127\.0\.0\.1")
        with Requests(port) as load:
            self.end_etcd()
            eventually(lambda: a.json("cluster", "ls")["stale"], "it is said")
            self.assertEqual(self.names(a), ["a", "b"])
            count = len(load.bodies)
            eventually(lambda: len(load.bodies) > count + 50, "requests go on")
            self.start_etcd()
            eventually(lambda: not a.json("cluster", "ls")["stale"], "it has healed")
            self.await_members(a, "a", "b")
        self.assertEqual(load.failures, [])
        b.kill()
        began = time.monotonic()
        self.await_members(a, "a")
        print(f"a member of etcd that was killed was gone after {time.monotonic() - began:.2f} s")
        b.start()
        self.await_members(a, "a", "b")

    def test_an_upgrade_is_no_end_of_a_member(self):
        self.start_etcd()
        adopt_orphans()
        a, b = self.member("a"), self.member("b")
        self.await_members(a, "a", "b")
        self.upgrade(b)
        self.site(b)
        self.await_backends(a, "b/web")
        # The lease of the process before ends meanwhile.
        eventually(lambda: self.leases() == 2, "each member has one lease")
        self.assertEqual(a.must("events", "--no-follow", "--filter", "event=left"), "")


if __name__ == "__main__":
    harness.main()
