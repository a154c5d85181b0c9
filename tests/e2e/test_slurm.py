"""Pilots on a real Slurm of two nodes: submission, gangs, release, reasons, and a controller that is away."""
import os
import signal
import unittest

from cluster import wait_until
from pilots import IDLE, PilotTests
from slurm import Pool, installed


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
        self.slurm.wait_without_jobs(*self.pool.logs())

    def jobs(self):
        return self.slurm.names()

    def test_many_trials_share_at_most_max_pilots(self):
        ids = [self.create("true") for _ in range(8)]
        for id in ids:
            self.assertLessEqual(len(self.jobs()), 2)
            self.cluster.wait_state(id, "COMPLETED")

    def test_the_reason_of_a_pending_job_is_explained(self):
        id = self.create("true", slots=6)  # three nodes, and the partition has two
        wait_until("the reason", lambda: "is pending: Partition" in self.explanation(id))
        self.end(id)

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
        before = self.jobs()
        self.slurm.run("scancel", "--name", before[0])
        wait_until("the trial to run on another pilot", lambda: self.jobs() and before[0] not in self.jobs()
                   and self.cluster.task_processes(trial), timeout=90)
        self.end(id)


if __name__ == "__main__":
    unittest.main()
