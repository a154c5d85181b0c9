"""Trials of several processes on a real cluster: one per slot, started by det-launch, bit-identical in exact
mode."""
import os
import signal
import unittest

from cluster import Cluster, processes, wait_until
from test_main_job import BUILD, HERE, tiny


class Distributed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("pair", slots=2)

    def create(self, slots, batches=300, mode="fast", **more):
        config = tiny(batches, checkpoint_every=50, validate_every=100, resources=f"{{slots_per_trial: {slots}}}", **more)
        config = config.replace("experiment_seed: 7", f"experiment_seed: 7\n  mode: {mode}")
        id = self.cluster.create(HERE / "fixtures" / "tiny", config)
        return id, self.cluster.trial_id(id)

    def ranks(self, trial):
        found = processes()
        return [pid for pid in self.cluster.task_processes(trial) if found.get(pid, ("",))[0] == "det-harness"]

    def test_two_slots_train_one_model(self):
        id, trial = self.create(2)
        self.cluster.wait_state(id, "COMPLETED", timeout=240)
        losses = [metrics["validation_loss"] for _, metrics in self.cluster.metrics(trial, "validation")]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])
        log = self.cluster.logs(trial)
        self.assertIn("2 processes over shm", log)
        self.assertIn("[rank=0]", log)

    def test_exact_training_gives_the_same_metrics_on_one_and_two_slots(self):
        rows = []
        for slots in (1, 2):
            id, trial = self.create(slots, mode="exact")
            self.cluster.wait_state(id, "COMPLETED", timeout=240)
            rows.append(self.cluster.metrics(trial, "validation") + self.cluster.metrics(trial, "training"))
        self.assertGreater(len(rows[0]), 6)
        self.assertEqual(rows[0], rows[1])

    def test_divided_optimizer_state_gives_the_same_metrics_over_a_pause(self):
        rows = []
        for zero in (0, 1):
            id, trial = self.create(2, batches=3000, optimizations=f"{{zero: {zero}}}")
            if zero == 1:
                wait_until("it to train", lambda: self.cluster.metrics(trial, "training"))
                self.cluster.det("experiment", "pause", id)
                self.cluster.wait_state(id, "PAUSED")
                self.assertLess(len(self.cluster.metrics(trial, "validation")), 30)
                self.cluster.det("experiment", "activate", id)
            self.cluster.wait_state(id, "COMPLETED", timeout=240)
            rows.append(self.cluster.metrics(trial, "validation"))
        self.assertEqual(len(rows[0]), 30)
        self.assertEqual(rows[0], rows[1])

    def test_a_dead_rank_ends_all_and_the_next_run_resumes(self):
        id, trial = self.create(2, batches=200000)
        wait_until("two ranks to train", lambda: len(self.ranks(trial)) == 2 and self.cluster.metrics(trial, "training"))
        before = self.ranks(trial)
        os.kill(max(before), signal.SIGKILL)
        wait_until("the trial to run again", lambda: len(set(self.ranks(trial)) - set(before)) == 2)
        self.assertFalse(set(before) & set(self.ranks(trial)))
        self.assertIn("the others are stopped", self.cluster.logs(trial))
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")
