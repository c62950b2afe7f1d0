#!/usr/bin/env python3
"""Workers of `eddy stream-daemon`: several processes on one handoff socket, their sums, deaths and end."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import harness
from harness import BINARY, DEADLINE_S, eventually, free_port
from streaming_test import answer_of, new_client

# Loops of the workers that are tested: clients are open files on epoll, direct descriptors on io_uring.
BACKENDS = harness.backends()


class Daemon:
    """A stream daemon with a page of metrics."""

    def __init__(self, folder, *flags, limit_files=None, backend="epoll", env=None):
        self.path = os.path.join(folder, "s.sock")
        self.port = free_port()
        self.log_path = os.path.join(folder, "log")
        words = [BINARY, "stream-daemon", "-socket", self.path, "-io-backend", backend, "-metrics-addr",
                 f"127.0.0.1:{self.port}", *flags]
        if limit_files:
            words = ["sh", "-c", f"ulimit -n {limit_files} && exec \"$@\"", "sh", *words]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(words, stderr=log, env={**os.environ, **(env or {})})

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def until_ready(self):
        def is_ready():
            assert self.process.poll() is None, self.log()
            return "eddy stream-daemon ready: " in self.log()
        eventually(is_ready, "the daemon")
        return self

    def page(self, path="/metrics"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=DEADLINE_S) as got:
                return got.status, got.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.page()[1], re.M)
        return float(found.group(1)) if found else None

    def workers(self):
        """Process numbers of the workers that live."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [int(each) for each in children.read().split()]

    def connections_of(self, pid):
        """Sockets of a worker that clients are: open files on epoll."""
        count = 0
        for each in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                count += os.readlink(f"/proc/{pid}/fd/{each}").startswith("socket:")
        return count

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_S)


