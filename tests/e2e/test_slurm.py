"""Pilots on a real Slurm of two nodes: submission, gangs, release, reasons, and a controller that is away."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from cluster import Cluster, wait_until
from pilots import IDLE, PilotTests
from test_main_job import BUILD, HERE

SLURM = HERE.parent / "engines" / "slurm.sh"

MASTER = """
resource_pools:
  - pool_name: default
    provider:
      type: slurm
      max_pilots: 2
      slots_per_node: 2
      max_nodes: 3
      idle_timeout: {idle}s
      walltime: 30m
      partition: low
      agent: {agent}
      agent_config: {config}
"""
AGENT = """
master: {master}
join_token_file: {token}
artificial_slots: 2
stop_timeout: 5s
"""


def installed():
    return SLURM.exists() and subprocess.run([SLURM, "installed"], check=False).returncode == 0


@unittest.skipUnless(installed() and os.geteuid() == 0, "needs Slurm (deploy/deps.sh engines) and root")
class OnSlurm(PilotTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="det-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        started = subprocess.run([SLURM, "start", cls.dir / "slurm", "--gpus", "0"], check=True, text=True,
                                 stdout=subprocess.PIPE, timeout=60)
        cls.addClassCleanup(subprocess.run, [SLURM, "stop", cls.dir / "slurm"], check=False)
        for line in started.stdout.splitlines():
            key, value = line.split("=", 1)
            os.environ[key] = value
            cls.addClassCleanup(os.environ.pop, key, None)
        agent = pathlib.Path(BUILD).resolve() / "bin" / "det-agent"
        (cls.dir / "master.yaml").write_text(
            MASTER.format(idle=IDLE, agent=agent, config=cls.dir / "agent.yaml"))
        cls.cluster = Cluster(BUILD, ("--config", cls.dir / "master.yaml"))
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        (cls.dir / "agent.yaml").write_text(AGENT.format(
            master=cls.cluster.address, token=cls.cluster.dir / "master" / "agent-join-token"))
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def tearDown(self):
        # A trial that a failed test has left would keep its pilot, and every later test would fail, too.
        self.end_all()
        wait_until("all pilots to be released", lambda: not self.jobs(), timeout=60)

    def jobs(self):
        out = subprocess.run(["squeue", "--noheader", "--format=%j %T"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        return [line for line in out.splitlines() if line.startswith("det-")]

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
        pid = int((self.dir / "slurm" / "slurmctld.pid").read_text())
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
        before = self.jobs()[0].split()[0]
        subprocess.run(["scancel", "--name", before], check=True)

        def moved():
            jobs = self.jobs()
            return jobs and not any(before in job for job in jobs) and self.cluster.task_processes(trial)
        wait_until("the trial to run on another pilot", moved, timeout=90)
        self.end(id)

    def test_an_agent_that_is_killed_leaves_no_process_of_its_pilot(self):
        id = self.create("sleep 600")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: self.cluster.task_processes(trial))
        before = self.jobs()[0].split()[0]
        processes = self.cluster.task_processes(trial)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"/det-agent") and before.encode() + b"-0" in words:
                os.kill(int(path.parent.name), signal.SIGKILL)
        wait_until("the job to end", lambda: not any(before in job for job in self.jobs()), timeout=30)
        wait_until("its processes to end", lambda: not set(processes) & set(self.cluster.task_processes(trial)))
        self.end(id)


if __name__ == "__main__":
    unittest.main()
