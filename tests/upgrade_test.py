"""Upgrades of the daemon under load: `eddy daemon --upgrade` with the same program as the new one. No connection is
refused, and no reply is lost.
"""

import ctypes
import http.client
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import harness
from harness import connect, eventually
from restart_test import Load
from shm_client import ShmClient
from streaming_load import hand_over

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """The daemon of an upgrade becomes this process's child when the one before has ended."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Heir:
    """A process that another one has left behind, with the methods of a subprocess.Popen."""

    def __init__(self, pid, before):
        self.pid, self.stdout, self.args, self.returncode = pid, before.stdout, before.args, None

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            except ChildProcessError:  # the one before has not ended
                pass
        return self.returncode

    def wait(self, timeout=harness.DEADLINE_S):
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.02)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class UpgradeTest(harness.EddyTest):
    def setUp(self):
        adopt_orphans()
        self.running = self.daemon(flags=("--drain", "2s"))
        self.before = []  # processes that have been upgraded
        self.addCleanup(self.end_all)

    def end_all(self):
        for each in self.before:
            if each.poll() is None:
                each.kill()
                each.wait(harness.DEADLINE_S)

    def port(self, *words):
        """Creates and starts a runtime at a port."""
        port = harness.free_port()
        self.running.must("create", *words, "-p", str(port), "-s")
        return port

    def upgrade(self, *words):
        """Returns what the command prints as JSON."""
        report = self.running.json("daemon", "--upgrade", *words)
        process = self.running.process
        self.assertEqual(report["pid_before"], process.pid)
        self.before.append(process)
        self.running.process = Heir(report["pid"], process)
        self.assertEqual(self.running.request("GET", "/v1/daemon")[1]["pid"], report["pid"])
        eventually(lambda: self.running.request("GET", "/v1/daemon")[1]["ready"], "it is ready")
        return report

    def await_end_of_before(self):
        for each in self.before:
            self.assertEqual(each.wait(harness.DEADLINE_S), 0)

    def upgrade_under(self, talk, times=3):
        with Load(talk) as load:
            load.await_more()
            for _ in range(times):
                self.upgrade()
                load.await_more()
            load.stop()
            self.assertEqual(load.failures[:5], [], f"of {load.done} conversations")

    def script(self, text):
        """An executable script."""
        path = os.path.join(self.folder(), "program")
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path


@harness.on_each_backend
class ServedTest(UpgradeTest):
    def test_no_request_to_a_site_fails(self):
        root = self.folder()
        with open(os.path.join(root, "f"), "wb") as file:
            file.write(b"x" * 100_000)
        port = self.port("http", "r", "--root", root)

        def talk(number, state):
            peer = state.get("peer")
            if peer is None:
                peer = state["peer"] = http.client.HTTPConnection("127.0.0.1", port, harness.DEADLINE_S)
            peer.request("GET", "/f")
            answer = peer.getresponse()
            body = answer.read()
            if answer.status != 200 or len(body) != 100_000:
                raise AssertionError(f"{answer.status} with {len(body)} bytes")
            # Some keep their connection until the site ends it, others take a new one each time.
            if answer.will_close or number % 2:
                state.clear()
                peer.close()

        self.upgrade_under(talk)
        self.assertEqual(self.running.show("r")["status"], "running")
        self.await_end_of_before()

    def test_kept_connections_see_no_end(self):
        root = self.folder()
        with open(os.path.join(root, "f"), "wb") as file:
            file.write(b"x" * 1000)
        site = self.port("http", "r", "--root", root)
        proxy = self.port("proxy", "p", "--protocol", "http", "--backend", "r", "--threads", "2")

        def ask(peer):
            peer.request("GET", "/f")
            answer = peer.getresponse()
            body = answer.read()
            if answer.status != 200 or len(body) != 1000 or answer.will_close:
                raise AssertionError(f"{answer.status}, {len(body)} bytes, {answer.getheaders()}")

        def fresh(port):
            peer = http.client.HTTPConnection("127.0.0.1", port, harness.DEADLINE_S)
            # It would connect anew without a word.
            peer.auto_open = False
            peer.connect()
            return peer

        def talk(number, state):
            if "peer" not in state:
                state["peer"] = fresh((site, proxy)[number % 2])
            ask(state["peer"])

        idle = [fresh(port) for port in (site, proxy) for _ in range(10)]
        for each in idle:
            self.addCleanup(each.close)
        for each in idle[::2]:
            ask(each)
        self.upgrade_under(talk)
        self.assertEqual(self.running.show("r")["status"], "running")
        for each in idle:
            ask(each)
        self.await_end_of_before()

    def test_a_kept_connection_that_is_busy_ends_with_its_response(self):
        root = self.folder()
        with open(os.path.join(root, "f"), "wb") as file:
            file.write(b"x" * 1000)
        port = self.port("http", "r", "--root", root)
        with connect(port) as peer:
            peer.sendall(b"GET /f HTTP/1.1\r\nHo")
            eventually(lambda: self.running.show("r")["connections"] == 1, "the client")
            self.upgrade()
            peer.sendall(b"st: x\r\n\r\n")
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += peer.recv(1)
            self.assertIn(b"HTTP/1.1 200 ", head)
            body = b""
            while len(body) < 1000:
                body += peer.recv(1000 - len(body))
            # The daemon of before may have been ready for it still.
            if b"Connection: close" not in head:
                peer.sendall(b"GET /f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(harness.all_of(peer)[-1000:], (b"", b"x" * 1000))
        self.await_end_of_before()

    def test_a_download_goes_on(self):
        root = self.folder()
        with open(os.path.join(root, "large"), "wb") as file:
            file.truncate(64 << 20)
        port = self.port("http", "r", "--root", root)
        with connect(port) as busy:
            busy.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = len(busy.recv(1))
            self.upgrade()
            with connect(port) as new:
                new.sendall(b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 404 ", harness.all_of(new))
            self.assertIsNone(self.before[0].poll())
            while more := busy.recv(1 << 20):
                got += len(more)
            self.assertGreater(got, 64 << 20)
        self.await_end_of_before()

    def test_no_client_of_a_server_is_refused(self):
        path = os.path.join(self.folder(), "s")
        self.running.must("create", "server", "r", "--unix", path, "--threads", "2", "-s")

        def talk(number, _):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)
                peer.settimeout(harness.DEADLINE_S)
                peer.sendall(b"client %d\n" % number)
                peer.shutdown(socket.SHUT_WR)
                harness.all_of(peer)

        self.upgrade_under(talk)
        self.await_end_of_before()
        self.assertTrue(os.path.exists(path))
        self.running.must("stop", "r")
        self.assertFalse(os.path.exists(path), "the file is the new daemon's")

    def test_no_connection_of_a_proxy_fails(self):
        backend = harness.free_port()
        other = self.daemon()
        other.must("create", "cache", "b", "-p", str(backend), "-s")
        port = self.port("proxy", "r", "--backend", f":{backend}")

        def talk(number, _):
            with connect(port) as peer:
                peer.sendall(b"PING\r\n" * 3)
                for _ in range(3):
                    if (line := harness.read_line(peer)) != "+PONG":
                        raise AssertionError(line)

        with connect(port) as held:
            self.upgrade_under(talk)
            held.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(held), "+PONG", "a connection of before goes on")
        self.await_end_of_before()

    def test_datagrams_go_on(self):
        port = self.port("server", "r", "--udp")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.connect(("127.0.0.1", port))
            for _ in range(3):
                for _ in range(10):
                    peer.send(b"x")
                self.upgrade()
            # A closed port would be an error of the next send.
            for _ in range(10):
                peer.send(b"x")
            eventually(lambda: self.running.json("stats", "r")["messages_in"] == 10, "they are the new daemon's")

    def test_shared_memory_beside_a_port(self):
        port = self.port("server", "r", "--shm")

        def talk(number, _):
            peer = ShmClient(f":{port}")
            peer.send(b"client %d\n" % number)
            peer.close()

        self.upgrade_under(talk)
        self.await_end_of_before()

    def test_the_port_that_the_kernel_chose_stays(self):
        self.running.must("create", "server", "r", "-p", "0", "-s")
        address = self.running.show("r")["address"]
        self.upgrade()
        self.assertEqual(self.running.show("r")["address"], address)

    def test_a_second_start_is_refused_and_a_stop_removes_the_socket(self):
        self.upgrade()
        self.await_end_of_before()
        self.assertTrue(os.path.exists(self.running.socket))
        second = harness.Daemon(backend=self.backend, folder=self.running.folder)
        self.assert_does_not_start(second, "another daemon .pid %d. uses" % self.running.pid)
        self.assertEqual(self.running.stop(), 0)
        self.assertFalse(os.path.exists(self.running.socket))

    def test_state_changes_go_on_in_the_new_daemon(self):
        self.upgrade()
        port = self.port("server", "fresh")
        connect(port).close()
        self.running.must("stop", "fresh")
        self.upgrade()
        self.assertEqual(self.running.show("fresh")["status"], "stopped")
        self.running.must("remove", "fresh")


def command(peer, *words):
    """Sends a command of RESP; returns the reply's line, or the value of a bulk reply."""
    peer.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in words))
    line = harness.read_line(peer)
    return harness.read_line(peer) if line.startswith("$") and line != "$-1" else line


