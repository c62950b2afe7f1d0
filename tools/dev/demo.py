"""Demo: a daemon with a cache, a server and a site, until Ctrl-C."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from dev import building
from dev.output import Failure, say, show_tail
from dev.processes import ENDING, deferred_interrupts, foreground, status_of, succeeds

FOLDER = "build/demo"
# The kernel's limit of a Unix socket's name.
SOCKET_BYTES = 107
START_TRIES = 100
START_PAUSE_S = 0.1
INDEX = """\
<!doctype html>
<title>Eddy</title>
<h1>It works.</h1>
<p>These files are in {folder}/site.</p>
"""
TEXT = """
The daemon runs; its log is {folder}/daemon.log. In another terminal try:

    redis-cli -p {cache} set greeting hello
    redis-cli -p {cache} get greeting
    nc 127.0.0.1 {server}                    # in two terminals: a line from one reaches the other
    curl http://127.0.0.1:{site}/            # or in a browser
    curl --unix-socket {socket} http://eddy/v1/runtimes
    export EDDY_SOCKET={socket}
    {eddy} ls
    {eddy} --help

They serve this machine alone. To open one to others on the network, the cache with a password:

    {eddy} edit demo-server --bind '*'
    {eddy} edit demo-cache --bind '*' --config 'requirepass PASSWORD'

Ctrl-C stops it."""


def is_taken(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def free_port(port):
    """The first from `port` on that has no listener."""
    while is_taken(port):
        port += 1
    return port


class Daemon:
    """The daemon's process. SIGINT and SIGTERM stop it from here on, and not this process.

    In a session of its own, so that Ctrl-C reaches this process alone, which then stops it once.
    """

    def __init__(self, eddy, log):
        self.eddy = eddy
        self.log = log
        self.is_stopping = False
        with deferred_interrupts():
            with open(log, "wb") as file:
                self.process = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "TERM", eddy, "daemon"], stdin=subprocess.DEVNULL,
                    stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, self._stop)

    def _stop(self, _number, _frame):
        self.is_stopping = True
        self.process.terminate()

    def answers(self):
        return succeeds([self.eddy, "ls"])

    def wait_for_answer(self):
        for _ in range(START_TRIES):
            if self.answers():
                return
            if self.process.poll() is not None:
                break
            time.sleep(START_PAUSE_S)
        show_tail(self.log, 20, file=sys.stderr)
        self.process.terminate()
        raise Failure(f"the daemon does not answer on {os.environ['EDDY_SOCKET']}")

    def wait_for_end(self):
        status = status_of(self.process.wait())
        if status != 0 and not (status > 128 and self.is_stopping):
            raise Failure(f"the daemon ended with status {status}; see {self.log}")
        say("The daemon has stopped.")


def _choose_places(folder):
    """EDDY_STATE_DIR and EDDY_SOCKET, where they are not the user's."""
    if not os.environ.get("EDDY_STATE_DIR"):
        # The demo begins anew each time; a state of the user's is kept.
        os.environ["EDDY_STATE_DIR"] = f"{folder}/state"
        shutil.rmtree(f"{folder}/state", ignore_errors=True)
    os.environ["EDDY_SOCKET"] = os.environ.get("EDDY_SOCKET") or f"{folder}/eddy.sock"
    if len(os.fsencode(os.environ["EDDY_SOCKET"])) > SOCKET_BYTES:
        os.environ["EDDY_SOCKET"] = f"{tempfile.mkdtemp()}/eddy.sock"
    os.makedirs(os.environ["EDDY_STATE_DIR"], exist_ok=True)


def _make(eddy, folder):
    """The demo's runtimes; their ports by name."""
    ports = {"cache": free_port(6379), "server": free_port(9000), "site": free_port(8080)}
    os.makedirs(f"{folder}/site", exist_ok=True)
    with open(f"{folder}/site/index.html", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(INDEX.format(folder=folder))
    runtimes = (
        ["cache", "demo-cache", "-p", str(ports["cache"]), "-s"],
        ["server", "demo-server", "-p", str(ports["server"]), "-s"],
        ["http", "demo-site", "-p", str(ports["site"]), "--root", f"{folder}/site", "-s"])
    if not all(foreground([eddy, "create", *runtime]) == 0 for runtime in runtimes):
        say("The daemon runs, but the demo could not be made (see above).")
    return ports


def run():
    building.build()
    eddy, folder = os.path.abspath(building.PROGRAM), os.path.abspath(FOLDER)
    os.makedirs(folder, exist_ok=True)
    _choose_places(folder)
    if succeeds([eddy, "ls"]):
        raise Failure(f"a daemon listens on {os.environ['EDDY_SOCKET']} already; "
                      "stop it, or set EDDY_SOCKET and EDDY_STATE_DIR")
    daemon = Daemon(eddy, f"{folder}/daemon.log")
    daemon.wait_for_answer()
    ports = _make(eddy, folder)
    foreground([eddy, "ls"])
    say(TEXT.format(folder=folder, eddy=eddy, socket=os.environ["EDDY_SOCKET"], **ports))
    daemon.wait_for_end()
    return 0
