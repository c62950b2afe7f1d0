#!/usr/bin/env python3
"""Selection of tests by what they are made of: digests of inputs, and a marker of what passed with them.

A test's digest covers its program, the libraries that it loads, its arguments and environment, the scripts and
data that it reads, and the machine that it runs on. A test whose digest and name stand in the marker has passed
as it is now. A test whose inputs are not known has no digest, and always runs.

Usage: unchanged.py remember MARKER PASSED...   merges what stages passed into the marker
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

VERSION = 1
# At most this many digests are kept for a stage, the newest first: some runs on other branches.
DIGESTS_KEPT = 400
# Programs that tests start when they find them.
TOOLS = ("redis-server", "redis-cli", "redis-benchmark", "redis-sentinel", "redis-check-rdb", "valkey-server",
         "openssl", "nc", "curl", "faketime", "postgres", "cc", "llvm-symbolizer-19")
# Sources of programs, and files that describe the tree. Every other file may be read by a test.
NO_DATA = (".cpp", ".hpp", ".cmake", ".md", "CMakeLists.txt", ".in")


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Inputs:
    """Digests of the tests of one build. A digest is a text of 64 characters, or None: not known, always run."""

    def __init__(self, root, build):
        self.root = os.path.realpath(root)
        self.build = os.path.realpath(build)
        self._files = {}
        self._folders = {}
        self._surroundings = None

    def digest(self, command, environment, folder=None):
        """Digest of the test that runs `command` (a list) with the entries `environment` (NAME=value) in `folder`."""
        if os.environ.get("EDDY_SEED") == "random":
            return None
        try:
            parts = self._command(command)
            if parts is None:
                return None
            parts.append(["folder", folder and self._short(folder)])
            for entry in sorted(environment):
                name, _, value = entry.partition("=")
                parts.append(["environment", name, self._argument(value)])
            parts.append(self._machine())
        except OSError:
            return None
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _command(self, command):
        if not command:
            return None
        program = os.path.realpath(command[0])
        if self._below(program, self.build):
            parts = [["program", self._program(program)], ["data", self._tree("src"), self._tree("docs")]]
            arguments = command[1:]
        elif re.fullmatch(r"python3?(\.\d+)?", os.path.basename(program)) and len(command) > 1:
            script = os.path.realpath(command[1])
            if not self._below(script, self.root) or self._below(script, self.build):
                return None
            parts = [["python", platform.python_version()], ["script", self._file(script)]]
            # A script may import what lies beside it and start what the tree has, but no other test.
            parts.append(["data", self._tree("", without=r"_test\.py$|^docs/|^\.")])
            with open(script, encoding="utf-8") as file:
                text = file.read()
            if "docs" in text or ".md" in text:
                parts.append(["docs", self._tree("docs", everything=True)])
            arguments = command[2:]
        else:
            return None
        return parts + [["argument", self._argument(argument)] for argument in arguments]

    # A path in an argument, or in the value of an option, stands for what is there.
    def _argument(self, argument):
        head, equals, path = argument.rpartition("=")
        if not os.path.isabs(path):
            return argument
        real = os.path.realpath(path)
        if self._below(real, self.build):
            # Contents that a build folder collects, such as a fuzzer's finds, do not count.
            content = self._program(real) if os.path.isfile(real) else ""
        elif os.path.isdir(real):
            content = self._tree(os.path.relpath(real, self.root), everything=True) if self._below(real, self.root) else ""
        else:
            content = self._file(real) if os.path.isfile(real) else ""
        return [head + equals, self._short(real), content]

    def _below(self, path, folder):
        return path == folder or path.startswith(folder + os.sep)

    def _short(self, path):
        return os.path.relpath(os.path.realpath(path), self.root) if self._below(os.path.realpath(path), self.root) else path

    def _file(self, path):
        if path not in self._files:
            self._files[path] = _sha256(path)
        return self._files[path]

    def _program(self, path):
        """Digest of a program or another file of the build, with the libraries that it loads."""
        key = ("program", path)
        if key not in self._files:
            parts = [self._file(path)]
            with open(path, "rb") as file:
                elf = file.read(4) == b"\x7fELF"
            if elf:
                listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
                for library in sorted(set(re.findall(r"(/\S+) \(0x", listed))):
                    parts.append([library, self._file(os.path.realpath(library))])
            self._files[key] = parts
        return self._files[key]

    def _tree(self, below, everything=False, without=None):
        """Digest of the files of a folder of the source: all of them, or data alone."""
        key = (below, everything, without)
        if key not in self._folders:
            digest = hashlib.sha256()
            for folder, folders, files in os.walk(os.path.join(self.root, below)):
                folders[:] = sorted(
                    name for name in folders
                    if name not in (".git", "__pycache__")
                    # A build lies anywhere, and is known by its cache.
                    and os.path.join(folder, name) != os.path.join(self.root, "build")
                    and not os.path.exists(os.path.join(folder, name, "CMakeCache.txt")))
                for name in sorted(files):
                    path = os.path.join(folder, name)
                    short = os.path.relpath(path, self.root)
                    if not everything and (name.endswith(NO_DATA) or without and re.search(without, short)):
                        continue
                    if os.path.isfile(path):
                        digest.update(f"{short} {self._file(path)}\n".encode())
            self._folders[key] = digest.hexdigest()
        return self._folders[key]

    def _machine(self):
        if self._surroundings is None:
            tools = []
            for name in TOOLS:
                path = shutil.which(name)
                stat = path and os.stat(path)
                tools.append([name, path, stat and stat.st_size, stat and int(stat.st_mtime)])
            chosen = sorted(item for item in os.environ.items()
                            if re.match(r"EDDY_|GTEST_|[ALTU]+SAN_OPTIONS|RC_PARAMS|LD_", item[0])
                            and item[0] not in ("EDDY_JOBS", "EDDY_TEST_TALLY", "EDDY_TEST_MARKER"))
            self._surroundings = [VERSION, platform.release(), platform.machine(), os.cpu_count(), os.geteuid(),
                                  tools, [[name, self._argument(value)] for name, value in chosen]]
        return self._surroundings


class Marker:
    """The names of tests that passed, by stage and digest. An absent or unreadable file is an empty marker."""

    def __init__(self, path):
        self.path = path
        self.stages = {}
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if content.get("version") == VERSION:
                self.stages = {str(stage): {str(digest): list(map(str, names)) for digest, names in passed.items()}
                               for stage, passed in content["stages"].items()}
        except (OSError, ValueError, AttributeError, TypeError, KeyError):
            self.stages = {}

    def has(self, stage, digest, name):
        return digest is not None and name in self.stages.get(stage, {}).get(digest, ())

    def merge(self, stage, passed):
        """Newest first. A digest that stands there gains the new names."""
        kept = dict(passed)
        for digest, names in self.stages.get(stage, {}).items():
            kept[digest] = sorted(set(kept.get(digest, [])) | set(names))
        self.stages[stage] = dict(list(kept.items())[:DIGESTS_KEPT])

    def save(self):
        folder = os.path.dirname(self.path) or "."
        os.makedirs(folder, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=os.path.basename(self.path))
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "stages": self.stages}, file)
        os.replace(temporary, self.path)


def remember(marker, files):
    """Merges files of run_tests.py --passed: {"stage": ..., "passed": {digest: [name...]}}."""
    known = Marker(marker)
    for path in files:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        known.merge(content["stage"], content["passed"])
    known.save()


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] != "remember":
        sys.exit(__doc__)
    remember(sys.argv[2], sys.argv[3:])