@harness.on_each_backend
class CacheTest(UpgradeTest):
    def test_connections_go_on_and_each_command_is_executed_once(self):
        port = self.port("cache", "r")

        def talk(number, state):
            peer = state.get("peer")
            if peer is None:
                peer = state["peer"] = connect(port)
                state["count"] = Count(int(command(peer, b"INCRBY", b"n%d" % number, b"0")[1:]))
            state["count"].value += 1
            reply = command(peer, b"INCR", b"n%d" % number)
            if reply != f":{state['count'].value}":
                raise AssertionError(f"{reply} after {state['count'].value}")

        self.upgrade_under(talk, times=5)
        self.await_end_of_before()

    def test_pipelines_go_on(self):
        port = self.port("cache", "r", "--threads", "2")

        def talk(number, state):
            if "peer" not in state:
                state["peer"] = connect(port)
                state["count"] = Count(int(command(state["peer"], b"INCRBY", b"n%d" % number, b"0")[1:]))
            state["peer"].sendall(b"INCR n%d\r\n" % number * 100)
            for _ in range(100):
                state["count"].value += 1
                reply = harness.read_line(state["peer"])
                if reply != f":{state['count'].value}":
                    raise AssertionError(f"{reply} after {state['count'].value}")

        self.upgrade_under(talk)

    def test_one_that_takes_no_replies_does_not_hold_up_the_others(self):
        self.running = self.daemon(flags=("--drain", "600s"))
        port = self.port("cache", "db")
        with connect(port) as client, connect(port) as stalled:
            self.assertEqual(command(client, b"SET", b"big", b"x" * 3_000_000), "+OK")
            stalled.sendall(b"GET big\r\n" * 5)
            self.assertEqual(stalled.recv(1), b"$")
            self.upgrade()
            self.assertEqual(command(client, b"STRLEN", b"big"), ":3000000")

    def test_new_connections_wait(self):
        folder = self.folder()
        port = self.port("cache", "r", "--dir", folder)

        def talk(number, _):
            with connect(port) as peer:
                if (reply := command(peer, b"SET", b"k%d" % number, b"v")) != "+OK":
                    raise AssertionError(reply)

        self.upgrade_under(talk)

    def test_keys_and_state_of_clients(self):
        port = self.port("cache", "r")
        with connect(port) as one, connect(port) as waiting, connect(port) as subscriber:
            self.assertEqual(command(one, b"SELECT", b"3"), "+OK")
            self.assertEqual(command(one, b"CLIENT", b"SETNAME", b"mover"), "+OK")
            self.assertEqual(command(one, b"SET", b"key", b"x" * 100_000), "+OK")
            self.assertEqual(command(waiting, b"PING"), "+PONG")
            waiting.sendall(b"BLPOP list 0\r\n")
            subscriber.sendall(b"SUBSCRIBE c\r\n")
            self.assertTrue(subscriber.recv(1000))
            one.sendall(b"*2\r\n$3\r\nGET\r\n$3\r\nk")
            eventually(lambda: self.running.json("stats", "r")["messages_in"] >= 6, "all has arrived")
            report = self.upgrade()
            self.assertEqual(report["with_data"], ["r"])
            self.assertEqual(report["clients"], 3)
            one.sendall(b"ey\r\n")
            self.assertEqual(harness.read_line(one), "$100000")
            self.assertEqual(harness.read_line(one), "x" * 100_000)
            self.assertEqual(command(one, b"CLIENT", b"GETNAME"), "mover")
            self.assertEqual(command(one, b"SELECT", b"0"), "+OK")
            self.assertEqual(command(one, b"RPUSH", b"list", b"y"), ":1")
            self.assertEqual([harness.read_line(waiting) for _ in range(5)], ["*2", "$4", "list", "$1", "y"])
            self.assertEqual(command(one, b"PUBLISH", b"c", b"news"), ":1")
            self.assertEqual([harness.read_line(subscriber) for _ in range(7)][-1], "news")
        self.await_end_of_before()

    def test_a_client_that_left_is_seen_to_leave(self):
        port = self.port("cache", "r")
        with connect(port) as one:
            self.assertEqual(command(one, b"PING"), "+PONG")
            self.upgrade()
            self.assertEqual(command(one, b"QUIT"), "+OK")
            self.assertEqual(harness.all_of(one), b"", "the old daemon keeps no copy of it")


