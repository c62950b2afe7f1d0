#!/usr/bin/env python3
"""Tests of `./eddy-dev`'s modules: all tools/dev/*_test.py."""

import os
import sys
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    sys.path.insert(0, TOOLS)
    tests = unittest.defaultTestLoader.discover(
        os.path.join(TOOLS, "dev"), pattern="*_test.py", top_level_dir=TOOLS)
    sys.exit(not unittest.TextTestRunner().run(tests).wasSuccessful())
