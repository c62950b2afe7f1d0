#!/usr/bin/env python3
"""The prompt of `eddy db NAME` on a terminal: editing, history, completion, hints and help; it survives a restart of
the cache."""

import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import termios
import time

import harness
from harness import BINARY, DEADLINE_S, eventually, free_port

UP, TAB, CTRL_A, CTRL_D = b"\x1b[A", b"\t", b"\x01", b"\x04"


def take_terminal():
    """In the program's process: its terminal is what ends it, and no signal is ignored, as a test run behind nohup(1) has it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)


class Terminal:
    """A program on a terminal of 24 lines of 100 columns, and what it has shown since the last look."""

    def __init__(self, words, env):
        self.end, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen([BINARY, *words], stdin=its_end, stdout=its_end, stderr=its_end,
                                        start_new_session=True, env={**env, "TERM": "xterm", "NO_COLOR": "1"},
                                        preexec_fn=take_terminal)
        os.close(its_end)
        self.shown = ""

    def type(self, keys):
        self.shown = ""
        os.write(self.end, keys if isinstance(keys, bytes) else keys.encode())

    def until(self, pattern):
        """Waits until what is shown, without the terminal's sequences, has the pattern."""
        deadline = time.monotonic() + DEADLINE_S
        while not re.search(pattern, self.shown):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.end], [], [], left)[0]:
                raise AssertionError(f"{pattern!r} is not shown in: {self.shown!r}")
            try:
                piece = os.read(self.end, 65536)
            except OSError as gone:
                raise AssertionError(f"it has ended; {pattern!r} is not shown in: {self.shown!r}") from gone
            self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", piece.decode(errors="replace"))
        if pattern.endswith("> $"):  # the prompt stands there a little before keys are read one by one
            eventually(lambda: not self.is_as_usual(), "keys are read one by one")
        return self.shown

    def ended(self):
        while True:  # an unread terminal would block the command
            try:
                if not os.read(self.end, 65536):
                    break
            except OSError:
                break
        return self.process.wait(DEADLINE_S)

    def is_as_usual(self):
        """True if the terminal echoes input, and passes lines to programs."""
        return termios.tcgetattr(self.end)[3] & (termios.ECHO | termios.ICANON) == termios.ECHO | termios.ICANON

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.end)


