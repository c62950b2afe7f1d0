#!/usr/bin/env python3
"""Other users of the machine: they take no connection from users that may control the daemon, get no password of the
command line's, and have nothing of theirs used or changed."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import harness
from harness import BINARY, OTHER_USER, as_user, eventually, free_port
from streaming_test import StreamDaemonTest

# Opens sockets to argv[1] until argv[2] of them were opened, prints a line, and keeps the ones that stay open.
IDLE_CLIENTS = """
import socket, sys
kept = []
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    try:
        if sys.argv[3]:
            s.sendall(sys.argv[3].encode())
            s.recv(1)  # from then on it is not idle
    except OSError:
        pass  # it is one too many
    kept.append(s)
print("connected", flush=True)
sys.stdin.read()
"""


# Hands one end of a new connection over at argv[1], and prints what comes from it: the answer, or nothing.
HAND_OVER = """
import socket, sys
mine, theirs = socket.socketpair()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sender:
    sender.connect(sys.argv[1].replace("@", chr(0)))
    try:
        socket.send_fds(sender, [b"{}"], [theirs.fileno()])
    except (BrokenPipeError, ConnectionResetError):
        pass
theirs.close()
mine.settimeout(60)
print(b"".join(iter(lambda: mine.recv(65536), b"")).decode(), end="")
"""

# Sends argv[2] to argv[1], ends, and prints the answer, or nothing.
ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as client:
    client.settimeout(60)
    client.connect(sys.argv[1].replace("@", chr(0)))
    try:
        client.sendall(sys.argv[2].encode())
        client.shutdown(socket.SHUT_WR)
        print(b"".join(iter(lambda: client.recv(65536), b"")).decode(), end="")
    except (BrokenPipeError, ConnectionResetError):
        pass
"""


WITH_A_PASSWORD = ["create", "cache", "c", "-p", "1", "--replicate", "h:1", "--replicate-password", "secret"]


