#!/usr/bin/env bash
# dash 0.5.12 (Debian 12's sh) starts a program that a signal to the process group should have ended, and ends itself.
#
# A good guess: a shell without traps that gets SIGTERM or SIGHUP with its whole group starts nothing more; the kernel
#   promises that no child slips through a signal to a group while it is made.
# Behaviour: before each vfork(2) dash blocks all signals. One that comes between that and the kernel's copy of the
#   process is kept for the shell alone. So the child begins without it and execs, and only then the shell ends of
#   the signal. The program is left with its group, its output and all that it inherited. What ends a group by SIGTERM,
#   and waits for the shell alone, leaves it running; whoever reads its output waits for as long as it runs. A second
#   signal reaches it, and SIGKILL, which is never blocked, leaves nothing.
# Output seen (2026-11-29; strace makes the moment 0.5 s long):
#   dash ended by signal 15, and sleep runs on
#   dash ended by signal 1, and sleep runs on
#   dash ended by signal 9, and nothing runs on
#
# Fails if that changes. Needs Debian 12's apt with the package lists, dpkg, and python3; ptrace must be allowed.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -q 'dash=0.5.12-2' 'strace=6.1-0.1' 'libunwind8=1.6.2-3' >/dev/null 2>&1
for package in ./*.deb; do dpkg -x "$package" root; done
library=$(dirname "$(find root -name 'libunwind.so.8' | head -n 1)")

LD_LIBRARY_PATH=$folder/$library python3 - <<'END'
import os
import signal
import subprocess
import time

DELAY_S = 0.5


def members(group):
    """The commands of the group's processes that run."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                name, rest = file.read().rsplit(")", 1)
        except OSError:
            continue
        state, _, its = rest.split()[:3]
        if int(its) == group and state != "Z":
            found.append(name.split("(", 1)[1])
    return found


def end_by(number):
    # The tracer is in a group of its own.
    shell = subprocess.Popen(
        ["root/usr/bin/strace", "-DD", "-o", "/dev/null", "-e", "trace=vfork",
         "-e", f"inject=vfork:delay_enter={int(DELAY_S * 1e6)}", "root/bin/dash", "-c", "echo ready; sleep 60; true"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    assert shell.stdout.readline() == b"ready\n"
    time.sleep(DELAY_S / 2)
    os.killpg(shell.pid, number)
    assert shell.wait(30) == -number, shell.returncode
    time.sleep(0.1)
    left = members(shell.pid)
    print(f"dash ended by signal {number}, and {left[0] if left else 'nothing'} runs on")
    if left:
        os.killpg(shell.pid, signal.SIGKILL)
    return left


assert end_by(signal.SIGTERM) == ["sleep"]
assert end_by(signal.SIGHUP) == ["sleep"]
assert end_by(signal.SIGKILL) == []
END
echo "as described"
