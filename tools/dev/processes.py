"""Child processes and signals: a signal that ends the command ends its children first."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

from dev.output import warn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# From the request to end to SIGKILL.
GRACE_S = 5.0
POLL_S = 0.02
# The status of a program that does not exist, as a shell has it.
NOT_FOUND = 127


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP. No Exception, so that no handler of errors takes it."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


_deferrals = 0
_pending = None


def _interrupt(number, _frame):
    global _pending
    if _deferrals:
        _pending = number
    else:
        raise Interrupted(number)


def raise_interrupts():
    """From here on ENDING signals raise Interrupted, except the ignored ones."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


@contextlib.contextmanager
def deferred_interrupts():
    """Interrupted is raised after the block instead of within it."""
    global _deferrals, _pending
    _deferrals += 1
    try:
        yield
    finally:
        _deferrals -= 1
        if not _deferrals and _pending is not None:
            number, _pending = _pending, None
            raise Interrupted(number)


def end_by(number):
    """Ends this process by the signal, so that its parent sees why."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def is_installed(program):
    return shutil.which(program) is not None


def status_of(returncode):
    """The status as a shell has it: 128 and the number of the signal, if one ended the process."""
    return 128 - returncode if returncode < 0 else returncode


def foreground(command, **options):
    """Runs a command in the terminal's foreground group and returns its status.

    Ctrl-C reaches the child through the terminal. After a signal the child's end is awaited.
    """
    child = None
    try:
        # Not between the fork and the assignment, where the child could not be ended.
        with deferred_interrupts():
            child = subprocess.Popen(command, **options)
        return status_of(child.wait())
    except FileNotFoundError:
        warn(f"eddy-dev: {command[0]}: command not found")
        return NOT_FOUND
    except Interrupted as interrupt:
        if child is not None:
            if interrupt.number != signal.SIGINT:
                child.terminate()
            child.wait()
        raise


def succeeds(command, **options):
    """Runs a command; True for the status 0. Its output is dropped, unless an option keeps it."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
    try:
        return subprocess.run(command, check=False, **options).returncode == 0
    except OSError:
        return False


def output_of(command):
    """Standard output of a command, or an empty text if it cannot be run. Errors are dropped."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8", errors="surrogateescape", check=False)
    except OSError:
        return ""
    return done.stdout


def replace(command):
    """Becomes the command: its process, terminal and status. Does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores it, and what is ignored stays so.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        warn(f"eddy-dev: {command[0]}: command not found")
        sys.exit(NOT_FOUND)


def end_group(child):
    """Ends a child and all processes of its group."""
    with deferred_interrupts():
        try:
            os.killpg(child.pid, signal.SIGTERM)
            # After a suspension they could not end.
            os.killpg(child.pid, signal.SIGCONT)
            deadline = time.monotonic() + GRACE_S
            while time.monotonic() < deadline:
                child.poll()
                os.killpg(child.pid, 0)
                time.sleep(POLL_S)
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


@contextlib.contextmanager
def group(command, **options):
    """A child in a process group of its own, all of which ends if the block is left early.

    Ctrl-Z stops the group, too.
    """
    child = None

    def suspend(_number, _frame):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGCONT)

    before = signal.getsignal(signal.SIGTSTP)
    try:
        with deferred_interrupts():
            child = subprocess.Popen(command, process_group=0, **options)
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, suspend)
        yield child
    except BaseException:
        if child is not None:
            end_group(child)
        raise
    finally:
        signal.signal(signal.SIGTSTP, before)
