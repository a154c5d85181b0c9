"""A long queue on a real Slurm, the delays of pilots, and a Slurm that does not reply for a long time."""
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import tempfile
import time
import unittest

from cluster import wait_until
from slurm import Pool
from test_main_job import command

LONG = os.environ.get("DET_TEST_LONG") == "1"
TRIALS = 1000
OBSERVED = 30  # seconds
AWAY = 600 if LONG else 40
ROUNDS = 20 if LONG else 3
IDLE = 3  # seconds
COMMANDS = ("squeue", "sbatch", "scancel")


def write_counters(directory):
    """Programs that note the time of each call in `directory`/calls, and then become Slurm's."""
    directory.mkdir()
    for name in COMMANDS:
        path = directory / name
        path.write_text(f'#!/bin/sh\necho "$(date +%s.%N) {name}" >>"{directory}/calls"\nexec {shutil.which(name)} "$@"\n')
        path.chmod(0o755)


def spread(seconds):
    """The lowest, the median and the highest value."""
    return " / ".join(f"{one:.2f}" for one in (min(seconds), statistics.median(seconds), max(seconds)))


class Queue(unittest.TestCase):
    def start(self, **provider):
        folder = tempfile.TemporaryDirectory(prefix="det-queue-")
        self.addCleanup(folder.cleanup)
        self.programs = pathlib.Path(folder.name) / "bin"
        write_counters(self.programs)
        pool = Pool((), ("--heartbeat", "1s"), self.programs, max_nodes=1, idle_timeout=f"{IDLE}s", **provider)
        self.addCleanup(pool.close)
        self.pool, self.slurm, self.cluster = pool, pool.slurm, pool.cluster
        self.empty = self.cluster.dir / "empty"
        self.empty.mkdir()

    def calls(self):
        """[(time, program)] of all calls."""
        lines = (self.programs / "calls").read_text().splitlines()
        return [(float(moment), name) for moment, name in map(str.split, lines)]

    def seconds_of(self, time_text):
        return datetime.datetime.fromisoformat(time_text.replace("Z", "+00:00")).timestamp()

    def problem(self):
        """What the cluster page shows above the pilots of the pool."""
        status, body = self.cluster.get("/api/v1/pilots", json.loads(self.cluster.post(
            "/api/v1/auth/login", {"username": "admin", "password": self.cluster.password()})[1])["token"])
        self.assertEqual(status, 200)
        return json.loads(body)["pools"][0]["problem"]

    def test_a_pilot_is_submitted_within_a_second_and_is_gone_two_seconds_after_its_idle_time(self):
        self.start(max_pilots=2)  # the next one need not wait for the end of the last
        begins, cancels, ends = [], [], []
        for _ in range(ROUNDS):
            before = len(self.calls())
            id = self.cluster.create(self.empty, command("true"))
            self.cluster.wait_state(id, "COMPLETED")
            wait_until("the pilot to be gone", lambda: not self.slurm.names())
            gone, trial = time.time(), self.cluster.experiment(id)
            first = {name: moment for moment, name in reversed(self.calls()[before:])}
            idle = self.seconds_of(trial["endTime"]) + IDLE
            begins.append(first["sbatch"] - self.seconds_of(trial["startTime"]))
            cancels.append(first["scancel"] - idle)
            ends.append(gone - idle)
        print(f"{ROUNDS} rounds: submitted after {spread(begins)} s; canceled {spread(cancels)} s and gone {spread(ends)} s "
              "after the idle time", flush=True)
        self.assertLessEqual(max(begins), 1)
        self.assertLessEqual(max(ends), 2)

    def test_a_thousand_queued_trials_cause_at_most_one_call_a_second(self):
        self.start(max_pilots=6)
        id = self.cluster.create(self.empty, command("exec sleep 600").replace("name: single", (
            f"name: random, max_trials: {TRIALS}, max_concurrent_trials: {TRIALS}, max_length: {{batches: 1}}")))
        wait_until("all trials to wait", lambda: self.cluster.experiment(id)["numTrials"] >= TRIALS)
        begin = time.time()
        wait_until("the time to pass", lambda: time.time() > begin + OBSERVED, OBSERVED + 10)
        end = time.time()
        calls = [moment for moment, _ in self.calls() if begin <= moment <= end]
        print(f"{len(calls)} calls in {end - begin:.0f} s with {TRIALS} trials in the queue", flush=True)
        self.assertGreater(len(calls), OBSERVED // 4, "Slurm is observed")
        self.assertLessEqual(len(calls), end - begin + 6, "one a second, and those of one round")
        self.assertEqual(len(self.slurm.names()), 6)
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")
        self.slurm.wait_without_jobs()

    def test_trials_run_on_while_slurm_does_not_reply_and_new_ones_run_afterwards(self):
        self.start(max_pilots=2)
        running = self.cluster.create(self.empty, command(f"sleep {AWAY + 5}; echo done"))
        trial = self.cluster.trial_id(running)
        wait_until("the trial to run", lambda: self.cluster.task_processes(trial))
        pid = self.slurm.controller()
        os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            waiting = [self.cluster.create(self.empty, command("echo ran", resources="{slots_per_trial: 2}")) for _ in range(3)]
            wait_until("the error", lambda: "does not reply" in self.cluster.det("explain", "experiment", waiting[0]))
            self.assertIn("does not reply", self.problem())
            wait_until("the time to pass", lambda: time.monotonic() > begin + AWAY, AWAY + 10)
            self.assertTrue(self.cluster.task_processes(trial), "the trial runs on")
        finally:
            os.kill(pid, signal.SIGCONT)
        for id in (running, *waiting):
            self.cluster.wait_state(id, "COMPLETED", timeout=180)
        self.assertIn("done", self.cluster.logs(trial))
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)
        self.assertEqual(self.problem(), "")
        self.slurm.wait_without_jobs()
        submitted = self.cluster.dir.joinpath("master.log").read_text().count("submitted a pilot")
        self.assertLessEqual(submitted, 4, "nothing is submitted twice")


if __name__ == "__main__":
    unittest.main()
