#!/usr/bin/env python3
"""Gain of a second thread for a site where load and server share two cores: files of 1 KB by HTTP."""

import os

import harness
from harness import Eddy
from run_threads import SIDES, Row, compare

SHARE = 0.9     # of the bound that two threads are to reach
SIZE = 1024


class Site(Eddy):
    """A site with --threads, its files in memory."""

    shares_cores = True

    def __init__(self, cores, threads):
        super().__init__(cores)
        self.threads = threads

    def after_start(self):
        root = os.path.join(self.folder, "root")
        os.mkdir(root)
        with open(os.path.join(root, "small"), "w") as file:
            file.write(("the file small " * SIZE)[:SIZE])
        self.port = self.create("http", "bench", "--root", root, "--cache", "8M", "--threads", str(self.threads))


class Load:
    """GET of one file by 50 connections, with `pipeline` requests under way on each."""

    def __init__(self, label, pipeline):
        self.label, self.pipeline, self.goal, self.sides = label, pipeline, SHARE, SIDES
        self.tests = (None,)

    def row(self, _):
        return self.label

    def command(self, chosen, server):
        seconds, warm_up = (0.2, 0.05) if chosen.quick else (2, 0.5)
        return [harness.eddy(), "bench", "http", f"http://127.0.0.1:{server.port}/small", "-c", "50", "-P",
                str(self.pipeline), "--expect", "the file small", "--server-pid", str(server.pid), "--duration",
                str(seconds), "--warm-up", str(warm_up), "--json", "--no-progress"]


class ShareOfBound(Row):
    """A row that is held to a share of its bound: of what both cores could do with the work of one thread and the load."""

    def met(self):
        return self.ratio.median >= self.goal * self.bound.median

    def goal_text(self):
        return f"≥ {self.goal} × the bound"

    def group(self):
        group = super().group()
        group.goal = self.goal * self.bound.median
        return group


LOADS = [Load("static 1 KB", 1), Load("static 1 KB, 16 pipelined", 16)]


def main():
    return compare("http_threads", harness.begin(__doc__), "Site: threads", "requests", LOADS, Site, ShareOfBound)


if __name__ == "__main__":
    harness.run(main)
