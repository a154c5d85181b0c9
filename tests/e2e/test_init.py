"""Templates of `det init` on a real cluster: each is created, built and trained as it is, only shorter. Then the
edit loop of a trial: it is compiled again after a change, and mistakes are named."""
import unittest

from cluster import Cluster
from test_main_job import BUILD


class Init(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("a1")

    def train(self, template, *options):
        directory = self.cluster.dir / template
        self.cluster.det("init", directory, "--template", template)
        out = self.cluster.det("experiment", "create", "const.yaml", ".", *options, cwd=directory)
        id = int(out.split("Created experiment ")[1].split()[0])
        self.cluster.wait_state(id, "COMPLETED", timeout=240)
        return id

    def test_the_classifier_trains_as_it_is(self):
        trial = self.cluster.trial_id(self.train("classification"))
        self.assertGreater(self.cluster.metrics_best(trial, "accuracy"), 0.9)

    def test_the_language_model_trains_as_it_is(self):
        trial = self.cluster.trial_id(self.train("language", "--config", "searcher.max_length.batches=40"))
        losses = [metrics["validation_loss"] for _, metrics in self.cluster.metrics(trial, "validation")]
        self.assertLess(losses[-1], 4.5, "5.5 before training")

    def test_the_program_with_its_own_loop_trains_as_it_is(self):
        trial = self.cluster.trial_id(self.train("core-api"))
        steps = [step for step, _ in self.cluster.metrics(trial, "validation")]
        self.assertEqual(steps, [100, 200, 300, 400, 500])

    def test_the_trial_templates_pass_the_local_test(self):
        for template in ("classification", "language"):
            with self.subTest(template):
                directory = self.cluster.dir / ("local-" + template)
                self.cluster.det("init", directory, "--template", template)
                out = self.cluster.det("experiment", "create", "const.yaml", ".", "--local", "--test", cwd=directory)
                self.assertIn("The trial works: one batch was trained, validated and saved", out)

    def test_an_unknown_class_fails_the_trial_with_the_classes_that_exist(self):
        directory = self.cluster.dir / "misspelled"
        self.cluster.det("init", directory)
        out = self.cluster.det("experiment", "create", "const.yaml", ".", "--config",
                               "entrypoint=model_def:MyTrail", "--config", "max_restarts=0", cwd=directory)
        id = int(out.split("Created experiment ")[1].split()[0])
        self.cluster.wait_state(id, "ERROR", timeout=240)
        log = self.cluster.logs(self.cluster.trial_id(id))
        self.assertIn("model_def.cpp: error: no class MyTrail; its trial classes: MyTrial", log)
        self.assertNotIn("<stdin>", log)
