#!/usr/bin/env python3
"""Protection of a cache: TLS, protected mode, users in a file; and SHUTDOWN, CONFIG REWRITE and functions that are
kept, beside a real redis-server where there is one.
"""

import contextlib
import os
import re
import shutil
import ssl
import subprocess

import harness
from cache_client import Client, Redis, client_of
from harness import all_of, connect, eventually, free_port, read_line


def as_7_0(rules):
    """Users' rules without the word that 7.2 adds."""
    if isinstance(rules, list):
        return [as_7_0(each) for each in rules]
    word = b"sanitize-payload " if isinstance(rules, bytes) else "sanitize-payload "
    return rules.replace(word, word[:0])


class GuardTest(harness.EddyTest):
    def client(self, port):
        return client_of(self, port)

    def kept(self, made):
        self.addCleanup(made.close)
        return made

    def redis(self, *flags, folder=None):
        """A client of a redis-server with these flags."""
        return self.client(Redis(self, *flags, folder=folder).port)


@harness.on_each_backend
class CacheTls(GuardTest):
    def setUp(self):
        self.made = harness.Certificates(self.folder())
        self.running = self.daemon()
        self.port = free_port()

    def create(self, *flags):
        created = self.running.run("create", "cache", "db", "--tls-port", str(self.port), "--tls-cert-file",
                                   self.made.cert, "--tls-key-file", self.made.key, *flags, "-s")
        if "does not have" in created.err:
            self.skipTest("this build has no TLS")
        self.assertEqual(created.status, 0, created)

    def tls(self, own=False):
        return self.kept(Client(self.port, over=self.made.connect(self.port, own)))

    def test_both_ports_are_one_cache(self):
        plain_port = free_port()
        self.create("-p", str(plain_port), "--tls-auth-clients", "no")
        plain, secret = self.client(plain_port), self.tls()
        self.assertEqual(secret("SET", "a", "1"), "+OK")
        self.assertEqual(plain("GET", "a"), b"1")
        big = os.urandom(3_000_000)
        self.assertEqual(secret("SET", "big", big), "+OK")
        self.assertEqual(secret("GET", "big"), big)
        self.assertEqual(plain("CONFIG", "GET", "tls-port"), [b"tls-port", str(self.port).encode()])
        self.assertEqual(plain("CONFIG", "GET", "port"), [b"port", str(plain_port).encode()])
        self.assertEqual(plain("CONFIG", "GET", "tls-cert-file"), [b"tls-cert-file", self.made.cert.encode()])
        self.assertEqual(plain("CONFIG", "GET", "tls-auth-clients"), [b"tls-auth-clients", b"no"])
        self.assertEqual(plain("CONFIG", "SET", "tls-port", "1"),
                         "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - can't set immutable "
                         "config")
        # Messages and waits work as on the other port.
        secret.send("BLPOP", "list", "0")
        eventually(lambda: b"blocked_clients:1" in plain("INFO", "clients"), "it waits")
        plain("RPUSH", "list", "x")
        self.assertEqual(secret.reply(), [b"list", b"x"])
        # Both end with it.
        self.running.must("stop", "db")
        self.assertTrue(secret.ended())
        self.assertTrue(plain.ended())

    def test_threads_encrypt(self):
        plain_port = free_port()
        self.create("-p", str(plain_port), "--tls-auth-clients", "no", "--threads", "2")
        plain = self.client(plain_port)
        many = [self.tls() for _ in range(6)]
        for number, each in enumerate(many):
            self.assertEqual(each("SET", f"k{number}", b"v" * 100_000), "+OK")
            self.assertEqual(plain("GET", f"k{number}"), b"v" * 100_000)
        # Plain bytes end one connection and no other.
        with connect(self.port) as wrong:
            wrong.sendall(b"PING\r\n")
            while wrong.recv(1000):
                pass
        self.assertEqual(many[0]("PING"), "+PONG")
        self.running.must("stop", "db")
        self.assertTrue(all(each.ended() for each in many))

    def in_time(self):
        """A client that shook hands: while many wait to, each has a second, which a sanitizer can miss."""
        def client():
            with contextlib.suppress(OSError):
                return self.tls()
            return None
        return eventually(client, "a handshake in time")

    def test_those_who_never_shake_hands_leave_room_for_others(self):
        self.create("--tls-auth-clients", "no", "--threads", "2")
        silent = [self.kept(connect(self.port)) for _ in range(1100)]
        self.assertEqual(self.in_time()("PING"), "+PONG")
        for each in silent:
            each.close()
        self.assertEqual(self.in_time()("PING"), "+PONG")

    def test_redis_cli_speaks_to_it(self):
        if shutil.which("redis-cli") is None:
            self.skipTest("redis-cli is not installed")
        self.create("--tls-ca-cert-file", self.made.ca)
        done = subprocess.run(["redis-cli", "--tls", "--cacert", self.made.ca, "--cert", self.made.client_cert, "--key",
                               self.made.client_key, "-p", str(self.port), "PING"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if "Unrecognized option" in done.stdout:
            self.skipTest("this redis-cli has no TLS")
        self.assertEqual(done.stdout, "PONG\n")

    def test_clients_without_a_certificate_are_refused_unless_it_is_optional(self):
        self.create("--tls-ca-cert-file", self.made.ca)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.tls()("PING")
        self.assertEqual(self.tls(own=True)("PING"), "+PONG")
        self.running.must("edit", "db", "--tls-auth-clients", "optional")
        self.assertEqual(self.tls()("PING"), "+PONG")
        self.assertEqual(self.tls(own=True)("PING"), "+PONG")

    def test_versions_and_ciphers_are_those_that_were_chosen(self):
        self.create("--tls-auth-clients", "no")

        def agreed(*suites, newest=ssl.TLSVersion.TLSv1_3):
            """With a client that offers these of TLS 1.2, in that order."""
            context = self.made.context()
            context.maximum_version = newest
            if suites:
                context.set_ciphers(":".join(suites))
            over = context.wrap_socket(connect(self.port), server_hostname="127.0.0.1")
            with contextlib.closing(Client(self.port, over=over)) as client:
                self.assertEqual(client("PING"), "+PONG")
                return over.version(), over.cipher()[0]

        old, slow, fast = ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"
        self.assertEqual(agreed(), ("TLSv1.3", "TLS_AES_128_GCM_SHA256"))
        self.assertEqual(agreed(slow, fast, newest=old), ("TLSv1.2", fast))
        self.running.must("edit", "db", "--tls-prefer-server-ciphers", "no")
        self.assertEqual(agreed(), ("TLSv1.3", "TLS_AES_256_GCM_SHA384"))
        self.assertEqual(agreed(slow, fast, newest=old), ("TLSv1.2", slow))
        self.running.must("edit", "db", "--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "--tls-ciphers", fast)
        self.assertEqual(agreed(), ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"))
        self.assertEqual(agreed(slow, fast, newest=old), ("TLSv1.2", fast))
        self.running.must("edit", "db", "--tls-protocols", "TLSv1.3")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            agreed(newest=old)
        asked = self.tls()("CONFIG", "GET", "tls-[cp]*")
        self.assertEqual(dict(zip(asked[::2], asked[1::2])) | {b"tls-port": b""}, {
            b"tls-port": b"", b"tls-prefer-server-ciphers": b"no", b"tls-protocols": b"TLSv1.3",
            b"tls-ciphers": fast.encode(), b"tls-ciphersuites": b"TLS_CHACHA20_POLY1305_SHA256",
            b"tls-cert-file": self.made.cert.encode(), b"tls-ca-cert-file": b"", b"tls-ca-cert-dir": b"",
            b"tls-cluster": b"no"} | {})
        refused = self.running.run("edit", "db", "--tls-ciphers", "RUBBISH")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("RUBBISH", refused.err)

    def test_what_is_no_handshake_is_closed_and_holds_nobody_up(self):
        self.create("--tls-auth-clients", "no")
        silent = [connect(self.port) for _ in range(20)]
        for each in silent:
            self.addCleanup(each.close)
        with connect(self.port) as plain:
            plain.sendall(b"SET a 1\r\nFLUSHALL\r\n" * 10)
            # An alert at most, no reply.
            self.assertNotIn(b"+OK", all_of(plain))
        for part in (b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            with connect(self.port) as half:
                half.sendall(part)
        client = self.tls()
        self.assertEqual(client("EXISTS", "a"), 0)
        self.assertEqual(client("PING"), "+PONG")

    def test_files_that_cannot_be_used_are_told(self):
        for flags, text in (((self.made.key, self.made.key), "certificate"),
                            ((self.made.cert, self.made.client_key), "key"),
                            (("/nowhere/cert.pem", self.made.key), "/nowhere/cert.pem")):
            refused = self.running.run("create", "cache", "db", "--tls-port", str(self.port), "--tls-cert-file",
                                       flags[0], "--tls-key-file", flags[1], "--tls-auth-clients", "no", "-s")
            if "does not have" in refused.err:
                self.skipTest("this build has no TLS")
            self.assertNotEqual(refused.status, 0)
            self.assertIn(text, refused.err)
            self.running.run("remove", "db")


@harness.on_each_backend
class CacheProtection(GuardTest):
    def test_other_machines_are_refused_as_redis_does(self):
        if not harness.is_root() or shutil.which("ip") is None:
            self.skipTest("only root can make a network to come from")
        with Neighbour() as neighbour:
            if not neighbour.works:
                self.skipTest("no network can be made here")
            daemon, port = self.daemon(), free_port()
            daemon.must("create", "cache", "db", "-p", str(port), "--bind", "*", "-s")
            self.assertIn("protected mode", daemon.must("logs", "db"))
            here = self.client(port)
            denied = eventually(lambda: neighbour.ask(port, "PING"), "a reply over there")
            self.assertTrue(denied.startswith("-DENIED Redis is running in protected mode"), denied)
            if shutil.which("redis-server"):
                other = Redis(self)
                self.assertEqual(denied, eventually(lambda: neighbour.ask(other.port, "PING"), "redis-server"))
            self.assertEqual(here("PING"), "+PONG")
            here("CONFIG", "SET", "requirepass", "secret")
            self.assertTrue(neighbour.ask(port, "PING").startswith("-NOAUTH"))
            here("CONFIG", "SET", "requirepass", "")
            self.assertTrue(neighbour.ask(port, "PING").startswith("-DENIED"))
            here("CONFIG", "SET", "protected-mode", "no")
            self.assertEqual(neighbour.ask(port, "PING"), "+PONG")

    def test_other_machines_are_told_so_over_tls_too(self):
        if not harness.is_root() or shutil.which("ip") is None:
            self.skipTest("only root can make a network to come from")
        made = harness.Certificates(self.folder())
        with Neighbour() as neighbour:
            if not neighbour.works:
                self.skipTest("no network can be made here")
            daemon = self.daemon()
            for name, flags in (("one", ()), ("several", ("--threads", "2"))):
                port = free_port()
                created = daemon.run("create", "cache", name, "--tls-port", str(port), "--tls-cert-file", made.cert,
                                     "--tls-key-file", made.key, "--tls-auth-clients", "no", "--bind", "*", *flags,
                                     "-s")
                if "does not have" in created.err:
                    self.skipTest("this build has no TLS")
                self.assertEqual(created.status, 0, created)
                denied = eventually(lambda at=port: neighbour.ask(at, "PING", encrypted=True), "a reply")
                self.assertTrue(denied.startswith("-DENIED"), (name, denied))
                over = made.connect(port, False)
                self.assertEqual(self.kept(Client(port, over=over))("PING"), "+PONG")


class Neighbour:
    """A network namespace behind a pair of interfaces: a client that is not of this machine."""

    name = f"eddy{os.getpid()}"
    ours, theirs = "10.213.77.1", "10.213.77.2"

    def __enter__(self):
        self.works = (
            self._ip("netns", "add", self.name)
            and self._ip("link", "add", f"e{os.getpid()}", "type", "veth", "peer", "name", "far", "netns", self.name)
            and self._ip("addr", "add", f"{self.ours}/30", "dev", f"e{os.getpid()}")
            and self._ip("link", "set", f"e{os.getpid()}", "up")
            and self._ip("-n", self.name, "addr", "add", f"{self.theirs}/30", "dev", "far")
            and self._ip("-n", self.name, "link", "set", "far", "up"))
        return self

    def __exit__(self, *ignored):
        self._ip("link", "del", f"e{os.getpid()}")
        self._ip("netns", "del", self.name)

    @staticmethod
    def _ip(*words):
        return subprocess.run(["ip", *words], check=False, stderr=subprocess.DEVNULL).returncode == 0

    def ask(self, port, command, encrypted=False):
        """The first line of the reply to an inline command, from over there; empty if there is none."""
        program = ("import socket,ssl\n"
                   f"s=socket.create_connection(('{self.ours}',{port}),timeout={harness.DEADLINE_S})\n"
                   f"if {encrypted}: s=ssl._create_unverified_context().wrap_socket(s)\n"
                   f"s.sendall(b'{command}\\r\\n')\n"
                   "print(s.makefile().readline().strip())")
        done = subprocess.run(["ip", "netns", "exec", self.name, "python3", "-c", program], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.strip()


@harness.on_each_backend
class CacheWishes(GuardTest):
    def cache(self, daemon, *flags, name="db"):
        port = free_port()
        daemon.must("create", "cache", name, "-p", str(port), *flags, "-s")
        return self.client(port)

    def test_a_browser_is_closed_before_its_commands_run(self):
        for owner in (self.cache(self.daemon()), self.redis()):
            self.assertEqual(owner("SET", "a", "1"), "+OK")
            for first in ("POST / HTTP/1.1", "GET /FLUSHALL HTTP/1.1"):
                with connect(owner.port) as page:
                    page.sendall((f"{first}\r\nHost: localhost:{owner.port}\r\nUser-Agent: x\r\n\r\n"
                                  "FLUSHALL\r\nQUIT\r\n").encode())
                    answer = b""
                    with contextlib.suppress(ConnectionResetError):
                        while piece := page.recv(4096):
                            answer += piece
                self.assertNotIn(b"OK", answer)
                self.assertEqual(owner("GET", "a"), b"1", first)

    def test_faults_in_a_file_of_users_read_as_those_of_redis(self):
        path = os.path.join(self.folder(), "users.acl")
        with open(path, "w", encoding="utf-8") as file:
            file.write("user default on nopass ~* &* +@all\n")
        ours, theirs = self.cache(self.daemon(), "--aclfile", path), self.redis("--aclfile", path)
        for text in ("user a on\n\nuser b on +nosuch +@nowhere &* &x ~* ~y\n", "users a on\n", "user\n",
                     "user a on\nuser a off\n", "  \t\n user a on +get|x|y\n", "user a on #abc\n", "user a on %X~a\n",
                     "user a on +@all <nobody\n", "user a on nonsense\nuser b on rubbish\n",
                     "user ok on >pw ~k* %R~r* &c* -@all +@read (+set ~s*) (+del ~d*)\n",
                     "user default on nopass ~* &* +@all\nuser b off\n"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(ours("ACL", "LOAD"), theirs("ACL", "LOAD"), text)
            self.assertEqual(as_7_0(ours("ACL", "LIST")), as_7_0(theirs("ACL", "LIST")), text)
            if "default" not in text:
                continue
            self.assertEqual(theirs("ACL", "SAVE"), "+OK")
            with open(path, encoding="utf-8") as file:
                written = file.read()
            self.assertEqual(ours("ACL", "SAVE"), "+OK")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(as_7_0(file.read()), as_7_0(written))

    def test_renamed_commands_are_those_of_redis(self):
        theirs = self.redis("--rename-command", "FLUSHALL", "wipe", "--rename-command", "DEBUG", "",
                            "--rename-command", "GET", "fetch")
        ours = self.cache(self.daemon(), "--rename-command", "FLUSHALL=wipe,DEBUG=,GET=fetch")
        for line in ("SET a 1", "GET a", "fetch a", "FETCH", "FLUSHALL", "DEBUG x", "COMMAND GETKEYS fetch a",
                     "COMMAND GETKEYS get a", "COMMAND INFO get", "ACL SETUSER b on nopass ~* +get",
                     "ACL SETUSER b +fetch", "ACL DRYRUN b fetch a", "ACL DRYRUN b get a", "ACL LIST", "WIPE",
                     "DBSIZE", "MULTI", "fetch a", "GET a", "EXEC", "COMMAND LIST FILTERBY PATTERN ge?",
                     "COMMAND LIST FILTERBY PATTERN fet*", "COMMAND LIST FILTERBY PATTERN debu*"):
            got, wanted = ours(*line.split()), theirs(*line.split())
            self.assertEqual(*((as_7_0(got), as_7_0(wanted)) if line == "ACL LIST" else (got, wanted)), line)
        for script in ("return redis.pcall('fetch','a')", "return redis.pcall('get','a').err"):
            if "scripts" in harness.parts():
                self.assertEqual(ours("EVAL", script, "0"), theirs("EVAL", script, "0"), script)

    def test_shutdown_stops_the_runtime_for_good(self):
        folder, disk = self.folder(), self.folder()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, "--mode", "admin", "--dir", disk, "--save", "off")
        self.assertEqual(client("SET", "a", "1"), "+OK")
        client.send("SHUTDOWN", "SAVE")
        self.assertTrue(client.ended())
        eventually(lambda: daemon.list()["db"]["status"] == "stopped", "it is stopped")
        self.assertEqual(os.listdir(disk), ["dump.rdb"])
        self.assertIn("SHUTDOWN", daemon.must("logs", "db"))
        daemon.stop()
        daemon = self.daemon(folder=folder)
        self.assertEqual(daemon.list()["db"]["status"], "stopped")
        daemon.must("start", "db")
        client = self.client(daemon.list()["db"]["port"])
        self.assertEqual(client("GET", "a"), b"1")
        client("SET", "a", "2")
        client.send("SHUTDOWN")
        self.assertTrue(client.ended())
        eventually(lambda: daemon.list()["db"]["status"] == "stopped", "it is stopped again")
        daemon.must("start", "db")
        client = self.client(daemon.list()["db"]["port"])
        self.assertEqual(client("GET", "a"), b"1")
        daemon.must("edit", "db", "--mode", "readwrite")
        self.assertIn("--mode admin", self.client(daemon.list()["db"]["port"])("SHUTDOWN"))

    def test_config_rewrite_is_there_after_a_restart_of_the_daemon(self):
        folder = self.folder()
        daemon = self.daemon(folder=folder)
        client = self.cache(daemon, "--maxmemory", "1G")
        self.assertEqual(client("CONFIG", "SET", "maxmemory", "2gb", "maxmemory-policy", "allkeys-lru", "requirepass",
                                "secret", "slowlog-max-len", "7"), "+OK")
        self.assertEqual(client("CONFIG", "REWRITE"), "+OK")
        self.assertEqual(daemon.show("db")["options"]["eviction"], "allkeys-lru")
        daemon.kill()
        daemon = self.daemon(folder=folder)
        eventually(lambda: daemon.list()["db"]["status"] == "running", "it runs again")
        client = self.client(daemon.list()["db"]["port"])
        self.assertTrue(client("PING").startswith("-NOAUTH"))
        self.assertEqual(client("AUTH", "secret"), "+OK")
        for name, value in (("maxmemory", b"2147483648"), ("maxmemory-policy", b"allkeys-lru"),
                            ("slowlog-max-len", b"7")):
            self.assertEqual(client("CONFIG", "GET", name), [name.encode(), value])
        # A setting back at its default is not kept.
        client("CONFIG", "SET", "requirepass", "", "slowlog-max-len", "128")
        self.assertEqual(client("CONFIG", "REWRITE"), "+OK")
        self.assertNotIn("config", daemon.show("db")["options"])

    def test_passwords_may_have_any_byte(self):
        folder, users = self.folder(), os.path.join(self.folder(), "users.acl")
        with open(users, "wb"):
            pass
        daemon = self.daemon(folder=folder)
        client, guarded = self.cache(daemon), self.cache(daemon, "--aclfile", users, name="users")
        every = bytes(range(256))
        for password in (every, b"p\xff", b"\xc3\x28", "p\u00e4ss".encode(), b"\xef\xbf\xbd"):
            self.assertEqual(client("CONFIG", "SET", "requirepass", password, "masterauth", password[::-1]), "+OK")
            self.assertEqual(client("CONFIG", "REWRITE"), "+OK")
            self.assertEqual(guarded("ACL", "SETUSER", "u", "reset", "on", "+@all", b">" + password), "+OK")
            self.assertEqual(guarded("ACL", "SAVE"), "+OK")
            daemon.kill()
            daemon = self.daemon(folder=folder)
            eventually(lambda now=daemon: {each["status"] for each in now.list().values()} == {"running"}, "the start")
            client, guarded = (self.client(daemon.list()[name]["port"]) for name in ("db", "users"))
            self.assertTrue(client("AUTH", password + b"x").startswith("-WRONGPASS"))
            self.assertEqual(client("AUTH", password), "+OK")
            self.assertEqual(client("CONFIG", "GET", "masterauth"), [b"masterauth", password[::-1]])
            self.assertEqual(guarded("AUTH", "u", password), "+OK")
        # A replica gives the same bytes; options that are no UTF-8 are refused, not changed.
        copy = self.cache(daemon, "--replicate", f"127.0.0.1:{client.port}",
                          "--config", "masterauth \"\\xef\\xbf\\xbd\"", name="copy")
        eventually(lambda: copy.info("replication").get("master_link_status") == "up", "the link")
        for words in (["edit", "copy", "--config", "masterauth p\udcff"], ["edit", "copy", "--dir", "/tmp/p\udcff"],
                      ["create", "cache", "other", "--config", "requirepass p\udcff"]):
            self.assert_refused(daemon.run(*words), 1, words[-2], "no UTF-8")
        self.assertEqual(daemon.show("copy")["options"]["config"], "masterauth ***")

    def test_passwords_are_not_shown_and_stay_when_other_options_change(self):
        daemon = self.daemon()
        port = free_port()
        daemon.must("create", "cache", "c", "-p", str(port), "--config", "requirepass s3cret; hz 50",
                    "--replicate", f"127.0.0.1:{free_port()}", "--replicate-password", "an0ther", "-s")
        for shown in (daemon.must("show", "c"), daemon.must("ls", "--json")):
            self.assertNotIn("s3cret", shown)
            self.assertNotIn("an0ther", shown)
        self.assertIn("requirepass ***; hz 50", daemon.must("show", "c"))
        daemon.must("edit", "c", "--config", "requirepass ***; hz 50", "--max-connections", "77")
        client = self.client(port)
        self.assertTrue(client("PING").startswith("-NOAUTH"))
        self.assertEqual(client("AUTH", "s3cret"), "+OK")
        self.assert_refused(daemon.run("edit", "c", "--config", "requirepass ***; hz 60"), 1,
                            "in the place of a password")

    def test_functions_go_to_redis_and_come_back(self):
        code = "#!lua name={0}\nredis.register_function('{0}', function(keys, args) return '{0} ' .. args[1] end)"
        disk, daemon = self.folder(), self.daemon()
        ours = self.cache(daemon, "--dir", disk)
        loaded = ours("FUNCTION", "LOAD", code.format("mine"))
        if "built without" in str(loaded):
            self.skipTest("this build has no scripts")
        self.assertEqual(loaded, b"mine")
        ours("SET", "a", "1")
        self.assertEqual(ours("SAVE"), "+OK")
        theirs = self.redis(folder=disk)
        self.assertEqual(theirs("FCALL", "mine", "0", "x"), b"mine x")
        self.assertEqual(theirs("FUNCTION", "LOAD", code.format("theirs")), b"theirs")
        self.assertEqual(theirs("GET", "a"), b"1")
        self.assertEqual(theirs("SAVE"), "+OK")
        other = self.folder()
        shutil.copy(os.path.join(disk, "dump.rdb"), other)
        back = self.cache(daemon, "--dir", other, name="back")
        for name in ("mine", "theirs"):
            self.assertEqual(back("FCALL", name, "0", "y"), f"{name} y".encode())
        self.assertEqual(sorted(each[1] for each in back("FUNCTION", "LIST")), [b"mine", b"theirs"])

    def test_the_largest_values(self):
        if harness.sanitized():
            self.skipTest("it takes too much memory with a sanitizer")
        if free_memory() < 3 << 30:
            self.skipTest("less than 3 GiB of memory are free")
        client = self.cache(self.daemon())
        largest, piece = 512 << 20, b"x" * (1 << 20)
        # In pieces both ways, so that the test itself does not hold it all.
        client.socket.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n" % largest)
        for _ in range(largest // len(piece)):
            client.socket.sendall(piece)
        client.socket.sendall(b"\r\n")
        self.assertEqual(client.reply(), "+OK")
        self.assertEqual(client("STRLEN", "a"), largest)
        self.assertEqual(client("APPEND", "a", "x"), "-ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        self.assertEqual(client("SETRANGE", "a", largest, "x"),
                         "-ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        client.send("GET", "a")
        self.assertEqual(client.stream.readline(), b"$%d\r\n" % largest)
        for _ in range(largest // len(piece)):
            self.assertTrue(client.stream.read(len(piece)) == piece)
        self.assertEqual(client.stream.read(2), b"\r\n")
        too_large = self.client(client.socket.getpeername()[1])
        too_large.socket.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\n" % (513 << 20))
        self.assertEqual(read_line(too_large.socket), "-ERR Protocol error: invalid bulk length")
        self.assertEqual(client("EXISTS", "b"), 0)


def free_memory():
    """Bytes that this machine, or the group of processes that the test is in, has left."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = int(re.search(r"MemAvailable:\s+(\d+) kB", file.read()).group(1)) * 1024
    with contextlib.suppress(OSError, ValueError):  # "max", or no such group
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit, \
                open("/sys/fs/cgroup/memory.current", encoding="ascii") as used:
            free = min(free, int(limit.read()) - int(used.read()))
    return free


if __name__ == "__main__":
    harness.main()
