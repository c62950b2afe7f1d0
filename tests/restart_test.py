"""Reloads and edits under load: no client is refused, and no answer is cut, whatever the type.

Clients connect, talk and leave all the time while the options of their runtime change, also ones that need a restart.
Each failure of a client is kept with its step, so that one in thousands is seen.
"""

import http.client
import http.server
import os
import shutil
import socket
import threading

import harness
from harness import connect, eventually
from shm_client import ShmClient
from streaming_load import hand_over

CLIENTS = 4
# Conversations between two changes, so that each change has clients before, within and behind it.
BETWEEN_CHANGES = 40


class Load:
    """Threads that call `talk(client)` again and again until stop(), each with a number of its own."""

    def __init__(self, talk, count=CLIENTS):
        self.talk, self.failures, self.done, self.stopping = talk, [], 0, False
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(count)]

    def __enter__(self):
        for each in self.threads:
            each.start()
        return self

    def __exit__(self, *ignored):
        self.stop()

    def run(self, number):
        state = {}
        while not self.stopping:
            try:
                self.talk(number, state)
            except Exception as failure:  # pylint: disable=broad-except
                self.failures.append(repr(failure))
                state.clear()
            self.done += 1
        for each in state.values():
            each.close()

    def await_more(self, count=BETWEEN_CHANGES):
        goal = self.done + count
        eventually(lambda: self.done >= goal or self.failures, f"{count} more conversations")

    def stop(self):
        self.stopping = True
        for each in self.threads:
            each.join(harness.DEADLINE_S)


