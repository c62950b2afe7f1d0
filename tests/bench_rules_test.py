#!/usr/bin/env python3
"""The rules by which benchmarks are judged (bench/harness.py): order, void runs, wrong results."""

import contextlib
import glob
import html
import importlib.util
import io
import os
import re
import sys
import unittest
from unittest import mock


def from_bench(name):
    """bench/NAME.py under another name: the tests have a harness of their own."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", name + ".py")
    spec = importlib.util.spec_from_file_location("bench_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = from_bench("harness")
with mock.patch.dict(sys.modules, harness=bench):
    report = from_bench("report")
with mock.patch.dict(sys.modules, harness=bench, report=report):
    headlines = from_bench("headlines")


def turn(rate=100.0, void=False, verified=True, errors=0, lost=0.0, ns=1000.0):
    return {"ops_per_second": rate, "void": void, "verified": verified, "errors": errors, "lost": lost,
            "server_ns_per_op": ns}


def rates(**sides):
    return bench.Comparison({side: [turn(rate) for rate in of] for side, of in sides.items()})


class Turns(unittest.TestCase):
    def test_sides_begin_by_turns(self):
        self.assertEqual(list(bench.turns(["a", "b", "c"], 3)),
                         [(0, "a"), (0, "b"), (0, "c"), (1, "c"), (1, "b"), (1, "a"), (2, "a"), (2, "b"), (2, "c")])

    def test_an_even_number_of_rounds_lets_each_of_two_sides_begin_as_often(self):
        for pairs in (2, 4, bench.MIN_PAIRS):
            order = list(bench.turns(["a", "b"], pairs))
            begun = [side for number, side in order[::2]]
            self.assertEqual(begun.count("a"), begun.count("b"), pairs)
            for side in "ab":
                self.assertEqual([number for number, who in order if who == side], list(range(pairs)))

    def test_other_numbers_of_rounds_are_refused(self):
        for pairs in ("3", "7", "0", "-2"):
            said = io.StringIO()
            with mock.patch.object(sys, "argv", ["run_x.py", "--pairs", pairs]), contextlib.redirect_stderr(said), \
                    self.assertRaises(SystemExit) as ended:
                bench.begin("A benchmark.")
            self.assertNotEqual(ended.exception.code, 0)
            self.assertIn("--pairs must be even", said.getvalue())

    def test_the_rounds_of_the_documentation_are_even(self):
        self.assertEqual(bench.MIN_PAIRS % 2, 0)


class Rows(unittest.TestCase):
    def test_void_is_what_was_void_in_half_of_the_turns_of_a_side(self):
        for voids, turns, expected in ((0, 1, False), (1, 1, True), (1, 2, True), (1, 3, False), (2, 3, True),
                                       (2, 6, False), (3, 6, True), (6, 6, True)):
            row = bench.Comparison({"eddy": [turn(void=i < voids) for i in range(turns)], "redis": [turn()] * turns})
            self.assertEqual(row.is_void("eddy"), expected, (voids, turns))
            self.assertEqual(row.is_void("redis", "eddy"), expected, (voids, turns))
            self.assertFalse(row.is_void("redis"), "the turns of a side that was not asked for")

    def test_halves_of_two_sides_do_not_add_up(self):
        row = bench.Comparison({"eddy": [turn(void=True), turn(), turn()], "redis": [turn(void=True), turn(), turn()]})
        self.assertFalse(row.is_void("eddy", "redis"))

    def test_one_wrong_turn_of_any_side_is_a_fault(self):
        right = [turn() for _ in range(5)]
        self.assertEqual(bench.Comparison({"eddy": right, "redis": right}).faults(), [])
        row = bench.Comparison({"eddy": [*right, turn(verified=False)], "redis": [*right, turn(errors=1)]})
        self.assertEqual(row.faults(), ["eddy: wrong replies", "redis: error replies"])
        row = bench.Comparison({"eddy": [*right, turn(verified=False, errors=7)], "redis": right})
        self.assertEqual(row.faults(), ["eddy: wrong replies", "eddy: error replies"])

    def test_a_ratio_is_taken_round_by_round(self):
        # The second round was disturbed for both, so it does not distinguish them.
        ratio = rates(eddy=[200.0, 20.0, 220.0], redis=[100.0, 10.0, 100.0]).ratio("eddy", "redis")
        self.assertEqual((ratio.median, ratio.low, ratio.high), (2.0, 2.0, 2.2))

    def test_the_best_is_the_one_with_the_highest_median(self):
        row = rates(a=[1.0, 2.0, 900.0], b=[3.0, 3.0, 3.0], c=[2.0, 2.0, 2.0])
        self.assertEqual(row.best(["a", "b", "c"]), "b")
        self.assertEqual(row.best(["a", "c"]), "a")

    def test_what_was_lost_is_the_worst_turn_of_all(self):
        row = bench.Comparison({"eddy": [turn(lost=0.01), turn(lost=0.02)], "redis": [turn(lost=0.4), turn()]})
        self.assertEqual(row.lost(), 0.4)


class Losses(unittest.TestCase):
    def test_what_a_server_waits_for_its_own_threads_is_no_loss(self):
        self.assertAlmostEqual(bench.lost_to_others(waited=0.40, others_ran=0.01, deferred=0, stolen=0), 0.01)

    def test_nor_is_what_its_own_system_calls_left_to_do(self):
        self.assertAlmostEqual(bench.lost_to_others(waited=0.30, others_ran=0.25, deferred=0.25, stolen=0), 0)

    def test_what_others_took_is_one(self):
        self.assertAlmostEqual(bench.lost_to_others(waited=0.10, others_ran=0.30, deferred=0, stolen=0.02), 0.10)
        self.assertAlmostEqual(bench.lost_to_others(waited=0, others_ran=0, deferred=0, stolen=0.02), 0.02)


class Scales(unittest.TestCase):
    def test_a_figure_has_room_for_any_ratio(self):
        for most in (1.0, 900.0, 2e6):
            group = report.Group("row", [("eddy", bench.Spread([most]), ""), ("redis", bench.Spread([1.0]), "")], "redis")
            self.assertIn("</svg>", report.bars("title", "subtitle", [group]))

    def test_a_small_share_has_two_figures_and_no_exponent(self):
        self.assertEqual([report.share(each) for each in (0.0, 0.000067, 0.1024, 0.985, 1.583, 2006.07)],
                         ["0.00 ×", "0.000067 ×", "0.10 ×", "0.98 ×", "1.58 ×", "2006 ×"])


def spread(*values):
    return bench.Spread(values)


class Figures(unittest.TestCase):
    """Figures as they are drawn, and those of the pages."""

    def test_a_long_label_is_broken_into_lines(self):
        label = "longest PING in 10 s in which 1 % of 10 000 000 keys expire at once"
        drawn = report.bars("", "", [report.Group(label, [("redis", spread(1.0), ""), ("eddy", spread(2.0), "")], "redis")])
        self.assertNotIn(label, drawn)
        self.assertEqual(" ".join(labels_of(drawn)), label)
        self.assertIn("which 1 % of 10 000 000", labels_of(drawn))

    def test_bars_below_0_and_of_0_end_at_the_left_of_the_plot(self):
        for logarithmic in (False, True):
            drawn = report.bars("", "", [report.Group("row", [("redis", spread(1.0, 1.0), ""), ("eddy", spread(-2.0, 0.0, 0.5), "")],
                                                      "redis")], logarithmic)
            self.assertGreaterEqual(min(map(float, re.findall(r'd="M([\d.-]+)', drawn))), report.LEFT)

    def test_steps_of_a_logarithmic_scale_stand_apart(self):
        drawn = report.bars("", "", [report.Group("row", [("redis", spread(1.0), ""), ("eddy", spread(0.00007), "")], "redis")], True)
        steps = [float(x) for x in re.findall(r'<path d="M([\d.]+) [\d.]+V', drawn)]
        self.assertEqual(len(steps), 6)
        self.assertGreater(min(after - before for before, after in zip(steps, steps[1:])), 40)

    def test_each_side_has_a_colour_of_its_own(self):
        sides = ["redis", "eddy", "a side", "another", "a third"]
        self.assertEqual(len(set(report.colours_of(sides).values())), len(sides))

    def test_the_figures_of_the_pages_can_be_read(self):
        for path in glob.glob(os.path.join(bench.ROOT, "bench/results/*.json")):
            name = os.path.basename(path).removesuffix(".json")
            figure = os.path.join(bench.ROOT, "docs/figures", name + ".svg")
            if name == "handoff":  # has figures of another kind
                continue
            with self.subTest(name), open(figure, encoding="utf-8") as file:
                drawn = file.read()
                self.assertLessEqual(max(map(len, labels_of(drawn))), report.LETTERS)
                colours = re.findall(r'width="11" height="11" rx="2" fill="(#\w+)"', drawn)
                self.assertEqual(len(set(colours)), len(colours), colours)


def labels_of(drawn):
    """The texts to the left of the bars."""
    return [html.unescape(text) for text in
            re.findall(rf'<text x="{report.LEFT - 10:.1f}" [^>]*font-weight="600"[^>]*>([^<]*)', drawn)]


class Verdicts(unittest.TestCase):
    def test_what_is_wrong_comes_before_what_is_void_and_that_before_what_is_met(self):
        faults = ["eddy: wrong replies", "redis: error replies"]
        for met in (True, False, None):
            for disturbed in (True, False):
                for void in (True, False):
                    self.assertEqual(bench.verdict(met, void, faults, disturbed),
                                     "INVALID: eddy: wrong replies, redis: error replies")
                self.assertEqual(bench.verdict(met, True, [], disturbed), "void: the load was the limit")
            self.assertEqual(bench.verdict(met, False, [], True), "void: other load was there")
        self.assertEqual(bench.verdict(True, False, []), "met")
        self.assertEqual(bench.verdict(False, False, []), "missed")
        self.assertEqual(bench.verdict(None, False, []), "", "a row that has no goal")

    def test_a_goal_of_rates_is_held_against_the_fastest_rival(self):
        goal = bench.RateGoal("≥ 1.5 ×", 1.5, "redis", "valkey")
        self.assertEqual(goal.judge(rates(eddy=[150.0] * 2, redis=[100.0] * 2, valkey=[90.0] * 2)), "met")
        self.assertEqual(goal.judge(rates(eddy=[149.0] * 2, redis=[100.0] * 2, valkey=[90.0] * 2)), "**missed**")
        self.assertEqual(goal.judge(rates(eddy=[150.0] * 2, redis=[50.0] * 2, valkey=[101.0] * 2)), "**missed**")

    def test_rates_that_are_void_prove_nothing(self):
        for voided in ("eddy", "redis"):
            samples = {"eddy": [turn(900.0, ns=500.0)] * 2, "redis": [turn(100.0, ns=1000.0)] * 2}
            samples[voided] = [dict(each, void=True) for each in samples[voided]]
            row = bench.Comparison(samples)
            self.assertEqual(bench.RateGoal("", 2.0, "redis").judge(row), "void")
            # Where the server's CPU may stand for them, it must be as much less.
            self.assertEqual(bench.RateGoal("", 2.0, "redis", or_cpu=True).judge(row), "met by CPU")
            self.assertEqual(bench.RateGoal("", 2.1, "redis", or_cpu=True).judge(row), "**missed** by CPU")

    def test_the_void_turns_of_a_side_that_is_no_rival_do_not_count(self):
        row = bench.Comparison({"eddy": [turn(200.0)] * 2, "redis": [turn()] * 2, "memcached": [turn(void=True)] * 2})
        self.assertEqual(bench.RateGoal("", 2.0, "redis").judge(row), "met")


class Headlines(unittest.TestCase):
    def test_a_label_is_a_side_under_a_load_where_both_have_columns(self):
        rows = headlines.rows_of("| load | daemon | CPU |\n|---|---|---:|\n| many | eddy | 1.5 (1.0–2.0) |\n|  | go × 7 | 4 |\n")
        self.assertEqual(list(rows), ["many: eddy", "many: go"])
        one = headlines.Headline("", "Go", "", ".*", "go", ("eddy", "CPU"))
        self.assertEqual([round(ratio, 2) for ratio in one.ratios(rows)], [2.67])

    def test_a_row_that_no_table_has_is_refused(self):
        with self.assertRaises(bench.Failure):
            headlines.Headline("", "Redis", "", "no such row", "x").ratios({"a row": {"x": "1 ×"}})

    def test_they_are_those_of_the_tables(self):
        """After a change of a table by hand: python3 bench/headlines.py."""
        text, svg = headlines.headlines()
        with open(headlines.PAGE, encoding="utf-8") as page:
            self.assertIn(f"<!-- headlines:begin -->\n{text}\n<!-- headlines:end -->", page.read())
        with open(headlines.FIGURE, encoding="utf-8") as file:
            self.assertEqual(file.read(), svg)


if __name__ == "__main__":
    unittest.main(verbosity=2)
