#!/usr/bin/env python3
"""The control API with untrusted and broken clients: garbage, slowness, size, other users, and its OpenAPI document."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
import unittest
from unittest import mock

import harness
from harness import Unix, all_of, connect, eventually, free_port

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs",
                        "control-api.openapi.json")


class Schemas:
    """The part of JSON Schema that the OpenAPI document uses."""

    def __init__(self, document):
        self.document = document

    def errors(self, schema, value, where="$"):
        while "$ref" in schema:
            target = self.document
            for part in schema["$ref"].lstrip("#/").split("/"):
                target = target[part]
            schema = target
        if value is None:
            return [] if schema.get("nullable") else [f"{where} is null"]
        if "oneOf" in schema:
            tried = [self.errors(each, value, where) for each in schema["oneOf"]]
            fitting = sum(not each for each in tried)
            return [] if fitting == 1 else [f"{where} fits {fitting} of {schema['oneOf']}"]
        kinds = {"object": dict, "array": list, "string": str, "boolean": bool,
                 "integer": int, "number": (int, float)}
        kind = schema.get("type")
        if kind and (not isinstance(value, kinds[kind])
                     or (kind in ("integer", "number") and isinstance(value, bool))):
            return [f"{where} is {value!r}, not {kind}"]
        found = []
        if "enum" in schema and value not in schema["enum"]:
            found.append(f"{where} is {value!r}, which is none of {schema['enum']}")
        if kind == "array":
            for i, item in enumerate(value):
                found += self.errors(schema["items"], item, f"{where}[{i}]")
        if kind == "object":
            known = schema.get("properties", {})
            more = schema.get("additionalProperties", True)
            for name in schema.get("required", []):
                if name not in value:
                    found.append(f"{where} has no {name}")
            for name, item in value.items():
                if name in known:
                    found += self.errors(known[name], item, f"{where}.{name}")
                elif more is False:
                    found.append(f"{where}.{name} is not documented")
                elif isinstance(more, dict):
                    found += self.errors(more, item, f"{where}.{name}")
        return found


@harness.on_each_backend
class ControlApi(harness.EddyTest):
    def test_answers_are_as_documented(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            document = json.load(file)
        schemas = Schemas(document)
        alone = self.daemon()
        daemon = self.daemon(flags=["--name", "here", "--cluster", self.folder(), "--advertise", "127.0.0.1"])
        seen = set()

        def ask(method, target, path, body=None, status=200, of=daemon):
            got, answer = of.request(method, target, body)
            self.assertEqual(got, status, answer)
            operation = document["paths"][path][method.lower()]
            self.assertIn(str(status), operation["responses"], f"{method} {path}")
            response = operation["responses"][str(status)]
            content = response.get("content", {})
            if "application/json" in content:
                schema = content["application/json"]["schema"]
                self.assertEqual(schemas.errors(schema, answer), [], f"{method} {path}: {answer}")
            seen.add((method.lower(), path))
            return answer

        one = "/v1/runtimes/{name}"
        ask("GET", "/v1/version", "/v1/version")
        ask("GET", "/v1/daemon", "/v1/daemon")
        ask("GET", "/v1/types", "/v1/types")
        ask("GET", "/v1/events?follow=perhaps", "/v1/events", status=400)
        for path in ("", "/runtimes", "/groups", "/events", "/members/{name}"):
            ask("GET", "/v1/cluster" + path.format(name="here"), "/v1/cluster" + path, status=404, of=alone)
        for type_name in ("server", "cache"):
            port = free_port()
            body = {"type": type_name, "name": type_name, "options": {"port": port}, "start": True}
            ask("POST", "/v1/runtimes", "/v1/runtimes", body, 201)
            ask("POST", "/v1/runtimes", "/v1/runtimes", body, 409)
            ask("GET", f"/v1/runtimes/{type_name}", one)
            ask("GET", f"/v1/runtimes/{type_name}/stats", one + "/stats")
        ask("GET", "/v1/stats?match=c*", "/v1/stats")
        command = "/v1/runtimes/cache/command"
        ask("POST", command, one + "/command", {"command": ["GET", "k"]})
        ask("POST", command, one + "/command", {"command": ["AUTH", "v"]}, 400)
        ask("GET", "/v1/console", "/v1/console", status=404)
        ask("POST", "/v1/console", "/v1/console")
        ask("GET", "/v1/console", "/v1/console")
        ask("POST", "/v1/console", "/v1/console", {"port": 1}, 409)
        ask("POST", "/v1/console", "/v1/console", {"port": "x"}, 400)
        ask("DELETE", "/v1/console", "/v1/console", status=204)
        ask("POST", "/v1/runtimes", "/v1/runtimes", {"type": "server"}, 400)
        ask("POST", "/v1/runtimes", "/v1/runtimes", {"type": "server", "name": "taken",
                                                     "options": {"port": port}}, 201)
        ask("POST", "/v1/runtimes/taken/start", one + "/start", status=409)
        ask("GET", "/v1/runtimes", "/v1/runtimes")
        self.assertEqual([each["name"] for each in ask("GET", "/v1/stats?status=running", "/v1/stats")["stats"]],
                         ["cache", "server"])
        ask("GET", "/v1/runtimes?match=ser*&status=running", "/v1/runtimes")
        whole = {each["name"]: each for each in ask("GET", "/v1/runtimes", "/v1/runtimes")["runtimes"]}
        # All but the member that grows between two requests.
        fields = [each for each in document["components"]["schemas"]["runtime"]["properties"] if each != "uptime_s"]
        rows = ask("GET", f"/v1/runtimes?fields={','.join(fields)}", "/v1/runtimes")
        self.assertEqual(rows["fields"], fields)
        self.assertEqual(rows["rows"], [[each.get(field) for field in fields] for each in whole.values()])
        self.assertEqual(ask("GET", "/v1/runtimes?match=s*&status=running&fields=name,port", "/v1/runtimes")["rows"],
                         [["server", whole["server"]["port"]]])
        self.assertGreater(ask("GET", "/v1/runtimes?match=server&fields=uptime_s", "/v1/runtimes")["rows"][0][0], 0)
        for wrong in ("", "name,", "nonsense", "name,name"):
            ask("GET", f"/v1/runtimes?fields={wrong}", "/v1/runtimes", status=400)
        ask("PATCH", "/v1/runtimes/server", one, {"group": "g"})
        ask("PATCH", "/v1/runtimes/server", one, {"options": {"nonsense": 1}}, 400)
        ask("PATCH", "/v1/runtimes/server?live_only=true", one, {"options": {"max_line": "1k"}}, 409)
        planned = ask("PATCH", "/v1/runtimes/server?dry_run=true", one, {"options": {"max_line": "1k"}})
        self.assertEqual((planned["effect"], planned["dry_run"], planned["restart"]),
                         ("restarted", True, {"options": ["max_line"], "drain_s": 1, "clients": "served"}))
        self.assertEqual(planned["options"], {"port": planned["port"]}, "nothing was changed")
        done = ask("PATCH", "/v1/runtimes/server", one, {"options": {"max_line": "1k"}})
        self.assertEqual((done["effect"], done["restart"], done["options"]["max_line"]),
                         ("restarted", planned["restart"], "1k"))
        self.assertNotIn("dry_run", done)
        ask("POST", "/v1/runtimes/server/start", one + "/start")
        ask("POST", "/v1/runtimes/server/reload", one + "/reload")
        ask("POST", "/v1/runtimes/server/restart", one + "/restart")
        ask("POST", "/v1/runtimes/server/rename", one + "/rename", {"name": "server2"})
        ask("POST", "/v1/runtimes/server2/rename", one + "/rename", {"name": "server"})
        ask("POST", "/v1/runtimes/server/rename", one + "/rename", {"name": "cache"}, 409)
        ask("POST", "/v1/runtimes/server/rename", one + "/rename", {"name": "/"}, 400)
        ask("POST", "/v1/runtimes/server/reload-lua", one + "/reload-lua", status=409)
        ask("POST", "/v1/runtimes/server/send", one + "/send", "hello")
        ask("GET", "/v1/runtimes/server/logs?tail=3", one + "/logs")
        ask("GET", "/v1/runtimes/server/logs?tail=x", one + "/logs", status=400)
        ask("GET", "/v1/runtimes/server/messages", one + "/messages", status=400)
        ask("POST", "/v1/runtimes", "/v1/runtimes", {"type": "client", "name": "client", "options": {"target": ":1"}}, 201)
        ask("GET", "/v1/runtimes/client/messages", one + "/messages", status=409)
        ask("POST", "/v1/runtimes/client/start", one + "/start")
        ask("GET", "/v1/runtimes/client", one)
        ask("GET", "/v1/runtimes/client/stats", one + "/stats")
        ask("POST", "/v1/runtimes/client/send", one + "/send", "x" * (1024 * 1024), 503)
        ask("DELETE", "/v1/runtimes/client", one, status=204)
        ask("POST", "/v1/runtimes/server/stop", one + "/stop")
        ask("POST", "/v1/runtimes/server/send", one + "/send", "hello", 409)
        lines = ask("GET", "/v1/events?follow=false", "/v1/events").splitlines()
        for line in lines:
            self.assertEqual(schemas.errors({"$ref": "#/components/schemas/event"}, json.loads(line)), [])
        self.assertEqual(len({json.loads(line)["event"] for line in lines} & {"created", "started", "stopped", "failed",
                                                                               "edited", "restarted", "removed"}), 7)
        eventually(lambda: daemon.request("GET", "/v1/cluster")[1]["joined"], "it has joined")
        eventually(lambda: daemon.request("GET", "/v1/cluster/groups")[1]["groups"], "the group of the server is there")
        self.assertEqual(ask("GET", "/v1/cluster", "/v1/cluster")["members"][0]["name"], "here")
        ask("GET", "/v1/cluster/members/here", "/v1/cluster/members/{name}")
        ask("GET", "/v1/cluster/members/there", "/v1/cluster/members/{name}", status=404)
        self.assertEqual([each["name"] for each in ask("GET", "/v1/cluster/runtimes?match=here/cac*", "/v1/cluster/runtimes")["runtimes"]],
                         ["cache"])
        ask("GET", "/v1/cluster/groups?match=g", "/v1/cluster/groups")
        ask("GET", "/v1/cluster/events?follow=x", "/v1/cluster/events", status=400)
        for line in ask("GET", "/v1/cluster/events?follow=false", "/v1/cluster/events").splitlines():
            self.assertEqual(schemas.errors({"$ref": "#/components/schemas/event"}, json.loads(line)), [])
        ask("POST", "/v1/daemon/reload", "/v1/daemon/reload")
        ask("POST", "/v1/daemon/upgrade", "/v1/daemon/upgrade", {"program": "no/path"}, 400)
        ask("GET", "/metrics", "/metrics")
        ask("PATCH", "/v1/runtimes/taken", one, {"owner": "server"})
        ask("DELETE", "/v1/runtimes/server", one, status=200)
        ask("DELETE", "/v1/runtimes/cache", one, status=204)
        for method, target, path in (("GET", "", ""), ("PATCH", "", ""), ("DELETE", "", ""),
                                     ("POST", "/start", "/start"), ("POST", "/stop", "/stop"),
                                     ("POST", "/reload", "/reload"), ("POST", "/send", "/send"),
                                     ("POST", "/reload-lua", "/reload-lua"), ("POST", "/restart", "/restart"),
                                     ("POST", "/rename", "/rename"),
                                     ("GET", "/stats", "/stats"), ("GET", "/logs", "/logs"),
                                     ("GET", "/messages", "/messages")):
            ask(method, "/v1/runtimes/nobody" + target, one + path, status=404)
        stack = "/v1/stacks/{name}"
        port = free_port()
        declared = {"runtimes": [{"type": "cache", "name": "declared", "options": {"port": port}}]}
        ask("PUT", "/v1/stacks/web?dry_run=true", stack, declared)
        ask("PUT", "/v1/stacks/web", stack, declared)
        ask("GET", "/v1/runtimes/declared", one)
        declared["runtimes"][0]["options"]["maxmemory"] = "10M"
        self.assertEqual(ask("PUT", "/v1/stacks/web", stack, declared)["changes"][0]["effect"], "live")
        ask("PUT", "/v1/stacks/web", stack, {"runtimes": []}, 409)
        ask("PUT", "/v1/stacks/web", stack, {"runtimes": [{"type": "cache", "name": "declared", "owner": "nobody"}]}, 409)
        ask("PUT", "/v1/stacks/web", stack, {"runtimes": [{"nmae": "declared"}]}, 400)
        ask("PUT", "/v1/stacks/web", stack, {"runtimes": [], "accept": ["declared"]})
        documented = {(method, path) for path, operations in document["paths"].items()
                      for method in operations if method != "parameters"}
        self.assertEqual(documented - seen, set(), "every operation was asked")

    def test_wrong_requests_are_told_what_would_be_right(self):
        daemon = self.daemon()
        port = free_port()
        base = {"type": "server", "name": "a", "options": {"port": port}}
        for body, text in ((b"", "name is empty"), (b"{", "not valid JSON"), (b"[]", "JSON object"),
                           (b"\xff\xfe", "not valid JSON"), (b"[" * 1000, "nests deeper"),
                           (dict(base, nmae=1), "nmae"), (dict(base, name=7), "string"),
                           (dict(base, name="../a"), "1 to 128"), (dict(base, type="x"), "server"),
                           (dict(base, start="yes"), "true or false"),
                           (dict(base, options=[]), "object"),
                           (dict(base, options={"port": "many"}), "port"),
                           (dict(base, options={"prot": 1}), "--port"),
                           (dict(base, owner="nobody"), "nobody")):
            status, answer = daemon.request("POST", "/v1/runtimes", body)
            self.assertIn(status, (400, 404), answer)
            self.assertIn(text, answer["error"]["message"])
        self.assertEqual(daemon.list(), {})
        self.assertEqual(daemon.request("GET", "/nothing")[0], 404)
        self.assertEqual(daemon.request("GET", "/v1/runtimes/a%2fb")[0], 404)
        status, answer = daemon.request("PUT", "/v1/runtimes")
        self.assertEqual(status, 405)
        self.assertIn("GET, HEAD, POST", answer["error"]["message"])

    def test_garbage_truncated_and_huge_requests(self):
        daemon = self.daemon()
        for sent, status in ((b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
                             (b"hello\r\n\r\n", b"400"),
                             (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"400"),
                             (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n", b"431"),
                             (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
                             (b"POST /v1/runtimes HTTP/1.1\r\nHost: x\r\n"
                              b"Content-Length: 1048577\r\n\r\n" + b"x" * 1_048_577, b"413"),
                             (b"POST /v1/runtimes HTTP/1.1\r\nHost: x\r\n"
                              b"Content-Length: 99999999999\r\n\r\n" + b"x" * 3_000_000, b"413")):
            with daemon.raw() as client:
                try:
                    client.sendall(sent)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertTrue(all_of(client).startswith(b"HTTP/1.1 " + status), sent[:40])
        with daemon.raw() as client:
            client.sendall(b"POST /v1/runtimes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{}")
            client.shutdown(socket.SHUT_WR)
            self.assertTrue(all_of(client).startswith(b"HTTP/1.1 400"))
        with daemon.raw() as client:
            client.sendall(b"GET /v1/ver")
        self.assertEqual(daemon.request("GET", "/v1/version")[0], 200)

    def test_a_request_that_never_ends_is_timed_out(self):
        daemon = self.daemon()
        with daemon.raw() as client:
            client.sendall(b"GET /v1/version HTTP/1.1\r\nHost:")
            self.assertTrue(all_of(client).startswith(b"HTTP/1.1 408"))

    def test_a_request_split_at_every_byte(self):
        daemon = self.daemon()
        with daemon.raw() as client:
            for byte in b"GET /v1/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
                client.sendall(bytes([byte]))
            self.assertTrue(all_of(client).startswith(b"HTTP/1.1 200"))

    def test_pipelined_requests_and_keep_alive(self):
        daemon = self.daemon()
        with daemon.raw() as client:
            client.sendall(b"GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n" * 99 +
                           b"GET /v1/daemon HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            received = all_of(client)
        self.assertEqual(received.count(b"HTTP/1.1 200"), 100)
        self.assertLess(received.rfind(b'"api"'), received.find(b'"pid"'))
        connection = Unix(daemon.socket)
        for _ in range(3):
            connection.request("GET", "/v1/version")
            self.assertIn(b"version", connection.getresponse().read())
        connection.close()

    def test_a_followed_log_needs_http_1_1(self):
        daemon = self.daemon()
        body = {"type": "server", "name": "a", "options": {"port": free_port()}}
        self.assertEqual(daemon.request("POST", "/v1/runtimes", body)[0], 201)
        with daemon.raw() as client:
            client.sendall(b"GET /v1/runtimes/a/logs?follow=true HTTP/1.0\r\n\r\n")
            received = all_of(client)
        self.assertTrue(received.startswith(b"HTTP/1.1 400"), received)
        self.assertIn(b"needs HTTP/1.1", received)

    def test_too_many_connections_are_told_so(self):
        daemon = self.daemon()
        clients = []
        try:
            # Ones that are idle would be replaced.
            for _ in range(128):
                clients.append(daemon.raw())
                clients[-1].sendall(b"GET /v1/events HTTP/1.1\r\nHost: eddy\r\n\r\n")
            for client in clients:
                self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200"))
            with daemon.raw() as late:
                self.assertTrue(all_of(late).startswith(b"HTTP/1.1 503"))
        finally:
            for client in clients:
                client.close()
        refused = 1
        while daemon.run("ls").status != 0:  # closed connections are gone as soon as the daemon notices
            refused += 1
            self.assertLess(refused, 1000, "there is room again")
        self.assertEqual(daemon.metric("eddy_control_connections_refused_total"), refused)

    def test_clients_that_vanish_leave_nothing(self):
        daemon = self.daemon()
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        before = daemon.open_files()
        for i in range(300):
            # On a slow machine they exceed the limit of connections, and some are closed at once.
            with daemon.raw() as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                if i % 3 == 0:
                    client.sendall(b"GET /v1/runtimes/a/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n")
                elif i % 3 == 1:
                    client.sendall(b"GET /v1/runtimes HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: daemon.open_files() <= before, "the descriptors are back")
        eventually(lambda: daemon.metric("eddy_control_connections") == 1, "nobody else is there")

    def test_a_reader_of_logs_that_never_reads_costs_nothing(self):
        # A sanitizer has an empty daemon at 200 MiB, and would keep 256 MiB of what is freed.
        with mock.patch.dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1"):
            daemon = self.daemon()
        port = free_port()
        daemon.must("create", "server", "a", "-p", str(port), "-b", "-s")
        before = daemon.resident_kib()
        with daemon.raw() as idle:
            idle.sendall(b"GET /v1/runtimes/a/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n")
            with connect(port) as client:
                for _ in range(2000):
                    client.sendall(b"x" * 1000 + b"\n")
                    client.sendall((b"y" * 2000 + b"\n") * 20)
            eventually(lambda: daemon.list()["a"]["connections"] == 0, "all is read")
            self.assertLess(daemon.resident_kib() - before, 40 * 1024, "of 80 MB in lines")
            self.assertIn("yyy", daemon.must("logs", "-n", "5", "a"))

    def test_metrics_over_tcp_on_this_machine_alone(self):
        port = free_port()
        daemon = self.daemon(flags=["--metrics-port", str(port)])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        self.assertIn("eddy_uptime_seconds", page)
        self.assertIn("eddy_control_request_duration_seconds_bucket", page)
        for method, target, status in (("GET", "/v1/runtimes", 404), ("POST", "/metrics", 405),
                                       ("GET", "/v1/daemon", 404)):
            connection.request(method, target)
            response = connection.getresponse()
            response.read()
            self.assertEqual(response.status, status)
        connection.close()
        with open("/proc/net/tcp", encoding="ascii") as table:
            self.assertIn(f"0100007F:{port:04X} ", table.read())
        self.assertEqual(daemon.stop(), 0)

    def test_metrics_port_that_is_taken(self):
        with socket.socket() as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.listen()
            port = stranger.getsockname()[1]
            folder = self.folder()
            result = harness.Daemon(folder=folder).run("daemon", "--metrics-port", str(port),
                                                       "--backend", self.backend)
        self.assertEqual(result.status, 2)
        self.assertIn(str(port), result.err)
        self.assertIn("--metrics-port", result.err)
        self.assertEqual(result.out, "")

    def test_another_user_gets_403(self):
        if not harness.is_root():
            self.skipTest("only root can become another user")
        daemon = self.daemon()
        self.assertEqual(os.stat(daemon.socket).st_mode & 0o777, 0o600)
        script = ("import os,socket,sys\n"
                  "os.setgid(65534); os.setuid(65534)\n"
                  "s = socket.socket(socket.AF_UNIX)\n"
                  "try: s.connect(sys.argv[1])\n"
                  "except PermissionError: print('no permission'); sys.exit()\n"
                  "s.sendall(b'GET /v1/runtimes HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')\n"
                  "while True:\n"
                  "    piece = s.recv(4096)\n"
                  "    if not piece: break\n"
                  "    sys.stdout.write(piece.decode())\n")

        def as_nobody():
            return subprocess.run([sys.executable, "-c", script, daemon.socket], check=True,
                                  capture_output=True, timeout=harness.DEADLINE_S).stdout.decode()
        os.chmod(daemon.folder, 0o755)
        self.assertIn("no permission", as_nobody())
        # Even where the file lets them in, the daemon does not.
        os.chmod(daemon.socket, 0o666)
        answer = as_nobody()
        self.assertTrue(answer.startswith("HTTP/1.1 403"), answer)
        self.assertIn("65534", answer)
        self.assertEqual(daemon.request("GET", "/v1/version")[0], 200)

    @harness.needs_other_user
    def test_a_daemon_of_another_user_obeys_root(self):
        folder = self.folder()
        os.chown(folder, harness.OTHER_USER, harness.OTHER_USER)
        daemon = harness.Daemon(self.backend, folder)
        plain = daemon.command
        daemon.command = lambda: harness.as_user(harness.OTHER_USER, *plain())
        daemon.start()
        self.addCleanup(daemon.stop)
        port = free_port()
        daemon.must("create", "server", "a", "-p", str(port), "-s")
        with connect(port):
            pass
        refused = os.path.join(self.folder(), "r.sock")
        self.assert_refused(daemon.run("create", "server", "b", "--unix", refused, "-s"), 1,
                            refused, "ermission")
        self.assertEqual(daemon.list()["b"]["status"], "failed")

    def test_descriptors_run_out_and_come_back(self):
        if harness.sanitized():
            self.skipTest("a sanitizer's own checks need descriptors")
        daemon = self.daemon(limit_files=64, flags=["--loops", "1"])
        hogs = []
        try:
            for _ in range(64):
                hogs.append(daemon.raw())
            eventually(lambda: "control connections wait" in daemon.read_log(), "it says so")
            ticks = daemon.cpu_ticks()
            began = time.monotonic()
            eventually(lambda: time.monotonic() - began > 1.0, "a second")
            self.assertLess(daemon.cpu_ticks() - ticks, 30, "it does not spin")
            self.assertEqual(daemon.read_log().count("control connections wait"), 1)
        finally:
            for hog in hogs:
                hog.close()
        eventually(lambda: daemon.run("ls").status == 0, "it answers again")
        self.assertIn("again", daemon.read_log())

    def test_the_limit_of_descriptors_is_raised(self):
        daemon = self.daemon()
        soft = subprocess.run(["sh", "-c", "ulimit -Hn"], capture_output=True, check=True)
        hard = soft.stdout.decode().strip()
        if hard == "unlimited":
            self.skipTest("there is no limit here")
        self.assertEqual(daemon.metric("process_max_fds"), float(hard))


if __name__ == "__main__":
    harness.main()
