#!/usr/bin/env python3
"""`eddy bench resp`: its report of real servers, and that it detects a server whose replies are wrong."""

import contextlib
import json
import re
import socket
import subprocess
import threading
import time

import harness
from cache_client import Redis, client_of
from harness import eventually, free_port

TESTS = ("ping", "set", "get", "incr", "lpush", "rpush", "lpop", "rpop", "sadd", "hset")


class FakeServer:
    """Speaks RESP to many clients: answer(words, number) is the reply to the command of that number, from 1 on, or None
    to close the connection instead. `commands` are the received ones.
    """

    def __init__(self, test, answer):
        self.answer = answer
        self.commands = []
        self.connections = 0
        self.streams = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()
        test.addCleanup(self.close)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def _accept(self):
        threads = []
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                break
            self.connections += 1
            self.streams.append(stream)
            threads.append(threading.Thread(target=self._serve, args=(stream,)))
            threads[-1].start()
        for stream in self.streams:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        for each in threads:
            each.join()

    def _serve(self, stream):
        rest = b""
        with stream, contextlib.suppress(OSError):
            while piece := stream.recv(65536):
                rest += piece
                out, ended = b"", False
                while (parsed := self._command(rest)) and not ended:
                    words, rest = parsed
                    with self.lock:
                        self.commands.append(words)
                        reply = self.answer(words, len(self.commands))
                    ended = reply is None
                    out += reply or b""
                stream.sendall(out)
                if ended:
                    return

    @staticmethod
    def _command(text):
        """The words of the first command and what follows it; None when it is not complete."""
        def line(at):
            end = text.find(b"\r\n", at)
            return None if end < 0 else (int(text[at + 1:end]), end + 2)
        head = line(0)
        if head is None:
            return None
        count, at = head
        words = []
        for _ in range(count):
            size = line(at)
            if size is None or len(text) < size[1] + size[0] + 2:
                return None
            words.append(text[size[1]:size[1] + size[0]].decode())
            at = size[1] + size[0] + 2
        return words, text[at:]


class Honest:
    """Replies of a correct server, with values of three bytes."""

    def __init__(self):
        self.counts = {}

    def __call__(self, words, number):
        name = words[0]
        if name == "PING":
            return b"+PONG\r\n"
        if name == "SET":
            return b"+OK\r\n"
        if name in ("GET", "LPOP", "RPOP"):
            return b"$3\r\nxxx\r\n"
        if name == "DEL":
            self.counts.pop(words[1], None)
            return b":1\r\n"
        if name in ("INCR", "LPUSH", "RPUSH"):
            self.counts[words[1]] = self.counts.get(words[1], 0) + 1
            return b":%d\r\n" % self.counts[words[1]]
        return b":0\r\n"


