#!/usr/bin/env python3
"""Prints the pieces of a program that a page of docs/ shows, in the order of the page.

Usage: page_program.py PAGE PROGRAM
"""
import re
import sys


def main():
    page, program = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    pieces = re.findall(rf"<!-- {re.escape(program)} -->\n```cpp\n(.*?)^```$", text, re.M | re.S)
    if not pieces:
        sys.exit(f"{page} shows nothing of {program}")
    print("\n".join(pieces), end="")


if __name__ == "__main__":
    main()
