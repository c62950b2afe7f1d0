#!/usr/bin/env python3
"""Names and owners: `eddy rename`, `restart`, `owner`, --on-parent-stop, and questions before a cascade; forms of
`eddy ls`."""

import json
import os
import pty
import subprocess

import harness
from flag_effects import FlagTest
from harness import connect, eventually, free_port, read_line


def ask_cache(client, text):
    client.sendall(text.encode() + b"\r\n")
    return read_line(client)


@harness.on_each_backend
class Rename(FlagTest):
    def test_a_running_runtime_goes_on(self):
        daemon = self.daemon()
        port = self.create(daemon, "cache", "old")
        for name in ("child", "other"):
            daemon.must("create", "server", name, "-p", str(free_port()), *(["-o", "old"] if name == "child" else []))
        with connect(port) as client:
            self.assertEqual(ask_cache(client, "SET k v"), "+OK")
            self.assertEqual(daemon.must("rename", "old", "new"), "old is new now\n")
            client.sendall(b"GET k\r\n")
            self.assertEqual([read_line(client), read_line(client)], ["$1", "v"])
        self.assertEqual({name: each["owner"] for name, each in daemon.list().items()},
                         {"child": "new", "new": "", "other": ""})
        self.assertEqual(sorted(os.listdir(os.path.join(daemon.state, "runtimes"))), ["child.json", "new.json", "other.json"])
        log = daemon.must("logs", "new")
        self.assertIn("created", log, "its log stays with it")
        self.assertIn("renamed from old", log)
        self.assert_refused(daemon.run("show", "old"), 1, "old")
        self.create(daemon, "server", "old")
        self.assertEqual(daemon.must("restart", "new"), f"new restarted on 127.0.0.1:{port}\n")
        with connect(port) as client:
            client.sendall(b"GET k\r\n")
            self.assertEqual([read_line(client), read_line(client)], ["$1", "v"], "its keys stay over a restart")
        self.assertEqual(daemon.stop(), 0)
        with harness.Daemon(folder=daemon.folder, backend=self.backend) as again:
            self.assertEqual({name: (each["owner"], each["status"]) for name, each in again.list().items()},
                             {"child": ("new", "stopped"), "new": ("", "running"), "old": ("", "running"),
                              "other": ("", "stopped")})
            self.assertIn("renamed from old", again.must("logs", "new"))

    def test_others_follow_the_new_name(self):
        daemon = self.daemon()
        self.create(daemon, "server", "a")
        port = self.create(daemon, "proxy", "p", "--backend", "b")
        self.assertIn("reason", daemon.show("p"))
        daemon.must("rename", "a", "b")
        eventually(lambda: "reason" not in daemon.show("p"), "the proxy has found it by its new name")
        with connect(port) as one:
            eventually(lambda: daemon.show("b")["connections"] == 1, "it is passed on")
            self.assertEqual(daemon.must("send", "b", "hello"), "delivered to 1\n")
            self.assertEqual(read_line(one), "hello")
        daemon.must("stop", "b")
        daemon.must("start", "b")

    def test_refusals(self):
        daemon = self.daemon()
        for name in ("a", "b"):
            self.create(daemon, "server", name)
        self.assert_refused(daemon.run("rename", "a", "b"), 1, "already")
        self.assert_refused(daemon.run("rename", "a", "../b"), 1, "1 to 128")
        self.assert_refused(daemon.run("rename", "nobody", "c"), 1, "nobody")
        daemon.must("rename", "a", "a")
        self.assertEqual(sorted(daemon.list()), ["a", "b"])

    def test_a_crash_in_the_middle_leaves_one(self):
        daemon = self.daemon()
        daemon.must("create", "server", "old", "-p", str(free_port()))
        daemon.must("create", "server", "child", "-p", str(free_port()), "-o", "old")
        folder = os.path.join(daemon.state, "runtimes")
        kept = {}
        for name in ("old", "child"):
            with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
                kept[name] = file.read()
        daemon.must("rename", "old", "new")
        self.assertEqual(daemon.stop(), 0)
        # As before the old record was removed, and the owner was saved.
        for name, text in kept.items():
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
                file.write(text)
        with harness.Daemon(folder=daemon.folder, backend=self.backend) as again:
            self.assertEqual({name: each["owner"] for name, each in again.list().items()}, {"child": "new", "new": ""})
        self.assertEqual(sorted(os.listdir(folder)), ["child.json", "new.json"])


