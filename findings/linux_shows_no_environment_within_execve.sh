#!/usr/bin/env bash
# Linux shows an empty /proc/PID/environ of a process that has one while the process is within execve(2).
#
# A good guess: proc(5) says that the file has the environment that was set when the program was executed. A process
#   that goes from one program to the next with the same variables has them before and after, so a reader sees those;
#   what cannot be read is an error.
# Behaviour: execve(2) gives the process a new memory first, and notes later where in it the environment is. A reader
#   that comes in between opens the file, and reads its end at once: no byte and no error, as of a kernel's thread. What
#   searches for processes by a variable of theirs has to look again at one whose file is empty.
# Output seen (2026-12-01; the first count of empty ones differs from run to run):
#   Linux 6.18.44-fc-v669: of 200000 reads of a process that only executes itself, 12839 had no byte, 0 another environment
#   Linux 6.18.44-fc-v669: of 1000 reads of a process that sleeps, 0 had no byte, 0 another environment
#
# Fails if that changes. Needs python3 and /bin/sh.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# shellcheck disable=SC2016
printf '#!/bin/sh\nexec "$0"\n' >again
chmod +x again

python3 - <<'END'
import os
import subprocess

VARIABLES = {"MARK": "yes"}


def look(words, what, reads):
    """Reads the environment of one process again and again, and counts what is no whole one."""
    with subprocess.Popen(words, env=VARIABLES) as process:
        empty = other = 0
        try:
            # Until the child of this program is that one.
            while b"MARK=yes\0" not in open(f"/proc/{process.pid}/environ", "rb").read():
                pass
            for _ in range(reads):
                with open(f"/proc/{process.pid}/environ", "rb") as file:
                    seen = file.read()
                empty += not seen
                # The shell adds PWD to what it executes.
                other += bool(seen) and b"MARK=yes\0" not in seen
            assert process.poll() is None
        finally:
            process.kill()
    print(f"Linux {os.uname().release}: of {reads} reads of a process that {what}, {empty} had no byte, "
          f"{other} another environment")
    return empty, other


empty, other = look(["./again"], "only executes itself", 200_000)
assert empty > 0 and other == 0, (empty, other)
assert look(["/bin/sleep", "1000"], "sleeps", 1000) == (0, 0)
END
echo "as described"
