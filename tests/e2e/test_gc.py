"""Removal of checkpoints: while a trial trains, after a change of policy, across a dead master, by command,
and with their experiment."""
import json
import os
import pathlib
import unittest
import urllib.request

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURE = pathlib.Path(__file__).resolve().parent / "fixtures" / "http_harness"


class Collection(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(BUILD)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        self.cluster.start_agent()
        self.storage, self.go = self.cluster.dir / "checkpoints", self.cluster.dir / "go"
        self.storage.mkdir()

    def call(self, method, path, body=None):
        if not hasattr(self, "token"):
            status, text = self.cluster.post("/api/v1/auth/login", {"username": "admin", "password": self.cluster.password()})
            self.assertEqual(status, 200, text)
            self.token = json.loads(text)["token"]
        request = urllib.request.Request(self.cluster.url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def create(self, steps, best):
        return self.cluster.create(FIXTURE, "\n".join([
            "name: collected", "entrypoint: python3 train.py", "max_restarts: 0",
            f"hyperparameters: {{steps: {steps}, best: {best}, go: '{self.go}'}}",
            "searcher: {name: single, metric: val_loss, max_length: {batches: 100}}",
            f"checkpoint_storage: {{type: shared_fs, host_path: {self.storage}, storage_path: inside}}", ""]))

    def kept(self):
        """Steps of the checkpoints with existing files."""
        found = []
        for path in (self.storage / "inside").glob("*"):
            try:
                found.append(int((path / "state").read_text()))
            except (OSError, ValueError):
                found.append(path.name)  # partially removed, or about to be written
        return sorted(found, key=str)

    def states(self, experiment):
        listed = self.call("GET", f"/api/v1/experiments/{experiment}/checkpoints?sortByAttr=SORT_BY_BATCH_NUMBER")["checkpoints"]
        return {c["metadata"]["steps_completed"]: c["state"].removeprefix("STATE_") for c in listed}

    def await_kept(self, *steps):
        wait_until(f"the checkpoints of steps {steps} alone", lambda: self.kept() == list(steps), 30)

    def test_checkpoints_are_removed_by_policy_by_command_and_with_their_experiment(self):
        cluster, id = self.cluster, self.create(6, best=2)
        self.await_kept(2, 5, 6)  # The best, and the newest two while it trains.
        wait_until("the books to say so", lambda: self.states(id) == {
            1: "DELETED", 2: "COMPLETED", 3: "DELETED", 4: "DELETED", 5: "COMPLETED", 6: "COMPLETED"})
        self.go.touch()
        cluster.wait_state(id, "COMPLETED")
        self.await_kept(2, 6)
        cluster.det("experiment", "set", "gc-policy", id, "--save-experiment-best", 0, "--save-trial-best", 0,
                    "--save-trial-latest", 1, "--yes")
        self.await_kept(6)

        other = self.create(3, best=1)
        cluster.wait_state(other, "COMPLETED")
        self.await_kept(1, 3, 6)
        listed = self.call("GET", f"/api/v1/experiments/{other}/checkpoints")["checkpoints"]
        gone = next(c["uuid"] for c in listed if c["metadata"]["steps_completed"] == 3)
        self.call("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [gone]})
        self.assertEqual(self.kept(), [1, 6])
        self.assertEqual(self.states(other)[3], "DELETED")
        cluster.det("experiment", "delete", other, "--yes")
        self.assertEqual(self.kept(), [6])

    def test_a_removal_survives_a_missing_storage_and_a_dead_master(self):
        cluster, id = self.cluster, self.create(4, best=2)
        self.go.touch()
        cluster.wait_state(id, "COMPLETED")
        self.await_kept(2, 4)
        away = self.cluster.dir / "away"
        self.storage.rename(away)
        cluster.det("experiment", "set", "gc-policy", id, "--save-experiment-best", 0, "--save-trial-best", 0,
                    "--save-trial-latest", 0, "--yes")
        wait_until("the marks", lambda: set(self.states(id).values()) == {"DELETED", "PARTIALLY_DELETED"})
        cluster.kill_master()
        away.rename(self.storage)
        cluster.start_master()
        self.await_kept()
        wait_until("the books to say so", lambda: set(self.states(id).values()) == {"DELETED"})


if __name__ == "__main__":
    unittest.main()
