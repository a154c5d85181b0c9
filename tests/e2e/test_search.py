"""Searches on a real cluster: many trials, stopped and held at rungs, with slots released at once."""
import json
import os
import pathlib
import tempfile
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]

CONFIG = """
name: search
entrypoint: [{program}]
max_restarts: 0
hyperparameters:
  x: {{type: double, minval: 0, maxval: 1, count: 4}}
  steps: {steps}
  milliseconds: {milliseconds}
  {extra}
searcher:
  metric: loss
  {searcher}
resources: {{slots_per_trial: 1}}
reproducibility: {{experiment_seed: 11}}
"""


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("crowd", slots=4)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def create(self, searcher, steps=8, milliseconds=60, extra=""):
        program = pathlib.Path(BUILD).resolve() / "bin" / "search_program"
        lines = "\n  ".join(f"{name}: {value}" for name, value in searcher.items())
        return self.cluster.create(self.folder.name, CONFIG.format(program=program, steps=steps, searcher=lines,
                                                                   milliseconds=milliseconds, extra=extra))

    def trials(self, id):
        trials = self.cluster.experiment(id)["trials"]
        for trial in trials:
            trial["state"] = trial["state"].removeprefix("STATE_")
        return trials

    def steps(self, trials):
        """The steps of each trial, shortest first."""
        return sorted(trial.get("totalBatchesProcessed", 0) for trial in trials)

    def test_grid_runs_every_point_once(self):
        id = self.create({"name": "grid"}, steps=1)
        self.cluster.wait_state(id, "COMPLETED")
        points = sorted(round(trial["hparams"]["x"], 6) for trial in self.trials(id))
        self.assertEqual(points, [0, round(1 / 3, 6), round(2 / 3, 6), 1])

    def test_stopping_halving_stops_bad_trials_early_and_keeps_a_good_one(self):
        id = self.create({"name": "async_halving", "max_trials": 8, "num_rungs": 3, "divisor": 2, "max_time": 8,
                          "time_metric": "batches", "max_concurrent_trials": 4})
        self.cluster.wait_state(id, "COMPLETED")
        trials = self.trials(id)
        self.assertEqual({trial["state"] for trial in trials}, {"COMPLETED"})
        self.assertEqual(len(trials), 8)
        steps = self.steps(trials)
        self.assertEqual(steps[-1], 8)
        self.assertLess(sum(steps), 8 * 8)
        self.assertIn("the searcher stopped this trial", "".join(self.cluster.logs(trial["id"]) for trial in trials))

    def test_promoting_halving_holds_trials_and_resumes_the_best(self):
        id = self.create({"name": "async_halving", "max_trials": 8, "num_rungs": 3, "divisor": 2, "max_time": 8,
                          "time_metric": "batches", "max_concurrent_trials": 4, "rung_policy": "promote"})
        self.cluster.wait_state(id, "COMPLETED")
        trials = self.trials(id)
        self.assertEqual(len(trials), 8)
        resumed = [trial for trial in trials if trial.get("totalBatchesProcessed", 0) > 2]
        self.assertTrue(resumed)
        logs = "".join(self.cluster.logs(trial["id"]) for trial in trials)
        self.assertIn("it waits at a rung of the search", logs)
        self.assertEqual(self.steps(trials)[-1], 8)

    def test_an_adaptive_search_survives_a_killed_master(self):
        id = self.create({"name": "adaptive_asha", "max_trials": 10, "divisor": 2, "max_rungs": 3, "max_time": 8,
                          "time_metric": "batches", "max_concurrent_trials": 4}, milliseconds=120)
        wait_until("trials to end", lambda: len([t for t in self.trials(id) if t["state"] == "COMPLETED"]) >= 2)
        self.cluster.kill_master()
        self.cluster.start_master()
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual({trial["state"] for trial in self.trials(id)}, {"COMPLETED"})
        trials = {trial["id"]: trial for trial in self.trials(id)}
        self.assertGreaterEqual(len(trials), 10)
        # Brackets survive the restart: each trial is in one bracket.
        told = json.loads(self.cluster.det("dev", "curl", f"/api/v1/experiments/{id}/brackets"))
        self.assertEqual(told["timeMetric"], "batches")
        self.assertGreater(len(told["brackets"]), 1)
        self.assertEqual(sorted(one for bracket in told["brackets"] for one in bracket["trialIds"]), sorted(trials))
        for bracket in told["brackets"]:
            lengths = [trials[one]["totalBatchesProcessed"] for one in bracket["trialIds"]]
            trained = [sum(length >= int(rung["length"]) for length in lengths) for rung in bracket["rungs"]]
            counted = [rung["trials"] for rung in bracket["rungs"]]
            self.assertEqual(counted[0], trained[0])
            # A trial trains on while the master is away. If the search stops it at an earlier rung, a later one does
            # not count it.
            for rung, (count, most) in enumerate(zip(counted, trained)):
                self.assertLessEqual(count, most, f"rung {rung}: {counted}, {trained}")

    def test_a_trial_without_the_metric_fails_alone(self):
        id = self.create({"name": "async_halving", "max_trials": 8, "num_rungs": 2, "divisor": 2, "max_time": 4,
                          "time_metric": "batches"}, steps=4, extra="no_metric_above: 0.7")
        self.cluster.wait_state(id, "COMPLETED")
        trials = self.trials(id)
        failed = [trial for trial in trials if trial["hparams"]["x"] > 0.7]
        self.assertTrue(failed)
        self.assertEqual({trial["state"] for trial in failed}, {"ERROR"})
        self.assertEqual({trial["state"] for trial in trials if trial["hparams"]["x"] <= 0.7}, {"COMPLETED"})
        self.assertIn('lack "loss"', self.cluster.logs(failed[0]["id"]))

    def test_a_finished_search_continues_when_extended(self):
        id = self.create({"name": "random", "max_trials": 2, "max_length": "{batches: 2}"}, steps=2)
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual(len(self.trials(id)), 2)
        self.cluster.det("experiment", "extend", id, "--max-trials", "4")
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual([trial["state"] for trial in self.trials(id)], ["COMPLETED"] * 4)
        refused = self.cluster.run_det("experiment", "extend", id, "--max-trials", "3")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("can only grow", refused.stderr)

    def test_failed_trials_of_a_finished_search_run_again(self):
        broken = self.cluster.dir / "broken"
        broken.touch()
        id = self.create({"name": "grid"}, steps=1, extra=f"fails_while: {broken}")
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual(sorted(trial["state"] for trial in self.trials(id)), ["COMPLETED"] * 2 + ["ERROR"] * 2)
        broken.unlink()
        self.cluster.det("experiment", "retry", id, "--failed")
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual([trial["state"] for trial in self.trials(id)], ["COMPLETED"] * 4)
        self.assertIn("no trial that failed", self.cluster.run_det("experiment", "retry", id).stderr)
