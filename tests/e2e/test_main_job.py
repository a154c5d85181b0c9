"""The main job end to end: real binaries, a real database, real training. Then each part is killed in
turn."""
import json
import os
import pathlib
import shutil
import signal
import unittest

from cluster import Cluster, processes, wait_until

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = os.environ["DET_E2E_BUILD"]
MNIST = ROOT.parent / "shared" / "data" / "mnist"


def command_line(pid):
    """The arguments of a process; b"" if it has ended meanwhile."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def tiny(batches, checkpoint_every=100, validate_every=500, storage="", **more):
    """A configuration of fixtures/tiny: a small network on generated numbers."""
    extra = "".join(f"{key}: {value}\n" for key, value in more.items())
    return f"""
name: tiny
entrypoint: model_def:TinyTrial
hyperparameters:
  global_batch_size: 32
  learning_rate: 0.01
searcher:
  name: single
  metric: validation_loss
  max_length:
    batches: {batches}
min_checkpoint_period:
  batches: {checkpoint_every}
min_validation_period:
  batches: {validate_every}
scheduling_unit: 50
reproducibility:
  experiment_seed: 7
{storage}{extra}"""


def command(line, **more):
    extra = "".join(f"{key}: {value}\n" for key, value in more.items())
    return f"""
name: command
entrypoint: {json.dumps(line)}
searcher: {{name: single, metric: loss}}
{extra}"""


class MainJob(unittest.TestCase):
    """One cluster for all tests, which share the agent's build cache."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, ["--agent-lease", "60s"])
        cls.cluster.__enter__()
        cls.addClassCleanup(lambda: cls.cluster.close(keep=cls.failed))
        cls.failed = True
        cls.cluster.start_agent("a1")
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()
        cls.failed = False

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).failed = True

    # ---- happy paths ----
    def test_mnist_trains_to_the_published_accuracy(self):
        if not MNIST.exists():
            self.skipTest("needs the MNIST files in shared/data/mnist")
        data = self.cluster.dir / "mnist"
        shutil.copytree(MNIST, data)
        example = ROOT / "examples" / "mnist"
        out = self.cluster.det("experiment", "create", "const.yaml", ".", "--config", f"data.dir={data}",
                               cwd=example)
        self.assertRegex(out, r"Preparing files \(\.\./mnist\) to send to master\.\.\. [\d.]+[KMG]?B and \d+ files")
        id = int(out.split("Created experiment ")[1].split()[0])
        self.assertIn(f"Activated experiment {id}", out)
        self.cluster.wait_state(id, "COMPLETED", timeout=600)
        trial = self.cluster.trial(self.cluster.trial_id(id))
        accuracy = trial["latestValidation"]["metrics"]["avgMetrics"]["accuracy"]
        self.assertGreaterEqual(accuracy, 0.97, "the published figure")
        self.assertTrue(trial["latestCheckpointUuid"])
        target = self.cluster.dir / "downloaded"
        self.cluster.det("checkpoint", "download", trial["latestCheckpointUuid"], "-o", target)
        self.assertTrue((target / "state_dict.pth").stat().st_size > 1000)
        manifest = json.loads((target / "manifest.json").read_text())
        self.assertTrue(manifest)

    def test_a_command_line_runs_as_a_trial_and_its_output_is_the_log(self):
        id = self.cluster.create(self.empty, command("echo hello from $DET_TRIAL_ID; echo oops >&2"))
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial_id(id)
        log = self.cluster.logs(trial)
        self.assertIn(f"hello from {trial}", log)
        self.assertIn("oops", log)

    def test_create_with_follow_prints_the_log_and_ends_with_the_experiment(self):
        config = self.cluster.dir / "follow.yaml"
        config.write_text(command("echo first; echo second"))
        out = self.cluster.det("experiment", "create", config, self.empty, "-f")
        self.assertIn("Following first trial with ID", out)
        self.assertLess(out.index("first\n"), out.index("second\n"))

    def test_the_startup_hook_runs_before_the_entrypoint(self):
        context = self.cluster.dir / "hook"
        context.mkdir(exist_ok=True)
        (context / "startup-hook.sh").write_text("echo made by the hook > made\n")
        id = self.cluster.create(context, command("cat made"))
        self.cluster.wait_state(id, "COMPLETED")
        self.assertIn("made by the hook", self.cluster.logs(self.cluster.trial_id(id)))

    # ---- user errors ----
    def test_a_bad_configuration_yields_every_problem_at_once_and_stores_nothing(self):
        before = len(self.cluster.det_json("experiment", "list", "--json"))
        path = self.cluster.dir / "bad.yaml"
        path.write_text("name: x\nentrypoint: train.sh\nhyperparameterz: {}\nmax_restarts: -1\n"
                        "searcher: {name: single}\nresources: {slots_per_trial: 1.5}\n")
        done = self.cluster.run_det("experiment", "create", path, self.empty)
        self.assertEqual(done.returncode, 2, done.stderr)
        for part in ("bad.yaml:3:1", "hyperparameterz", "E-CFG-UNKNOWN", 'did you mean "hyperparameters"',
                     "bad.yaml:4:15", "max_restarts", "E-CFG-RANGE", "searcher.metric", "E-CFG-MISSING",
                     "resources.slots_per_trial", "E-CFG-TYPE"):
            self.assertIn(part, done.stderr)
        token = json.loads(self.cluster.post("/api/v1/auth/login", {
            "username": "admin", "password": self.cluster.password()})[1])["token"]
        status, body = self.cluster.post("/api/v1/experiments", {"config": path.read_text()}, token)
        self.assertEqual(status, 400, body)
        self.assertIn("hyperparameterz", body)
        self.assertEqual(before, len(self.cluster.det_json("experiment", "list", "--json")))

    def test_a_model_that_does_not_compile_ends_in_error_with_file_and_line(self):
        id = self.cluster.create(HERE / "fixtures" / "broken", tiny(10).replace("max_restarts", "#"))
        self.cluster.wait_state(id, "ERROR", timeout=180)
        log = self.cluster.logs(self.cluster.trial_id(id))
        self.assertRegex(log, r"model_def\.cpp:\d+:\d+: error: .*no_such_name")
        self.assertEqual(self.cluster.trial(self.cluster.trial_id(id))["restarts"], 0)

    def test_a_failure_names_its_line_and_is_not_repeated_more_than_once(self):
        def failed(how, metric="validation_loss"):
            config = tiny(10, max_restarts=3).replace("TinyTrial", "FailingTrial")
            config = config.replace("learning_rate: 0.01", f"how: {how}").replace("validation_loss", metric)
            id = self.cluster.create(HERE / "fixtures" / "failing", config)
            self.cluster.wait_state(id, "ERROR", timeout=180)
            return self.cluster.trial(self.cluster.trial_id(id))

        trial = failed("shape")
        self.assertEqual(trial["restarts"], 1)
        self.assertRegex(trial["exitReason"], r"error: train_batch \(batch 3\): mat1 and mat2 shapes cannot be "
                                              r"multiplied .*\(model_def\.cpp:46\)")
        self.assertIn("the previous run failed at the same batch with the same error", trial["exitReason"])
        trial = failed("missing")
        self.assertEqual(trial["restarts"], 1)
        self.assertRegex(trial["exitReason"], r"error: the training data \(batch 3\): .*: cannot open 13\.png \(")
        trial = failed("shape", metric="validation_los")
        self.assertEqual(trial["restarts"], 0)
        self.assertIn('did you mean "validation_loss"?', trial["exitReason"])
        self.assertEqual(self.cluster.metrics(trial["id"], "training"), [])
        trial = failed("crash")
        self.assertRegex(trial["exitReason"], r"\Asignal 11 .*\nerror: train_batch \(batch 3\): segmentation fault at "
                                              r"address 0x0 \(model_def\.cpp:49\)")

    def test_a_crashing_trial_restarts_max_restarts_times_and_then_ends_in_error(self):
        id = self.cluster.create(self.empty, command("echo try $DET_TRIAL_RUN_ID; exit 7", max_restarts=2))
        self.cluster.wait_state(id, "ERROR")
        trial = self.cluster.trial(self.cluster.trial_id(id))
        self.assertEqual(trial["restarts"], 2)
        log = self.cluster.logs(trial["id"])
        for run in (1, 2, 3):
            self.assertIn(f"try {run}", log)
        self.assertNotIn("try 4", log)
        self.assertIn("7", trial["exitReason"])

    # ---- steering ----
    def test_pause_frees_the_slot_and_activate_resumes_from_the_checkpoint(self):
        id = self.cluster.create(HERE / "fixtures" / "tiny", tiny(20000))
        trial = self.cluster.trial_id(id)
        wait_until("training to be under way", lambda: self.cluster.metrics(trial, "training"), 180)
        self.cluster.det("experiment", "pause", id)
        wait_until("the trial's processes to leave", lambda: not self.cluster.task_processes(trial))
        paused_at = self.cluster.metrics(trial, "training")[-1][0]
        self.assertLess(paused_at, 20000)
        self.cluster.det("experiment", "activate", id)
        self.cluster.wait_state(id, "COMPLETED", timeout=180)
        self.check_metrics(trial, 20000)

    def test_kill_ends_a_trial_that_ignores_sigterm_with_all_its_children(self):
        id = self.cluster.create(self.empty, command(
            "trap '' TERM; (setsid sh -c \"trap '' TERM; while :; do sleep 1; done\" &) ; echo up; while :; do sleep 1; done"))
        trial = self.cluster.trial_id(id)
        wait_until("it to run", lambda: "up" in self.cluster.logs(trial))
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED", timeout=60)
        wait_until("every process to be gone", lambda: not self.cluster.task_processes(trial), 10)

    # ---- crashes ----
    def check_metrics(self, trial, batches, every=50):
        """Every report is stored exactly once."""
        steps = [step for step, _ in self.cluster.metrics(trial, "training")]
        self.assertEqual(steps, list(range(every, batches + 1, every)))

    def reference(self):
        """Metrics of an undisturbed run, computed once."""
        if not hasattr(MainJob, "undisturbed"):
            id = self.cluster.create(HERE / "fixtures" / "tiny", tiny(20000))
            self.cluster.wait_state(id, "COMPLETED", timeout=240)
            trial = self.cluster.trial_id(id)
            self.check_metrics(trial, 20000)
            MainJob.undisturbed = (self.cluster.metrics(trial, "training"), self.cluster.metrics(trial, "validation"))
        return MainJob.undisturbed

    def check_equals_reference(self, trial):
        """Compares bit for bit with an undisturbed run."""
        training, validation = self.reference()
        self.assertEqual(self.cluster.metrics(trial, "training"), training)
        self.assertEqual(self.cluster.metrics(trial, "validation"), validation)

    def start_tiny(self):
        self.reference()
        id = self.cluster.create(HERE / "fixtures" / "tiny", tiny(20000))
        trial = self.cluster.trial_id(id)
        wait_until("training to be under way",
                   lambda: len(self.cluster.metrics(trial, "training")) > 20, 120)
        return id, trial

    def test_a_trial_killed_with_9_resumes_from_its_checkpoint_bit_for_bit(self):
        id, trial = self.start_tiny()
        harness = [pid for pid in self.cluster.task_processes(trial) if processes().get(pid, ("",))[0] == "det-harness"]
        self.assertTrue(harness)
        os.kill(harness[0], signal.SIGKILL)
        self.cluster.wait_state(id, "COMPLETED", timeout=180)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        self.check_equals_reference(trial)

    def test_an_agent_killed_with_9_reattaches_its_trial(self):
        id, trial = self.start_tiny()
        self.cluster.kill_agent("a1")
        self.assertTrue(self.cluster.task_processes(trial), "the trial outlives its agent")
        self.cluster.start_agent("a1")
        self.cluster.wait_state(id, "COMPLETED", timeout=180)
        described = self.cluster.trial(trial)
        self.assertEqual((described["restarts"], described["run"]), (0, 1))
        self.check_equals_reference(trial)

    def test_a_stopped_agent_lets_its_trial_save_so_that_no_batch_is_lost(self):
        self.reference()
        # Without the stop, the first checkpoint would come at the end.
        id = self.cluster.create(HERE / "fixtures" / "tiny", tiny(20000, 20000, 20000))
        trial = self.cluster.trial_id(id)
        wait_until("training to be under way", lambda: len(self.cluster.metrics(trial, "training")) > 20, 120)
        self.assertEqual(self.cluster.stop_agent("a1"), 0)
        self.assertFalse(self.cluster.task_processes(trial))
        trained = self.cluster.metrics(trial, "training")[-1][0]
        [saved] = self.cluster.det_json("experiment", "list-checkpoints", id, "--json")
        self.assertGreaterEqual(saved["metadata"]["steps_completed"], trained)
        self.cluster.start_agent("a1")
        self.cluster.wait_state(id, "COMPLETED", timeout=180)
        described = self.cluster.trial(trial)
        self.assertEqual((described["restarts"], described["run"]), (0, 2))
        self.assertEqual(self.cluster.metrics(trial, "training"), self.reference()[0])

    def test_a_master_killed_with_9_loses_nothing_and_restarts_no_trial(self):
        wanted, kills = (20 if os.environ.get("DET_TEST_LONG") == "1" else 3), 0
        while kills < wanted:
            id, trial = self.start_tiny()
            while kills < wanted and self.experiment_runs(id):
                self.cluster.kill_master()
                kills += 1
                self.cluster.start_master()
            self.cluster.wait_state(id, "COMPLETED", timeout=180)
            described = self.cluster.trial(trial)
            self.assertEqual((described["restarts"], described["run"]), (0, 1))
            self.check_equals_reference(trial)

    def experiment_runs(self, id):
        return self.cluster.experiment(id)["state"] == "STATE_RUNNING"

    def test_a_stopped_master_leaves_no_process_and_starts_again(self):
        self.assertEqual(self.cluster.stop_master(), 0)
        mine = str(self.cluster.dir / "master")
        agents = [agent.pid for agent in self.cluster.agents.values()]  # named by the path of their join token
        left = [pid for pid in processes() if pid not in agents and mine.encode() in command_line(pid)]
        self.assertEqual(left, [])
        self.cluster.start_master()
        wait_until("the agent to come back", lambda: any(
            a.get("connected") for a in self.cluster.det_json("agent", "list", "--json")))

    # ---- access ----
    def test_every_call_requires_a_password(self):
        for password in ("", "admin", "determined", "password", "changeme"):
            self.assertEqual(self.cluster.post("/api/v1/auth/login", {"username": "admin", "password": password})[0], 401)
        for path in ("/api/v1/experiments", "/api/v1/agents", "/api/v1/trials/1", "/api/v1/auth/user"):
            self.assertEqual(self.cluster.get(path)[0], 401, path)
        self.assertEqual(self.cluster.get("/health")[0], 200)
        self.assertEqual(self.cluster.get("/api/v1/master")[0], 200)
        self.assertEqual((self.cluster.dir / "master" / "admin-password").stat().st_mode & 0o777, 0o600)
