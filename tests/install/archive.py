#!/usr/bin/env python3
"""The archive for systems without Debian packages: packed from a build, installed into a folder, tried there, removed."""

import os
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.path.insert(0, os.path.join(ROOT, "tests"))
os.chdir(ROOT)


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500, **more)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def version_of(text):
    return tuple(map(int, text.split(".")))


def files_below(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]


def main(work):
    assert os.path.exists(f"{BUILD}/eddy_static"), f"build it: cmake --build {BUILD} --target eddy_static"
    from dev import packaging
    path = packaging.pack(BUILD, os.path.join(BUILD, "eddy_static"), work)
    least = packaging.least_glibc(os.path.join(BUILD, "eddy_static"))
    print(f"{os.path.getsize(path)} bytes; needs {least}")
    with open("docs/operations.md", encoding="utf-8") as file:
        promised = re.search(r"needs ([0-9.]+) or newer", file.read())[1]
    # Releases are made on Debian 12; a build on a newer system needs a newer one.
    if version_of(os.confstr("CS_GNU_LIBC_VERSION").split()[1]) <= (2, 36):
        assert version_of(least) <= version_of(promised), f"it needs glibc {least}, and docs/operations.md says {promised}"
    with tarfile.open(path) as archive:
        for entry in archive:
            assert (entry.uid, entry.gid, entry.mtime) == (0, 0, 0), entry.name
            assert entry.mode & 0o022 == 0, f"{entry.name} can be written to by others"
        archive.extractall(work)
    unpacked = os.path.join(work, packaging.name_of())
    # Where another program stands already: the one that runs is replaced.
    prefix = os.path.join(work, "prefix")
    os.makedirs(os.path.join(prefix, "bin"))
    os.makedirs(os.path.join(prefix, "share/man"))
    own = os.path.join(prefix, "bin", "own")
    with open(own, "w", encoding="ascii") as file:
        file.write("the user's")
    for _ in range(2):
        told = run(f"{unpacked}/install.sh", "--no-service", "--prefix", prefix, cwd="/")
        assert f"Installed eddy {packaging.version()} in {prefix}" in told, told
    for wrong in (["--prefix"], ["--what"]):
        assert subprocess.run([f"{unpacked}/install.sh", *wrong], capture_output=True, check=False).returncode != 0
    refused = subprocess.run([f"{unpacked}/install.sh", "--no-service", "--prefix", "/proc/none"], capture_output=True,
                             text=True, check=False)
    assert refused.returncode == 2 and "--prefix" in refused.stderr, refused

    os.environ["EDDY_BINARY"] = f"{prefix}/bin/eddy"
    import harness
    with harness.Daemon() as daemon:
        port = harness.free_port()
        daemon.must("create", "cache", "c", "-p", str(port), "-s")
        assert daemon.must("db", "c", "EVAL", "return 41 + 1", "0") == "42\n"
    for page in ("share/doc/eddy/docs/cache.md", "share/man/man1/eddy.1.gz", "share/doc/eddy/examples/streaming/hand_over.py"):
        assert os.path.exists(f"{prefix}/{page}"), page

    run(f"{prefix}/share/eddy/uninstall.sh")
    assert files_below(prefix) == [own], files_below(prefix)
    # Folders that were there stay, also empty ones.
    left = sorted(os.path.relpath(os.path.join(at, name), prefix) for at, names, _ in os.walk(prefix) for name in names)
    assert left == ["bin", "share", "share/man"], left
    print("1 passed, 0 failed")


with tempfile.TemporaryDirectory(prefix="eddy-archive-") as folder:
    main(folder)
