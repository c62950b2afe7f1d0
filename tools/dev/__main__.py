"""Entry of `./eddy-dev`, which runs this folder in the root of the checkout."""

import os
import sys

if sys.version_info < (3, 11):
    sys.exit("eddy-dev: this needs Python 3.11 or a newer one; "
             f"python3 is {sys.version.split()[0]}")
# The folder of the package, in place of the package's own.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
from dev import command_line  # noqa: E402

sys.exit(command_line.main(sys.argv[1:]))
