"""A trial reports ever new metrics, and gathers much data of many peers. Reads stay fast, agents stay connected."""
import concurrent.futures
import json
import os
import unittest
import uuid

from attacker import Attacker, stop_cleanly
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
PEERS = 40
PEER_BYTES = 900_000


class TrialReports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, storage_paths=["shared"])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        shared = cls.cluster.dir / "shared"
        shared.mkdir()
        cls.editor = Attacker.editor(cls.cluster)
        status, body = cls.editor.put_experiment("evil", f"checkpoint_storage: {{type: shared_fs, host_path: {shared}}}")
        assert status == 200, body
        cls.task = cls.editor.start_trial(json.loads(body)["experiment"]["id"])
        cls.trial = json.loads(cls.editor.call("GET", f"/api/v1/experiments/{json.loads(body)['experiment']['id']}/trials")[1])["trials"][0]["id"]

    @classmethod
    def tearDownClass(cls):
        stop_cleanly(cls.cluster)

    def report(self, step, first):
        return self.editor.call("POST", f"/api/v1/trials/{self.trial}/training_metrics", {
            "trialId": self.trial, "stepsCompleted": step,
            "metrics": {"avgMetrics": {f"m{i}": i for i in range(first, first + 1000)}}})

    def test_a_trial_may_not_report_ever_new_metrics(self):
        for step in (1, 2):
            status, body = self.report(step, step * 1000)
            self.assertEqual(status, 200, body)
        status, body = self.report(3, 3000)
        self.assertEqual(status, 400, body)
        self.assertIn("2000 metrics", body)
        status, body = self.report(4, 2000)
        self.assertEqual(status, 200, body)
        status, body = self.editor.call("GET", f"/api/v1/trials/{self.trial}")
        self.assertEqual(status, 200, body)
        self.assertEqual(len(json.loads(body)["trial"]["summaryMetrics"]["avg_metrics"]), 2000)

    def test_a_checkpoint_of_impossible_sizes_is_refused_and_the_master_goes_on(self):
        for files in ({"a": 2**63 - 1, "b": 2**63 - 1}, {"a": 2**50, "b": 1}, {"a": -1}):
            status, body = self.editor.report_checkpoint(self.task, str(uuid.uuid4()), files)
            self.assertEqual(status, 400, body)
            self.assertIn("2^50", body)
        status, body = self.editor.report_checkpoint(self.task, str(uuid.uuid4()), {"a": 2**50})
        self.assertEqual(status, 200, body)

    def test_an_all_gather_of_much_data_is_refused_and_agents_stay_connected(self):
        self.cluster.start_agent()

        def gather(peer):
            return self.editor.call("POST", f"/api/v1/allocations/{self.task}/all_gather", {
                "requestUuid": f"peer-{peer}", "numPeers": PEERS, "data": {"x": "y" * PEER_BYTES}})

        with concurrent.futures.ThreadPoolExecutor(PEERS) as pool:
            answers = list(pool.map(gather, range(PEERS)))
        self.assertEqual({status for status, _ in answers}, {400}, [body[:200] for _, body in answers])
        self.assertIn("256 MiB", answers[0][1])
        self.assertNotIn("agent disconnected", self.cluster.log_tail("master.log", lines=1000))


if __name__ == "__main__":
    unittest.main()
