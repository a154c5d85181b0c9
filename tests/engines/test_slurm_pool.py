"""Pilots on a real Slurm of two nodes: submission, gangs, release, reasons, and a controller that is away; the same
through slurmrestd."""
import os
import pathlib
import signal
import tempfile
import unittest

from cluster import wait_until
from pilots import IDLE, PilotTests
from slurm import Pool, installed

COMMANDS = ("sbatch", "squeue", "scancel")


@unittest.skipUnless(installed() and os.geteuid() == 0, "needs Slurm (deploy/deps.sh engines) and root")
class OnSlurm(PilotTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pool = Pool(max_pilots=2, max_nodes=3, idle_timeout=f"{IDLE}s")
        cls.addClassCleanup(pool.close)
        cls.pool, cls.slurm, cls.cluster = pool, pool.slurm, pool.cluster
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def tearDown(self):
        # A trial that a failed test has left would keep its pilot, and every later test would fail, too.
        self.end_all()
        self.slurm.wait_without_jobs()

    def jobs(self):
        return self.slurm.names()

    def test_many_trials_share_at_most_max_pilots(self):
        ids = [self.create("true") for _ in range(8)]
        for id in ids:
            self.assertLessEqual(len(self.jobs()), 2)
            self.cluster.wait_state(id, "COMPLETED")

    def test_the_reason_of_a_pending_job_is_explained(self):
        self.slurm.run("scontrol", "update", "PartitionName=low", "State=DOWN")
        try:
            id = self.create("true")
            wait_until("the reason", lambda: "is pending: PartitionDown" in self.explanation(id))
        finally:
            self.slurm.run("scontrol", "update", "PartitionName=low", "State=UP")
        self.cluster.wait_state(id, "COMPLETED")

    def test_a_controller_that_is_away_is_explained_and_found_again(self):
        pid = self.slurm.controller()
        os.kill(pid, signal.SIGSTOP)
        try:
            id = self.create("true")
            wait_until("the error", lambda: "does not reply" in self.explanation(id), timeout=60)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.cluster.wait_state(id, "COMPLETED")

    def test_a_canceled_job_is_replaced_and_the_trial_goes_on(self):
        id = self.create("sleep 600")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: self.cluster.task_processes(trial))
        before = self.jobs()[0]
        self.slurm.run("scancel", "--name", before)

        def moved():
            jobs = self.jobs()
            return jobs and before not in jobs and self.cluster.task_processes(trial)
        wait_until("the trial to run on another pilot", moved, timeout=90)
        self.end(id)

    def test_an_agent_that_is_killed_leaves_no_process_of_its_pilot(self):
        id = self.create("sleep 600")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: self.cluster.task_processes(trial))
        pilot = self.jobs()[0]
        processes = self.cluster.task_processes(trial)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"/det-agent") and pilot.encode() + b"-0" in words:
                os.kill(int(path.parent.name), signal.SIGKILL)
        wait_until("the job to end", lambda: pilot not in self.jobs(), timeout=30)
        wait_until("its processes to end", lambda: not set(processes) & set(self.cluster.task_processes(trial)))
        self.end(id)


class OverRest(OnSlurm):
    """Through slurmrestd with a JSON web token, without the commands of Slurm."""

    @classmethod
    def setUpClass(cls):
        # The master finds commands that fail. Those of the test and of the jobs come from elsewhere.
        folder = tempfile.TemporaryDirectory(prefix="det-rest-")
        cls.addClassCleanup(folder.cleanup)
        for name in COMMANDS:
            path = pathlib.Path(folder.name) / name
            path.write_text("#!/bin/sh\nexit 1\n")
            path.chmod(0o755)
        pool = Pool(rest=True, programs=folder.name, max_pilots=2, max_nodes=3, idle_timeout=f"{IDLE}s")
        cls.addClassCleanup(pool.close)
        cls.pool, cls.slurm, cls.cluster = pool, pool.slurm, pool.cluster
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def test_an_expired_token_is_explained_and_a_new_one_is_used(self):
        path = self.slurm.dir / "token"
        token = path.read_text()
        path.write_text("expired")
        try:
            id = self.create("true")
            wait_until("the error", lambda: "does not reply" in self.explanation(id))
        finally:
            path.write_text(token)
        self.cluster.wait_state(id, "COMPLETED")
