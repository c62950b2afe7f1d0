#!/usr/bin/env python3
"""Events of runtimes: `eddy events`, `eddy wait`, and GET /v1/events with readers that are slow, gone or come back."""

import json
import re
import socket
import subprocess

import harness
from flag_effects import FlagTest
from harness import Unix, eventually, free_port, line_of


# Events, more than the feed keeps and a socket holds, and few enough for the time that a reader has.
COUNT = 1700


class Follower:
    """An `eddy` command whose lines are read as they come."""

    def __init__(self, test, daemon, *words):
        self.process = subprocess.Popen([harness.BINARY, *words], env=daemon.environment(), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, bufsize=0)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def line(self):
        return line_of(self.process).decode()

    def event(self):
        return json.loads(self.line())


def follow(test, daemon, *words):
    """`eddy events --json` that has begun to follow."""
    before = daemon.metric("eddy_control_connections")
    follower = Follower(test, daemon, "events", "--json", *words)
    eventually(lambda: daemon.metric("eddy_control_connections") > before, "it follows")
    # The connection is there before the request is.
    return follower


def kept(daemon, *words):
    lines = daemon.must("events", "--no-follow", "--json", *words).splitlines()
    return [f"{each['event']} {each['name']}" for each in map(json.loads, lines)]


@harness.on_each_backend
class Events(FlagTest):
    def test_the_life_of_a_runtime(self):
        daemon = self.daemon(flags=["--drain", "0s"])
        port = self.create(daemon, "server", "a")
        daemon.must("edit", "a", "--max-connections", "5")
        daemon.must("edit", "a", "--max-line", "2k")
        daemon.must("edit", "a", "--group", "web")
        daemon.must("create", "server", "b", "-p", str(port), "-o", "a")
        self.assert_refused(daemon.run("start", "b"), 1, str(port))
        daemon.must("reload", "a")
        daemon.must("stop", "a")
        daemon.must("remove", "a")
        lines = [json.loads(line) for line in daemon.must("events", "--no-follow", "--json").splitlines()]
        self.assertEqual([f"{each['event']} {each['name']}" for each in lines],
                         ["created a", "started a", "edited a", "restarted a", "edited a", "edited a", "created b",
                          "failed b", "reloaded a", "stopped a", "removed a", "removed b"])
        self.assertEqual(lines[1]["detail"], f"on 127.0.0.1:{port}")
        self.assertEqual([each["detail"] for each in lines[2:6]],
                         ["--max-connections", "for --max-line", "--max-line", "--group"])
        self.assertIn(str(port), lines[7]["detail"])
        self.assertEqual((lines[7]["owner"], lines[6]["group"], lines[8]["group"]), ("a", "", "web"))
        numbers = [each["number"] for each in lines]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        text = daemon.must("events", "--no-follow", "a").splitlines()
        self.assertRegex(text[1], rf"^20\S+Z started   a \(server\) on 127\.0\.0\.1:{port}$")
        self.assertRegex(text[2], r"Z edited    a \(server\): --max-connections$")

    def test_a_restart_that_keeps_data_is_one_event(self):
        daemon = self.daemon()
        self.create(daemon, "cache", "db")
        daemon.must("edit", "db", "--threads", "2")
        self.assertEqual(kept(daemon), ["created db", "started db", "restarted db", "edited db"])

    def test_filters(self):
        daemon = self.daemon()
        for name, kind, group in (("a", "server", "web"), ("b", "cache", ""), ("c", "server", "")):
            daemon.must("create", kind, name, "-p", str(free_port()), "-g", group)
        daemon.must("start", "a", "b")
        daemon.must("edit", "c", "--owner", "a")
        daemon.must("start", "c")
        self.assertEqual(kept(daemon, "--filter", "type=server", "--filter", "event=started"), ["started a", "started c"])
        self.assertEqual(kept(daemon, "--filter", "event=started,edited", "b", "c"), ["started b", "edited c", "started c"])
        self.assertEqual(kept(daemon, "@web"), ["created a", "started a"])
        self.assertEqual(kept(daemon, "--filter", "group=web", "--filter", "event=created"), ["created a"])
        self.assertEqual(kept(daemon, "--filter", "owner=a"), ["edited c", "started c"])
        self.assertEqual(kept(daemon, "--filter", "name=[ab]", "--filter", "event=started"), ["started a", "started b"])
        self.assertEqual(kept(daemon, "--since", "2199-01-01"), [])
        self.assertEqual(kept(daemon, "--until", "1h"), [])
        self.assertEqual(len(kept(daemon, "--since", "1h")), 7)
        self.assert_refused(daemon.run("events", "--no-follow", "--filter", "event=exploded"), 1, "started")
        self.assert_refused(daemon.run("events", "--filter", "typ=x"), 1, 'did you mean "type"')
        self.assert_refused(daemon.run("events", "--since", "yesterday"), 1, "10m")
        self.assertEqual(daemon.must("events", "--no-follow", "a", "--format", "{event}/{{.Name}}").splitlines(),
                         ["created/a", "started/a"])
        self.assert_refused(daemon.run("events", "--format", "{colour}"), 1, "detail")

    def test_following(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        follower = follow(self, daemon, "--since", "1h")
        self.assertEqual(follower.event()["event"], "created")
        daemon.must("start", "a")
        self.assertEqual(follower.event()["event"], "started")
        daemon.must("remove", "-f", "a")
        self.assertEqual([follower.event()["event"] for _ in range(2)], ["stopped", "removed"])
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(follower.process.wait(harness.DEADLINE_S), 0, "it ends with the daemon")

    def test_until_ends_a_follower(self):
        daemon = self.daemon()
        follower = Follower(self, daemon, "events", "--until", "2020-01-01")
        self.assertEqual(follower.process.wait(harness.DEADLINE_S), 0)

    def test_degradation_is_an_event_while_somebody_follows(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "client", "c", "-t", f"127.0.0.1:{port}", "-s")
        follower = follow(self, daemon, "--since", "1h", "--filter", "event=degraded,recovered")
        degraded = follower.event()
        self.assertEqual(degraded["event"], "degraded")
        self.assertIn(str(port), degraded["detail"])
        self.create(daemon, "server", "s", port=port)
        self.assertEqual(follower.event()["event"], "recovered")

    def test_server_sent_events_go_on_behind_the_last_one(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        daemon.must("start", "a")

        def read_event(answer):
            fields = {}
            while (line := answer.readline().decode().rstrip("\n")) or not fields:
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
            return fields

        def ask(**headers):
            connection = Unix(daemon.socket)
            self.addCleanup(connection.close)
            connection.request("GET", "/v1/events?since=1h",
                               headers={"Accept": "text/event-stream", **headers})
            answer = connection.getresponse()
            self.assertEqual(answer.getheader("Content-Type"), "text/event-stream")
            return answer

        answer = ask()
        created = read_event(answer)
        self.assertEqual((created["event"], json.loads(created["data"])["name"]), ("created", "a"))
        self.assertEqual(read_event(ask(**{"Last-Event-ID": created["id"]}))["event"], "started")
        self.assertEqual(read_event(ask(**{"Last-Event-ID": "7"}))["event"], "created", "a number of another daemon")
        status, refused = daemon.request("GET", "/v1/events", headers={"Last-Event-ID": "x"})
        self.assertEqual(status, 400)
        self.assertIn("number", refused["error"]["message"])

    def test_a_reader_that_never_reads_holds_up_nothing_and_is_told_its_loss(self):
        daemon = self.daemon(flags=["--drain", "0s"])
        # Its reload is an event that costs no write to the disk.
        daemon.must("create", "http", "r", "-p", str(free_port()), "-g", "g" * 128, "--root", self.folder(), "-s")
        with daemon.raw() as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            idle.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b" 200 ", idle.recv(15))
            connection = Unix(daemon.socket)
            self.addCleanup(connection.close)
            for _ in range(COUNT):
                connection.request("POST", "/v1/runtimes/r/reload")
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(answer.status, 200)
            daemon.must("stop", "r")
            self.assertEqual(len(daemon.must("events", "--no-follow", "--json").splitlines()), 1000)
            seen = b""
            while b'"event":"stopped"' not in seen:
                piece = idle.recv(65536)
                self.assertTrue(piece)
                seen += piece
        lost = re.findall(rb'"count":(\d+),"event":"lost"', seen)
        self.assertTrue(lost, "it was told")
        self.assertEqual(sum(map(int, lost)) + seen.count(b'"event":"reloaded"'), COUNT)

    def test_events_need_http_1_1_to_be_followed(self):
        daemon = self.daemon()
        with daemon.raw() as client:
            client.sendall(b"GET /v1/events HTTP/1.0\r\n\r\n")
            self.assertIn(b"needs HTTP/1.1", harness.all_of(client))


class Wait(FlagTest):
    def begin(self, daemon, *words):
        before = daemon.metric("eddy_control_connections")
        waiting = Follower(self, daemon, "wait", *words)
        eventually(lambda: daemon.metric("eddy_control_connections") > before, "it waits")
        return waiting

    def status(self, waiting):
        status = waiting.process.wait(harness.DEADLINE_S)
        return status, waiting.process.stdout.read().decode(), waiting.process.stderr.read().decode()

    def test_wait_for_a_stop(self):
        daemon = self.daemon()
        for name in ("a", "b"):
            self.create(daemon, "server", name)
        waiting = self.begin(daemon, "a", "b")
        daemon.must("stop", "b")
        self.assertEqual(waiting.line(), "b stopped\n")
        daemon.must("remove", "-f", "a")
        self.assertIn(self.status(waiting)[:2], ((0, "a stopped\n"), (0, "a removed\n")))
        self.assertEqual(daemon.must("wait", "b"), "b stopped\n", "it is already")
        self.assert_refused(daemon.run("wait", "nobody"), 1, "nobody")
        self.assert_refused(daemon.run("wait", "no*"), 1, "no*")

    def test_wait_for_running_and_healthy(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "client", "c", "-t", f"127.0.0.1:{port}")
        waiting = self.begin(daemon, "c", "--for", "running")
        healthy = self.begin(daemon, "c", "--for", "healthy")
        daemon.must("start", "c")
        self.assertEqual(self.status(waiting)[:2], (0, "c running\n"))
        self.create(daemon, "server", "s", port=port)
        self.assertEqual(self.status(healthy)[:2], (0, "c healthy\n"))

    def test_a_failure_ends_it(self):
        daemon = self.daemon()
        port = self.create(daemon, "server", "a")
        daemon.must("create", "server", "b", "-p", str(port))
        waiting = self.begin(daemon, "b", "--for", "running")
        self.assertEqual(daemon.run("start", "b").status, 1)
        status, out, err = self.status(waiting)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("b failed: ", err)

    def test_wait_for_a_removal_and_timeouts(self):
        daemon = self.daemon()
        self.create(daemon, "server", "a")
        self.assert_refused(daemon.run("wait", "a", "--timeout", "30ms"), 1, "a is running still")
        self.assertEqual(json.loads(daemon.run("wait", "a", "--timeout", "30ms", "--json").out),
                         [{"name": "a", "status": "running", "done": False}])
        self.assert_refused(daemon.run("wait", "a", "--for", "breakfast"), 1, "healthy")
        self.assertEqual(daemon.must("wait", "gone", "--for", "removed"), "")
        waiting = self.begin(daemon, "*", "--for", "removed")
        daemon.must("remove", "-f", "a")
        self.assertEqual(self.status(waiting)[:2], (0, "a removed\n"))

    def test_the_end_of_the_daemon_ends_it(self):
        daemon = self.daemon()
        self.create(daemon, "server", "a")
        waiting = self.begin(daemon, "a", "--for", "removed")
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(self.status(waiting)[0], 2)


if __name__ == "__main__":
    harness.main()