class RestartTest(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon(flags=("--drain", "2s"))
        self.port = harness.free_port()

    def change(self, load, name, *edits):
        """Each list of words is an edit; an empty one is a reload."""
        load.await_more()
        for words in edits:
            if words:
                self.running.must("edit", name, *words)
            else:
                self.running.must("reload", name)
            load.await_more()
        load.stop()
        self.assertEqual(load.failures[:5], [], f"of {load.done} conversations")


@harness.on_each_backend
class SiteTest(RestartTest):
    def test_no_request_fails(self):
        root, other = self.folder(), self.folder()
        for folder in (root, other):
            with open(os.path.join(folder, "f"), "wb") as file:
                file.write(b"x" * 100_000)
        log = os.path.join(root, "log")
        self.running.must("create", "http", "r", "-p", str(self.port), "--root", root, "--access-log", log, "-s")

        def talk(number, state):
            peer = state.get("peer")
            if peer is None:
                peer = state["peer"] = http.client.HTTPConnection("127.0.0.1", self.port, harness.DEADLINE_S)
            peer.request("GET", "/f")
            answer = peer.getresponse()
            body = answer.read()
            if answer.status != 200 or len(body) != 100_000:
                raise AssertionError(f"{answer.status} with {len(body)} bytes")
            # Some keep their connection until the site ends it, others take a new one each time.
            if answer.will_close or number % 2:
                state.clear()
                peer.close()

        with Load(talk) as load:
            self.change(load, "r", ["--root", other], ["--threads", "2"], ["--max-header", "32KiB"], [],
                        ["--idle-timeout", "5s"], ["--threads", "1"], ["--bind", "127.0.0.1", "--cache", "1M"],
                        ["--access-format", "json"])
        self.assertEqual(self.running.show("r")["status"], "running")

    def test_a_download_goes_on_beside_the_next_instance(self):
        root = self.folder()
        with open(os.path.join(root, "large"), "wb") as file:
            file.truncate(64 << 20)
        self.running.must("create", "http", "r", "-p", str(self.port), "--root", root, "-s")
        with connect(self.port) as busy:
            busy.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = len(busy.recv(1))
            said = self.running.run("edit", "r", "--root", self.folder())
            self.assertIn("it serves new clients at once", said.out + said.err)
            with connect(self.port) as new:
                new.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 404 ", harness.all_of(new))
            while more := busy.recv(1 << 20):
                got += len(more)
            self.assertGreater(got, 64 << 20)

    def test_an_edit_that_fails_leaves_it_as_it_was(self):
        root = self.folder()
        self.running.must("create", "http", "r", "-p", str(self.port), "--root", root, "-s")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            refused = self.running.run("edit", "r", "-p", str(taken.getsockname()[1]))
            self.assertNotEqual(refused.status, 0)
        with connect(self.port) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertIn(b"HTTP/1.1 ", harness.all_of(peer))

    def test_another_port_is_served_and_the_old_one_is_not(self):
        root, other = self.folder(), harness.free_port()
        self.running.must("create", "http", "r", "-p", str(self.port), "--root", root, "-s")
        self.running.must("edit", "r", "-p", str(other))
        connect(other).close()
        with self.assertRaises(ConnectionRefusedError):
            connect(self.port)


    def test_a_stop_gives_the_instance_before_its_time_too(self):
        root = self.folder()
        with open(os.path.join(root, "large"), "wb") as file:
            file.truncate(64 << 20)
        self.running.must("create", "http", "r", "-p", str(self.port), "--root", root, "-s")
        with connect(self.port) as busy:
            busy.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = len(busy.recv(1))
            self.running.must("edit", "r", "--index", "other.html")
            eventually(lambda: self.running.show("r")["connections"] == 1, "it is counted")
            stop = threading.Thread(target=self.running.must, args=("stop", "r"))
            stop.start()
            while more := busy.recv(1 << 20):
                got += len(more)
            stop.join(harness.DEADLINE_S)
            self.assertGreater(got, 64 << 20)

    def test_a_reload_has_the_instance_before_write_to_the_new_log_too(self):
        root = self.folder()
        log = os.path.join(root, "log")
        with open(os.path.join(root, "large"), "wb") as file:
            file.truncate(64 << 20)
        self.running.must("create", "http", "r", "-p", str(self.port), "--root", root, "--access-log", log, "-s")
        with connect(self.port) as busy:
            busy.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertTrue(busy.recv(1))
            self.running.must("edit", "r", "--index", "other.html")
            os.rename(log, log + ".1")
            self.running.must("reload", "r")
            while busy.recv(1 << 20):
                pass
        eventually(lambda: os.path.exists(log) and b"GET /large" in open(log, "rb").read(), "its line in the new log")


@harness.on_each_backend
class ServerTest(RestartTest):
    def test_a_socket_whose_file_is_gone_is_made_anew(self):
        path = os.path.join(self.folder(), "s")
        self.running.must("create", "server", "r", "--unix", path, "-s")
        for words in (["reload", "r"], ["edit", "r", "--max-line", "1000"]):
            os.remove(path)
            self.running.must(*words)
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)
        os.remove(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen()
            refused = self.running.run("edit", "r", "--max-line", "2000")
            self.assertIn("another program serves on", refused.err)

    def test_an_address_that_is_lost_is_shown_and_opened_again(self):
        folder = self.folder()
        path = os.path.join(folder, "s")
        self.running.must("create", "server", "r", "--unix", path, "-s")
        shutil.rmtree(folder)
        self.assertNotEqual(self.running.run("edit", "r", "--max-line", "1000").status, 0)
        shown = self.running.show("r")
        self.assertEqual(shown["status"], "running")
        self.assertIn(f"not listening on unix://{path}: ", shown["reason"])
        self.assertIn(f"r is running, but not listening on unix://{path}: ", self.running.run("ls", "r").err)
        self.assertEqual(self.running.metric("eddy_runtime_degraded", runtime="r", type="server"), 1)
        os.mkdir(folder)
        eventually(lambda: "reason" not in self.running.show("r"), "it listens again")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            eventually(lambda: self.running.show("r")["connections"] == 1, "it is served")
        self.assertEqual(self.running.metric("eddy_runtime_degraded", runtime="r", type="server"), 0)

    def test_threads_change_beside_shared_memory(self):
        self.running.must("create", "server", "r", "-p", str(self.port), "--shm", "-s")

        def talk(number, _):
            peer = ShmClient(f":{self.port}")
            peer.send(b"client %d\n" % number)
            peer.close()

        with Load(talk) as load:
            self.change(load, "r", ["--threads", "2"], ["--threads", "1"], ["--threads", "3"], ["--max-line", "1000"],
                        ["--threads", "1"])

    def test_a_port_is_opened_to_the_network(self):
        for flags in ([], ["--udp"]):
            self.running.must("create", "server", "r", "-p", str(self.port), *flags, "-s")
            self.running.must("edit", "r", "--bind", "*")
            self.running.must("edit", "r", "--unset", "bind")
            self.running.must("stop", "r")
            self.running.must("remove", "r")

    def test_no_client_is_refused(self):
        path = os.path.join(self.folder(), "s")
        log = os.path.join(self.folder(), "log")
        self.running.must("create", "server", "r", "--unix", path, "--log", log, "-s")

        def talk(number, _):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)  # it waits where the queue is full, which one that does not block would not
                peer.settimeout(harness.DEADLINE_S)
                peer.sendall(b"client %d\n" % number)
                peer.shutdown(socket.SHUT_WR)
                harness.all_of(peer)  # what others have sent, and the end

        with Load(talk) as load:
            self.change(load, "r", ["--max-line", "1000"], [], ["--threads", "2"], ["--slow-reader", "wait"],
                        ["--threads", "1"])

    def test_a_client_that_does_not_read_keeps_no_other_from_the_next_instance(self):
        self.running.must("create", "server", "r", "-p", str(self.port), "--max-queue", "16MiB", "-s")
        with connect(self.port) as stalled, connect(self.port) as other, connect(self.port) as sender:
            eventually(lambda: self.running.show("r")["connections"] == 3, "all are there")
            line = b"x" * 1000 + b"\n"

            def read():
                while other.recv(1 << 16):
                    pass
            reader = threading.Thread(target=read)
            reader.start()
            for _ in range(8000):
                sender.sendall(line)
            self.running.must("edit", "r", "--max-line", "5000")
            reader.join(harness.DEADLINE_S)
            self.assertFalse(reader.is_alive(), "the end of the client that reads")
            stalled.close()

    def test_a_reload_closes_no_client(self):
        log = os.path.join(self.folder(), "log")
        self.running.must("create", "server", "r", "-p", str(self.port), "--log", log, "-s")
        with connect(self.port) as one, connect(self.port) as two:
            one.sendall(b"before\n")
            self.assertEqual(harness.read_line(two), "before")
            os.rename(log, log + ".1")
            self.running.must("reload", "r")
            one.sendall(b"after\n")
            self.assertEqual(harness.read_line(two), "after")
            eventually(lambda: os.path.exists(log) and open(log, "rb").read() == b"after\n", "the new log")

    def test_datagrams_go_on(self):
        self.running.must("create", "server", "r", "--udp", "-p", str(self.port), "-s")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.connect(("127.0.0.1", self.port))
            # A closed port would be an error of the next send.
            for words in (["edit", "r", "--log-traffic"], ["reload", "r"], ["edit", "r", "--unset", "log-traffic"]):
                for _ in range(10):
                    peer.send(b"x")
                self.running.must(*words)
            for _ in range(10):
                peer.send(b"x")


