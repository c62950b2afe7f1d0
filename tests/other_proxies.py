"""HAProxy and nginx as peers of tests: each in the foreground, with a configuration of the test's own, until its end."""

import os
import shutil
import socket
import subprocess

import harness
from harness import eventually


def installed(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


class OtherProxiesTest(harness.EddyTest):
    """A test that starts them, and is skipped where one is not installed."""

    def start(self, *words):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        def end():
            process.kill()
            process.wait()
            process.stderr.close()
        self.addCleanup(end)
        return process

    def serves(self, port, process):
        def is_there():
            if process.poll() is not None:
                raise AssertionError(process.stderr.read().decode(errors="replace"))
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except ConnectionRefusedError:
                return False
            return True
        eventually(is_there, f"port {port} is served")

    def haproxy(self, port, *lines):
        """HAProxy, which serves the port."""
        program = installed("haproxy")
        if not program:
            self.skipTest("haproxy is not installed")
        path = os.path.join(self.folder(), "haproxy.cfg")
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(("defaults", "  timeout connect 10s", "  timeout client 60s", "  timeout server 60s",
                                  *lines, "")))
        self.serves(port, self.start(program, "-db", "-f", path))

    def nginx(self, port, *lines, before=()):
        """The same of nginx."""
        program = installed("nginx")
        if not program:
            self.skipTest("nginx is not installed")
        folder = self.folder()
        path = os.path.join(folder, "nginx.conf")
        temporary = [f"  {name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join((*before, "daemon off; master_process off;", f"pid {folder}/pid;",
                                  f"error_log {folder}/error.log;", "events {}", "http {", "  access_log off;",
                                  *temporary, *[f"  {line}" for line in lines if not line.startswith("stream")], "}",
                                  *[line for line in lines if line.startswith("stream")], "")))
        self.serves(port, self.start(program, "-c", path, "-e", f"{folder}/error.log", "-p", folder))
