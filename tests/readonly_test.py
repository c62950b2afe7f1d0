#!/usr/bin/env python3
"""--mode readonly: no command that a client can send changes keys, files, users, functions or settings.

All commands and subcommands that COMMAND names are tried with arguments made from COMMAND DOCS, and those
that change something with arguments by hand. That these arguments would change it is seen beside a cache
in mode readwrite.
"""

import os
import random

import harness
from cache_client import Client, client_of
from harness import eventually, free_port

CODE = "#!lua name=%s\nredis.register_function('%s', function(keys) return redis.call('SET', keys[1], 'by function') end)"
WRITER = "return redis.call('SET', KEYS[1], 'by script')"

# Keys of each type, so that a command finds what it is for.
KEYS = {"string": ["text", "number"], "bitmap": ["text"], "hyperloglog": ["counter"], "list": ["list"], "set": ["set"],
        "hash": ["hash", "timed"], "sortedset": ["sorted"], "geo": ["places"], "stream": ["stream"]}
FILL = [("SET", "text", "abc"), ("SET", "number", 7), ("PFADD", "counter", "a", "b"), ("RPUSH", "list", "a", "b", "a"),
        ("SADD", "set", "a", "b", "1"), ("HSET", "hash", "f", "1", "a", "2"), ("ZADD", "sorted", 1, "a", 2, "b"),
        ("GEOADD", "places", 13.4, 52.5, "a", 2.3, 48.9, "b"), ("XADD", "stream", "1-1", "f", "v"),
        ("XGROUP", "CREATE", "stream", "g", "0"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">"),
        ("SET", "ends", "x", "EX", 100000), ("HSET", "timed", "f", "1"), ("HEXPIRE", "timed", 100000, "FIELDS", 1, "f"),
        ("SELECT", 1), ("SET", "text", "of another database"), ("SELECT", 0)]

# Values for arguments of these names; other arguments get a value by their type.
BY_NAME = {
    "group": ["g", "new"], "consumer": ["c", "new"], "groupname": ["g"], "consumername": ["c", "new"],
    "field": ["f", "a", "new"], "member": ["a", "b", "new"], "element": ["a", "new"], "pivot": ["a"],
    "id": ["*", "1-1", "0"], "last-id": ["9-9"], "min-idle-time": ["0"], "threshold": ["0"], "value": ["1", "x", "0.5"],
    "script": [WRITER], "function": ["touch"], "function-code": [CODE % ("other", "more")],
    "library-name": ["lib"], "username": ["alice"], "rule": ["+@all"], "host": ["127.0.0.1"], "offset": ["0"],
    "longitude": ["13"], "latitude": ["52"], "operation": ["XOR"], "encoding": ["u8"], "min": ["0", "-"], "max": ["9", "+"],
    "index": ["0"], "index1": ["0"], "index2": ["1"], "newkey": ["fresh"], "destination-db": ["1"], "db": ["1"],
    "numkeys": ["1"], "seconds": ["100"], "milliseconds": ["100"], "timeout": ["0.01"], "count": ["1"],
}
# Not by these means: they would end the test's own connections, or have no reply.
LEFT_OUT = {"client|kill", "client|pause", "client|reply", "replconf", "sync", "psync", "quit", "monitor"}