class Prompt(harness.EddyTest):
    def setUp(self):
        self.running = self.daemon()
        self.port = free_port()
        self.running.must("create", "cache", "c", "-p", str(self.port), "-s")
        self.history = os.path.join(self.folder(), "history")

    def prompt(self, *words):
        terminal = Terminal(["db", *words, "c"], {**self.running.environment(), "EDDY_HISTORY": self.history})
        self.addCleanup(terminal.close)
        terminal.until(r"c(\[\d+\])?> $")
        return terminal

    def test_commands_help_and_the_ways_out(self):
        for leave in (b"exit\n", b"QUIT\n", CTRL_D):
            terminal = self.prompt()
            terminal.type("set greeting 'hello world'\n")
            terminal.until(r"OK\n.*c> $")
            terminal.type("get greeting\n")
            terminal.until(r'"hello world"\n.*c> $')
            terminal.type("get 'open\n")
            terminal.until(r"not closed\n.*c> $")
            terminal.type("nonsense\n")
            terminal.until(r"ERR unknown command.*\n.*c> $")
            terminal.type("\n")
            terminal.until(r"c> $")
            terminal.type(leave)
            self.assertEqual(terminal.ended(), 0)

    def test_ctrl_c_ends_it_and_leaves_the_terminal_as_it_was(self):
        for typed, pattern in ((b"get", r"get$"), (b"subscribe x\n", r"integer\) 1\n")):
            terminal = self.prompt()
            eventually(lambda its=terminal: not its.is_as_usual(), "keys are read one by one")
            terminal.type(typed)
            terminal.until(pattern)
            terminal.type(b"\x03")
            self.assertEqual(terminal.process.wait(DEADLINE_S), -signal.SIGINT)
            self.assertTrue(terminal.is_as_usual())

    def test_help(self):
        terminal = self.prompt()
        terminal.type("help\n")
        terminal.until(r"help COMMAND[^>]*c> $")
        terminal.type("help config set\n")
        terminal.until(r"CONFIG SET parameter value \[parameter value \.\.\.\]\n[^>]*c> $")
        terminal.type("help hgett\n")
        terminal.until(r"did you mean HGET")

    def test_the_prompt_shows_the_database_and_a_transaction(self):
        terminal = self.prompt()
        for typed, pattern in (("select 3", r"OK\nc\[3\]> $"), ("set k v", r"OK\nc\[3\]> $"),
                               ("multi", r"OK\nc\[3\]\(TX\)> $"), ("get k", r"QUEUED\nc\[3\]\(TX\)> $"),
                               ("select 5", r"QUEUED\nc\[3\]\(TX\)> $"), ("exec", r'1\) "v"\n2\) OK\nc\[5\]> $'),
                               ("select 99", r"ERR.*\nc\[\d\]> $"), ("reset", r"RESET\nc> $")):
            terminal.type(typed + "\n")
            terminal.until(pattern)
        self.assertEqual(self.running.must("db", "-n", "3", "c", "get", "k"), "v\n")
        self.prompt("-n", "7").until(r"c\[7\]> $")

    def test_lines_are_edited(self):
        terminal = self.prompt()
        terminal.type(b"et k edited" + CTRL_A + b"s\n")
        terminal.until(r"OK\n")
        self.assertEqual(self.running.must("db", "c", "get", "k"), "edited\n")
        terminal.type("set größe 'ü'\n")
        terminal.until(r"OK\n")
        self.assertEqual(self.running.must("db", "c", "get", "größe"), "ü\n")

    def test_bytes_that_are_no_utf8_are_kept(self):
        terminal = self.prompt()
        terminal.type(b"set latin gr\xf6\xdfe\n")
        terminal.until(r"OK\n.*c> $")
        terminal.type("strlen latin\n")
        terminal.until(r"integer\) 5\n.*c> $")
        terminal.type("get latin\n")
        terminal.until(r'"gr\\xf6\\xdfe"\n.*c> $')
        # So are those of the history, and of another prompt that reads it.
        for each, keys in ((terminal, UP * 3), (self.prompt(), UP * 3)):
            each.type(keys + b"\x7f2\n")  # the last byte is another one
            each.until(r"OK\n.*c> $")
            each.type("get latin\n")
            each.until(r'"gr\\xf6\\xdf2"\n.*c> $')
            each.type("set latin -\n")
            each.until(r"OK\n.*c> $")
            each.type(UP * 3)
            each.until("set latin gr")
            each.type("\n")
            each.until(r"OK\n.*c> $")

    def test_signals_leave_the_line_as_it_is(self):
        terminal = self.prompt()
        for columns in (40, 90):
            terminal.type(f"ping {columns}")
            terminal.until(str(columns))
            fcntl.ioctl(terminal.end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            terminal.type("0\n")
            terminal.until(rf'"{columns}0"\n.*c> $')
        for number in (signal.SIGTSTP, signal.SIGSTOP):  # no shell has it in the background: the former does not stop it
            terminal.type("ping again")
            terminal.until("again")
            os.kill(terminal.process.pid, number)
            os.kill(terminal.process.pid, signal.SIGCONT)
            terminal.type("-and-again\n")
            terminal.until(r'"again-and-again"\n.*c> $')

    def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            terminal = self.prompt()
            terminal.type("get")
            terminal.until("get$")
            os.kill(terminal.process.pid, number)
            self.assertEqual(terminal.process.wait(DEADLINE_S), -number)
            self.assertTrue(terminal.is_as_usual())

    def test_history_lasts_and_has_no_password(self):
        terminal = self.prompt()
        for line in ("set k 1", "auth secret", "config set requirepass ''", "incr k"):
            terminal.type(line + "\n")
            terminal.until(r"(OK|ERR.*|WRONGPASS.*|\(integer\) \d+)\n.*c> $")
        terminal.type("exit\n")
        self.assertEqual(terminal.ended(), 0)
        self.assertEqual(os.stat(self.history).st_mode & 0o777, 0o600)
        terminal = self.prompt()
        terminal.type(UP)
        terminal.until("incr k")
        terminal.type("\n")
        terminal.until(r"\(integer\) 3\n")
        terminal.type(UP + UP + b"\n")
        terminal.until(r"OK\n")
        self.assertEqual(self.running.must("db", "c", "get", "k"), "1\n")
        with open(self.history, encoding="utf-8") as file:
            kept = file.read()
        self.assertIn("incr", kept)
        self.assertNotIn("secret", kept)
        self.assertNotIn("requirepass", kept)

    def test_history_keeps_its_last_thousand_lines(self):
        with open(self.history, "w", encoding="ascii") as file:
            file.write("_HiStOrY_V2_\n" + "".join(f"get\\040k{i}\n" for i in range(1200)))
        terminal = self.prompt()
        terminal.type("set last line\n")
        terminal.until(r"OK\n.*c> $")
        with open(self.history, encoding="ascii") as file:
            _, *kept = file.read().splitlines()
        self.assertEqual((len(kept), kept[0], kept[-1]), (1000, "get\\040k201", "set\\040last\\040line"))

    def test_prompts_at_once_keep_each_others_history(self):
        first, second = self.prompt(), self.prompt()
        for i in range(3):
            for terminal, name in ((first, "first"), (second, "second")):
                terminal.type(f"set {name} {i}\n")
                terminal.until(r"OK\n.*c> $")
        with open(self.history, encoding="ascii") as file:
            _, *kept = file.read().splitlines()
        self.assertEqual(kept, [f"set\\040{name}\\040{i}" for i in range(3) for name in ("first", "second")])
        first.type(UP)
        first.until("set first 2")

    def test_a_history_that_another_process_holds_keeps_no_line_waiting_for_ever(self):
        terminal = self.prompt()
        terminal.type("set a 1\n")
        terminal.until(r"OK\n.*c> $")
        with open(self.history, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            terminal.type("set b 1\n")
            terminal.until(r"OK\n.*c> $")
        terminal.type("set c 1\n")
        terminal.until(r"OK\n.*c> $")
        with open(self.history, encoding="ascii") as file:
            _, *kept = file.read().splitlines()
        self.assertEqual(kept, [f"set\\040{name}\\0401" for name in "abc"])

    def test_history_leaves_other_files_alone(self):
        def mode():
            return os.stat(self.history).st_mode

        def sets_a_key():
            before = mode()
            terminal = self.prompt()
            terminal.type("set k 1\n")
            terminal.until(r"OK\n.*c> $")
            terminal.type("exit\n")
            self.assertEqual(terminal.ended(), 0)
            self.assertEqual(mode(), before)
            if stat.S_ISREG(before):
                with open(self.history, encoding="ascii") as file:
                    self.assertEqual(file.read(), "notes of mine\n")
            os.unlink(self.history)

        os.mkfifo(self.history)
        sets_a_key()
        with open(self.history, "w", encoding="ascii") as file:
            file.write("notes of mine\n")
        sets_a_key()
        if os.geteuid() == 0:
            os.mknod(self.history, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # another /dev/null
            sets_a_key()

    def test_a_transaction_ends_with_the_connection(self):
        terminal = self.prompt()
        terminal.type("multi\n")
        terminal.until(r"OK\n.*\(TX\)> $")
        self.running.must("stop", "c")
        self.running.must("start", "c")
        terminal.type("set k 1\n")
        terminal.until(r"closed the connection.*\n.*c> $")

    def test_tab_completes_and_hints_show_arguments(self):
        terminal = self.prompt()
        terminal.type(b"zrevrangeby" + TAB)
        terminal.until("zrevrangebylex +zrevrangebyscore|zrevrangeby *\n")
        terminal.type(b"s" + TAB)
        terminal.until(r"key max min")
        terminal.type(b"\x15")
        terminal.type(b"config se" + TAB)
        terminal.until(r"parameter value")
        terminal.type(b"maxmemory 0\n")
        terminal.until(r"OK\n")
        terminal.type("set ")
        terminal.until(r"key value \[NX")
        terminal.type("k ")
        terminal.until(r" value \[NX")
        terminal.type("v\n")
        terminal.until(r"OK\n")

    def test_it_goes_on_after_a_restart_of_the_cache(self):
        terminal = self.prompt()
        terminal.type("select 2\n")
        terminal.until(r"c\[2\]> $")
        self.running.must("stop", "c")
        terminal.type("get k\n")
        terminal.until(r"closed the connection.*\n.*c\[2\]> $")
        terminal.type("get k\n")
        terminal.until(r"eddy: .*\n.*c\[2\]> $")
        self.running.must("start", "c")
        terminal.type("set k v\n")
        terminal.until(r"OK\n.*c\[2\]> $")
        self.assertEqual(self.running.must("db", "-n", "2", "c", "get", "k"), "v\n")

    def test_it_follows_the_cache_to_another_port(self):
        terminal = self.prompt()
        terminal.type("set k v\n")
        terminal.until(r"OK\n.*c> $")
        self.running.must("edit", "c", "-p", str(free_port()))
        terminal.type("get k\n")
        terminal.until(r"closed the connection.*\n.*c> $")
        terminal.type("get k\n")
        terminal.until(r'"v"\n.*c> $')

    def test_a_user_who_may_not_ask_for_docs_goes_without(self):
        self.running.must("db", "c", "acl", "setuser", "default", "-command")
        terminal = self.prompt()
        terminal.type("set a b\n")
        terminal.until(r"OK\n")
        terminal.type("help set\n")
        terminal.until(r"does not say")

    def test_lines_without_a_terminal_have_no_prompt(self):
        self.assertEqual(self.running.must("db", "c", stdin="set a b\nget a\nexit\nget a\n"), "OK\nb\n")


if __name__ == "__main__":
    harness.main()
