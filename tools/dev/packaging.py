"""Debian packages of Eddy for this system, in build/package."""

import glob
import os
import shutil
import sys

from dev import apt, building, packages
from dev.output import Failure, say, show_tail
from dev.processes import foreground, is_installed
from dev.steps import log_of, logged

FOLDER = "build/package"


def package():
    apt.need(*packages.BUILD, *packages.PACKAGING)
    if not is_installed("dpkg-deb"):
        raise Failure("these are packages for Debian and Ubuntu, and dpkg-deb is not here")
    options = ["-DEDDY_TESTS=OFF", "-DEDDY_CHECK_HEADERS=OFF", "-DEDDY_BENCH=OFF",
               "-DEDDY_PRECOMPILE=OFF", "-DCMAKE_INSTALL_PREFIX=/usr"]
    # Debian's own variables for the maker of a package.
    if email := os.environ.get("DEBEMAIL"):
        name = os.environ.get("DEBFULLNAME") or "The Eddy authors"
        options.append(f"-DEDDY_PACKAGE_CONTACT={name} <{email}>")
    say("Building the packages")
    building.check_place(FOLDER)
    for old in glob.glob(f"{FOLDER}/*.deb"):
        os.remove(old)
    if logged("package-configure", ["cmake", "--preset", "release", "-B", FOLDER, *options]) != 0:
        building.show_failure("package-configure")
        return 1
    building.require(building.compile_targets("package"))
    if logged("package", ["cpack", "--config", f"{FOLDER}/CPackConfig.cmake", "-B", FOLDER]) != 0:
        show_tail(log_of("package"), 40, file=sys.stderr)
        return 1
    shutil.rmtree(f"{FOLDER}/_CPack_Packages", ignore_errors=True)
    made = sorted(glob.glob(f"{FOLDER}/*.deb")) or [f"{FOLDER}/*.deb"]
    foreground(["ls", "-sh1", *made])
    say(f"Install them with: sudo apt-get install ./{FOLDER}/*.deb")
    return 0