class Count:
    """A number in a client's state."""

    def __init__(self, value):
        self.value = value

    def close(self):
        pass


@harness.on_each_backend
class StreamTest(UpgradeTest):
    def begin(self):
        ours, theirs = socket.socketpair()
        ours.settimeout(harness.DEADLINE_S)
        with theirs:
            hand_over(self.path, socket.SOCK_SEQPACKET, b"{}", theirs.fileno())
        return ours

    def create(self, *flags):
        self.path = os.path.join(self.folder(), "s")
        self.running.must("create", "stream", "r", "--handoff", f"unix://{self.path}", *flags, "-s")

    def test_each_handoff_gets_its_whole_stream(self):
        self.create("--messages", "3", "--delay", "1ms")

        def talk(number, _):
            with self.begin() as client:
                answer = harness.all_of(client)
            if not answer.rstrip().endswith(b"[DONE]"):
                raise AssertionError(answer[-200:])

        self.upgrade_under(talk)
        self.await_end_of_before()
        self.running.must("stop", "r")
        self.assertFalse(os.path.exists(self.path), "the file is the new daemon's")

    def test_a_site_by_handoffs(self):
        self.path = os.path.join(self.folder(), "s")
        root = self.folder()
        with open(os.path.join(root, "f"), "wb") as file:
            file.write(b"x" * 1000)
        self.running.must("create", "http", "r", "--listen", f"handoff://{self.path}", "--root", root, "-s")

        def talk(number, _):
            with self.begin() as client:
                client.sendall(b"GET /f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                answer = harness.all_of(client)
            if b" 200 " not in answer:
                raise AssertionError(answer[:200])

        self.upgrade_under(talk)
        self.await_end_of_before()
        self.running.must("stop", "r")
        self.assertFalse(os.path.exists(self.path), "the file is the new daemon's")

    def test_a_stream_goes_on_to_its_end(self):
        self.create("--messages", "60", "--delay", "20ms")
        with self.begin() as client:
            self.assertTrue(client.recv(1))
            self.upgrade()
            self.assertTrue(harness.all_of(client).rstrip().endswith(b"[DONE]"))
        self.await_end_of_before()


@harness.on_each_backend
class ServerClientsTest(UpgradeTest):
    def test_clients_go_on(self):
        port = self.port("server", "r")
        with connect(port) as one, connect(port) as two:
            one.sendall(b"before\n")
            self.assertEqual(harness.read_line(two), "before")
            two.sendall(b"answer\nha")
            self.assertEqual(harness.read_line(one), "answer")
            self.upgrade()
            self.await_end_of_before()
            one.sendall(b"after\n")
            self.assertEqual(harness.read_line(two), "after")
            two.sendall(b"lf\n")
            self.assertEqual(harness.read_line(one), "half")
            with connect(port) as three:
                three.sendall(b"new\n")
                self.assertEqual(harness.read_line(one), "new")
                self.assertEqual(harness.read_line(two), "new")

    def test_no_line_is_lost(self):
        port = self.port("server", "r")
        stop = threading.Event()
        with connect(port) as sender, connect(port) as reader:
            sender.sendall(b"0\n")
            self.assertEqual(harness.read_line(reader), "0")
            sent = [0]

            def send():
                while not stop.is_set():
                    sent[0] += 1
                    sender.sendall(b"%d\n" % sent[0])
                    time.sleep(0.0005)
                sender.sendall(b"end\n")

            lines = []

            def read():
                while (line := harness.read_line(reader)) != "end":
                    lines.append(int(line))

            threads = [threading.Thread(target=each) for each in (send, read)]
            for each in threads:
                each.start()
            for _ in range(3):
                self.upgrade()
            stop.set()
            for each in threads:
                each.join(harness.DEADLINE_S)
            self.assertEqual(lines, list(range(1, sent[0] + 1)))


def running(argument):
    """Processes whose last argument is that."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{each}/cmdline", "rb") as file:
                if file.read().endswith(b"\0%s\0" % argument.encode()):
                    found.append(int(each))
        except OSError:
            pass
    return found


class NotifiedDaemon(harness.Daemon):
    """One of a service manager that listens at `n` in its folder."""

    def environment(self):
        return dict(super().environment(), NOTIFY_SOCKET=os.path.join(self.folder, "n"))


class WatchedDaemon(NotifiedDaemon):
    def environment(self):
        return dict(super().environment(), WATCHDOG_USEC="400000")


class ServiceTest(UpgradeTest):
    def test_a_service_manager_is_notified_of_each_new_process(self):
        folder = self.folder()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(os.path.join(folder, "n"))
            manager.settimeout(harness.DEADLINE_S)
            self.running = NotifiedDaemon(folder=folder)
            self.addCleanup(self.running.__exit__)
            self.running.start()
            for _ in range(2):
                report = self.upgrade()
                while b"MAINPID=" not in (said := manager.recv(4096)):
                    pass
                self.assertIn(f"MAINPID={report['pid']}\n".encode(), said)

    def test_each_report_is_of_the_process_that_is_the_service(self):
        """The manager refuses those of others, and its log has a line for each."""
        folder = self.folder()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            manager.bind(os.path.join(folder, "n"))
            manager.settimeout(harness.DEADLINE_S)
            self.running = WatchedDaemon(folder=folder)
            self.addCleanup(self.running.__exit__)
            self.running.start()
            main = self.running.pid
            for _ in range(2):
                report = self.upgrade()
                said = []
                # Ready, and the watchdog after that.
                while not (main == report["pid"] and "READY=1" in said and said[-1] == "WATCHDOG=1"):
                    text, control, _, _ = manager.recvmsg(4096, socket.CMSG_SPACE(12))
                    sender, _, _ = struct.unpack("3i", control[0][2])
                    lines = text.decode().split("\n")
                    self.assertEqual(sender, main, lines)
                    said += [each for each in lines if each in ("READY=1", "WATCHDOG=1")]
                    for each in lines:
                        if each.startswith("MAINPID="):
                            main, said = int(each.removeprefix("MAINPID=")), []

    def test_metrics_stay_at_their_port(self):
        port = harness.free_port()
        self.running = self.daemon(flags=("--metrics-port", str(port)))

        def talk(number, _):
            with connect(port) as peer:
                peer.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                if b"eddy_uptime_seconds" not in (answer := harness.all_of(peer)):
                    raise AssertionError(answer)

        self.upgrade_under(talk)

    def test_lists_go_on(self):
        def talk(number, _):
            status, answer = self.running.request("GET", "/v1/runtimes")
            if status != 200:
                raise AssertionError(answer)

        self.upgrade_under(talk)


@harness.on_each_backend
class ConsoleTest(UpgradeTest):
    def ask(self, connection, token, path="/v1/daemon"):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_its_port_and_token_stay(self):
        url = self.running.must("console").strip()
        port, token = int(url.split(":")[2].split("/")[0]), url.split("#")[1]
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
        self.addCleanup(kept.close)
        self.assertEqual(self.ask(kept, token)[1]["pid"], self.running.pid)

        def talk(number, _):
            fresh = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
            try:
                fresh.request("GET", "/")
                if (status := fresh.getresponse().status) != 200:
                    raise AssertionError(status)
            except ConnectionResetError:
                pass  # one of the daemon before
            except http.client.RemoteDisconnected:
                pass
            finally:
                fresh.close()

        self.upgrade_under(talk)
        self.await_end_of_before()
        self.assertEqual(self.running.must("console").strip(), url)
        # A connection of before has ended, so that no page shows a daemon that is no more.
        with self.assertRaises((http.client.HTTPException, OSError)):
            self.ask(kept, token)
        kept.close()
        self.assertEqual(self.ask(kept, token)[1]["pid"], self.running.pid)
        self.running.must("console", "--close")
        with self.assertRaises(ConnectionRefusedError):
            connect(port)

    def test_a_failed_upgrade_leaves_it(self):
        url = self.running.must("console").strip()
        self.assertIn("not upgraded", self.running.run("daemon", "--upgrade", "--with", self.script("exit 3\n")).err)
        port, token = int(url.split(":")[2].split("/")[0]), url.split("#")[1]
        fresh = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
        self.addCleanup(fresh.close)
        self.assertEqual(self.ask(fresh, token)[1]["pid"], self.running.pid)

    def test_events_end_and_are_followed_anew(self):
        with subprocess.Popen([harness.BINARY, "events"], env=self.running.environment(), stdout=subprocess.PIPE,
                              text=True) as follower:
            def heard():
                self.running.must("create", "server", "x", "-p", str(harness.free_port()))
                self.running.must("remove", "x")
                return select.select([follower.stdout], [], [], 0.05)[0]

            eventually(heard, "it follows")
            self.upgrade()
            # It may have begun to follow between the two.
            self.assertIn("x (server)", follower.stdout.read())
            self.assertEqual(follower.wait(harness.DEADLINE_S), 0)


@harness.on_each_backend
class CrashTest(UpgradeTest):
    """kill -9 of either process at any moment of an upgrade: the daemon that is started next has the whole state."""

    ROUNDS = int(os.environ.get("EDDY_UPGRADES", "6"))

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def children_of(self, pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                return [int(each) for each in file.read().split()]
        except OSError:
            return []

    def test_the_state_is_whole(self):
        folder = self.folder()
        port = self.port("cache", "db", "--dir", folder, "--appendonly", "yes", "--appendfsync", "always")
        self.port("server", "chat")
        job = str(100_000 + os.getpid())
        self.running.must("add", "sleep", "--name", "job", "-s", "--restart", "always", "--", job)
        stored = 0
        chance = random.Random(os.environ.get("EDDY_SEED", "1"))
        for turn in range(self.ROUNDS):
            with connect(port) as peer:
                self.assertEqual(command(peer, b"INCR", b"count"), f":{stored + 1}")
            stored += 1
            old = self.running.pid
            said = []
            upgrade = threading.Thread(target=self.upgrade_into, args=(said,))
            upgrade.start()
            new = eventually(lambda: self.children_of(old) or not upgrade.is_alive() and [0], "the new one")[0]
            time.sleep(chance.uniform(0, 0.3))
            kills_new = turn % 2 and new
            self.kill(new if kills_new else old)
            upgrade.join(harness.DEADLINE_S)
            if said[0].status == 0:
                new = json.loads(said[0].out)["pid"]
            # Both end, as with the machine.
            for pid in (old, new):
                if pid:
                    self.kill(pid)
            self.running.process.wait(harness.DEADLINE_S)
            if new:
                eventually(lambda: self.is_gone(new), "the end of the new one")
            self.running.process.stdout.close()
            self.running.log.close()
            self.running.start()
            self.assertEqual({name: each["status"] for name, each in self.running.list().items()},
                             {"db": "running", "chat": "running", "job": "running"})
            eventually(lambda: len(running(job)) == 1, "one process of the program")
            with connect(port) as peer:
                self.assertEqual(command(peer, b"GET", b"count"), str(stored))

    def upgrade_into(self, said):
        said.append(self.running.run("--json", "daemon", "--upgrade"))

    def is_gone(self, pid):
        try:
            return os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            return not os.path.exists(f"/proc/{pid}")


if __name__ == "__main__":
    harness.main()
