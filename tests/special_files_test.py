#!/usr/bin/env python3
"""Files that block, or have no end, in place of files that options name: a FIFO, a device, a socket, a folder. Each is
refused by its name and kind, and neither the other runtimes of the loop nor the next start of the daemon wait for
it."""

import os
import shutil
import socket

import harness
from cache_client import client_of
from harness import connect, eventually, free_port, read_line


def fifo(path):
    os.mkfifo(path)


def device(path):
    os.symlink("/dev/zero", path)


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)


KINDS = {"it is a FIFO": fifo, "it is a character device": device, "it is a socket": bound_socket,
         "Is a directory": os.mkdir}


@harness.on_each_backend
class SpecialFiles(harness.EddyTest):
    def setUp(self):
        self.certificates = None
        # One loop: what blocks it blocks all.
        self.eddy = self.daemon(flags=["--loops", "1"])
        self.port = free_port()
        self.eddy.must("create", "server", "other", "-p", str(self.port), "-s")

    def others_answer(self):
        with connect(self.port) as one, connect(self.port) as another:
            eventually(lambda: self.eddy.show("other")["connections"] >= 2, "both clients")
            one.sendall(b"hello\n")
            self.assertEqual(read_line(another), "hello")

    def options(self):
        """(words of create, the file in question, a content that is right, or None for a file of data), one by one."""
        folder = self.folder()
        plain = os.path.join(folder, "file")
        yield ["server", "-p", str(free_port()), "--log", plain], plain, b""
        yield ["cache", "-p", str(free_port()), "--aclfile", plain], plain, b"user default on nopass ~* &* +@all\n"
        if "scripts" in harness.parts():
            yield ["cache", "-p", str(free_port()), "--hooks", plain], plain, b"function on_miss(key) end\n"
        for words, name, content in (([], "dump.rdb", None), ([], ".eddy-probe", None),
                                     (["--appendonly", "yes"], "appendonly.aof", None),
                                     (["--appendonly", "yes"], "appendonlydir/appendonly.aof.manifest", None)):
            kept = self.folder()
            os.mkdir(os.path.join(kept, "appendonlydir"))
            yield ["cache", "-p", str(free_port()), "--dir", kept, *words], os.path.join(kept, name), content
        kept = self.folder()
        os.mkdir(os.path.join(kept, "appendonlydir"))
        with open(os.path.join(kept, "appendonlydir/appendonly.aof.manifest"), "wb") as manifest:
            manifest.write(b"file appendonly.aof.1.incr.aof seq 1 type i\n")
        yield (["cache", "-p", str(free_port()), "--dir", kept, "--appendonly", "yes"],
               os.path.join(kept, "appendonlydir/appendonly.aof.1.incr.aof"), None)
        if "tls" in harness.parts() and shutil.which("openssl"):
            self.certificates = self.certificates or harness.Certificates(self.folder())
            cert, key = self.certificates.cert, self.certificates.key
            hashed = os.path.join(folder, "0123abcd.0")
            no_clients = ["--tls-auth-clients", "no"]
            for files, path, content in (([plain, key, *no_clients], plain, cert),
                                         ([cert, plain, *no_clients], plain, key),
                                         ([cert, key, "--tls-ca-cert-file", plain], plain, self.certificates.ca),
                                         ([cert, key, "--tls-ca-cert-dir", folder], hashed, self.certificates.ca)):
                yield (["cache", "--tls-port", str(free_port()), "--tls-cert-file", files[0], "--tls-key-file",
                        *files[1:]], path, read(content))

    def test_a_start_refuses_them(self):
        for kind, make in KINDS.items():
            for number, (words, path, content) in enumerate(self.options()):
                if make is os.mkdir and words[words.index(path) - 1 if path in words else 0] == "--tls-ca-cert-file":
                    continue  # a folder of authorities is taken as one
                with self.subTest(kind=kind, words=words):
                    name = f"x{number}"
                    make(path)
                    # Files of data are the daemon's own, and not options that can be corrected.
                    status = 2 if content is None and not path.endswith(".eddy-probe") else 1
                    result = self.eddy.run("create", *words[:1], name, *words[1:], "-s")
                    os.rmdir(path) if kind == "Is a directory" else os.remove(path)
                    self.assert_refused(result, status, path, kind)
                    self.others_answer()
                    if "--hooks" in words:  # scripts are read before anything is made
                        self.assertNotIn(name, self.eddy.list())
                        continue
                    self.assertEqual(self.eddy.list()[name]["status"], "failed")
                    self.eddy.must("remove", name)

    def test_a_running_one_goes_on_without_them(self):
        for words, path, content in self.options():
            if content is None or path.endswith(".0"):
                continue
            with self.subTest(words=words):
                write(path, content)
                self.eddy.must("create", *words[:1], "x", *words[1:], "-s")
                other = path + ".fifo"
                fifo(other)
                option = words[words.index(path) - 1]
                self.assert_refused(self.eddy.run("edit", "x", option, other), 1, other, "it is a FIFO")
                self.assertEqual(self.eddy.list()["x"]["status"], "running")
                os.remove(other)
                # The file itself is read again by a reload.
                os.remove(path)
                fifo(path)
                self.assert_refused(self.eddy.run("reload", "x"), 1, path, "it is a FIFO", "goes on as before")
                self.assertEqual(self.eddy.list()["x"]["status"], "running")
                self.others_answer()
                self.eddy.must("remove", "x")
                os.remove(path)

    def test_the_next_daemon_starts_the_others(self):
        expected = {}
        for number, (words, path, content) in enumerate(self.options()):
            if path.endswith("appendonly.aof") or "--tls-ca-cert-dir" in words:
                continue  # not read a second time; a folder of files that others name
            if content is not None:
                # Each its own, since all are there at the same time.
                own = f"{path}{number}"
                words = [own if word == path else word for word in words]
                path = own
                write(path, content)
            elif path.endswith(".incr.aof"):
                write(path, b"")
            name = f"x{number}"
            self.eddy.must("create", *words[:1], name, *words[1:], "-s")
            expected[name] = path
        self.eddy.stop()
        for path in expected.values():
            if os.path.exists(path):
                os.remove(path)
            fifo(path)
        self.eddy.start()
        self.others_answer()
        for name, path in expected.items():
            with self.subTest(name=name, path=path):
                shown = self.eddy.show(name)
                self.assertEqual(shown["status"], "failed")
                self.assertIn("it is a FIFO", shown["reason"])
                self.assertIn(path, shown["reason"])
                self.assertIn("could not start", self.eddy.must("logs", name))

    def test_a_stream_refuses_them(self):
        """It reads its files when its options are checked, which the control loop does."""
        path = os.path.join(self.folder(), "file")
        for option, backend, content, part in (("--lua", "lua", b"function handle(request) end\n", "scripts"),
                                               ("--key-file", "openai", b"a key\n", None)):
            if part and part not in harness.parts():
                continue
            words = ["create", "stream", "x", "--handoff", f"unix://{self.folder()}/s", "--backend", backend, option, path, "-s"]
            for kind, make in KINDS.items():
                make(path)
                self.assert_refused(self.eddy.run(*words), 1, option, path, kind)
                os.rmdir(path) if make is os.mkdir else os.remove(path)
                self.others_answer()
            write(path, content)
            self.eddy.must(*words)
            other = path + ".fifo"
            fifo(other)
            self.assert_refused(self.eddy.run("edit", "x", option, other), 1, other, "it is a FIFO")
            os.remove(other)
            os.remove(path)
            fifo(path)
            self.eddy.stop()
            self.eddy.start()
            self.others_answer()
            shown = self.eddy.show("x")
            self.assertEqual(shown["status"], "failed")
            self.assertIn("it is a FIFO", shown["reason"])
            os.remove(path)
            self.eddy.must("remove", "x")

    @harness.needs("tls")
    def test_the_authorities_of_a_folder_are_trusted(self):
        made, folder, port = harness.Certificates(self.folder()), self.folder(), free_port()
        write(os.path.join(folder, "0123abcd.0"), read(made.ca))
        self.eddy.must("create", "cache", "x", "--tls-port", str(port), "--tls-cert-file", made.cert, "--tls-key-file",
                       made.key, "--tls-ca-cert-dir", folder, "-s")
        with made.connect(port, own=True) as client:
            client.sendall(b"PING\r\n")
            self.assertEqual(read_line(client), "+PONG")
        with self.assertRaises((OSError, AssertionError)), made.connect(port) as client:
            client.sendall(b"PING\r\n")
            read_line(client)

    def test_commands_that_write_files_refuse_them(self):
        folder, port = self.folder(), free_port()
        users = os.path.join(folder, "users.acl")
        write(users, b"user default on nopass ~* &* +@all\n")
        self.eddy.must("create", "cache", "x", "-p", str(port), "--dir", folder, "--mode", "admin", "--aclfile", users,
                       "-s")
        client = client_of(self, port)
        client("SET", "key", "value")
        temporary = os.path.join(folder, "dump.rdb.tmp")
        fifo(temporary)
        self.assertIn("it is a FIFO", client("SAVE"))
        self.others_answer()
        self.assertEqual(client("SET", "key", "value"), client("SET", "key", "value"))
        # A failed one clears up: the next one is whole.
        self.assertEqual(client("SAVE"), "+OK")
        fifo_in_place = os.path.join(folder, "dump.rdb")
        os.remove(fifo_in_place)
        fifo(fifo_in_place)
        self.assertEqual(client("SAVE"), "+OK")
        self.assertTrue(os.path.isfile(fifo_in_place))
        os.remove(users)
        fifo(users)
        self.assertIn("it is a FIFO", client("ACL", "LOAD"))
        self.others_answer()
        self.assertEqual(client("ACL", "SAVE"), "+OK")
        self.assertTrue(os.path.isfile(users))
        self.assertEqual(client("CONFIG", "SET", "appendonly", "yes"), "+OK")
        eventually(lambda: client.info("persistence")["aof_rewrite_in_progress"] == "0", "the first snapshot")
        fifo(os.path.join(folder, "appendonlydir", "temp-rewriteaof-bg-0.aof"))
        client("BGREWRITEAOF")
        eventually(lambda: "it is a FIFO" in self.eddy.must("logs", "x"), "the rewrite's failure")
        self.others_answer()
        self.assertEqual(client("GET", "key"), b"value")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    harness.main()