# Commands that a client must not run, with arguments that would change something.
CHANGES = [
    ("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "allkeys-random"),
    ("CONFIG", "SET", "save", ""), ("CONFIG", "SET", "slowlog-max-len", "3"),
    ("CONFIG", "SET", "notify-keyspace-events", "KEA"), ("CONFIG", "SET", "hz", "77"),
    ("CONFIG", "SET", "appendonly", "no"), ("ACL", "SETUSER", "eve", "on", ">p", "~*", "+@all"),
    ("ACL", "DELUSER", "alice"),
    ("FUNCTION", "LOAD", CODE % ("third", "third")), ("FUNCTION", "LOAD", "REPLACE", CODE % ("lib", "renamed")),
    ("FUNCTION", "DELETE", "third"), ("EVAL", WRITER, "1", "text"), ("EVAL", "#!lua\n" + WRITER, "1", "text2"),
    ("FCALL", "touch", "1", "list"), ("SWAPDB", "0", "1"), ("SORT", "list", "ALPHA", "STORE", "sorted list"),
    ("GETEX", "text", "EX", "1000"), ("GETDEL", "number"), ("BLPOP", "list", "0.01"),
    ("COPY", "set", "copied", "REPLACE"), ("SAVE",), ("BGSAVE",), ("BGREWRITEAOF",), ("CONFIG", "REWRITE"),
    ("ACL", "SAVE"), ("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), ("FUNCTION", "FLUSH"),
    ("FLUSHDB",), ("FLUSHALL",), ("ACL", "LOAD"),
]
# Refused in both modes, or without an effect that could be seen.
REFUSED = CHANGES + [
    ("ACL", "SETUSER", "default", "resetpass", ">x"), ("CONFIG", "SET", "requirepass", "x"),
    ("SHUTDOWN",), ("SHUTDOWN", "NOSAVE"), ("DEBUG", "FLUSHALL"), ("DEBUG", "RELOAD"), ("DEBUG", "SET-ACTIVE-EXPIRE", "0"),
    ("FAILOVER",), ("SLAVEOF", "NO", "ONE"), ("MIGRATE", "127.0.0.1", "1", "text", "0", "100"),
    ("MODULE", "LOAD", "/lib/x.so"),
]


def pairs(flat):
    return dict(zip((name.decode() for name in flat[::2]), flat[1::2]))


def text(of):
    return of.decode() if isinstance(of, bytes) else of.lstrip("+")


class Arguments:
    """Arguments at random, as COMMAND DOCS says what a command takes."""

    def __init__(self, seed, payload):
        self.dice = random.Random(seed)
        self.payload = payload

    def made(self, description, keys):
        words = []
        for each in description:
            its = pairs(each)
            flags = {text(flag) for flag in its.get("flags", [])}
            if "optional" in flags and self.dice.random() < 0.6:
                continue
            if "token" in its and text(its["type"]) != "oneof":
                words.append(its["token"])
            words += self.value(text(its["name"]), text(its["type"]), its, keys)
        return words

    def value(self, name, kind, its, keys):
        if kind == "pure-token":
            return []
        if kind == "block":
            return self.made(its["arguments"], keys)
        if kind == "oneof":
            return ([its["token"]] if "token" in its else []) + self.made([self.dice.choice(its["arguments"])], keys)
        if name == "serialized-value":
            return [self.payload]
        if kind == "key":
            return [self.dice.choice(keys)]
        if name in BY_NAME:
            return [self.dice.choice(BY_NAME[name])]
        return [{"integer": "1", "double": "0.01", "pattern": "*", "unix-time": "1999999999999"}.get(kind)
                or self.dice.choice(["a", "f", "1", "x"])]


class Watched:
    """A cache, and all that must stay as it is."""

    def __init__(self, test, daemon, name, folder):
        self.daemon, self.name, self.folder = daemon, name, folder
        self.port = daemon.list()[name]["port"]
        self.client = client_of(test, self.port)

    def fill(self):
        for words in FILL:
            self.client(*words)
        self.client("FUNCTION", "LOAD", "REPLACE", CODE % ("lib", "touch"))
        self.client("ACL", "SETUSER", "alice", "on", ">secret", "~*", "+@read")

    def keys(self):
        found = {}
        for database in range(16):
            self.client("SELECT", database)
            names = self.client("KEYS", "*")
            told = self.client.all([(what, name) for name in names for what in ("DUMP", "PEXPIRETIME")])
            found.update({(database, name): tuple(told[2 * i:2 * i + 2]) for i, name in enumerate(names)})
        self.client("SELECT", 0)
        return found

    def files(self):
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    with open(path, "rb") as file:
                        found[path] = (os.stat(path).st_ino, file.read())
                except FileNotFoundError:
                    pass
        return found

    def state(self):
        """Name of what it is, and how it is now."""
        return {
            "keys": self.keys(), "settings": self.client("CONFIG", "GET", "*"), "users": self.client("ACL", "LIST"),
            "functions": self.client("FUNCTION", "DUMP"), "role": self.client("ROLE")[0],
            "options": self.daemon.request("GET", f"/v1/runtimes/{self.name}")[1]["options"], "files": self.files(),
        }

    def send(self, words):
        """The reply, or what went wrong, on a connection of its own."""
        client = Client(self.port)
        try:
            return client(*words)
        except (OSError, ValueError) as failure:
            return failure
        finally:
            client.close()

    def is_changed_by(self, words):
        """True if the command changes the initial keys or functions."""
        self.client("FLUSHALL")
        self.client("FUNCTION", "FLUSH")
        self.fill()
        before = self.keys(), self.client("FUNCTION", "DUMP")
        self.send(words)
        return (self.keys(), self.client("FUNCTION", "DUMP")) != before

    def forms(self):
        """Names, with a | in those of subcommands, what they take, and their flags and categories."""
        facts = {}
        for info in self.client("COMMAND"):
            facts[text(info[0])] = info
            facts.update({text(form[0]): form for form in info[9]})
        docs = self.client("COMMAND", "DOCS")
        for name, doc in zip(map(text, docs[::2]), map(pairs, docs[1::2])):
            forms = doc.get("subcommands")
            if forms is None:
                yield name, [name], doc.get("arguments", []), facts[name]
            else:
                for form, its in zip(map(text, forms[::2]), map(pairs, forms[1::2])):
                    yield form, form.split("|"), its.get("arguments", []), facts[form]

    def tries(self, how_many, seed):
        """Names of all commands, with their flags and commands to try."""
        made = Arguments(seed, self.client("DUMP", "text"))
        for name, words, description, info in self.forms():
            categories = {text(each)[1:] for each in info[6]}
            keys = [key for kind in KEYS if kind in categories for key in KEYS[kind]] or sum(KEYS.values(), [])
            if name not in LEFT_OUT:
                yield (name, {text(flag) for flag in info[2]},
                       [words + made.made(description, keys * 2 + ["fresh"]) for _ in range(how_many)])


class Readonly(harness.EddyTest):
    def cache(self, mode):
        folder = self.folder()
        daemon = self.daemon()
        users = os.path.join(folder, "users.acl")
        with open(users, "w", encoding="ascii"):
            pass
        daemon.must("create", "cache", "db", "-p", str(free_port()), "--dir", folder, "--appendonly", "yes",
                    "--aclfile", users, "-s")
        made = Watched(self, daemon, "db", folder)
        made.fill()
        for words in (("ACL", "SAVE"), ("SAVE",)):
            self.assertEqual(made.client(*words), "+OK")
        if mode == "readwrite":
            return made
        daemon.must("stop", "db")
        daemon.must("edit", "db", "--mode", mode)
        daemon.must("start", "db")
        return Watched(self, daemon, "db", folder)

    def assert_same(self, before, after, what):
        for name, was in before.items():
            self.assertEqual(was, after[name], f"{what} changed the {name}")

    def test_what_would_change_something_is_refused(self):
        cache = self.cache("readonly")
        before = cache.state()
        for words in REFUSED:
            reply = cache.send(words)
            self.assertIsInstance(reply, str, words)
            self.assertRegex(reply, "^-(READONLY|ERR this command is refused)", words)
            self.assert_same(before, cache.state(), words)
        self.assertEqual([cache.client(*words) for words in (("MULTI",), ("SET", "text", "x"), ("EXEC",))][0], "+OK")
        self.assert_same(before, cache.state(), "MULTI")
        # All that was written is there after another start, and no more. When a consumer was last seen is not in
        # an append-only file's commands.
        cache.daemon.must("stop", "db")
        cache.daemon.must("start", "db")
        again = Watched(self, cache.daemon, "db", cache.folder)
        after = again.keys()
        self.assertEqual(before["keys"].keys(), after.keys())
        self.assertEqual([name for name, was in before["keys"].items() if after[name] != was and name[1] != b"stream"], [])

    def test_no_command_changes_anything(self):
        cache = self.cache("readonly")
        before = cache.state()
        for name, flags, commands in cache.tries(10, seed=1):
            for words in commands:
                reply = cache.send(words)
                self.assertNotIsInstance(reply, OSError, words)
                if "write" in flags:
                    self.assertTrue(isinstance(reply, str) and reply.startswith("-"), (words, reply))
            self.assert_same(before, cache.state(), f"one of {commands}")
        self.assertEqual(cache.daemon.list()["db"]["status"], "running")

    def test_the_same_commands_change_something_in_another_mode(self):
        cache = self.cache("readwrite")
        for words in CHANGES[:CHANGES.index(("ACL", "LOAD"))]:
            if words[0] in ("FUNCTION", "ACL", "BLPOP", "GETDEL", "SORT"):
                cache.fill()
            before = cache.state()
            reply = cache.send(words)
            if words != ("CONFIG", "REWRITE") and words != ("REPLICAOF", "NO", "ONE"):
                self.assertFalse(isinstance(reply, str) and reply.startswith("-"), (words, reply))
            eventually(lambda was=before: cache.state() != was, f"a change by {words}")
            if words[:2] == ("CONFIG", "SET"):
                cache.client("CONFIG", "SET", "maxmemory", "0")
        cache = self.cache("readwrite")
        writing = [(name, commands) for name, flags, commands in cache.tries(10, seed=1) if "write" in flags]
        without = [name for name, commands in writing if not any(map(cache.is_changed_by, commands))]
        self.assertLess(len(without), len(writing) / 8, without)


if __name__ == "__main__":
    harness.main()
