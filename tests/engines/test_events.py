"""Random events on a real Slurm: jobs, nodes, daemons, the master and agents end or freeze in the order that a seed
determines, while trials train on pilots with some of the GPUs of a node. Afterwards the records must match
(tests/chaos/checks.py), no trial has used a GPU of another job, no batch was trained twice unless a process was killed,
and no job and no process is left. DET_EVENTS_SEED and DET_EVENTS choose the seed and the number of events; `tests/run.sh --long` has 500.
"""
import datetime
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
import unittest

from cluster import Failed, wait_until
from gpu_watch import OTHER, GpuWatch
from slurm import Pool
from test_main_job import ROOT

sys.path.insert(0, str(ROOT / "tests" / "chaos"))
from checks import Books, leftovers  # noqa: E402

LONG = os.environ.get("DET_TEST_LONG") == "1"
SEED = int(os.environ.get("DET_EVENTS_SEED", "1"))
EVENTS = int(os.environ.get("DET_EVENTS", "500" if LONG else "20"))
AT_WORK = 4  # experiments that have not ended
RECORDING = 4  # seconds for a trial to reach a master that is back, and to save
FINISH = 240 if not LONG else 900  # seconds from the last event to the end of everything
NODES = ("n1", "n2")
GPUS = 3  # of a node; a pilot has two of them
# An agent is lost after its lease, its grace and the margin. The lease is longer than an outage of the master: 1 s
# since the last heartbeat, 3 s away, its start, and the next attempt of the agent. So it ends no trial.
TIMERS = ("--heartbeat", "1s", "--agent-lease", "10s", "--agent-kill-grace", "2s", "--agent-margin", "1s")

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

    def __init__(self, slurm, cluster, gpus, seed):
        self.slurm, self.cluster, self.gpus, self.dice = slurm, cluster, gpus, random.Random(seed)
        self.history = []
        self.killed = set()  # (trial, run) that had no time to save
        self.downed = set()  # jobs on nodes that were taken down

    def linger(self, least, most):
        select.select([], [], [], self.dice.uniform(least, most))

    def choose(self, found):
        return self.dice.choice(sorted(found)) if found else None

    def excuse(self, agents):
        """Notes that runs on these agents may lose batches."""
        self.gpus.look()
        self.killed |= {(trial, run) for trial, run, agent in self.gpus.trials().values() if agents(agent)}

    def excuse_aborted(self):
        """Returns the jobs that Slurm has killed, and notes their runs: a killed slurmctld may forget the newest jobs. It
        gives their GPUs to others, and ends their processes with SIGKILL when it is back."""
        aborted = {job for path in (self.slurm.home / "log").glob("n*.log")
                   for job in re.findall(r"\] job (\d+) abort completed", path.read_text(errors="replace"))}
        self.killed |= {run for run, job in self.gpus.job_of_run.items() if job in aborted}
        return aborted

    def excuse_silent_master(self):
        """Notes runs that were ended at the end of their grace when the master, which records checkpoints, was away in it
        and not back for long enough."""
        when = lambda line: datetime.datetime.fromisoformat(line[:26])  # noqa: E731
        for path in self.slurm.dir.glob("pilot-*.log"):
            stop, back = None, None  # times; back: of the last connection, None while there is none
            for line in path.read_text(errors="replace").splitlines():
                if "agent is stopping" in line:
                    stop = stop or when(line)
                elif "no connection to the master" in line:
                    back = None
                elif "connected to the master" in line:
                    back = when(line)
                ended = re.search(r"(?:SIGKILL|ended) allocation=(\d+)\.[0-9a-f-]+\.(\d+)", line)
                if ended and stop and not line.endswith('exit="exit code 0"'):
                    if back is None or (back > stop and (when(line) - back).total_seconds() < RECORDING):
                        self.killed.add((int(ended[1]), int(ended[2])))

    def excuse_node(self, node):
        self.excuse(lambda agent: self.gpus.agents[agent].node == node)

    def kill(self, name):
        """Kills a process of a pilot with this name."""
        pid = self.choose([pid for pid, found in self.slurm.processes() if found == name])
        if pid:
            job = self.gpus.job_of(pid)
            self.excuse(lambda agent: self.gpus.agents[agent].job == job)
            self.kill_process(pid)

    def kill_process(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def cancel_job(self):
        if job := self.choose(self.slurm.jobs("det-")):
            self.slurm.run("scancel", job[0])

    def preempt_jobs(self):
        """A job of another partition takes a node, or both."""
        self.submit_other("--partition=high", "--exclusive", f"--gres=gpu:{GPUS}", f"--nodes={self.dice.randint(1, 2)}")

    def take_gpu(self):
        """A job of the same partition takes one GPU, so that a pilot gets other ones."""
        self.submit_other("--partition=low", "--gres=gpu:1", f"--nodelist={self.dice.choice(NODES)}")

    def submit_other(self, *options):
        self.slurm.run("sbatch", "--no-requeue", "--output=/dev/null", f"--job-name={OTHER}", *options,
                       f"--wrap=sleep {self.dice.randint(2, 6)}")

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

    def cancel_others(self):
        """Like an administrator: a killed slurmctld may forget that a job has ended, and shows it as running."""
        for job, _, _ in self.slurm.jobs(OTHER):
            self.slurm.run("scancel", job)

    def take_node_down(self):
        node = self.dice.choice(NODES)
        self.excuse_node(node)
        # Slurm does not wait for the processes of these jobs before it gives their GPUs to others.
        self.downed |= {place.job for place in self.gpus.agents.values() if place.node == node}
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
        trials = self.gpus.trials()
        if pid := self.choose(trials):
            self.killed.add(trials[pid][:2])
            self.kill_process(pid)

    ALL = (cancel_job, cancel_job, preempt_jobs, preempt_jobs, take_gpu, take_gpu, take_node_down, drain_node, restart_slurmd, restart_slurmctld,
           freeze_slurmctld, kill_master, kill_master, stop_master, kill_agent, kill_agent, kill_supervisor, kill_trial)

    def happen(self, begin):
        event = self.dice.choice(self.ALL)
        self.history.append(f"{time.monotonic() - begin:.1f} s {event.__name__}")
        event(self)


class RandomEvents(unittest.TestCase):
    def setUp(self):
        pool = Pool(("--kill-wait", "20"), TIMERS, gpus=GPUS, gres="gpu:2", stop_timeout="14s", max_pilots=3, max_nodes=2,
                    idle_timeout="3s")
        self.addCleanup(pool.close)
        self.pool, self.slurm, self.cluster = pool, pool.slurm, pool.cluster
        self.gpus = GpuWatch(self.slurm, self.cluster.url)
        self.gpus.start()
        self.addCleanup(self.gpus.stop)
        for name in ("empty", "ledger", "checkpoints"):
            (self.cluster.dir / name).mkdir()
        self.whole = {}
        self.events = Events(self.slurm, self.cluster, self.gpus, SEED)

    def submit(self):
        """Keeps trials at work."""
        while len(self.at_work()) < AT_WORK:
            steps, slots = self.events.dice.randint(60, 140), self.events.dice.choice((1, 1, 2))
            config = EXPERIMENT.format(
                program=self.cluster.bin / "chaos_program", ledger=self.cluster.dir / "ledger", steps=steps, slots=slots,
                storage=self.cluster.dir / "checkpoints")
            try:
                self.whole[self.cluster.create(self.cluster.dir / "empty", config)] = steps
            except Failed as error:
                # The reply may be lost with a loaded master; the experiment then counts only for the other checks.
                if "cannot reach the master" not in str(error):
                    raise

    def at_work(self):
        listed = wait_until("the list of experiments", lambda: self.cluster.run_det("experiment", "list", "--all", "--json").stdout)
        states = {int(one["id"]): one["state"] for one in json.loads(listed)}
        return [id for id in self.whole if states.get(id) not in ("STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED")]

    def is_over(self):
        self.events.repair()
        return not self.at_work()

    def repeated_batches(self, books):
        """{(trial, run): batches} that were trained twice although their first run had the time to save."""
        repeated = {}
        for (trial, run, group, step), (_, archived) in sorted(books.rows.items()):
            if archived and group == "training" and (trial, run) not in self.events.killed:
                repeated.setdefault((trial, run), []).append(step)
        return repeated

    def evidence(self, runs=()):
        return "\n".join([f"seed {SEED}", *self.events.history, self.pool.evidence(), *map(self.end_of, runs)])

    def end_of(self, run):
        """What is known of the end of a run: the log of its pilot, and what Slurm says of that job."""
        job = self.gpus.job_of_run.get(run, "?")
        pilot = self.slurm.dir / f"pilot-{job}.log"
        lines = [f"\n# trial {run[0]}, run {run[1]}: job {job}", pilot.read_text(errors="replace") if pilot.exists() else "no log"]
        for log in sorted((self.slurm.home / "log").glob("*.log")):
            lines += [f"{log.name}: {line}" for line in log.read_text(errors="replace").splitlines()
                      if re.search(rf"\b(job |JobId=|jobid |Job ){job}\b", line)]
        return "\n".join(lines)

    def test_random_events_lose_no_report_and_leave_no_job_and_no_process(self):
        begin = time.monotonic()
        for _ in range(EVENTS):
            self.submit()
            self.events.linger(0.3, 2.5)
            self.events.happen(begin)
        last = time.monotonic()
        wait_until("every experiment to end", self.is_over, FINISH)
        self.events.cancel_others()
        self.slurm.wait_without_jobs(prefix="", timeout=60)
        wait_until("the processes of trials to end", lambda: not leftovers(self.cluster), 10)
        agents = lambda: self.cluster.det_json("agent", "list", "--json")
        wait_until("the rows of agents to be removed", lambda: not agents(), 60)
        forgotten = self.events.excuse_aborted() | self.events.downed
        self.events.excuse_silent_master()
        shared = {text: when for text, when in self.gpus.problems.items() if not forgotten & set(re.findall(r"job (\d+)", text))}
        books = Books(self.cluster, self.cluster.dir / "ledger")
        repeated = self.repeated_batches(books)
        lost = [f"trial {trial} trained batches {steps[0]} to {steps[-1]} of its run {run} again"
                for (trial, run), steps in repeated.items() if LONG]
        problems = (books.lost() + books.doubled_or_missing(self.whole) + books.searches() + books.overlaps() +
                    books.checkpoints_without_files(self.cluster.dir / "checkpoints", set()) + books.unfinished() +
                    lost + [f"{text} {when}" for text, when in shared.items()])
        print(f"{EVENTS} events, {len(self.whole)} trials, {len(self.gpus.trials_seen)} runs on GPUs beside "
              f"{len(self.gpus.others_seen)} jobs, {len(books.acknowledged)} reports acknowledged, {sum(map(len, repeated.values()))} batches repeated, "
              f"{len(self.gpus.problems) - len(shared)} GPUs given twice by a Slurm that forgot a job or whose node was down, over "
              f"{time.monotonic() - last:.1f} s after the last event", flush=True)
        if problems:
            print(self.evidence(repeated))
        self.assertEqual(problems[:20], [])
        self.assertGreaterEqual(len(books.acknowledged), sum(self.whole.values()))


if __name__ == "__main__":
    unittest.main()
