"""Format of the C++ files: as .clang-format says."""

import os

from dev import apt
from dev.packages import CLANG
from dev.processes import foreground

PROGRAM = f"clang-format-{CLANG}"
FOLDERS = ("include", "src", "tests", "examples", "fuzz", "bench", "cmake")


def cpp_files():
    """Paths from the root, sorted."""
    return sorted(os.path.join(folder, name)
                  for root in FOLDERS for folder, _, names in os.walk(root)
                  for name in names if name.endswith((".cpp", ".hpp")))


def check_command():
    return [PROGRAM, "--dry-run", "-Werror", "--style=file", *cpp_files()]


def rewrite():
    apt.need(PROGRAM)
    files = cpp_files()
    return foreground([PROGRAM, "-i", "--style=file", *files]) if files else 0
