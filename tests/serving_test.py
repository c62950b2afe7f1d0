#!/usr/bin/env python3
"""Serving by runtimes of all types: TLS on their port by --tls, and several threads."""

import os
import shutil
import socket
import ssl

import harness
from cache_client import Client
from harness import connect, eventually, free_port, read_line


class ServingTest(harness.EddyTest):
    def setUp(self):
        self.behind = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.behind.close)
        self.running = self.daemon()
        self.port = free_port()

    def needed(self, kind):
        """Flags that a type cannot do without."""
        return {"http": ("--root", self.folder()),
                "proxy": ("--backend", "127.0.0.1:%d" % self.behind.getsockname()[1])}.get(kind, ())


@harness.on_each_backend
class Tls(ServingTest):
    def setUp(self):
        super().setUp()
        self.made = harness.Certificates(self.folder())

    def create(self, kind, *flags):
        created = self.running.run("create", kind, "x", "-p", str(self.port), "--tls", "--cert", self.made.cert,
                                   "--key", self.made.key, *self.needed(kind), *flags, "-s")
        if "does not have" in created.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(created.status, 0, created)

    def tls(self, own=False):
        made = self.made.connect(self.port, own)
        self.addCleanup(made.close)
        return made

    def shown_name(self):
        with self.made.connect(self.port) as over:
            return over.getpeercert()["subject"][0][0][1]

    def test_a_server_passes_lines_on(self):
        for threads in ("1", "3"):
            with self.subTest(threads):
                self.create("server", "--threads", threads)
                clients = [self.tls() for _ in range(4)]
                eventually(lambda: self.running.list()["x"]["connections"] == 4, "they are there")
                clients[0].sendall(b"hello\n")
                for each in clients[1:]:
                    self.assertEqual(read_line(each), "hello")
                self.running.must("stop", "x")
                self.running.must("remove", "x")

    def test_failed_handshakes_are_errors_and_no_connections(self):
        for kind in ("server", "cache", "http"):
            for threads in ("1", "2"):
                with self.subTest(kind=kind, threads=threads):
                    self.create(kind, "--threads", threads)
                    with connect(self.port) as plain:
                        plain.sendall(b"no handshake at all\r\n" * 10)
                        while plain.recv(1000):  # an alert at most
                            pass

                    def counted(what, type_of=kind):
                        return self.running.metric(f"eddy_runtime_{what}_total", runtime="x", type=type_of)

                    eventually(lambda: counted("errors") == 1, "the failure")
                    self.assertEqual(counted("connections"), 0)
                    self.assertIn("a handshake with a client failed: ", self.running.must("logs", "x"))
                    self.running.must("stop", "x")
                    self.running.must("remove", "x")

    def test_clients_show_a_certificate_where_they_must(self):
        for kind in ("server", "cache", "http", "proxy"):
            with self.subTest(kind):
                self.create(kind, "--ca", self.made.ca)
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    with self.made.connect(self.port) as without:
                        if not without.recv(1):
                            raise ConnectionError
                self.behind.settimeout(0)
                self.assertRaises(BlockingIOError, self.behind.accept)  # it is refused before it gets a backend
                for auth, own in (("required", True), ("optional", False), ("no", False)):
                    self.running.must("edit", "x", "--client-auth", auth)
                    with self.made.connect(self.port, own) as client:
                        self.assertEqual(client.version(), "TLSv1.3")
                        eventually(lambda: self.running.list()["x"]["connections"] == 1, "it is there")
                self.running.must("remove", "-f", "x")

    def test_renewed_certificates_need_no_restart(self):
        cert, key = self.made.named("renewed.example")
        for kind, threads in (("server", "1"), ("server", "2"), ("cache", "1"), ("http", "1"), ("http", "2")):
            with self.subTest(kind=kind, threads=threads):
                kept = [shutil.copy(each, each + ".kept") for each in (self.made.cert, self.made.key)]
                self.create(kind, "--threads", threads)
                old = self.tls()
                self.assertEqual(self.shown_name(), "server")
                shutil.copy(cert, self.made.cert)
                shutil.copy(key, self.made.key)
                self.running.must("reload", "x")
                context = self.made.context()
                context.check_hostname = False
                with context.wrap_socket(connect(self.port)) as over:
                    self.assertEqual(over.getpeercert()["subject"][0][0][1], "renewed.example")
                # Established connections stay.
                old.sendall(b"PING\r\n")
                os.remove(self.made.cert)
                refused = self.running.run("reload", "x")
                self.assertNotEqual(refused.status, 0)
                self.assertIn(f"--cert {self.made.cert} cannot be read: No such file", refused.err)
                for each, path in zip(kept, (self.made.cert, self.made.key)):
                    shutil.copy(each, path)
                self.running.must("stop", "x")
                self.running.must("remove", "x")

    def test_a_folder_of_certificates_serves_each_by_its_names(self):
        folder = os.path.join(self.folder(), "certificates")
        os.mkdir(folder)
        for name in ("a.example", "b.example"):
            for path in self.made.named(name):
                shutil.copy(path, folder)
        for kind in ("server", "cache", "http"):
            with self.subTest(kind):
                created = self.running.run("create", kind, "x", "-p", str(self.port), "--tls", "--cert", folder,
                                           *self.needed(kind), "-s")
                if "does not have" in created.err:
                    self.skipTest("this build has no TLS")
                self.assertEqual(created.status, 0, created)
                for name in ("b.example", "a.example"):
                    with self.made.context().wrap_socket(connect(self.port), server_hostname=name) as over:
                        self.assertEqual(over.getpeercert()["subject"][0][0][1], name)
                self.running.must("stop", "x")
                self.running.must("remove", "x")

    def test_a_site_speaks_http_1_1_and_reloads_with_a_log(self):
        log = os.path.join(self.folder(), "access.log")
        self.create("http", "--access-log", log)
        context = self.made.context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        with context.wrap_socket(connect(self.port), server_hostname="127.0.0.1") as over:
            self.assertEqual(over.selected_alpn_protocol(), "http/1.1")

            def ask():
                over.sendall(b"HEAD /missing HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(read_line(over), "HTTP/1.1 404 Not Found")
                while read_line(over):
                    pass

            def size():
                return os.path.exists(log) and os.path.getsize(log)

            ask()
            eventually(size, "a line in the log")
            os.rename(log, log + ".1")
            self.running.must("reload", "x")
            ask()
            eventually(size, "a line in the new log")

    def test_a_cache_serves_tls_on_its_port(self):
        self.create("cache")
        secret = Client(self.port, over=self.tls())
        self.assertEqual(secret("SET", "a", "1"), "+OK")
        self.assertEqual(secret("CONFIG", "GET", "tls-port"), [b"tls-port", str(self.port).encode()])
        self.assertEqual(secret("CONFIG", "GET", "port"), [b"port", b"0"])
        self.assertEqual(secret("CONFIG", "GET", "tls-cert-file"), [b"tls-cert-file", self.made.cert.encode()])
        self.assertEqual(secret("CONFIG", "GET", "tls-auth-clients"), [b"tls-auth-clients", b"no"])

    def test_a_site_serves_https_on_its_port(self):
        for threads in ("1", "2"):
            with self.subTest(threads):
                self.create("http", "--threads", threads)
                over = self.tls()
                over.sendall(b"GET /missing HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(read_line(over), "HTTP/1.1 404 Not Found")
                self.running.must("stop", "x")
                self.running.must("remove", "x")

    def test_what_cannot_be_is_refused(self):
        for kind in ("http", "server", "cache"):
            def refused(*flags):
                result = self.running.run("create", kind, "y", *self.needed(kind), *flags, "-s")
                self.assertNotEqual(result.status, 0)
                return result.err

            port = ("-p", str(free_port()))
            self.assertIn("--tls needs a certificate: add --cert FILE", refused(*port, "--tls"))
            self.assertIn("--cert has no effect without --tls", refused(*port, "--cert", self.made.cert))
            self.assertIn("--tls is served on a port", refused("--unix", "@none", "--tls", "--cert", self.made.cert))
            missing = os.path.join(self.folder(), "none.pem")
            self.assertIn(f"--cert {missing} cannot be read: No such file",
                          refused(*port, "--tls", "--cert", missing))
            self.running.run("remove", "y")
        self.assertIn("exclude each other", refused(*port, "--tls", "--cert", self.made.cert, "--tls-port", "1"))


@harness.on_each_backend
class Threads(ServingTest):
    def test_the_threads_of_each_type_have_its_name(self):
        for kind, letters in (("server", "sv"), ("cache", "db"), ("http", "ht"), ("proxy", "px")):
            with self.subTest(kind):
                def threads(prefix=f"{letters}-x-"):
                    return sum(name.startswith(prefix) for name in self.running.thread_names())

                self.running.must("create", kind, "x", "-p", "0", "--threads", "3", *self.needed(kind), "-s")
                self.assertEqual(threads(), 3)
                self.running.must("edit", "x", "--threads", "2")
                eventually(lambda: threads() == 2, "two threads")
                self.running.must("remove", "-f", "x")

    def test_a_server_has_threads_and_all_its_clients_reach_each_other(self):
        daemon = self.running
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "--threads", "3", "-s")
        self.assertEqual(sum(name.startswith("sv-chat") for name in daemon.thread_names()), 3)
        clients = [connect(port) for _ in range(7)]
        for each in clients:
            self.addCleanup(each.close)
        eventually(lambda: daemon.list()["chat"]["connections"] == 7, "they are counted")
        for number, sender in enumerate(clients):
            sender.sendall(f"{number}\n".encode())
            for other in clients:
                if other is not sender:
                    self.assertEqual(read_line(other), str(number))
        self.assertIn("delivered to 7", daemon.must("send", "chat", "hello"))
        for each in clients:
            self.assertEqual(read_line(each), "hello")
        daemon.must("edit", "chat", "--threads", "1")
        eventually(lambda: not any(name.startswith("sv-chat") for name in daemon.thread_names()), "the threads end")
        refused = daemon.run("create", "server", "u", "-p", "0", "--udp", "--threads", "2")
        self.assertIn("--threads has no effect with UDP", refused.err)

    def test_the_limit_of_clients_is_that_of_all_threads(self):
        daemon = self.running
        port = free_port()
        daemon.must("create", "server", "chat", "-p", str(port), "--threads", "3", "--max-connections", "4", "-s")
        clients = [connect(port) for _ in range(4)]
        for each in clients:
            self.addCleanup(each.close)
        eventually(lambda: daemon.list()["chat"]["connections"] == 4, "they are counted")
        with connect(port) as late:
            self.assertEqual(read_line(late), "error: the server is full; try again later")


if __name__ == "__main__":
    harness.main()
