"""A disk fills up: of the master, of an agent. Both keep running, name the reason, and go on when there is space."""
import json
import os
import secrets
import select
import subprocess
import time
import unittest

from attacker import Attacker, stop_cleanly
from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
DISK = "320m"
SECONDS = 75  # The master used to exit after a minute.


def fill(disk):
    """Takes all space of a disk. Returns the file."""
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * (1 << 20))
        except OSError:
            pass
    return ballast


class FullDiskOfAnAgent(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("a tmpfs needs root")
        self.cluster = Cluster(BUILD)
        self.disk = self.cluster.dir / "agent-a1"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", self.disk], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.disk], check=False))
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        self.cluster.start_agent(slots=2)

    def problem(self):
        return self.cluster.det_json("agent", "list", "--json")[0].get("problem", "")

    def state(self, command):
        return self.cluster.det_json("command", "describe", command, "--json")["state"]

    def test_the_agent_outlives_a_full_disk_takes_no_new_work_and_goes_on(self):
        running = self.cluster.det("cmd", "run", "-d", "sleep", "600").strip()
        wait_until("the first command to run", lambda: self.state(running) == "STATE_RUNNING")
        ballast = fill(self.disk)
        wait_until("the reason to be known", lambda: "is full" in self.problem(), timeout=30)
        self.assertIn(str(self.disk), self.problem())
        waiting = self.cluster.det("cmd", "run", "-d", "true").strip()
        select.select([], [], [], 3)
        self.assertEqual((self.state(waiting), self.state(running)), ("STATE_QUEUED", "STATE_RUNNING"))
        self.assertIsNone(self.cluster.agents["a1"].poll(), self.cluster.log_tail("agent-a1.log"))
        ballast.unlink()
        wait_until("the waiting command to end", lambda: self.state(waiting) == "STATE_TERMINATED", timeout=60)
        self.assertEqual(self.cluster.det_json("command", "describe", waiting, "--json")["exitCode"], 0)
        self.assertEqual((self.problem(), self.state(running)), ("", "STATE_RUNNING"))
        self.cluster.det("command", "kill", running)


class FullDisk(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("a tmpfs needs root")
        self.cluster = Cluster(BUILD, storage_paths=["shared"])
        self.disk = self.cluster.dir / "master"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", self.disk], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.disk], check=False))
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        (self.cluster.dir / "shared").mkdir()
        self.editor = Attacker.editor(self.cluster)
        status, body = self.editor.put_experiment(
            "full", f"checkpoint_storage: {{type: shared_fs, host_path: {self.cluster.dir}/shared}}")
        self.assertEqual(status, 200, body)
        experiment = json.loads(body)["experiment"]["id"]
        self.editor.start_trial(experiment)
        self.trial = json.loads(self.editor.call("GET", f"/api/v1/experiments/{experiment}/trials")[1])["trials"][0]["id"]

    def report(self, step):
        """The status of a report of 200 KiB that do not compress; 0 without an answer."""
        try:
            return self.editor.call("POST", f"/api/v1/trials/{self.trial}/training_metrics", {
                "trialId": self.trial, "stepsCompleted": step,
                "metrics": {"avgMetrics": {"noise": secrets.token_hex(100 << 10)}}})[0]
        except OSError:
            return 0

    def health(self):
        return json.loads(self.cluster.get("/health")[1])

    def test_the_master_outlives_a_full_disk_and_goes_on(self):
        stored = [step for step in range(1, 4) if self.report(step) == 200]
        self.assertEqual(len(stored), 3)
        ballast = fill(self.disk)
        full_since = time.monotonic()
        wait_until("the state to be known", lambda: self.health()["status"] == "degraded", timeout=30)
        status, body = self.editor.put_experiment("refused")
        self.assertEqual(status, 503, body)
        self.assertIn("E-DISK-FULL", body)
        self.assertIn(str(self.disk), body)
        step = 4
        while time.monotonic() - full_since < SECONDS:
            self.assertIsNone(self.cluster.master.poll(), self.cluster.log_tail("master.log"))
            if step < 12 and self.report(step) == 200:
                stored.append(step)
            step += 1
            self.assertIn("E-DISK-FULL", self.health()["reason"])
            select.select([], [], [], 0.5)
        ballast.unlink()
        wait_until("the master to go on", lambda: self.health()["status"] == "up", timeout=30)
        wait_until("reports to be stored", lambda: self.report(step) == 200, timeout=60)
        status, body = self.editor.put_experiment("later", f"checkpoint_storage: {{type: shared_fs, host_path: {self.cluster.dir}/shared}}")
        self.assertEqual(status, 200, body)
        found = self.reported()
        self.assertEqual([one for one in stored if one not in found], [])
        stop_cleanly(self.cluster)

    def reported(self):
        """The steps of all stored reports."""
        _, body = self.editor.call("GET", f"/api/v1/trials/metrics/training_metrics?trialIds={self.trial}")
        return {one["totalBatches"] for line in body.splitlines() if line.strip()
                for one in json.loads(line)["result"]["metrics"]}


if __name__ == "__main__":
    unittest.main()
