#!/usr/bin/env python3
"""Peers that die: processes that connect over shared memory to a listener that echoes, each killed by SIGKILL at a
random moment before its connection is made, or between two echoes. Prints how many were killed.

    shm_killed.py PATH COUNT
"""

import os
import random
import signal
import sys
import time
import traceback

from shm_client import ShmClient

AT_ONCE = 4
# Longer than it takes to connect, mostly.
LONGEST_LIFE_S = 0.002


def live(path, ready):
    """In the child: echoes until it is killed."""
    client = ShmClient(path)
    while True:
        client.send(b"x" * 100)
        if len(client.receive(100)) < 100:
            return
        if ready is not None:
            os.write(ready, b"!")
            ready = None


def begin(path, reports):
    """A child, and the pipe by which it reports its first echo; None where it does not."""
    pipe = os.pipe() if reports else (None, None)
    child = os.fork()
    if child == 0:
        try:
            live(path, pipe[1])
            print("the listener has closed the connection", file=sys.stderr)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(1)
    if reports:
        os.close(pipe[1])
    return child, pipe[0]


def end(child, ready, dice):
    if ready is None:
        time.sleep(dice.random() * LONGEST_LIFE_S)
    else:
        if os.read(ready, 1) != b"!":
            sys.exit("a peer ended by itself")
        os.close(ready)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        sys.exit(f"a peer ended by itself: {status}")


def main(path, count):
    dice = random.Random(1)
    for first in range(0, count, AT_ONCE):
        children = [begin(path, number % 2 == 0) for number in range(first, min(first + AT_ONCE, count))]
        try:
            while children:
                end(*children[0], dice)
                children.pop(0)
        except SystemExit:
            # Surviving children would keep the pipes to this program's starter open.
            for child, _ in children[1:]:
                os.kill(child, signal.SIGKILL)
            raise
    print(count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