@harness.on_each_backend
class Bench(harness.EddyTest):
    def bench(self, *words):
        process = subprocess.run([harness.BINARY, *words], capture_output=True, timeout=harness.DEADLINE_S,
                                 stdin=subprocess.DEVNULL)
        return harness.Result(process, process.stdout.decode(), process.stderr.decode())

    def resp(self, port, *words):
        return self.bench("bench", "resp", "-p", str(port), "--io-backend", self.backend, *words)

    def fake(self, answer=None):
        return FakeServer(self, answer or Honest())

    def ask_fake(self, answer, *words):
        """100 commands in pipelines of 10 over one connection, and the pass that checks: numbers 101 to 110."""
        return self.resp(self.fake(answer).port, "-c", "1", "-P", "10", "-n", "100", *words)

    # --- Servers that are right ---

    def assert_measures(self, client, server_pid):
        requests, pipeline = 2005, 20
        result = self.resp(client.port, "--json", "-c", "5", "-P", str(pipeline), "-n", str(requests), "--keys", "50",
                           "-d", "32", "-t", ",".join(TESTS), "--server-pid", str(server_pid))
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.err, "")
        rows = json.loads(result.out)
        self.assertEqual([row["test"] for row in rows], list(TESTS))
        for row in rows:
            self.assertTrue(row["verified"], row)
            self.assertEqual(row["errors"], 0, row)
            self.assertEqual(row["requests"], 2000, "whole pipelines, as many as fit")
            self.assertAlmostEqual(row["ops_per_second"] * row["seconds"], 2000, 3)
            self.assertLess(0, row["p50_us"])
            self.assertLessEqual(row["p50_us"], row["p99_us"])
            # The kernel counts a busy thread's time no more often than each tick, so here it may be none.
            self.assertLessEqual(0, row["server_cpu"])
            self.assertAlmostEqual(row["server_cpu"] * 1e9 / row["ops_per_second"], row["server_ns_per_op"], 3)
        # The server has counted, too: the timed commands and the pipeline that is checked.
        self.assertEqual(client("GET", "counter"), b"2020")
        calls = {name: int(re.search(r"calls=(\d+)", fields).group(1))
                 for name, fields in client.info("commandstats").items()}
        self.assertEqual(calls["cmdstat_get"], 2021)
        self.assertEqual(calls["cmdstat_set"], 2020 + 50, "the keys that GET finds, too")
        self.assertEqual(calls["cmdstat_hset"], 2020)
        # Every popped element had been pushed: the list is empty.
        self.assertEqual(client("LLEN", "mylist"), 0)
        self.assertEqual(client("STRLEN", "key:000000000049"), 32)

        # Many ticks' worth of work.
        row, = json.loads(self.resp(client.port, "--json", "-n", "400000", "-t", "get", "--server-pid",
                                    str(server_pid)).out)
        self.assertTrue(row["verified"], row)
        self.assertLess(0, row["server_ns_per_op"])

        table = self.resp(client.port, "-c", "3", "-P", "10", "-n", "100", "-t", "ping,get")
        self.assertEqual(table.status, 0, table)
        lines = [line.split() for line in table.out.splitlines()]
        self.assertEqual([line[0] for line in lines], ["test", "ping", "get"])
        for line in lines[1:]:
            self.assertEqual(line[-1], "ok")

    def test_an_eddy_cache(self):
        daemon, port = self.daemon(), free_port()
        daemon.must("create", "cache", "db", "-p", str(port), "-s")
        self.assert_measures(client_of(self, port), daemon.pid)
        daemon.must("stop", "db")

    def test_a_redis_server(self):
        redis = Redis(self)
        self.assert_measures(client_of(self, redis.port), redis.process.pid)

    def test_every_connection_is_made_and_the_last_pipeline_is_waited_for(self):
        for clients, requests in ((7, 100), (20, 10), (1, 1)):
            server = self.fake()
            result = self.resp(server.port, "--json", "-c", str(clients), "-P", "10", "-n", str(requests), "-t", "incr")
            self.assertEqual(result.status, 0, result)
            row, = json.loads(result.out)
            self.assertEqual(row["requests"], max(10, requests))
            eventually(lambda: server.connections == clients, f"{clients} connections")
            self.assertEqual(len(server.commands), row["requests"] + 10)

    def test_keys_come_from_the_seed(self):
        def keys(seed):
            server = self.fake()
            self.assertEqual(self.resp(server.port, "-c", "1", "-P", "10", "-n", "100", "--keys", "1000", "-t", "set",
                                       "--seed", seed).status, 0)
            return [words[1] for words in server.commands]
        one = keys("1")
        self.assertEqual(len(one), 110)
        self.assertGreater(len(set(one)), 50)
        self.assertTrue(all(re.fullmatch(r"key:000000000\d{3}", key) for key in one), one)
        self.assertEqual(one[100:], one[:10], "the first pipeline is the one that is checked")
        self.assertEqual(keys("1"), one)
        self.assertNotEqual(keys("2"), one)

    # --- Servers that are not ---

    def assert_wrong(self, answer, *words):
        """It says that the replies are wrong, in both forms."""
        result = self.ask_fake(answer(), "--json", *words)
        self.assertEqual(result.status, 2, result)
        row, = json.loads(result.out)
        self.assertIs(row["verified"], False)
        result = self.ask_fake(answer(), *words)
        self.assertEqual(result.status, 2, result)
        self.assertTrue(result.out.splitlines()[1].endswith("WRONG REPLIES"), result)

    def assert_given_up(self, answer, text, *words):
        """There is no report, with or without a rate."""
        for form in ((), ("--json",)):
            result = self.ask_fake(answer(), *form, *words)
            self.assert_refused(result, 2, text)
            self.assertEqual(result.out, "")

    @staticmethod
    def instead(of, reply, when=lambda number: True):
        """An honest server's answers but for some to the command `of`."""
        def make():
            honest = Honest()

            def answer(words, number):
                right = honest(words, number)
                return reply(right) if words[0] == of and when(number) else right
            return answer
        return make

    def test_one_byte_is_wrong(self):
        for name, right, wrong in (("ping", b"G", b"H"), ("set", b"K", b"k"), ("get", b"xxx", b"xxy"),
                                   ("lpop", b"xxx", b"yxx"), ("rpop", b"$3\r\nxxx", b"$2\r\nxx"),
                                   ("sadd", b":", b"+"), ("hset", b":", b"+")):
            def reply(text, right=right, wrong=wrong):
                return text.replace(right, wrong, 1)
            with self.subTest(test=name, wrong=wrong):
                self.assert_wrong(self.instead(name.upper(), reply), "-t", name)

    def test_one_byte_of_one_reply_is_wrong(self):
        for which in (101, 105, 110):
            self.assert_wrong(self.instead("SET", lambda text: b"+OJ\r\n", lambda number, which=which: number == which),
                              "-t", "set")

    def test_a_counter_that_leaves_one_out(self):
        for name in ("incr", "lpush", "rpush"):
            self.assert_wrong(self.instead(name.upper(), lambda text: b":%d\r\n" % (int(text[1:]) + 1),
                                           lambda number: number > 105), "-t", name)

    def test_one_reply_is_missing_and_the_connection_ends(self):
        # While it is timed, and while it is checked.
        self.assert_given_up(self.instead("SET", lambda text: None, lambda number: number == 30),
                             "closed a connection", "-t", "set")
        self.assert_given_up(self.instead("SET", lambda text: None, lambda number: number == 100),
                             "closed a connection", "-t", "set")
        self.assert_wrong(self.instead("SET", lambda text: None, lambda number: number == 110), "-t", "set")
        # While the key is set that GET finds.
        self.assert_given_up(self.instead("SET", lambda text: None), "the server closed", "-t", "get")

    def test_a_reply_too_many(self):
        self.assert_given_up(self.instead("SET", lambda text: text + text, lambda number: number == 55),
                             "more replies than", "-t", "set")
        self.assert_wrong(self.instead("SET", lambda text: text + text, lambda number: number == 105), "-t", "set")
        self.assert_given_up(self.instead("SET", lambda text: text + text), "more replies than", "-t", "get")

    def test_an_error_in_place_of_a_reply(self):
        error = self.instead("SET", lambda text: b"-ERR no\r\n", lambda number: number == 30)
        result = self.ask_fake(error(), "--json", "-t", "set")
        self.assertEqual(result.status, 2, result)
        row, = json.loads(result.out)
        self.assertEqual(row["errors"], 1)
        result = self.ask_fake(error(), "-t", "set")
        self.assertEqual(result.status, 2, result)
        self.assertTrue(result.out.splitlines()[1].endswith("1 error replies"), result)

        self.assert_wrong(self.instead("SET", lambda text: b"-ERR no\r\n", lambda number: number == 110), "-t", "set")
        self.assert_given_up(self.instead("SET", lambda text: b"-ERR no\r\n"), "a preparation with an error",
                             "-t", "get")

    def test_a_server_that_falls_silent(self):
        patience = ("--timeout", "1", "-t")
        nothing = self.instead("SET", lambda text: b"", lambda number: number >= 30)
        self.assert_given_up(nothing, "has not answered for 1 s", *patience, "set")
        # One reply of a pipeline, while it is timed and while it is checked.
        for missing in (55, 105):
            one = self.instead("SET", lambda text: b"", lambda number, missing=missing: number == missing)
            self.assert_given_up(one, "has not answered for 1 s; --timeout", *patience, "set")
        # While the key is set that GET finds.
        self.assert_given_up(self.instead("SET", lambda text: b""), "has not answered for 1 s", *patience, "get")
        # One that does not even read.
        with socket.create_server(("127.0.0.1", free_port())) as server:
            result = self.resp(server.getsockname()[1], "-c", "1", "-P", "1000", "-n", "100000", "-d", "100000",
                               *patience, "set")
        self.assert_refused(result, 2, "has not answered for 1 s")

    def test_a_slow_server_is_waited_for_while_it_answers(self):
        def slowly(words, number):
            if number % 10 == 0:
                time.sleep(0.2)
            return b"+PONG\r\n"
        result = self.ask_fake(slowly, "--timeout", "1", "-t", "ping")
        self.assertEqual(result.status, 0, result)

    def test_no_resp_at_all(self):
        self.assert_given_up(self.instead("SET", lambda text: b"HTTP/1.1 400 Bad Request\r\n\r\n"), "not RESP",
                             "-t", "set")
        self.assert_wrong(self.instead("SET", lambda text: b"?\r\n", lambda number: number == 104), "-t", "set")

    def test_the_right_rows_do_not_hide_the_wrong_one(self):
        result = self.ask_fake(self.instead("GET", lambda text: b"$3\r\nxxy\r\n")(), "--json", "-t", "set,get,ping")
        self.assertEqual(result.status, 2, result)
        self.assertEqual([(row["test"], row["verified"]) for row in json.loads(result.out)],
                         [("set", True), ("get", False), ("ping", True)])

    # --- Mistakes ---

    def test_mistakes_are_told(self):
        port = free_port()  # without a listener
        for words, status, *texts in (
                (("-t", "set,gett"), 1, "there is no test 'gett'", "ping, set, get, incr"),
                (("-t", ""), 1, "--tests", "ping, set, get, incr"),
                (("--clients", "0"), 1, "--clients takes a whole number from 1 to 10000", '"0"'),
                (("--pipeline", "0"), 1, "--pipeline"), (("--requests", "1e6"), 1, "--requests", '"1e6"'),
                (("--keys", "-1"), 1, "--keys"), (("--value-size", "1048577"), 1, "--value-size"),
                (("--port", "65536"), 1, "--port"), (("--io-backend", "sim"), 1, "--io-backend"),
                (("--host", "localhost"), 2, "'localhost' is no numeric address"),
                ((), 2, f"cannot connect to 127.0.0.1:{port}", "Is the server running?")):
            result = self.bench("bench", "resp", "-p", str(port), *words)
            with self.subTest(words=words):
                self.assert_refused(result, status, *texts)
                self.assertEqual(result.out, "")
                self.assertEqual(len(result.err.strip().splitlines()), 1, result)
        self.assert_refused(self.bench("bench", "rest"), 1, "there is no `eddy bench rest`", "resp, http, ws")

    def test_an_unknown_test_is_told_before_any_command_is_sent(self):
        server = self.fake()
        self.assert_refused(self.resp(server.port, "-t", "set,gett"), 1, "there is no test 'gett'")
        self.assertEqual(server.commands, [])

    def test_a_process_that_is_not_there(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.assert_refused(self.resp(self.fake().port, "--server-pid", str(ended.pid), "-t", "ping"), 2,
                            f"there is no process {ended.pid}")

    def test_help_has_examples_whose_flags_exist(self):
        result = self.bench("bench", "resp", "--help")
        self.assertEqual(result.status, 0, result)
        examples = re.findall(r"^ *(eddy bench resp .*)$", result.out.split("Examples:")[1], re.M)
        self.assertGreaterEqual(len(examples), 3)
        for test in TESTS:
            self.assertIn(test, result.out)
        for flag in re.findall(r" (--[a-z-]+)", "\n".join(examples)):
            self.assertRegex(result.out.split("Examples:")[0], rf"(?m)^.*{flag} ")


if __name__ == "__main__":
    harness.main()