class Workers(harness.EddyTest):
    def start(self, *flags, **more):
        daemon = Daemon(self.folder(), *flags, **more)
        self.addCleanup(daemon.kill)
        return daemon.until_ready()

    def clients(self, daemon, count):
        made = [new_client(daemon.path, b'{"user_id":%d}' % number) for number in range(count)]
        for each in made:
            self.addCleanup(each.close)
        return made

    def assert_gone(self, pids):
        eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "the workers' end")

    def test_streams_are_spread_and_summed(self):
        for backend in BACKENDS:
            daemon = self.start("-workers", "3", "-message-delay", "1h", "-messages", "2", backend=backend)
            self.assertEqual(len(daemon.workers()), 3)
            idle = {pid: daemon.connections_of(pid) for pid in daemon.workers()}
            clients = []
            # Not at once: where a worker gets no processor meanwhile, the others would take all.
            while len(clients) < 300:
                clients += self.clients(daemon, 20)
                eventually(lambda: daemon.metric("daemon_active_streams") == len(clients), "all streams")
            self.assertEqual(daemon.metric("daemon_handoffs_total"), 300)
            self.assertEqual(daemon.metric("daemon_connections_total"), 300)
            self.assertEqual(daemon.metric("daemon_chunks_sent_total"), 300)
            self.assertEqual(daemon.metric("daemon_handoff_duration_seconds_count"), 300)
            self.assertEqual(daemon.metric('daemon_handoff_duration_seconds_bucket{le="+Inf"}'), 300)
            self.assertEqual(daemon.metric("daemon_peak_streams"), 300)
            self.assertEqual(daemon.metric("daemon_workers"), 3)
            self.assertEqual(daemon.page("/healthz"), (200, "ok\n"))
            if backend == "epoll":
                for pid, before in idle.items():
                    self.assertGreater(daemon.connections_of(pid) - before, 20, "each has its share")
            for each in clients:
                each.close()
            eventually(lambda: daemon.metric("daemon_active_streams") == 0, "the hang-ups")
            self.assertEqual(daemon.metric('daemon_stream_errors_total{reason="client_hung_up"}'), 300)
            workers = daemon.workers()
            self.assertEqual(daemon.end(), 0, daemon.log())
            self.assertIn("Peak concurrent streams: 300\n", daemon.log())
            self.assertEqual(daemon.log().count("Peak concurrent streams"), 1)
            self.assertFalse(os.path.exists(daemon.path))
            self.assert_gone(workers)

    def test_streams_are_whole(self):
        for backend in BACKENDS:
            daemon = self.start("-workers", "3", "-message-delay", "5ms", "-messages", "4", backend=backend)
            for number, client in enumerate(self.clients(daemon, 400)):
                answer = answer_of(client)
                self.assertIn(b'User ID: %d"' % number, answer)
                self.assertTrue(answer.endswith(b"4 of 4.\"}\n\ndata: [DONE]\n\n"), answer)
            self.assertEqual(daemon.metric("daemon_streams_total"), 400)
            self.assertEqual(daemon.metric("daemon_stream_duration_seconds_count"), 400)
            self.assertEqual(daemon.end(), 0, daemon.log())

    def test_one_limit_holds_for_all(self):
        daemon = self.start("-workers", "3", "-max-connections", "50", "-message-delay", "1h")
        clients = self.clients(daemon, 70)
        heads = [each.recv(1 << 16).split(b"\r\n")[0] for each in clients]
        # Workers that take the last stream at the same time may all be refused it.
        served = sum(b" 200 " in each for each in heads)
        self.assertEqual(served + sum(b" 503 " in each for each in heads), 70, heads)
        self.assertLessEqual(served, 50)
        self.assertGreaterEqual(served, 45)
        self.assertEqual(daemon.metric("daemon_connections_rejected_total"), 70 - served)

    def test_limits_of_a_user_hold_for_all(self):
        daemon = self.start("-workers", "3", "-max-streams-per-user", "2", "-message-delay", "1h")

        def admitted():
            client = new_client(daemon.path, b'{"user_id":7}')
            self.addCleanup(client.close)
            head = client.recv(1 << 16).split(b"\r\n")[0]
            self.assertRegex(head, b" (200|429) ")
            return client if b" 200 " in head else None

        def assert_two_are_admitted():
            all_of_them = [admitted() for _ in range(20)]
            self.assertEqual([each is not None for each in all_of_them], [True] * 2 + [False] * 18)
            return all_of_them[0]

        assert_two_are_admitted().close()
        eventually(lambda: daemon.metric("daemon_active_streams") == 1, "the hang-up")
        self.assertIsNotNone(admitted())
        self.assertIsNone(admitted())
        self.assertEqual(daemon.metric('daemon_handoff_errors_total{reason="too_many_user_streams"}'), 19)
        # Streams of workers that have died do not count.
        for pid in daemon.workers():
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: daemon.metric("daemon_worker_restarts_total") == 3 and daemon.metric("daemon_workers") == 3, "other workers")
        assert_two_are_admitted()

    def test_a_worker_that_is_killed_is_replaced(self):
        daemon = self.start("-workers", "2", "-message-delay", "1h", "-messages", "2")
        clients = self.clients(daemon, 200)
        eventually(lambda: daemon.metric("daemon_active_streams") == 200, "all streams")
        before = daemon.workers()
        os.kill(before[0], signal.SIGKILL)
        eventually(lambda: daemon.metric("daemon_worker_restarts_total") == 1, "the death")
        eventually(lambda: daemon.metric("daemon_workers") == 2, "another worker")
        after = daemon.workers()
        self.assertEqual(len(after), 2)
        self.assertIn(before[1], after, "the other one goes on")
        kept = int(daemon.metric("daemon_active_streams"))
        lost = int(daemon.metric('daemon_stream_errors_total{reason="worker_died"}'))
        self.assertEqual(kept + lost, 200)
        self.assertGreater(kept, 0)
        self.assertGreater(lost, 0)
        self.assertRegex(daemon.log(), rf"worker \d \(pid {before[0]}\) was killed by signal 9: {lost} streams are lost")
        self.assertEqual(daemon.metric("daemon_handoffs_total"), 200, "what it counted stays")
        for each in clients:
            each.settimeout(DEADLINE_S)
        more = self.clients(daemon, 100)
        eventually(lambda: daemon.metric("daemon_active_streams") == kept + 100, "new streams")
        new = next(pid for pid in after if pid not in before)
        self.assertGreater(daemon.connections_of(new), 20, "the new one has its share")
        self.assertTrue(all(each.recv(8) == b"HTTP/1.1" for each in more))
        self.assertEqual(daemon.page("/healthz")[0], 200)

    def test_one_that_keeps_dying_starts_again_later_and_later(self):
        daemon = self.start("-workers", "2")
        steady, dying = daemon.workers()
        for pause in ("100ms", "200ms", "400ms"):
            dying = self.killed_and_replaced(daemon, steady, dying, pause)

    def killed_and_replaced(self, daemon, steady, dying, pause):
        """Kills a worker; returns the process in its place."""
        os.kill(dying, signal.SIGKILL)
        line = f"(pid {dying}) was killed by signal 9: 0 streams are lost; it starts again in {pause}\n"
        eventually(lambda: line in daemon.log(), "the line about it")
        eventually(lambda: daemon.metric("daemon_workers") == 2, "another worker")
        return next(pid for pid in daemon.workers() if pid not in (steady, dying))

    def test_all_workers_dead_fail_the_health_check(self):
        daemon = self.start("-workers", "2")

        def all_are_dead():  # each death makes the pause longer
            for pid in daemon.workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return daemon.page("/healthz") == (503, "no worker lives\n")

        eventually(all_are_dead, "it is without a worker")
        self.assertEqual(daemon.metric("daemon_workers"), 0)
        eventually(lambda: daemon.page("/healthz")[0] == 200, "new workers")
        with new_client(daemon.path) as client:
            self.assertEqual(client.recv(8), b"HTTP/1.1")

    def test_the_end_drains_all(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start("-workers", "3", "-message-delay", "100ms", "-messages", "5", "-drain", "1h")
            clients = self.clients(daemon, 90)
            self.assertTrue(all(each.recv(1) for each in clients))
            self.assertEqual(daemon.end(number), 0, daemon.log())
            for each in clients:
                self.assertTrue(answer_of(each).endswith(b"data: [DONE]\n\n"), "it was not cut")
            self.assertIn("Peak concurrent streams: 90\n", daemon.log())

    def test_a_signal_for_each_of_them_drains_all(self):
        """As of a service manager that signals all processes of a service."""
        daemon = self.start("-workers", "3", "-message-delay", "100ms", "-messages", "5", "-drain", "1h")
        clients = self.clients(daemon, 90)
        self.assertTrue(all(each.recv(1) for each in clients))
        for pid in daemon.workers():
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(daemon.end(), 0, daemon.log())
        for each in clients:
            self.assertTrue(answer_of(each).endswith(b"data: [DONE]\n\n"), "it was not cut")

    def test_what_waits_in_the_queue_is_served_before_the_end(self):
        for backend in BACKENDS:
            daemon = self.start("-workers", "2", "-message-delay", "1ms", "-messages", "2", "-drain", "1h", backend=backend)
            workers = daemon.workers()
            for pid in workers:
                os.kill(pid, signal.SIGSTOP)
            clients = self.clients(daemon, 50)
            daemon.process.send_signal(signal.SIGTERM)
            eventually(lambda: not os.path.exists(daemon.path), "the beginning of the end")
            for pid in workers:
                os.kill(pid, signal.SIGCONT)
            for each in clients:
                self.assertTrue(answer_of(each).endswith(b"data: [DONE]\n\n"), "its handoff was taken")
            self.assertEqual(daemon.process.wait(DEADLINE_S), 0, daemon.log())

    def test_the_drain_has_a_deadline_and_a_second_signal_ends_it(self):
        daemon = self.start("-workers", "2", "-message-delay", "1h", "-drain", "10ms")
        cut = self.clients(daemon, 20)
        self.assertTrue(all(each.recv(1) for each in cut))
        self.assertEqual(daemon.end(), 0)
        self.assertFalse(any(b"[DONE]" in answer_of(each) for each in cut))
        daemon = self.start("-workers", "2", "-message-delay", "1h", "-drain", "1h")
        clients = self.clients(daemon, 20)
        self.assertTrue(all(each.recv(1) for each in clients))
        workers = daemon.workers()
        daemon.process.send_signal(signal.SIGTERM)
        eventually(lambda: not os.path.exists(daemon.path), "the first signal's effect")
        self.assertEqual(daemon.end(), 2)
        self.assert_gone(workers)

    def test_a_worker_that_does_not_end_is_killed(self):
        daemon = self.start("-workers", "2", "-drain", "1ms")
        workers = daemon.workers()
        os.kill(workers[1], signal.SIGSTOP)
        self.assertEqual(daemon.end(), 0)
        self.assertIn("are killed", daemon.log())
        self.assert_gone(workers)

    def test_one_that_hangs_does_not_hold_up_the_page(self):
        daemon = self.start("-workers", "2", "-message-delay", "1h")
        self.clients(daemon, 100)
        eventually(lambda: daemon.metric("daemon_active_streams") == 100, "all streams")
        stopped = daemon.workers()[0]
        os.kill(stopped, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{stopped}") and os.kill(stopped, signal.SIGCONT))
        self.assertEqual(daemon.metric("daemon_active_streams"), 100, "its last counts are shown")

    def test_workers_die_with_their_parent(self):
        daemon = self.start("-workers", "2", "-message-delay", "1h")
        workers = daemon.workers()
        daemon.kill()
        self.assert_gone(workers)
        # There are no listeners any more, so the next one can begin.
        again = Daemon(os.path.dirname(daemon.path), "-workers", "2")
        self.addCleanup(again.kill)
        again.until_ready()

    def test_few_open_files_mean_more_workers(self):
        daemon = self.start("-max-connections", "600", "-message-delay", "1h", limit_files=256)
        self.assertRegex(daemon.log(), r"\d workers, since on epoll each stream is an open file")
        self.assertGreaterEqual(len(daemon.workers()), 4)
        clients = self.clients(daemon, 600)
        self.assertTrue(all(each.recv(12) == b"HTTP/1.1 200" for each in clients))
        self.assertEqual(daemon.metric("daemon_active_streams"), 600)
        self.assertIsNone(daemon.metric('daemon_handoff_errors_total{reason="lost_descriptor"}'))
        self.assertEqual(daemon.end(), 0)

    def test_there_is_one_process_where_that_is_enough(self):
        daemon = self.start("-max-connections", "100")
        self.assertEqual(daemon.workers(), [])
        if "uring" in BACKENDS:
            self.assertEqual(self.start("-max-connections", "600", limit_files=256, backend="uring").workers(), [])

    def test_too_few_workers_at_the_limit_are_warned_of(self):
        daemon = self.start("-max-connections", "1000000", limit_files=64)
        self.assertIn("21 workers, since", daemon.log())
        self.assertIn("warning: 1000000 streams would need", daemon.log())

    def test_programs_answer_in_workers(self):
        daemon = self.start("-workers", "2", "-backend", "exec", "-exec",
                            'echo "$HANDOFF_DATA|$EDDY_STREAM_WORKER|"; head -c 4')
        clients = self.clients(daemon, 20)
        for number, client in enumerate(clients):
            client.sendall(b"echo")
            self.assertEqual(answer_of(client), b'{"user_id":%d}||\necho' % number)
        eventually(lambda: daemon.metric("daemon_streams_total") == 20, "the programs' ends")
        self.assertEqual(daemon.metric("daemon_active_streams"), 0)
        running = self.clients(daemon, 4)
        eventually(lambda: daemon.metric("daemon_active_streams") == 4, "programs that wait")
        daemon.process.send_signal(signal.SIGTERM)
        for client in running:
            client.sendall(b"stop")
        self.assertEqual(daemon.process.wait(DEADLINE_S), 0)
        self.assertTrue(all(b"user_id" in answer_of(each) for each in running))

    def test_the_environment_chooses_them(self):
        daemon = self.start(env={"DAEMON_WORKERS": "2"})
        self.assertEqual(len(daemon.workers()), 2)

    def test_a_socket_in_use_is_an_error_of_all(self):
        daemon = self.start("-workers", "2")
        second = Daemon(os.path.dirname(daemon.path), "-workers", "2")
        self.addCleanup(second.kill)
        self.assertEqual(second.process.wait(DEADLINE_S), 2)
        self.assertIn("s.sock", second.log())
        with new_client(daemon.path) as client:
            self.assertEqual(client.recv(8), b"HTTP/1.1", "the first one goes on")

    def test_a_worker_without_its_parent_ends(self):
        """Such as one whose parent has died."""
        done = subprocess.run([BINARY, "stream-daemon", "-socket", os.path.join(self.folder(), "s")], timeout=DEADLINE_S,
                              env={**os.environ, "EDDY_STREAM_WORKER": "0:1"}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    harness.main()
