"""The Core API examples on a real cluster. The startup hook builds them there."""
import unittest

from cluster import Cluster
from test_main_job import BUILD, ROOT

STAGES = ROOT / "examples" / "core_api"


class CoreApiExample(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("pair", slots=2)

    def train(self, stage, *options):
        out = self.cluster.det("experiment", "create", f"{stage}.yaml", ".", *options, cwd=STAGES)
        id = int(out.split("Created experiment ")[1].split()[0])
        self.cluster.wait_state(id, "COMPLETED", timeout=240)
        return id

    def test_checkpoints_are_saved_and_the_newest_is_the_last_step(self):
        trial = self.cluster.trial_id(self.train("3_checkpoints"))
        steps = [step for step, _ in self.cluster.metrics(trial, "validation")]
        self.assertEqual(steps, [100, 200, 300, 400, 500])
        self.assertTrue(self.cluster.trial(trial)["latestCheckpointUuid"])

    def test_two_processes_share_the_work(self):
        trial = self.cluster.trial_id(self.train("5_distributed"))
        losses = [metrics["validation_loss"] for _, metrics in self.cluster.metrics(trial, "validation")]
        self.assertEqual(len(losses), 5)
        self.assertAlmostEqual(losses[-1], 0.00336, places=5)

    def test_a_python_program_without_a_library_runs_in_a_search(self):
        id = self.train("over_http", "--config", "searcher.max_trials=4", "--config", "reproducibility.experiment_seed=1")
        trials = self.cluster.experiment(id)["trials"]
        self.assertGreaterEqual(len(trials), 4)
        best = min(metrics["validation_loss"] for trial in trials
                   for _, metrics in self.cluster.metrics(trial["id"], "validation"))
        self.assertLess(best, 0.05)
        # Trials with too large a rate have no checkpoint and are replaced.
        self.assertGreaterEqual(sum(1 for trial in trials if trial["latestCheckpointUuid"]), 4)

    def test_two_python_processes_share_the_work_and_reduce_in_rank_order(self):
        trial = self.cluster.trial_id(self.train("over_http_distributed"))
        losses = [metrics["validation_loss"] for _, metrics in self.cluster.metrics(trial, "validation")]
        self.assertEqual(len(losses), 20)
        self.assertAlmostEqual(losses[-1], 0.0033629793452, places=10)  # The result of a single process.

    def test_a_search_tries_learning_rates_and_finds_a_good_one(self):
        id = self.train("4_search", "--config", "searcher.max_trials=4")
        trials = self.cluster.experiment(id)["trials"]
        self.assertGreaterEqual(len(trials), 4)  # A trial with too large a rate is replaced.
        self.assertEqual(len({trial["hparams"]["learning_rate"] for trial in trials}), len(trials))
