"""Random events on a real Slurm: jobs, nodes, daemons, the master and agents end or freeze in the order that a seed
determines, while trials train on pilots. Afterwards the records must match (tests/chaos/checks.py), and no job and no
process is left. DET_EVENTS_SEED and DET_EVENTS choose the seed and the number of events; `tests/run.sh --long` has 500.
"""
import os
import random
import select
import signal
import subprocess
import sys
import time
import unittest

from cluster import wait_until
from slurm import Pool
from test_main_job import ROOT

sys.path.insert(0, str(ROOT / "tests" / "chaos"))
from checks import Books, leftovers  # noqa: E402

LONG = os.environ.get("DET_TEST_LONG") == "1"
SEED = int(os.environ.get("DET_EVENTS_SEED", "1"))
EVENTS = int(os.environ.get("DET_EVENTS", "500" if LONG else "20"))
AT_WORK = 4  # experiments that have not ended
FINISH = 240  # seconds from the last event to the end of everything
NODES = ("n1", "n2")
# An agent is lost after its lease, its grace and the margin.
TIMERS = ("--heartbeat", "1s", "--agent-lease", "6s", "--agent-kill-grace", "2s", "--agent-margin", "1s")

EXPERIMENT = """
name: events
entrypoint: [{program}]
max_restarts: 1000
hyperparameters: {{ledger: "{ledger}", steps: {steps}, milliseconds: 80, save_every: 12}}
searcher: {{name: single, metric: loss, max_length: {{batches: 1000}}}}
resources: {{slots_per_trial: {slots}, is_single_node: true}}
checkpoint_storage: {{type: shared_fs, host_path: "{storage}", save_experiment_best: 100,
                     save_trial_best: 100, save_trial_latest: 100}}
"""


class Events:
    """The events. Each one returns when its fault is over, except for processes that are gone."""

    def __init__(self, slurm, cluster, seed):
        self.slurm, self.cluster, self.dice = slurm, cluster, random.Random(seed)
        self.history = []

    def linger(self, least, most):
        select.select([], [], [], self.dice.uniform(least, most))

    def choose(self, found):
        return self.dice.choice(sorted(found)) if found else None

    def kill(self, *names):
        """Kills a process of a pilot with one of these names."""
        pid = self.choose([pid for pid, name in self.slurm.processes() if name in names])
        try:
            if pid:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def cancel_job(self):
        if job := self.choose(self.slurm.jobs("det-")):
            self.slurm.run("scancel", job[0])

    def preempt_jobs(self):
        """A job of another partition takes a node, or both."""
        self.slurm.run("sbatch", "--partition=high", "--exclusive", "--no-requeue", f"--nodes={self.dice.randint(1, 2)}", "--output=/dev/null",
                       "--job-name=other", "--wrap=sleep 2")

    def set_node(self, node, state):
        self.slurm.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=test")

    def repair(self):
        """Like an administrator: Slurm drains a node itself when a restarted slurmctld starts a job there twice."""
        for line in self.slurm.run("sinfo", "-h", "-N", "-p", "low", "-o", "%N %T").splitlines():
            node, state = line.split()
            if state.startswith(("down", "drain")):
                # Refused if the node has returned by itself meanwhile.
                subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], env=self.slurm.env,
                               capture_output=True, timeout=60)

    def take_node_down(self):
        node = self.dice.choice(NODES)
        self.set_node(node, "down")
        self.linger(0.5, 4)
        self.repair()

    def drain_node(self):
        node = self.dice.choice(NODES)
        self.set_node(node, "drain")
        self.linger(0.5, 4)
        self.repair()

    def restart_slurmd(self):
        node = self.dice.choice(NODES)
        self.slurm.kill_node(node)
        self.linger(0, 3)
        self.slurm.start_node(node)

    def restart_slurmctld(self):
        self.slurm.kill_controller()
        self.linger(0, 5)
        self.slurm.start_controller()

    def freeze_slurmctld(self):
        pid = self.slurm.controller()
        os.kill(pid, signal.SIGSTOP)
        self.linger(1, 12)
        os.kill(pid, signal.SIGCONT)

    def kill_master(self):
        self.cluster.kill_master()
        self.linger(0, 3)
        self.cluster.start_master()

    def stop_master(self):
        self.cluster.stop_master()
        self.linger(0, 3)
        self.cluster.start_master()

    def kill_agent(self):
        self.kill("det-agent")

    def kill_supervisor(self):
        self.kill("det-supervisor")

    def kill_trial(self):
        self.kill("chaos_program")

    ALL = (cancel_job, cancel_job, preempt_jobs, preempt_jobs, take_node_down, drain_node, restart_slurmd, restart_slurmctld,
           freeze_slurmctld, kill_master, kill_master, stop_master, kill_agent, kill_agent, kill_supervisor, kill_trial)

    def happen(self, begin):
        event = self.dice.choice(self.ALL)
        self.history.append(f"{time.monotonic() - begin:.1f} s {event.__name__}")
        event(self)