@harness.on_each_backend
class ProxyTest(RestartTest):
    def test_no_connection_fails(self):
        backend, other = harness.free_port(), harness.free_port()
        for name, port in (("a", backend), ("b", other)):
            self.running.must("create", "cache", name, "-p", str(port), "-s")
        self.running.must("create", "proxy", "r", "-p", str(self.port), "--backend", f":{backend}", "-s")

        def talk(number, _):
            with connect(self.port) as peer:
                peer.sendall(b"PING\r\n" * 3)
                for _ in range(3):
                    if (line := harness.read_line(peer)) != "+PONG":
                        raise AssertionError(line)

        with connect(self.port) as held:
            held.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(held), "+PONG")
            with Load(talk) as load:
                self.change(load, "r", ["--threads", "2"], [], ["--backend", f":{other}"], ["--threads", "1"],
                            ["--connect-timeout", "3s"])
            held.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(held), "+PONG", "a connection of before goes on")


@harness.on_each_backend
class CacheTest(RestartTest):
    def test_no_client_is_refused_and_no_key_is_lost(self):
        folder = self.folder()
        self.running.must("create", "cache", "r", "-p", str(self.port), "--dir", folder, "-s")
        with connect(self.port) as peer:
            peer.sendall(b"SET kept value\r\n")
            self.assertEqual(harness.read_line(peer), "+OK")

        def talk(number, _):
            with connect(self.port) as peer:
                while True:
                    # LOADING while it reads its files; an end by the instance that had the client before.
                    try:
                        peer.sendall(b"GET kept\r\n")
                        got = peer.recv(1000)
                    except ConnectionResetError:
                        return
                    if got and got != b"$5\r\nvalue\r\n" and not got.startswith(b"-LOADING"):
                        raise AssertionError(got)
                    if not got.startswith(b"-LOADING"):
                        return

        with Load(talk) as load:
            self.change(load, "r", ["--threads", "2"], [], ["--max-queue", "2MiB"], ["--threads", "1"])

    def test_a_reload_closes_no_client(self):
        self.running.must("create", "cache", "r", "-p", str(self.port), "-s")
        with connect(self.port) as peer:
            self.running.must("reload", "r")
            peer.sendall(b"PING\r\n")
            self.assertEqual(harness.read_line(peer), "+PONG")


