"""Limits of tasks by control groups (memory_per_slot, cpus_per_slot): a task that takes more than its share."""
import glob
import json
import os
import pathlib
import subprocess
import unittest

from cluster import Cluster, processes, wait_until
from test_main_job import HERE as E2E, tiny

BUILD = os.environ["DET_E2E_BUILD"]
GROUPS = "/sys/fs/cgroup"
LIMITS = ["--sandbox", "required", "--memory-per-slot", "256 MiB", "--cpus-per-slot", "0.2"]
HOG = "x = bytearray(1 << 30); x[::4096] = b'y' * (1 << 18); print('survived')"
BUSY = ("import os, time; t = time.monotonic()\n"
        "while time.monotonic() < t + 2: pass\n"
        "u = os.times(); print('cpu', (u.user + u.system) / (time.monotonic() - t))")


def has_groups():
    unified = pathlib.Path(GROUPS, "cgroup.subtree_control")
    return os.geteuid() == 0 and (os.path.exists(GROUPS + "/memory/cgroup.procs") or
                                  unified.exists() and "memory" in unified.read_text().split())


def groups_of(cluster, name="a1"):
    """Directories of the groups of an agent's tasks."""
    instance = (cluster.dir / f"agent-{name}" / "instance").read_text().strip()
    return glob.glob(f"{GROUPS}/**/determinant/{instance}.*", recursive=True)


@unittest.skipUnless(has_groups(), "needs root and control groups")
class TaskLimits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=2, options=LIMITS)

    def test_a_task_that_takes_too_much_memory_is_ended_with_its_limit_and_others_go_on(self):
        other = self.cluster.det("cmd", "run", "-d", "--config", "resources.slots=0", "sleep", "600").strip()
        wait_until("the other task", lambda: "RUNNING" in self.state(other))
        done = self.cluster.run_det("cmd", "run", "python3", "-c", HOG)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("survived", done.stdout)
        self.assertIn("out of memory (the limit is 256.0MB)", done.stdout + done.stderr)
        self.assertIn("RUNNING", self.state(other))
        self.cluster.det("cmd", "kill", other)

    def test_a_task_of_two_slots_has_twice_the_memory(self):
        small = HOG.replace("1 << 30", "320 << 20").replace("1 << 18", "320 << 8")
        self.assertNotEqual(self.cluster.run_det("cmd", "run", "python3", "-c", small).returncode, 0)
        done = self.cluster.run_det("cmd", "run", "--config", "resources.slots=2", "python3", "-c", small)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_busy_task_gets_its_share_of_a_processor(self):
        done = self.cluster.run_det("cmd", "run", "python3", "-c", BUSY)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        share = float(next(line for line in done.stdout.splitlines() if "cpu " in line).split("cpu ")[1])
        self.assertLess(share, 0.3)

    def test_a_forked_trial_is_in_the_group_of_its_task_which_is_removed_with_it(self):
        # The agent loads the libraries with the first trial, so the second one is forked.
        for _ in range(2):
            id = self.cluster.create(E2E / "fixtures" / "tiny", tiny(100_000))
            trial = self.cluster.trial_id(id)
            wait_until("metrics", lambda: self.cluster.metrics(trial, "training"))
            found = processes()
            mine = [pid for pid in self.cluster.task_processes(trial) if found[pid][0] == "det-harness"]
            self.assertTrue(mine)
            for pid in mine:
                self.assertIn("/determinant/", pathlib.Path(f"/proc/{pid}/cgroup").read_text())
            self.cluster.det("experiment", "kill", id)
            self.cluster.wait_state(id, "CANCELED")
        wait_until("the groups to be removed", lambda: not groups_of(self.cluster))

    def test_required_limits_that_are_not_possible_stop_the_agent(self):
        # Without the file systems of control groups.
        script = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", self.cluster.bin / "det-agent",
                               "--master", self.cluster.address, "--data-dir", self.cluster.dir / "agent-b", *LIMITS],
                              capture_output=True, text=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no controller memory", done.stderr)
        self.assertIn("unset memory_per_slot", done.stderr)

    def state(self, command):
        return json.loads(self.cluster.det("command", "describe", command, "--json"))["state"]


if __name__ == "__main__":
    unittest.main()
