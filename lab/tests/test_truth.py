"""The truth of a run, from what the program printed and from its truth file."""

import unittest

import truth

CHAIN = {
    "why": "link{depth} does it",
    "problem": {"thread": "chain"},
    "root": {"process": "chain", "thread": "link{depth}"},
    "variant": [
        {
            "when": {"ending": "compute"},
            "root": {"class": "LongRunning", "function": "crunch"},
        },
        {"when": {"ending": "sleep"}, "root": {"class": "LongWait"}},
    ],
}


class ParseRun(unittest.TestCase):
    def test_other_lines_are_passed_over(self):
        """Parameters and hang are found among other output."""
        run = truth.parse_run("hello\nparam depth=3\nhang 100 350\nparam a=b=c\n")
        self.assertEqual(run, truth.Run({"depth": "3", "a": "b=c"}, 100, 350))
        self.assertEqual(run.length_ns, 250)

    def test_exactly_one_hang(self):
        """No hang, two hangs and half a hang are errors, not truths."""
        for output in ("", "hang 1 2\nhang 3 4\n", "hang 1\n", "hang a b\n"):
            with self.assertRaises(truth.TruthError, msg=output):
                truth.parse_run(output)


class MakeTruth(unittest.TestCase):
    def test_the_variant_that_agrees_is_laid_over(self):
        """Parameters choose the class and the function, and fill the templates."""
        made = truth.make_truth(CHAIN, {"ending": "compute", "depth": "4"})
        self.assertEqual(made.threads, ("link4",))
        self.assertEqual(made.why, "link4 does it")
        self.assertEqual(made.root_class, "LongRunning")
        self.assertEqual(made.functions, {"link4": "crunch"})
        made = truth.make_truth(CHAIN, {"ending": "sleep", "depth": "1"})
        self.assertEqual((made.root_class, made.functions), ("LongWait", {}))

    def test_functions_by_thread(self):
        """Where several threads may be named, each can have a function of its own, and no other."""
        root = {"process": "p", "thread": ["a", "b"], "class": "Circular"}
        table = CHAIN | {"variant": [], "root": root | {"function": {"b": "wait"}}}
        self.assertEqual(truth.make_truth(table, {"depth": "1"}).functions, {"b": "wait"})
        table = CHAIN | {"variant": [], "root": root | {"function": {"c": "wait"}}}
        with self.assertRaises(truth.TruthError):
            truth.make_truth(table, {"depth": "1"})

    def test_a_gap_is_an_error(self):
        """A parameter that no variant knows, or that a template lacks, is an error."""
        for params in ({"ending": "flood", "depth": "1"}, {"ending": "sleep"}):
            with self.assertRaises(truth.TruthError):
                truth.make_truth(CHAIN, params)

    def test_an_unknown_class_is_an_error(self):
        """A misspelt class cannot make every verdict wrong in silence."""
        table = CHAIN | {"variant": [], "root": {"process": "p", "thread": "t", "class": "Slow"}}
        with self.assertRaises(truth.TruthError):
            truth.make_truth(table, {"depth": "1"})


if __name__ == "__main__":
    unittest.main()
