#!/usr/bin/env python3
"""Coverage of the library's unit tests in a build with EDDY_COVERAGE: the lines that they reach.

Usage: tools/coverage.py BUILD [--least PERCENT] [--html FOLDER] LAYER...
Fails when the tests do, or when a layer has less than PERCENT (90) of its lines covered. Tests and what
only they include do not count.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
IGNORED = r"(_test\.cpp|/testing\.hpp|/dns_server\.hpp|/temporary_folder\.hpp|^/usr/)"
# The io_uring tests once more in these modes, as ctest does.
MODES = {"io": [{"EDDY_TEST_SQPOLL": "1"}, {"EDDY_TEST_ZERO_COPY": "1"}]}


def tool(name):
    path = shutil.which(f"{name}-19") or shutil.which(name)
    return path or sys.exit(f"coverage: {name} is missing: run `apt install llvm-19`")


def run_tests(build, layer, profiles):
    program = os.path.join(build, "test", f"{layer}_test")
    for number, mode in enumerate([{}] + MODES.get(layer, [])):
        env = dict(os.environ, LLVM_PROFILE_FILE=os.path.join(profiles, f"{layer}-{number}-%p.profraw"),
                   EDDY_CHAOS_ROUNDS="5", **mode)
        flags = ["--gtest_brief=1"]
        if mode:
            flags.append("--gtest_filter=*/uring-*starve*:*spin*:*urgent*")
        print(f"{layer}_test {' '.join(f'{k}={v}' for k, v in mode.items())}".rstrip(), flush=True)
        if subprocess.run([program, *flags], env=env, cwd=ROOT, stdout=subprocess.DEVNULL).returncode != 0:
            sys.exit(f"coverage: {program} failed; run it by hand to see why")
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("layers", nargs="+")
    parser.add_argument("--least", type=float, default=90, metavar="PERCENT")
    parser.add_argument("--html", metavar="FOLDER", help="also write the sources with their counts")
    chosen = parser.parse_args()

    profiles = os.path.join(chosen.build, "profiles")
    shutil.rmtree(profiles, ignore_errors=True)
    os.makedirs(profiles)
    programs = [run_tests(chosen.build, layer, profiles) for layer in chosen.layers]
    merged = os.path.join(profiles, "all.profdata")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", merged, *glob.glob(f"{profiles}/*.profraw")],
                   check=True)
    objects = [programs[0]] + [word for program in programs[1:] for word in ("-object", program)]
    common = [*objects, f"-instr-profile={merged}", f"-ignore-filename-regex={IGNORED}"]
    if chosen.html:
        subprocess.run([tool("llvm-cov"), "show", *common, "-format=html", f"-output-dir={chosen.html}"], check=True)
    found = json.loads(subprocess.run([tool("llvm-cov"), "export", "-summary-only", *common], check=True,
                                      capture_output=True, text=True).stdout)

    lines = {layer: [0, 0] for layer in chosen.layers}
    poor = []
    for file in found["data"][0]["files"]:
        count, covered = (file["summary"]["lines"][key] for key in ("count", "covered"))
        path = os.path.relpath(os.path.join(ROOT, file["filename"]), ROOT)
        for layer in chosen.layers:
            if path.startswith((f"src/{layer}/", f"include/eddy/{layer}/")):
                lines[layer][0] += count
                lines[layer][1] += covered
                if count and covered / count < chosen.least / 100:
                    poor.append((covered / count, path))
    for share, path in sorted(poor):
        print(f"    {share:6.1%}  {path}")
    low = False
    for layer, (count, covered) in lines.items():
        share = 100 * covered / max(count, 1)
        low = low or share < chosen.least
        print(f"{layer}: {share:.1f} % of {count} lines")
    if low:
        sys.exit(f"coverage: less than {chosen.least:g} %")


if __name__ == "__main__":
    main()