@harness.on_each_backend
class StreamTest(RestartTest):
    def create(self, *flags):
        self.path = os.path.join(self.folder(), "s")
        self.running.must("create", "stream", "r", "--handoff", f"unix://{self.path}", *flags, "-s")

    def begin(self):
        ours, theirs = socket.socketpair()
        ours.settimeout(harness.DEADLINE_S)
        with theirs:
            hand_over(self.path, socket.SOCK_SEQPACKET, b"{}", theirs.fileno())
        return ours

    def test_each_handoff_gets_its_whole_stream(self):
        self.create("--messages", "3", "--delay", "1ms")

        def talk(number, _):
            with self.begin() as client:
                answer = harness.all_of(client)
            if not answer.rstrip().endswith(b"[DONE]"):
                raise AssertionError(answer[-200:])

        with Load(talk) as load:
            self.change(load, "r", ["--messages", "4"], [], ["--max-queue", "2MiB"], ["--messages", "3"])

    def test_a_stream_goes_on_to_its_end(self):
        self.create("--messages", "60", "--delay", "20ms")
        with self.begin() as client:
            self.assertTrue(client.recv(1))
            self.running.must("reload", "r")
            self.running.must("edit", "r", "--messages", "2")
            self.assertTrue(harness.all_of(client).rstrip().endswith(b"[DONE]"))

    def test_a_handoff_that_is_under_way_is_answered(self):
        self.create("--messages", "1", "--handoff-type", "stream")
        ours, theirs = socket.socketpair()
        with ours, theirs, socket.socket(socket.AF_UNIX) as sender:
            ours.settimeout(harness.DEADLINE_S)
            sender.connect(self.path)
            socket.send_fds(sender, [b'{"prompt":'], [theirs.fileno()])
            theirs.close()
            self.running.must("edit", "r", "--max-queue", "80000")
            sender.sendall(b'"x"}')
            sender.close()
            self.assertIn(b"[DONE]", harness.all_of(ours))

    def test_a_restart_after_one_that_lost_the_socket(self):
        self.create()
        folder = os.path.dirname(self.path)
        shutil.rmtree(folder)
        for mode in ("0600", "0601"):
            self.assertNotEqual(self.running.run("edit", "r", "--mode", mode).status, 0)
            self.assertIn(f"not listening on unix://{self.path}: ", self.running.show("r")["reason"])
        os.mkdir(folder)
        self.running.must("edit", "r", "--mode", "0600")
        with self.begin() as client:
            self.assertTrue(client.recv(1))
        shutil.rmtree(folder)
        self.assertNotEqual(self.running.run("edit", "r", "--mode", "0601").status, 0)
        os.mkdir(folder)
        eventually(lambda: "reason" not in self.running.show("r"), "it listens again without an edit")
        with self.begin() as client:
            self.assertTrue(client.recv(1))

    def test_a_stop_ends_programs_of_the_instance_before(self):
        self.create("--source", "exec", "--exec", "sleep 1000")
        with self.begin() as client:
            eventually(lambda: self.running.show("r")["connections"] == 1, "the program")
            self.running.must("edit", "r", "--max-queue", "70000")
            self.running.must("stop", "r")
            harness.all_of(client)

    def test_a_changed_key_is_for_the_next_instance(self):
        key = os.path.join(self.folder(), "key")
        keys = []

        class Api(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                keys.append(self.headers["Authorization"])
                self.send_error(500)

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Api) as api:
            threading.Thread(target=api.serve_forever, daemon=True).start()
            self.addCleanup(api.shutdown)
            for text in ("one", "two"):
                with open(key, "w", encoding="ascii") as file:
                    file.write(text)
                if text == "one":
                    self.create("--source", "openai", "--source-url", f"http://127.0.0.1:{api.server_port}/v1", "--key-file", key)
                else:
                    self.running.must("reload", "r")
                with self.begin() as client:
                    harness.all_of(client)
            self.assertEqual(keys, ["Bearer one", "Bearer two"])

    def test_a_stop_cuts_streams_of_the_instance_before(self):
        self.create("--messages", "10000", "--delay", "50ms")
        with self.begin() as client:
            self.assertTrue(client.recv(1))
            self.running.must("edit", "r", "--messages", "9999")
            self.running.must("stop", "r")
            harness.all_of(client)


if __name__ == "__main__":
    harness.main()
