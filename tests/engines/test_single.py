"""A pilot for each allocation, on a real Slurm of two nodes: no job waits for work or runs two trials."""
import os
import unittest

from cluster import wait_until
from pilots import PilotTests
from slurm import Pool, installed


@unittest.skipUnless(installed() and os.geteuid() == 0, "needs Slurm (deploy/deps.sh engines) and root")
class PerAllocation(PilotTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A job that stays when its allocation has ended would stay for 10 minutes.
        pool = Pool(max_pilots=2, max_nodes=2, idle_timeout="10m", pilot="per_allocation",
                    sbatch=["--comment=slots={slots}"])
        cls.addClassCleanup(pool.close)
        cls.pool, cls.slurm, cls.cluster = pool, pool.slurm, pool.cluster
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    # Slots come free with their job, so a waiting trial preempts none.
    test_a_trial_of_higher_priority_preempts_one_that_saves_and_goes_on = None

    def tearDown(self):
        self.end_all()
        self.slurm.wait_without_jobs()

    def jobs(self):
        return self.slurm.names()

    def test_each_trial_has_a_job_that_ends_with_it_and_has_its_whole_log(self):
        # Both would fit on one node together.
        ids = [self.create("seq 5000; test -e {}".format(self.cluster.dir / "go") + " || sleep 600") for _ in range(2)]
        trials = [self.cluster.trial_id(id) for id in ids]
        for trial in trials:
            wait_until("the trial to run", lambda trial=trial: self.cluster.task_processes(trial))
        self.assertEqual(len(self.jobs()), 2)
        listed = self.cluster.det_json("pilot", "list", "--json")
        self.assertEqual([(one["state"], one["slots"], one["allocations"], one["agents"]) for one in listed],
                         [("RUNNING", 1, 1, 1)] * 2)
        third = self.create("seq 5000")
        wait_until("the third trial to wait", lambda: "max_pilots" in self.explanation(third))
        self.end(ids[0])
        self.cluster.wait_state(third, "COMPLETED")
        self.assertRegex(self.cluster.logs(self.cluster.trial_id(third)), r"(?m)\b5000$")
        self.assertEqual(len(set(self.submitted())), len(self.submitted()))
        self.end(ids[1])
        wait_until("all jobs to end with their trials", lambda: not self.jobs(), timeout=20)

    def submitted(self):
        """Names of the pilots that the master has submitted."""
        log = (self.cluster.dir / "master.log").read_text()
        return [line.split("pilot=")[1].split()[0] for line in log.splitlines() if "submitted a pilot" in line]

    def test_a_job_asks_for_the_slots_of_its_trial(self):
        id = self.create("true", slots=4)
        wait_until("the job", self.jobs)
        job = self.slurm.jobs("det-")[0][0]
        self.assertIn("Comment=slots=2", self.slurm.run("scontrol", "show", "job", job), "on each of two nodes")
        self.cluster.wait_state(id, "COMPLETED")

    def test_a_trial_that_restarts_has_another_job(self):
        before = len(self.submitted())
        id = self.create("test $DET_TRIAL_RUN_ID -gt 1", max_restarts=2)
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual(len(self.submitted()), before + 2)


if __name__ == "__main__":
    unittest.main()
