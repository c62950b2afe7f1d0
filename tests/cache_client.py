"""A client of a cache or a Redis, real Redis servers to test beside, and random commands for both."""

import os
import random
import shutil
import socket
import subprocess

from harness import DEADLINE_S, eventually, free_port


# The writing server's memory by a dump file, in bytes.
USED_MEMORY = 123_456_789


def dump(keys, size, memory=USED_MEMORY):
    """A dump file with so many strings of that size, without a checksum."""
    def text(content):
        length = len(content)
        return (bytes([length]) if length < 64 else bytes([0x40 | length >> 8, length & 255])) + content
    head = b"REDIS0009\xfa" + text(b"used-mem") + text(b"%d" % memory) + b"\xfe\0"
    value = text(b"x" * size)
    return head + b"".join(b"\0" + text(b"key:%d" % i) + value for i in range(keys)) + b"\xff" + bytes(8)


class Client:
    """Speaks RESP 2: one command, one reply. Errors come as text that begins with "-"."""

    def __init__(self, port, host="127.0.0.1", timeout_s=DEADLINE_S, over=None):
        """`over` is a connection that is there already, maybe with TLS."""
        self.port = port
        self.socket = over or socket.create_connection((host, port), timeout=timeout_s)
        self.stream = self.socket.makefile("rwb")

    @staticmethod
    def encoded(words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                                  for word in words)

    def __call__(self, *words):
        self.send(*words)
        return self.reply()

    def send(self, *words):
        self.stream.write(self.encoded(words))
        self.stream.flush()

    def all(self, commands):
        """A pipeline; returns the replies."""
        self.stream.write(b"".join(self.encoded(words) for words in commands))
        self.stream.flush()
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.stream.readline()
        if not line:
            raise ConnectionError("the connection ended")
        kind, rest = line[:1], line[1:-2]
        if kind in (b"+", b"-"):
            return (kind + rest).decode()
        if kind == b":":
            return int(rest)
        size = int(rest)
        if kind == b"*":
            return None if size < 0 else [self.reply() for _ in range(size)]
        return None if size < 0 else self.stream.read(size + 2)[:-2]

    def info(self, *sections):
        """The fields of these sections, or of INFO's default ones."""
        lines = self("INFO", *sections).decode().split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def ended(self):
        """True if the server has closed the connection, and sent nothing more."""
        return self.stream.read() == b""

    def close(self):
        for each in (self.stream, self.socket):
            try:
                each.close()
            except OSError:
                pass


def client_of(test, port, host="127.0.0.1"):
    """A client, as soon as a server answers there."""
    def attempt():
        try:
            made = Client(port, host)
        except OSError:
            return None
        try:
            if made("PING").startswith(("+PONG", "-NOAUTH")):
                return made
        except OSError:
            pass
        made.close()
        return None
    made = eventually(attempt, f"an answer on port {port}")
    test.addCleanup(made.close)
    return made


class Redis:
    """A real redis-server, ended with the test."""

    def __init__(self, test, *arguments, port=None, program="redis-server", prefix=(), folder=None):
        """`folder` is where its files are, its own by default."""
        if shutil.which(program) is None:
            test.skipTest(f"{program} is not installed")
        self.port = port or free_port()
        self.folder = folder or test.folder()
        self.words = [*prefix, program, "--port", str(self.port), "--dir", self.folder,
                      "--save", "", "--enable-debug-command", "yes",
                      "--repl-diskless-sync-delay", "0", *arguments]
        self.process = None
        test.addCleanup(self.kill)
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def stop(self):
        """In an orderly way: what it writes at its end is there."""
        self.process.terminate()
        self.process.wait()

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Traffic:
    """Random commands that change data of all types, the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def key(self, kind):
        return f"{kind} {self.random.randrange(40)}"

    def command(self):
        r = self.random
        value = lambda: r.randbytes(3).hex() * r.choice((1, 1, 1, 40))
        number = lambda: str(r.randrange(50))
        return r.choice([
            lambda: ("SET", self.key("text"), value()),
            lambda: ("SET", self.key("text"), value(), "PX", r.choice((20, 1000, 100000))),
            lambda: ("APPEND", self.key("text"), "more"),
            lambda: ("INCRBY", self.key("number"), r.randrange(-100, 100)),
            lambda: ("INCRBYFLOAT", self.key("number"), "0.25"),
            lambda: ("SETRANGE", self.key("text"), r.randrange(20), "xyz"),
            lambda: ("GETDEL", self.key("text")),
            lambda: ("EXPIRE", self.key("text"), r.choice((0, 1, 1000))),
            lambda: ("GETEX", self.key("text"), "EX", "500"),
            lambda: ("PERSIST", self.key("text")),
            lambda: ("RENAME", self.key("text"), self.key("text")),
            lambda: ("COPY", self.key("text"), self.key("text"), "REPLACE"),
            lambda: ("DEL", self.key(r.choice(("text", "list", "hash", "set", "sorted")))),
            lambda: ("RPUSH", self.key("list"), value(), value()),
            lambda: ("LPUSH", self.key("list"), value()),
            lambda: ("LPOP", self.key("list")),
            lambda: ("LMPOP", "1", self.key("list"), "LEFT", "COUNT", "2"),
            lambda: ("LTRIM", self.key("list"), "0", "30"),
            lambda: ("LMOVE", self.key("list"), self.key("list"), "LEFT", "RIGHT"),
            lambda: ("HSET", self.key("hash"), number(), value()),
            lambda: ("HDEL", self.key("hash"), number()),
            lambda: ("HINCRBYFLOAT", self.key("counts"), number(), "1.5"),
            lambda: ("SADD", self.key("set"), number(), number()),
            lambda: ("SPOP", self.key("set")),
            lambda: ("SPOP", self.key("set"), "3"),
            lambda: ("SREM", self.key("set"), number()),
            lambda: ("SINTERSTORE", self.key("set"), self.key("set"), self.key("set")),
            lambda: ("ZADD", self.key("sorted"), number(), number()),
            lambda: ("ZINCRBY", self.key("sorted"), "1.5", number()),
            lambda: ("ZPOPMIN", self.key("sorted")),
            lambda: ("ZUNIONSTORE", self.key("sorted"), "2", self.key("sorted"),
                     self.key("sorted")),
            lambda: ("XADD", self.key("stream"), "MAXLEN", "30", "*", "field", value()),
            lambda: ("SETBIT", self.key("bits"), r.randrange(500), "1"),
            lambda: ("PFADD", self.key("loglog"), value()),
            lambda: ("SELECT", r.choice((0, 0, 0, 3))),
            lambda: ("EVAL", "redis.call('SET', KEYS[1], ARGV[1]) "
                             "return redis.call('INCR', KEYS[2])", "2",
                     self.key("text"), self.key("counter"), value()),
        ])()

    def batch(self, size):
        """Some of the commands are transactions."""
        commands = []
        while len(commands) < size:
            if self.random.random() < 0.05:
                inner = [self.command() for _ in range(3)]
                commands += [("MULTI",), *[each for each in inner if each[0] != "EVAL"], ("EXEC",)]
            else:
                commands.append(self.command())
        return commands