class Users(harness.EddyTest):
    """Tests with a user id that no account has."""

    def setUp(self):
        self.user = 200_000 + os.getpid() % 100_000

    def idle_clients(self, user, path, count, request=""):
        process = subprocess.Popen(as_user(user, sys.executable, "-c", IDLE_CLIENTS, path, str(count), request),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.assertEqual(harness.line_of(process), b"connected\n")

    def own_folder(self, user, mode=0o700):
        folder = self.folder()
        os.chown(folder, user, user)
        os.chmod(folder, mode)
        return folder

    def run_as(self, user, *words, **environment):
        """The program as that user, without variables of this one."""
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
        done = subprocess.run(as_user(user, BINARY, *words), env=env, capture_output=True, check=False,
                              timeout=harness.DEADLINE_S, cwd="/")
        return harness.Result(done, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    @contextlib.contextmanager
    def daemon_as(self, user, **environment):
        """A daemon of that user with the default socket."""
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
               "EDDY_STATE_DIR": os.path.join(self.own_folder(user), "state"), **environment}
        process = subprocess.Popen(as_user(user, BINARY, "daemon"), env=env, cwd="/", bufsize=0,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            yield harness.line_of(process).decode()
        finally:
            process.terminate()
            process.wait(harness.DEADLINE_S)
            process.stdout.close()
            process.stderr.close()


@harness.needs_other_user
class ControlSlots(Users):
    def test_idle_connections_of_strangers_keep_the_owner_out_of_nothing(self):
        daemon = self.daemon()
        os.chmod(daemon.folder, 0o755)
        os.chmod(daemon.socket, 0o666)
        self.idle_clients(OTHER_USER, daemon.socket, 300)
        self.assertEqual(daemon.list(), {})
        self.assertEqual(daemon.metric("eddy_control_connections"), 1)
        self.assertGreaterEqual(daemon.metric("eddy_control_connections_refused_total"), 300)
        # The log has a line a second at most.
        eventually(lambda: daemon.open_files() < 100, "the others are closed")
        self.assertLess(daemon.read_log().count("refused a control connection of user id 65534"), 100)

    def test_the_owners_connections_keep_root_out_of_nothing(self):
        folder = self.own_folder(OTHER_USER)
        daemon = harness.Daemon(folder=folder)
        plain = daemon.command
        daemon.command = lambda: as_user(OTHER_USER, *plain())
        daemon.start()
        self.addCleanup(daemon.stop)
        self.idle_clients(OTHER_USER, daemon.socket, 128)
        self.assertEqual(daemon.list(), {})
        self.assertEqual(self.run_as(OTHER_USER, "ls", EDDY_SOCKET=daemon.socket).status, 0, "idle ones are replaced")
        self.idle_clients(OTHER_USER, daemon.socket, 128, "GET /v1/events HTTP/1.1\r\nHost: eddy\r\n\r\n")
        eventually(lambda: (daemon.metric("eddy_control_connections_refused_total") or 0) >= 8, "the last ones are refused")
        self.assertEqual(daemon.list(), {})
        refused = self.run_as(OTHER_USER, "ls", EDDY_SOCKET=daemon.socket)
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("there are 120 control connections", refused.err)


@harness.needs_other_user
class SocketFolders(Users):
    def in_tmp(self):
        folder = f"/tmp/eddy-{self.user}"
        self.assertFalse(os.path.lexists(folder), folder)
        self.addCleanup(lambda: shutil.rmtree(folder, ignore_errors=True) if not os.path.islink(folder)
                        else os.unlink(folder))
        return folder

    def test_a_folder_in_tmp_of_another_user_is_used_by_neither_side(self):
        folder = self.in_tmp()
        state = self.own_folder(self.user)
        own = self.own_folder(self.user)

        def refuse(reason):
            for words in (["daemon", "--state", state], ["ls"], WITH_A_PASSWORD):
                self.assert_refused(self.run_as(self.user, *words), 2, folder, reason, "--socket")

        os.mkdir(folder)
        os.chown(folder, OTHER_USER, OTHER_USER)
        os.chmod(folder, 0o777)
        refuse("belongs to user id 65534")
        os.chown(folder, self.user, self.user)
        refuse("lets other users in")
        os.chmod(folder, 0o710)
        refuse("lets other users in")
        os.rmdir(folder)
        os.symlink(own, folder)
        refuse("is a link")
        os.unlink(folder)
        self.assertEqual(os.listdir(own), [])

    def test_a_folder_in_tmp_is_made_for_its_user_alone(self):
        folder = self.in_tmp()
        with self.daemon_as(self.user) as ready:
            self.assertIn(f"socket {folder}/eddy.sock", ready)
            made = os.lstat(folder)
            self.assertEqual((made.st_uid, made.st_mode & 0o777), (self.user, 0o700))
            self.assertEqual(self.run_as(self.user, "ls", "-q").status, 0)
        self.assertEqual(os.listdir(folder), [])

    def test_state_without_a_home_is_in_that_folder_too(self):
        folder = self.in_tmp()
        with self.daemon_as(self.user, HOME="", EDDY_STATE_DIR="") as ready:
            self.assertIn(f"state {folder}/state,", ready)
        shutil.rmtree(folder)
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        result = self.run_as(self.user, "--socket", "@eddy-test-no-home", "daemon", HOME="")
        self.assert_refused(result, 2, folder, "belongs to user id 0")
        self.assertEqual(os.listdir(folder), [])

    def test_a_folder_of_the_users_own_comes_first(self):
        runtime = self.own_folder(self.user)
        with self.daemon_as(self.user, XDG_RUNTIME_DIR=runtime) as ready:
            self.assertIn(f"socket {runtime}/eddy.sock", ready)
        if not os.path.isdir("/run/user"):
            os.mkdir("/run/user")
        of_system = f"/run/user/{self.user}"
        os.mkdir(of_system, 0o700)
        self.addCleanup(shutil.rmtree, of_system)
        os.chown(of_system, self.user, self.user)
        with self.daemon_as(self.user) as ready:
            self.assertIn(f"socket {of_system}/eddy.sock", ready)
        # Another user's, as after su(1), is passed over.
        others = self.own_folder(OTHER_USER)
        with self.daemon_as(self.user, XDG_RUNTIME_DIR=others) as ready:
            self.assertIn(f"socket {of_system}/eddy.sock", ready)


@harness.needs_other_user
class Peers(Users):
    def listen_as(self, user, path):
        """A socket that a program of that user listens on, and what it receives."""
        script = ("import os, socket, sys\n"
                  "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); os.chmod(sys.argv[1], 0o666)\n"
                  "print('listening', flush=True)\n"
                  "c = s.accept()[0]\n"
                  "print(len(c.recv(65536)), flush=True)\n")
        process = subprocess.Popen(as_user(user, sys.executable, "-c", script, path), stdout=subprocess.PIPE,
                                   bufsize=0, cwd="/")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(harness.line_of(process), b"listening\n")
        return process

    def test_nothing_is_sent_to_another_users_socket(self):
        folder = self.folder()
        os.chmod(folder, 0o777)
        for user in (self.user, 0):
            path = os.path.join(folder, f"{user}.sock")
            process = self.listen_as(OTHER_USER, path)
            words = WITH_A_PASSWORD
            if user == 0:
                done = subprocess.run([BINARY, "--socket", path, *words], capture_output=True, check=False,
                                      timeout=harness.DEADLINE_S)
                result = harness.Result(done, "", done.stderr.decode())
            else:
                result = self.run_as(user, *words, EDDY_SOCKET=path)
            self.assert_refused(result, 2, path, "user id 65534", "nothing was sent")
            self.assertEqual(harness.line_of(process), b"0\n")

    def test_version_names_the_reason_and_this_programs_version(self):
        daemon = self.daemon()
        version = self.run_as(self.user, "version", EDDY_SOCKET=daemon.socket)
        self.assertEqual(version.status, 0, version)
        self.assertRegex(version.out, r"^eddy \d[^\n]*\nbuilt with: .*\ndaemon: not known: no permission to use the daemon's socket")
        os.chmod(daemon.folder, 0o755)
        os.chmod(daemon.socket, 0o666)
        version = self.run_as(self.user, "version", "--json", EDDY_SOCKET=daemon.socket)
        self.assertEqual(version.status, 0, version)
        shown = json.loads(version.out)
        self.assertIsNone(shown["daemon"])
        self.assertIn("may not control this daemon", shown["daemon_refusal"])
        none = self.run_as(self.user, "version", EDDY_SOCKET="/nonexistent/s.sock")
        self.assertIn("daemon: none at /nonexistent/s.sock", none.out)

    def test_roots_daemon_is_trusted_by_every_user(self):
        daemon = self.daemon()
        os.chmod(daemon.folder, 0o755)
        os.chmod(daemon.socket, 0o666)
        result = self.run_as(self.user, "ls", EDDY_SOCKET=daemon.socket)
        self.assert_refused(result, 1, "may not control this daemon")


@harness.needs_other_user
class DaemonOfRoot(Users):
    def test_a_user_without_a_daemon_is_told_of_roots(self):
        folder = "/run/eddy"
        try:
            os.mkdir(folder, 0o700)
        except OSError as reason:
            self.skipTest(f"root's place cannot be taken: {reason}")
        self.addCleanup(shutil.rmtree, folder)
        alone = self.run_as(self.user, "ls")
        self.assert_refused(alone, 2, "the daemon is not running at", "Start it with: eddy daemon")
        env = {"PATH": os.environ["PATH"], "HOME": self.folder(), "EDDY_STATE_DIR": self.folder()}
        process = subprocess.Popen([BINARY, "daemon"], env=env, cwd="/", stdout=subprocess.PIPE, bufsize=0,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.assertIn(f"socket {folder}/eddy.sock".encode(), harness.line_of(process))
        told = self.run_as(self.user, "ls")
        self.assert_refused(told, 2, "the system's does at /run/eddy/eddy.sock", "sudo")
        asked = self.run_as(self.user, "ls", EDDY_SOCKET=f"{folder}/eddy.sock")
        self.assert_refused(asked, 2, "no permission to use the daemon's socket /run/eddy/eddy.sock", "as root")


@harness.needs_other_user
class AbstractSockets(Users):
    """Without a file, and so without permissions: every user of the machine may connect."""

    def name(self, of):
        return f"@eddy-test-{os.getpid()}-{of}"

    def answer_to(self, user, script, *words):
        done = subprocess.run(as_user(user, sys.executable, "-c", script, *words), capture_output=True, text=True,
                              check=False, timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def test_take_clients_of_their_own_user_and_of_listed_ones(self):
        """For each type that serves a Unix socket; the backend of the proxy is a cache, which answers PING."""
        daemon = self.daemon()
        site = self.folder()
        with open(os.path.join(site, "index.html"), "w", encoding="ascii") as file:
            file.write("the page")
        backend = os.path.join(self.folder(), "c.sock")
        daemon.must("create", "cache", "backend", "--unix", backend, "-s")
        get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        for kind, flags, asked, answer in (
                ("cache", [], "PING\r\n", "+PONG"),
                ("http", ["--root", site], get, "the page"),
                ("server", ["--http", site], get, "the page"),
                ("proxy", ["--backend", f"unix://{backend}"], "PING\r\n", "+PONG")):
            for threads in (["--threads", "2"], []):
                at = self.name(kind)
                daemon.must("create", kind, kind, *([f"--unix={at}"] if threads else [f"--listen=unix://{at}"]), *flags,
                            *threads, "-s")
                self.assertEqual(self.answer_to(OTHER_USER, ASK, at, asked), "", kind)
                self.assertIn(answer, self.answer_to(0, ASK, at, asked), kind)
                self.assertEqual(daemon.metric("eddy_runtime_connections_refused_total", runtime=kind, type=kind), 1, kind)
                self.assertIn(f"the user {OTHER_USER} may not connect", daemon.must("logs", kind))
                daemon.must("edit", kind, "--allow-users", f"{OTHER_USER}")
                self.assertIn(answer, self.answer_to(OTHER_USER, ASK, at, asked), kind)
                self.assertEqual(self.answer_to(0, ASK, at, asked), "", kind)
                daemon.must("remove", "-f", kind)

    def test_with_a_file_have_the_list_beside_the_permissions(self):
        daemon = self.daemon()
        folder = self.folder()
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "s")
        daemon.must("create", "cache", "c", "--unix", path, "-s")
        os.chmod(path, 0o666)
        self.assertIn("+PONG", self.answer_to(OTHER_USER, ASK, path, "PING\r\n"))
        daemon.must("edit", "c", "--allow-users", "root")
        self.assertEqual(self.answer_to(OTHER_USER, ASK, path, "PING\r\n"), "")
        self.assertIn("+PONG", self.answer_to(0, ASK, path, "PING\r\n"))

    def test_take_handoffs_of_their_own_user_and_of_listed_ones(self):
        daemon = self.daemon()
        at = self.name("handoff")
        refused = daemon.run("create", "stream", "s", "--handoff", f"unix://{at}", "--mode", "0600")
        self.assert_refused(refused, 1, "--mode has no effect with", "--allow-users", "unix:///PATH")
        daemon.must("create", "stream", "s", "--handoff", f"unix://{at}", "--messages", "1", "-s")
        self.assertEqual(self.answer_to(OTHER_USER, HAND_OVER, at), "")
        self.assertIn("[DONE]", self.answer_to(0, HAND_OVER, at))
        self.assertEqual(daemon.metric("eddy_stream_handoff_errors_total", runtime="s", type="stream",
                                       reason="peer_not_allowed"), 1)
        daemon.must("edit", "s", "--allow-users", f"root,{OTHER_USER}")
        for user in (OTHER_USER, 0):
            self.assertIn("[DONE]", self.answer_to(user, HAND_OVER, at))

    def test_take_handed_over_clients_of_a_server_alike(self):
        daemon = self.daemon()
        at = self.name("listen")
        refused = daemon.run("create", "server", "s", "--listen", f"handoff://{at}?mode=0600")
        self.assert_refused(refused, 1, "mode= is for a socket's file", "allow=")
        daemon.must("create", "server", "s", "--listen", f"handoff://{at}", "-s")
        self.assertEqual(self.answer_to(OTHER_USER, HAND_OVER, at), "")
        harness.eventually(lambda: "peer_not_allowed" in daemon.must("logs", "s"), "the refusal")
        self.assertEqual(daemon.list()["s"]["connections"], 0)

    def test_of_the_program_alone_are_alike(self):
        """`eddy stream-daemon`, in one process and in two."""
        for workers in ("1", "2"):
            at = self.name("daemon" + workers)
            command = [BINARY, "stream-daemon", "-socket", at, "-workers", workers, "-messages", "1"]
            wrong = subprocess.run([*command, "-socket-mode", "0600"], capture_output=True, text=True, check=False,
                                   timeout=harness.DEADLINE_S)
            self.assertNotEqual(wrong.returncode, 0)
            self.assertIn("--mode has no effect with", wrong.stderr)
            for users, allowed in (([], 0), (["-allow-users", f"{OTHER_USER}"], OTHER_USER)):
                program = subprocess.Popen([*command, *users], stderr=subprocess.PIPE, text=True)
                self.addCleanup(program.stderr.close)
                self.addCleanup(program.wait, harness.DEADLINE_S)
                self.addCleanup(program.kill)
                StreamDaemonTest.await_ready(program)
                for user in (0, OTHER_USER):
                    answer = self.answer_to(user, HAND_OVER, at)
                    self.assertEqual("[DONE]" in answer, user == allowed, (workers, users, user, answer))
                program.terminate()
                self.assertEqual(program.wait(harness.DEADLINE_S), 0)


@harness.needs_other_user
class StateFiles(Users):
    def test_a_state_file_that_cannot_be_read_is_kept_and_named(self):
        folder = self.own_folder(OTHER_USER)
        daemon = harness.Daemon(folder=folder)
        plain = daemon.command
        daemon.command = lambda: as_user(OTHER_USER, *plain())
        daemon.start()
        daemon.must("create", "server", "a", "-p", str(free_port()))
        daemon.must("create", "server", "b", "-p", str(free_port()))
        a = os.path.join(daemon.state, "runtimes", "a.json")
        os.chmod(a, 0)
        # Reading the state again changes nothing either.
        status, answer = daemon.request("POST", "/v1/daemon/reload")
        self.assertEqual(status, 500, answer)
        self.assertIn(a, answer["error"]["message"])
        self.assertEqual(sorted(daemon.list()), ["a", "b"])
        daemon.stop()
        self.assert_does_not_start(daemon, "could not read the state file .*a.json: Permission denied")
        self.assertEqual(os.listdir(os.path.join(daemon.state, "damaged")), [])
        os.chmod(a, 0o600)
        daemon.start()
        self.addCleanup(daemon.stop)
        self.assertEqual(sorted(daemon.list()), ["a", "b"])


if __name__ == "__main__":
    harness.main()
