#!/usr/bin/env python3
"""Autobahn's conformance suite of WebSocket, against Eddy's server and client.

Usage: autobahn.py PROGRAM [CASE...]. PROGRAM is websocket_conformance. A case may be 9.* or 1.1.1; all without one.
The suite (autobahntestsuite of PyPI) needs Python 2.7: EDDY_PYTHON27, else python2.7 of PATH or of pyenv. It is installed
below build/autobahn, where the reports are, too. Fails with the cases that were not passed.
"""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "autobahn")
# NON-STRICT: allowed by the RFC, but not what it recommends. INFORMATIONAL: nothing to be judged.
PASSED = {"OK", "INFORMATIONAL"}


def python27():
    named = os.environ.get("EDDY_PYTHON27")
    of_pyenv = glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python2.7"))
    for each in [named] if named else [shutil.which("python2.7"), *sorted(of_pyenv)]:
        # A program of PATH may be pyenv's shim, which runs nothing where no 2.7 is chosen.
        if each and subprocess.run([each, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return each
    sys.exit("autobahn.py: there is no Python 2.7 for the suite; name one by EDDY_PYTHON27")


def suite():
    program = os.path.join(FOLDER, "env", "bin", "wstest")
    if not os.path.exists(program):
        python = python27()
        print("installing the suite below", FOLDER, flush=True)
        subprocess.run([python, "-m", "pip", "install", "--user", "virtualenv"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([python, "-m", "virtualenv", "-q", os.path.join(FOLDER, "env")], check=True)
        pip = os.path.join(FOLDER, "env", "bin", "pip")
        subprocess.run([pip, "install", "-q", "cython<3", "setuptools", "wheel"], check=True)
        subprocess.run([pip, "install", "-q", "--no-build-isolation", "autobahntestsuite"], check=True)
    return program


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port):
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"autobahn.py: nothing listens on port {port}")


def spec(name, content, cases):
    path = os.path.join(FOLDER, name + ".json")
    content.update({"outdir": os.path.join(FOLDER, name), "cases": cases, "exclude-cases": [],
                    "exclude-agent-cases": {}})
    with open(path, "w") as file:
        json.dump(content, file)
    shutil.rmtree(content["outdir"], ignore_errors=True)
    return path


def report(name):
    with open(os.path.join(FOLDER, name, "index.json")) as file:
        results = next(iter(json.load(file).values()))
    failed = {case: (result["behavior"], result["behaviorClose"]) for case, result in results.items()
              if result["behavior"] not in PASSED or result["behaviorClose"] not in PASSED}
    print(f"{name}: {len(results)} cases, {len(failed)} not passed", flush=True)
    for case, result in sorted(failed.items()):
        print(f"  {case}: {result[0]}, close {result[1]}")
    return not failed


def test_server(program, cases):
    port = free_port()
    server = subprocess.Popen([program, "server", str(port)])
    try:
        await_port(port)
        path = spec("server", {"servers": [{"agent": "eddy", "url": f"ws://127.0.0.1:{port}"}]}, cases)
        subprocess.run([suite(), "-m", "fuzzingclient", "-s", path], check=True, stdout=subprocess.DEVNULL)
    finally:
        server.kill()
        server.wait()
    return report("server")


def test_client(program, cases):
    port = free_port()
    path = spec("client", {"url": f"ws://127.0.0.1:{port}"}, cases)
    fuzzer = subprocess.Popen([suite(), "-m", "fuzzingserver", "-s", path, "-u", "0"],
                              stdout=subprocess.DEVNULL)
    try:
        await_port(port)
        subprocess.run([program, "client", str(port)], check=True)
    finally:
        fuzzer.kill()
        fuzzer.wait()
    return report("client")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.makedirs(FOLDER, exist_ok=True)
    chosen = sys.argv[2:] or ["*"]
    suite()
    passed = [test_server(sys.argv[1], chosen), test_client(sys.argv[1], chosen)]
    sys.exit(0 if all(passed) else 1)