class Owners(FlagTest):
    def family(self, daemon):
        self.create(daemon, "server", "boss")
        for policy in ("stop", "remove", "keep"):
            self.create(daemon, "server", policy, "-o", "boss", "--on-parent-stop", policy)

    def states(self, daemon):
        return {name: each["status"] for name, each in daemon.list().items()}

    def test_what_a_stop_of_the_owner_means(self):
        daemon = self.daemon()
        self.family(daemon)
        daemon.must("stop", "boss")
        self.assertEqual(self.states(daemon), {"boss": "stopped", "stop": "stopped", "keep": "running"})

    def test_what_a_removal_of_the_owner_means(self):
        daemon = self.daemon()
        self.family(daemon)
        self.assertEqual(daemon.must("remove", "boss"), "boss removed, and what it owned: remove, stop\n")
        self.assertEqual(self.states(daemon), {"keep": "running"})
        self.assertEqual(daemon.show("keep")["owner"], "")

    def test_it_is_stored_and_edited(self):
        daemon = self.daemon()
        self.family(daemon)
        daemon.must("edit", "stop", "--on-parent-stop", "keep")
        self.assert_refused(daemon.run("edit", "stop", "--on-parent-stop", "cry"), 1, "stop, remove or keep")
        self.assertEqual(daemon.stop(), 0)
        with harness.Daemon(folder=daemon.folder) as again:
            self.assertEqual(again.show("stop")["on_parent_stop"], "keep")
            self.assertEqual(again.must("edit", "stop", "--unset", "on-parent-stop"), "stop changed\n")
            self.assertEqual(again.show("stop")["on_parent_stop"], "stop")

    def test_owner(self):
        daemon = self.daemon()
        self.family(daemon)
        self.create(daemon, "server", "new")
        self.assertEqual(daemon.must("owner", "keep"), "owner: boss\n")
        self.assertEqual(daemon.must("owner", "boss").splitlines(),
                         ["owner: none", "owns: keep (--on-parent-stop keep)", "owns: remove (--on-parent-stop remove)",
                          "owns: stop (--on-parent-stop stop)"])
        self.assertEqual(daemon.must("owner", "keep", "new"), "keep is owned by new\n")
        self.assertEqual(daemon.json("owner", "new")["owns"], [{"name": "keep", "on_parent_stop": "keep"}])
        self.assertEqual(daemon.must("owner", "keep", "--clear"), "keep has no owner\n")
        self.assert_refused(daemon.run("owner", "keep", "new", "--clear"), 1, "leave out")
        self.assert_refused(daemon.run("owner", "keep", "keep"), 1, "own itself")
        daemon.must("owner", "stop", "new")
        daemon.must("edit", "stop", "--unset", "owner")
        self.assertEqual(daemon.show("stop")["owner"], "")

    def answer(self, daemon, answer, *words):
        """Runs a command at a terminal on which the answer is typed."""
        master, terminal = pty.openpty()
        try:
            os.write(master, answer)
            done = subprocess.run([harness.BINARY, *words], env=daemon.environment(), stdin=terminal, stdout=terminal,
                                  stderr=subprocess.PIPE, timeout=harness.DEADLINE_S, check=False)
        finally:
            os.close(terminal)
            os.close(master)
        return done.returncode, done.stderr.decode()

    def test_a_cascade_is_shown_and_asked_for(self):
        daemon = self.daemon()
        self.family(daemon)
        before = self.states(daemon)
        status, err = self.answer(daemon, b"n\n", "stop", "boss")
        self.assertEqual(status, 1)
        self.assertIn("stopping boss also stops stop; removes remove; keeps keep\n", err)
        self.assertIn("nothing was stopped", err)
        status, err = self.answer(daemon, b"\x04", "remove", "boss")
        self.assertEqual(status, 1)
        self.assertIn("boss, which runs, is removed\n", err)
        self.assertIn("removing boss also removes remove, stop; keeps keep\n", err)
        self.assertEqual(self.states(daemon), before)
        self.assertEqual(self.answer(daemon, b"y\n", "stop", "boss")[0], 0)
        self.assertEqual(self.states(daemon), {"boss": "stopped", "stop": "stopped", "keep": "running"})
        self.assertEqual(self.answer(daemon, b"", "remove", "--yes", "boss"), (0, ""))
        self.assertEqual(self.answer(daemon, b"", "stop", "keep"), (0, ""), "nothing goes with it")
        daemon.must("create", "server", "a", "-p", str(free_port()), "-s")
        daemon.must("edit", "keep", "-o", "a")
        daemon.must("start", "keep")
        daemon.must("edit", "keep", "--on-parent-stop", "stop")
        self.assertEqual(self.answer(daemon, b"", "stop", "-y", "a"), (0, ""))


