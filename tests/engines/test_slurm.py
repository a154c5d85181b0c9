"""Agents as pilots in jobs of a real Slurm. The batch script is the one of docs/slurm.md."""
import os
import re
import unittest

from cluster import Cluster, wait_until
from slurm import Slurm
from test_main_job import BUILD, HERE, ROOT, tiny

BATCHES = 20000
EXACT_BATCHES = 8000  # a report each 50
PREEMPTIONS = int(os.environ.get("DET_PREEMPTIONS", "100" if os.environ.get("DET_TEST_LONG") == "1" else "1"))
PATIENCE = 300  # seconds; a loaded machine trains slowly


def documented_script():
    """The batch script of docs/slurm.md."""
    return re.search(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", (ROOT / "docs" / "slurm.md").read_text(), re.S)[1]


class Pilots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm("--kill-wait", "30")
        cls.addClassCleanup(cls.slurm.close)
        cls.cluster = Cluster(BUILD, ["--agent-kill-grace", "2s"])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.script = cls.cluster.dir / "pilot.sbatch"
        cls.script.write_text(documented_script())

    def submit(self, *options, **agent):
        """Submits a pilot on one node. Returns the job's id."""
        env = {"DET_AGENT_MASTER": self.cluster.address, "DET_AGENT_STOP_TIMEOUT": "15s",
               "DET_AGENT_JOIN_TOKEN_FILE": str(self.cluster.dir / "master" / "agent-join-token"),
               "TMPDIR": str(self.cluster.dir), "PATH": f"{self.cluster.bin}:{os.environ['PATH']}", **agent}
        return self.slurm.run("sbatch", "--parsable", "--time=10", "--output", self.cluster.dir / "pilot-%j.log", *options,
                              self.script, **env)

    def agents(self):
        return [agent["id"] for agent in self.cluster.det_json("agent", "list", "--json")]

    def no_job(self):
        return not self.slurm.jobs()

    def log(self, job):
        return self.cluster.log_tail(f"pilot-{job}.log", 60)

    def assert_nothing_is_left(self):
        wait_until("the jobs to end", self.no_job)
        self.assertEqual(self.agents(), [])
        self.slurm.wait_without_jobs(prefix="")
        self.assertEqual(list(self.cluster.dir.glob("det-*")), [], "directories of agents")

    def train(self, batches=BATCHES, mode="fast"):
        """Submits a trial that saves a checkpoint only when it is asked to leave, and at its end."""
        config = tiny(batches, batches, batches).replace("  experiment_seed", f"  mode: {mode}\n  experiment_seed")
        return self.cluster.create(HERE / "fixtures" / "tiny", config)

    def parameters(self, experiment):
        """The bytes of the parameters at the end of a trial."""
        uuid = self.cluster.trial(self.cluster.trial_id(experiment))["latestCheckpointUuid"]
        target = self.cluster.dir / "downloaded" / uuid
        self.cluster.det("checkpoint", "download", uuid, "-o", target)
        return (target / "state_dict.pth").read_bytes()

    def rows(self, experiment):
        trial = self.cluster.trial_id(experiment)
        return self.cluster.metrics(trial, "training"), self.cluster.metrics(trial, "validation")

    def test_a_cancelled_pilot_saves_its_trial_and_the_next_one_goes_on_with_equal_metrics(self):
        first = self.submit()
        undisturbed = self.train()
        self.cluster.wait_state(undisturbed, "COMPLETED")
        disturbed = self.train()
        trial = self.cluster.trial_id(disturbed)
        wait_until("the trial to report", lambda: self.cluster.metrics(trial, "training"))
        self.slurm.run("scancel", first)
        wait_until("the first job to end", self.no_job)
        self.assertIn("agent stopped", self.log(first))
        done = self.cluster.trial(trial)
        self.assertTrue(done["latestCheckpointUuid"], "saved when Slurm asked\n" + self.cluster.logs(trial)[-3000:])
        self.assertEqual(done["restarts"], 0)
        second = self.submit(DET_AGENT_EXIT_WHEN_IDLE="3s")
        self.cluster.wait_state(disturbed, "COMPLETED")
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)
        self.assertEqual(self.rows(disturbed), self.rows(undisturbed))
        wait_until("the idle pilot to end its job", self.no_job, timeout=30)
        self.assertIn("agent stopped", self.log(second))
        self.assert_nothing_is_left()

    def test_an_exact_trial_that_slurm_preempts_ends_with_equal_parameters(self):
        job = self.submit()
        undisturbed = self.train(EXACT_BATCHES, mode="exact")
        self.cluster.wait_state(undisturbed, "COMPLETED", timeout=PATIENCE)
        expected = self.parameters(undisturbed)
        for number in range(PREEMPTIONS):
            disturbed = self.train(EXACT_BATCHES, mode="exact")
            trial = self.cluster.trial_id(disturbed)
            # Not always at the same batch.
            wait_until("the trial to report", lambda: len(self.cluster.metrics(trial, "training")) > number % 20, PATIENCE)
            other = self.slurm.run("sbatch", "--parsable", "--partition=high", "--exclusive", "--nodes=2", "--output=/dev/null",
                                   "--wrap=true")
            wait_until("both jobs to end", self.no_job, PATIENCE)
            self.assertIn(f"JobId={other} ", (self.slurm.home / "log" / "jobs").read_text())
            self.assertIn("agent stopped", self.log(job), "preempted with SIGTERM")
            self.assertTrue(self.cluster.trial(trial)["latestCheckpointUuid"], "saved when Slurm asked")
            job = self.submit()
            self.cluster.wait_state(disturbed, "COMPLETED", timeout=PATIENCE)
            described = self.cluster.trial(trial)
            self.assertEqual((described["restarts"], described["run"]), (0, 2))
            self.assertEqual(self.parameters(disturbed), expected, f"preemption {number + 1}")
            print(f"{number + 1} of {PREEMPTIONS} preempted trials ended with equal parameters", flush=True)
        self.slurm.run("scancel", job)
        self.assert_nothing_is_left()

    def test_a_pilot_leaves_before_the_end_of_its_job_and_its_trial_is_saved(self):
        experiment = self.train(500 * BATCHES)  # longer than the job on any machine
        trial = self.cluster.trial_id(experiment)
        # 35 s less stop_timeout, kill grace (2 s) and farewell (5 s): the agent announces its stop after 18 s.
        job = self.submit(DET_AGENT_UNTIL="35s", DET_AGENT_STOP_TIMEOUT="10s")
        wait_until("the job to end by itself", self.no_job)
        self.assertIn("agent stopped", self.log(job))
        done = self.cluster.trial(trial)
        self.assertTrue(done["latestCheckpointUuid"], self.cluster.logs(trial)[-3000:])
        self.assertEqual(done["restarts"], 0)
        self.cluster.det("experiment", "kill", experiment)
        self.cluster.wait_state(experiment, "CANCELED")
        self.assert_nothing_is_left()

    def test_a_pilot_offers_only_the_gpus_of_its_job(self):
        # The stub of NVML has the devices 0 and 2.
        job = self.submit("--gres=gpu:1", DET_AGENT_EXIT_WHEN_IDLE="1s", LD_LIBRARY_PATH=f"{BUILD}/tests/fake_nvml")
        wait_until("the job to end", self.no_job)
        started = re.search(r"agent started.*", self.log(job))
        self.assertTrue(started, self.log(job))
        self.assertRegex(started[0], r"slots=1\b.*type=CUDA")
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
