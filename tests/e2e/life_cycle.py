"""The life cycle of trials, unchanged on agents, on Slurm and on Kubernetes."""
from cluster import wait_until
from test_main_job import command

PROGRAM = "chaos_program"  # reports metrics at each step, and saves a checkpoint when it is asked to leave
GANG = "det-launch -- sh -c 'echo I am $RANK of $WORLD_SIZE on node $GROUP_RANK'"


class LifeCycle:
    """Mixin of a TestCase with `cluster` and `empty` (a model directory). The cluster can hold four slots, two on
    each of two machines; trials see the directory of the cluster."""

    # ---- helpers ----
    def create(self, line, slots=1, **more):
        return self.cluster.create(self.empty, command(line, resources=f"{{slots_per_trial: {slots}}}", **more))

    def create_trainer(self, steps, milliseconds=50, slots=1, priority=42):
        """A trial that logs its run, and then reports `steps` steps."""
        ledger = self.cluster.dir / "ledger"
        ledger.mkdir(exist_ok=True)
        numbers = f"steps: {steps}, milliseconds: {milliseconds}, save_every: {steps}"
        return self.cluster.create(self.empty, f"""
name: life cycle
entrypoint: "echo run $DET_TRIAL_RUN_ID begins; exec {self.cluster.bin / PROGRAM}"
hyperparameters: {{ledger: "{ledger}", {numbers}}}
searcher: {{name: single, metric: loss, max_length: {{batches: {steps}}}}}
resources: {{slots_per_trial: {slots}, is_single_node: true, priority: {priority}}}
checkpoint_storage: {{type: shared_fs, host_path: "{self.cluster.dir / 'checkpoints'}"}}
""")

    def wait_for_report(self, trial):
        wait_until("the trial to report", lambda: self.cluster.metrics(trial, "training"))

    def check_reports(self, trial, steps):
        """Each step is stored exactly once."""
        self.assertEqual([step for step, _ in self.cluster.metrics(trial, "training")], list(range(1, steps + 1)))

    def end(self, id):
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")

    # ---- tests ----
    def test_a_trial_completes_with_its_log_and_every_metric(self):
        id = self.create_trainer(20)
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial_id(id)
        self.check_reports(trial, 20)
        self.assertEqual([step for step, _ in self.cluster.metrics(trial, "validation")], [5, 10, 15, 20])
        self.assertIn("run 1 begins", self.cluster.logs(trial))
        self.assertTrue(self.cluster.trial(trial)["latestCheckpointUuid"])

    def test_a_paused_trial_frees_its_slot_and_resumes_from_its_checkpoint(self):
        id = self.create_trainer(100)
        trial = self.cluster.trial_id(id)
        self.wait_for_report(trial)
        self.cluster.det("experiment", "pause", id)
        wait_until("the processes of the trial to end", lambda: not self.cluster.task_processes(trial))
        self.assertLess(self.cluster.metrics(trial, "training")[-1][0], 100)
        self.cluster.det("experiment", "activate", id)
        self.cluster.wait_state(id, "COMPLETED")
        self.check_reports(trial, 100)
        described = self.cluster.trial(trial)
        self.assertEqual((described["restarts"], described["run"]), (0, 2))

    def test_a_killed_trial_ends_with_all_its_processes(self):
        id = self.create("trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 600\" &) ; echo up; while :; do sleep 1; done")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: "up" in self.cluster.logs(trial))
        self.end(id)
        wait_until("the processes of the trial to end", lambda: not self.cluster.task_processes(trial), 15)

    def test_a_gang_runs_on_both_machines(self):
        id = self.create(GANG, slots=4)
        self.cluster.wait_state(id, "COMPLETED")
        log = self.cluster.logs(self.cluster.trial_id(id))
        self.assertIn("I am 0 of 4 on node 0", log)
        self.assertIn("I am 3 of 4 on node 1", log)

    def test_a_failed_trial_restarts_and_completes(self):
        id = self.create("echo run $DET_TRIAL_RUN_ID; test $DET_TRIAL_RUN_ID -gt 1", max_restarts=2)
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial_id(id)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        self.assertIn("run 2", self.cluster.logs(trial))

    def test_a_trial_of_higher_priority_preempts_one_that_saves_and_goes_on(self):
        lows = [self.create_trainer(150, milliseconds=100, slots=2, priority=80) for _ in range(2)]
        trials = [self.cluster.trial_id(id) for id in lows]
        for trial in trials:
            self.wait_for_report(trial)
        high = self.create_trainer(5, slots=2, priority=1)
        self.cluster.wait_state(high, "COMPLETED")
        for id, trial in zip(lows, trials):
            self.cluster.wait_state(id, "COMPLETED")
            self.check_reports(trial, 150)
        described = [self.cluster.trial(trial) for trial in trials]
        self.assertEqual([one["restarts"] for one in described], [0, 0])
        self.assertEqual(sorted(one["run"] for one in described), [1, 2], "exactly one was preempted")
