"""Installation of missing packages by apt, without starting the servers that they bring."""

import os
import subprocess
import sys

from dev import packages
from dev.output import Failure, say, show_tail, warn
from dev.processes import foreground, is_installed, output_of, succeeds

LOG = "build/apt.log"
# Keeps packages from starting their servers.
POLICY = "/usr/sbin/policy-rc.d"
POLICY_TEXT = b"#!/bin/sh\nexit 101\n"
SYSTEMD = "/run/systemd/system"
POSTGRESQL = "/usr/lib/postgresql"


def need(*names):
    """Installs the named packages that are missing, and reports it. Fails with the reason."""
    if not is_installed("dpkg-query"):
        say("This is no Debian or Ubuntu: install the counterparts of these yourself: "
            + " ".join(names))
        return
    missing = [name for name in dict.fromkeys(names)
               if " installed" not in output_of(["dpkg-query", "-W", "-f", "${Status}", name])]
    if not missing:
        return
    root = []
    if os.geteuid() != 0:
        if not is_installed("sudo"):
            raise Failure("these packages are missing, and there is no sudo; as root run: "
                          "apt-get install -y --no-install-recommends " + " ".join(missing))
        root = ["sudo"]
    say("Installing " + " ".join(missing))
    os.makedirs(os.path.dirname(LOG), exist_ok=True)
    with open(LOG, "wb") as log:
        status = _install(root, missing, log)
    if status != 0:
        show_tail(LOG, 20, file=sys.stderr)
        clang = f"clang-{packages.CLANG}"
        if not packages.is_known(clang):
            warn(f"apt knows no {clang}. On Ubuntu 24.04 it is in universe, in the updates: "
                 "run `sudo add-apt-repository universe`.")
            warn("An older system needs the LLVM project's own repository for apt first.")
        raise Failure(f"apt-get failed; the whole log is {LOG}")


def _servers():
    """The services of installed packages that listen on a port: 6379, 11211, 80, 5432 and 2379."""
    return {service for service, is_there in (
        ("redis-server", is_installed("redis-server")),
        ("memcached", is_installed("memcached")),
        ("nginx", is_installed("nginx")),
        ("haproxy", is_installed("haproxy")),
        ("etcd", is_installed("etcd")),
        ("postgresql", os.path.exists(POSTGRESQL))) if is_there}


def _install(root, missing, log):
    """The status of apt-get. `root` is the command that gives its rights."""
    def run(*command):
        return foreground([*root, *command], stdout=log, stderr=subprocess.STDOUT)

    def apt(*arguments):
        return run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *arguments)

    before = _servers()
    if (status := apt("update")) != 0:
        return status
    is_policy_ours = False
    try:
        if not os.path.exists(POLICY):
            is_policy_ours = True
            if succeeds([*root, "tee", POLICY], input=POLICY_TEXT, stderr=log):
                run("chmod", "755", POLICY)
        status = apt("install", "-y", "--no-install-recommends",
                     "-o", "DPkg::Lock::Timeout=300", *missing)
    finally:
        if is_policy_ours:
            run("rm", "-f", POLICY)
    # Nor shall they take their ports at the next boot.
    if os.path.isdir(SYSTEMD):
        for service in sorted(_servers() - before):
            run("systemctl", "disable", "--now", service)
    return status
