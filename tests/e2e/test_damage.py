"""Damaged checkpoints under real training: the run resumes from the one before, and the metrics equal those
of an undamaged run."""
import json
import os
import pathlib
import unittest
import urllib.request

from cluster import Cluster, wait_until
from test_main_job import tiny

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURE = pathlib.Path(__file__).resolve().parent / "fixtures" / "tiny"
BATCHES = 30000
CHECKPOINT_EVERY = 100


def flip(directory):
    path = directory / "state_dict.pth"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def cut(directory):
    path = directory / "state_dict.pth"
    path.write_bytes(path.read_bytes()[:-7])


def lose_a_file(directory):
    (directory / "trial_state.json").unlink()


def lose_the_manifest(directory):
    (directory / "manifest.json").unlink()


def lose_all(directory):
    directory.rename(directory.parent / (directory.name + ".lost"))


class Damage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent()
        cls.storage = cls.cluster.dir / "checkpoints"
        cls.storage.mkdir()
        status, text = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, text
        cls.token = json.loads(text)["token"]

    def create(self):
        # Listed checkpoints are not removed before they are damaged, however long a pause takes.
        storage = (f"checkpoint_storage: {{type: shared_fs, host_path: {self.storage}, "
                   f"save_trial_latest: {BATCHES // CHECKPOINT_EVERY + 1}}}\n")
        return self.cluster.create(FIXTURE, tiny(BATCHES, checkpoint_every=CHECKPOINT_EVERY, validate_every=500,
                                                 storage=storage, max_restarts=0))

    def checkpoints(self, experiment):
        """[(steps, uuid, state)], newest first."""
        request = urllib.request.Request(f"{self.cluster.url}/api/v1/experiments/{experiment}/checkpoints",
                                         headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=20) as answer:
            listed = json.loads(answer.read())["checkpoints"]
        return sorted(((c["metadata"]["steps_completed"], c["uuid"], c["state"].removeprefix("STATE_")) for c in listed
                       if c["state"] != "STATE_DELETED"), reverse=True)

    def pause_behind(self, experiment, trial, steps):
        wait_until(f"a checkpoint behind step {steps}", lambda: (self.checkpoints(experiment) or [(0,)])[0][0] > steps, 300)
        self.cluster.det("experiment", "pause", experiment)
        wait_until("the trial to leave", lambda: not self.cluster.task_processes(trial))
        wait_until("its place", lambda: self.cluster.experiment(experiment)["state"] == "STATE_PAUSED")
        return self.checkpoints(experiment)

    def test_training_resumes_before_a_damaged_checkpoint_with_unchanged_metrics(self):
        cluster, id = self.cluster, self.create()
        trial, steps = cluster.trial_id(id), 300
        for damage in (flip, cut, lose_a_file, lose_the_manifest, lose_all):
            newest, before = self.pause_behind(id, trial, steps)[:2]
            damage(self.storage / newest[1])
            cluster.det("experiment", "activate", id)
            wait_until(f"the trial to say what is wrong with {damage.__name__}",
                       lambda: f"checkpoint {newest[1]} (step {newest[0]}) cannot be used" in cluster.logs(trial))
            self.assertIn(f"going on from checkpoint {before[1]} (step {before[0]})", cluster.logs(trial))
            self.assertIn((*newest[:2], "ERROR"), self.checkpoints(id))
            steps = newest[0]
        cluster.wait_state(id, "COMPLETED", timeout=300)
        other = self.create()
        cluster.wait_state(other, "COMPLETED", timeout=300)
        whole = cluster.trial_id(other)
        for group in ("training", "validation"):
            self.assertEqual(cluster.metrics(trial, group), cluster.metrics(whole, group))
        # The trial has ended, so the damaged checkpoints are removed.
        wait_until("damaged ones to go", lambda: not [c for c in self.checkpoints(id) if c[2] != "COMPLETED"])

    def test_training_restarts_without_a_sound_checkpoint(self):
        cluster, id = self.cluster, self.create()
        trial = cluster.trial_id(id)
        for _, uuid, _ in self.pause_behind(id, trial, 300):
            flip(self.storage / uuid)
        cluster.det("experiment", "activate", id)
        wait_until("a new beginning", lambda: "starting from the beginning" in cluster.logs(trial))
        cluster.wait_state(id, "COMPLETED", timeout=300)
        shown = [batches for batches, _ in cluster.metrics(trial, "training")]
        self.assertEqual(shown, sorted(set(shown)))
        self.assertEqual((shown[0], shown[-1]), (50, BATCHES))


if __name__ == "__main__":
    unittest.main()
