"""Count of a run's tests, by stage and over several runs."""

import time

from dev.output import minutes, read_lines, say


class Tally:
    """Tests that passed, failed, and are unchanged since they passed; and a line for each stage.

    The file `path` carries the counts from one run of the command to the next. Without it, or
    while it is empty, all of them begin at 0.
    """

    def __init__(self, path=""):
        self.path = path
        self.passed = self.failed = self.unchanged = 0
        self.summary = []
        try:
            lines = read_lines(path)
        except OSError:
            lines = []
        if lines:
            self.passed, self.failed, self.unchanged = map(int, lines[0].split())
            self.summary = lines[1:]

    def save(self):
        if self.path:
            with open(self.path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(f"{line}\n" for line in (
                    f"{self.passed} {self.failed} {self.unchanged}", *self.summary))

    def count(self, stage, passed, failed, begin, note=""):
        """Adds the tests of a stage that began at `begin` of time.monotonic(), and prints them."""
        self.passed += passed
        self.failed += failed
        word = "FAILED" if failed else "ok"
        took = minutes(time.monotonic() - begin)
        self.summary.append(
            f"{stage:<12} {word:<7} {passed:6} passed {failed:4} failed  {took:>6}  {note}")
        say(f"    {self.summary[-1]}")

    def is_good(self):
        """No failure, and something was tested."""
        return self.failed == 0 and self.passed + self.unchanged > 0

    def last_line(self):
        line = f"{self.passed} passed, {self.failed} failed"
        return line + (f", {self.unchanged} unchanged since they passed" if self.unchanged else "")
