"""Quotas on real processes: slots, experiments, log lines, metrics and checkpoints."""
import datetime
import json
import os
import pathlib
import unittest
import urllib.error
import urllib.request

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURE = pathlib.Path(__file__).resolve().parent / "fixtures" / "http_harness"


class Quotas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=2)
        cls.storage = cls.cluster.dir / "checkpoints"
        cls.storage.mkdir()
        status, body = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, body
        cls.token = json.loads(body)["token"]

    def tearDown(self):
        for quota in self.cluster.det_json("quota", "list", "--json"):
            self.cluster.det("quota", "remove", f"--{quota['scope']}", quota["name"], quota["resource"])

    def quota(self, resource):
        return next(q for q in self.cluster.det_json("quota", "list", "--json") if q["resource"] == resource)

    def state(self, command):
        return self.cluster.det_json("command", "describe", command, "--json")["state"]

    def create(self, *options):
        path = self.cluster.dir / "config.yaml"
        path.write_text("\n".join([
            "name: of a quota", "entrypoint: python3 train.py", "hyperparameters: {steps: 2}", "max_restarts: 0",
            "searcher: {name: single, metric: val_loss, max_length: {batches: 100}}",
            f"checkpoint_storage: {{type: shared_fs, host_path: {self.storage}}}", ""]))
        return self.cluster.run_det("experiment", "create", path, FIXTURE, *options)

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.cluster.url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer " + self.token})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_a_command_beyond_the_slots_of_its_user_waits_and_the_explanation_names_the_quota(self):
        cluster = self.cluster
        cluster.det("quota", "set", "--user", "admin", "slots", 1)
        first, second = (cluster.det("cmd", "run", "-d", "sleep", "600").strip() for _ in range(2))
        wait_until("the first command to run", lambda: self.state(first) == "STATE_RUNNING")
        self.assertEqual(self.state(second), "STATE_QUEUED")
        status, text = cluster.get(f"/api/v1/commands/{second}/explain", self.token)
        self.assertEqual(status, 200, text)
        explanation = json.loads(text)["explanation"]
        self.assertEqual(explanation["reason"], "QUOTA")
        self.assertIn("it would exceed the quota of its user (in use: 1 of 1 slot)", explanation["text"])
        quota = self.quota("slots")
        self.assertEqual((quota["name"], int(quota["used"]), int(quota["limit"])), ("admin", 1, 1))
        cluster.det("quota", "remove", "--user", "admin", "slots")
        wait_until("the second command to run", lambda: self.state(second) == "STATE_RUNNING")
        for command in (first, second):
            cluster.det("command", "kill", command)

    def test_a_further_experiment_is_refused_until_one_has_ended(self):
        cluster = self.cluster
        cluster.det("quota", "set", "--workspace", "Uncategorized", "experiments", 1)
        made = self.create("--paused")
        self.assertEqual(made.returncode, 0, made.stderr)
        id = int(made.stdout.split("Created experiment ")[1].split()[0])
        refused = self.create("--paused")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the workspace has 1 active experiments, and its quota is 1", refused.stderr)
        cluster.det("experiment", "kill", id)
        cluster.wait_state(id, "CANCELED")
        again = self.create("--paused")
        self.assertEqual(again.returncode, 0, again.stderr)
        cluster.det("experiment", "kill", again.stdout.split("Created experiment ")[1].split()[0])

    def test_log_lines_beyond_the_quota_are_replaced_by_the_reason(self):
        cluster = self.cluster
        cluster.det("command", "run", "sh", "-c", "head -c 3000 /dev/zero | tr '\\0' x | fold -w 60; echo")
        cluster.det("quota", "set", "--user", "admin", "log_bytes", "2KiB")
        self.assertGreaterEqual(int(self.quota("log_bytes")["used"]), 3000)
        command = cluster.det("cmd", "run", "-d", "sh", "-c", "echo unseen; echo also unseen").strip()
        wait_until("the command to end", lambda: self.state(command) == "STATE_TERMINATED")
        log = wait_until("the reason", lambda: [line for line in cluster.det("cmd", "logs", command).splitlines()
                                                if "not stored" in line])
        self.assertIn("further log lines are not stored: quota of user admin", log[0])
        self.assertNotIn("unseen", cluster.det("cmd", "logs", command))

    def test_new_metrics_and_experiments_beyond_the_metric_series_are_refused(self):
        made = self.create()
        self.assertEqual(made.returncode, 0, made.stderr)
        id = int(made.stdout.split("Created experiment ")[1].split()[0])
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial_id(id)
        self.cluster.det("quota", "set", "--user", "admin", "metric_series", 1)
        self.assertGreaterEqual(int(self.quota("metric_series")["used"]), 2)
        refused = self.create()
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("metric series are stored, and the limit is 1", refused.stderr)
        self.assertGreater(self.cluster.trial(trial)["id"], 0)

    def test_measurements_of_the_machine_without_room_do_not_hold_up_other_reports(self):
        path = self.cluster.dir / "config.yaml"
        path.write_text("\n".join([
            "name: full", "entrypoint: model_def:TinyTrial", "max_restarts: 0",
            "hyperparameters: {learning_rate: 0.001, global_batch_size: 32}",
            "searcher: {name: single, metric: validation_loss, max_length: {batches: 100000000}}",
            f"checkpoint_storage: {{type: shared_fs, host_path: {self.storage}}}", ""]))
        made = self.cluster.run_det("experiment", "create", path, FIXTURE.parent / "tiny")
        self.assertEqual(made.returncode, 0, made.stderr)
        id = int(made.stdout.split("Created experiment ")[1].split()[0])
        trial = self.cluster.trial_id(id)

        def times():
            return [datetime.datetime.fromisoformat(one["training"]["endTime"])
                    for one in self.cluster.trial(trial)["workloads"] if one.get("training")]

        wait_until("training", times, timeout=400)
        self.cluster.det("quota", "set", "--user", "admin", "metric_series", 1)
        # The first measurements come after 10 s.
        wait_until("later reports", lambda: times()[-1] - times()[0] > datetime.timedelta(seconds=14), timeout=40)
        self.assertEqual(self.cluster.reports(trial, "cpu"), [])
        self.cluster.det("experiment", "kill", id)

    def test_experiments_beyond_the_checkpoint_bytes_are_refused(self):
        self.cluster.det("quota", "set", "--workspace", "Uncategorized", "checkpoint_bytes", "0")
        refused = self.create()
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("quota of workspace Uncategorized", refused.stderr)
        self.assertIn("delete checkpoints", refused.stderr)

    def test_wrong_settings_of_a_quota_are_refused(self):
        cluster = self.cluster
        for arguments in (("slots", 1), ("--user", "admin", "gpus", 1), ("--user", "admin", "slots", "-1"),
                          ("--user", "admin", "slots", "1.5")):
            self.assertNotEqual(cluster.run_det("quota", "set", *arguments).returncode, 0, arguments)
        self.assertNotEqual(cluster.run_det("quota", "set", "--user", "nobody-here", "slots", 1).returncode, 0)
        self.assertNotEqual(cluster.run_det("quota", "remove", "--user", "admin", "slots").returncode, 0)
        self.assertEqual(self.call("PUT", "/api/v1/quotas/user/1/gpus", {"limit": 1})[0], 400)
        self.assertEqual(self.call("PUT", "/api/v1/quotas/user/999/slots", {"limit": 1})[0], 404)
        self.assertEqual(cluster.det_json("quota", "list", "--json"), [])


if __name__ == "__main__":
    unittest.main()