class Listing(FlagTest):
    def test_forms(self):
        daemon = self.daemon()
        folder = self.folder()
        port = self.create(daemon, "server", "a", "-g", "web")
        daemon.must("create", "cache", "b", "--listen", f"unix://{folder}/b.sock", "-s")
        daemon.must("create", "stream", "c", "--handoff", f"unix://{folder}/c.sock")
        self.assertEqual(daemon.must("ls", "--format", "name,port").splitlines(),
                         ["NAME  PORT", f"a     {port}", "b     -", "c     -"])
        self.assertEqual(daemon.must("ls", "--format", "table {{.Names}}\\t{{.Status}}").splitlines()[1].split(),
                         ["a", "running"])
        self.assertEqual([json.loads(line)["name"] for line in daemon.must("ls", "--format", "json").splitlines()],
                         ["a", "b", "c"])
        self.assertEqual(daemon.must("ls", "--format", "wide"), daemon.must("ls", "--wide"))
        self.assertEqual(daemon.must("ls", "--format", "table"), daemon.must("ls"))
        wide = daemon.must("ls", "--wide")
        self.assertIn(f"{folder}/b.sock", wide)
        self.assertIn(f"unix://{folder}/c.sock", wide)
        self.assertIn(f"127.0.0.1:{port}", wide)
        self.assert_refused(daemon.run("ls", "--format", "{nmae}"), 1, "{nmae}", "on_parent_stop")

    def test_filters(self):
        daemon = self.daemon()
        for name, kind in (("a", "server"), ("b", "cache"), ("c", "server")):
            daemon.must("create", kind, name, "-p", str(free_port()), "-g", "web" if name == "a" else "")
        daemon.must("start", "b")
        daemon.must("edit", "c", "-o", "a")
        for words, names in ((("type=server",), "ac"), (("status=running",), "b"), (("group=web",), "a"), (("owner=a",), "c"),
                             (("name=[bc]",), "bc"), (("type=server", "owner=",), "a"), (("type=cache,server",), "abc")):
            flags = [flag for word in words for flag in ("--filter", word)]
            self.assertEqual("".join(daemon.must("ls", "-q", *flags).split()), names, words)
        self.assertEqual(daemon.must("ps", "-q"), "b\n")
        self.assertEqual(daemon.must("ps", "-aq"), "a\nb\nc\n")
        self.assert_refused(daemon.run("ls", "--filter", "colour=red"), 1, "type, status")

    def test_words_of_docker(self):
        daemon = self.daemon()
        self.create(daemon, "server", "a")
        self.assertEqual(daemon.json("inspect", "a")["name"], "a")
        self.assertEqual(daemon.must("logs", "a", "--tail", "1", "-t"), daemon.must("logs", "a", "-n", "1"))
        self.assertEqual(daemon.must("logs", "a", "--tail", "all"), daemon.must("logs", "a"))
        self.assertEqual(daemon.must("rm", "-f", "a"), "a removed\n")
        for word, meant in (("run", "eddy create TYPE NAME -s"), ("exec", "eddy db NAME COMMAND"), ("kill", "--force"),
                            ("port", "{address}"), ("pull", "no images")):
            self.assert_refused(daemon.run(word, "a"), 1, f'no command "{word}"', meant)
        for words, hint in ((("ls", "--tail", "5"), "eddy logs --tail"), (("logs", "a", "-a"), "eddy ls"),
                            (("create", "cache", "x", "--evict", "y"), "did you mean --eviction?"),
                            (("create", "cache", "x", "-d"), "in the background"),
                            (("stop", "a", "--format", "x"), "eddy ls --format"), (("create", "cache", "x", "--name", "y"), "TYPE NAME")):
            self.assert_refused(daemon.run(*words), 1, "there is no flag", hint)
        daemon.must("create", "cache", "b", "--resp", "-p", str(free_port()))
        self.assert_refused(daemon.run("create", "server", "c", "--resp"), 1, "--resp")


if __name__ == "__main__":
    harness.main()