class RandomEvents(unittest.TestCase):
    def setUp(self):
        pool = Pool(("--kill-wait", "20"), TIMERS, max_pilots=3, max_nodes=2, idle_timeout="3s")
        self.addCleanup(pool.close)
        self.pool, self.slurm, self.cluster = pool, pool.slurm, pool.cluster
        for name in ("empty", "ledger", "checkpoints"):
            (self.cluster.dir / name).mkdir()
        self.whole = {}
        self.events = Events(self.slurm, self.cluster, SEED)

    def submit(self):
        """Keeps trials at work."""
        while len(self.at_work()) < AT_WORK:
            steps, slots = self.events.dice.randint(60, 140), self.events.dice.choice((1, 1, 2))
            id = self.cluster.create(self.cluster.dir / "empty", EXPERIMENT.format(
                program=self.cluster.bin / "chaos_program", ledger=self.cluster.dir / "ledger", steps=steps, slots=slots,
                storage=self.cluster.dir / "checkpoints"))
            self.whole[id] = steps

    def at_work(self):
        states = {int(one["id"]): one["state"] for one in self.cluster.det_json("experiment", "list", "--all", "--json")}
        return [id for id in self.whole if states.get(id) not in ("STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED")]

    def is_over(self):
        self.events.repair()
        return not self.at_work()

    def evidence(self):
        return "\n".join([f"seed {SEED}", *self.events.history, self.pool.evidence()])

    def test_random_events_lose_no_report_and_leave_no_job_and_no_process(self):
        begin = time.monotonic()
        try:
            for _ in range(EVENTS):
                self.submit()
                self.events.linger(0.5, 4)
                self.events.happen(begin)
            last = time.monotonic()
            wait_until("every experiment to end", self.is_over, FINISH)
            self.slurm.wait_without_jobs(prefix="", timeout=60)
            wait_until("the processes of trials to end", lambda: not leftovers(self.cluster), 10)
            agents = lambda: self.cluster.det_json("agent", "list", "--json")
            wait_until("the rows of agents to be removed", lambda: not agents(), 60)
        except BaseException as error:
            print(self.evidence())
            raise error
        books = Books(self.cluster, self.cluster.dir / "ledger")
        problems = (books.lost() + books.doubled_or_missing(self.whole) + books.searches() + books.overlaps() +
                    books.checkpoints_without_files(self.cluster.dir / "checkpoints", set()) + books.unfinished())
        print(f"{EVENTS} events, {len(self.whole)} trials, {len(books.acknowledged)} reports acknowledged, over "
              f"{time.monotonic() - last:.1f} s after the last event", flush=True)
        if problems:
            print(self.evidence())
        self.assertEqual(problems[:20], [])
        self.assertGreaterEqual(len(books.acknowledged), sum(self.whole.values()))


if __name__ == "__main__":
    unittest.main()
