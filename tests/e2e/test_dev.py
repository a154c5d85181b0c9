"""`det dev`: trains without a cluster, goes on with changed code, and saves at the end. Real compilers, no master."""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from cluster import wait_until
from test_main_job import BUILD

LENGTH = "searcher.max_length.batches=1000000"


class Dev(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="det-dev-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.det = pathlib.Path(BUILD).resolve() / "bin" / "det"
        # The build cache is that of the user, so that the precompiled header exists; the state is the test's.
        models = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        models = models / "determinant" / "models"
        (self.home / "cache" / "determinant").mkdir(parents=True)
        models.mkdir(parents=True, exist_ok=True)
        (self.home / "cache" / "determinant" / "models").symlink_to(models)
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.home / "cache"), "NO_COLOR": "1"}
        self.trial = self.home / "trial"
        subprocess.run([self.det, "init", self.trial], check=True, capture_output=True, env=self.env)
        self.source = self.trial / "model_def.cpp"

    def start(self, *options, before=None):
        """Starts `det dev` and returns the process; its output is in self.out(). `before` runs in it first."""
        self.log = open(self.home / "out.txt", "wb")
        self.addCleanup(self.log.close)
        process = subprocess.Popen([self.det, "dev", self.trial, *options], stdout=self.log, stderr=self.log,
                                   env=self.env, start_new_session=True, preexec_fn=before)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def out(self):
        return (self.home / "out.txt").read_text(errors="replace")

    def wait_for(self, text, count=1):
        wait_until(f"{text!r} in the output", lambda: self.out().count(text) >= count, timeout=240)

    def edit(self, old, new):
        text = self.source.read_text()
        self.assertIn(old, text)
        self.source.write_text(text.replace(old, new))

    @staticmethod
    def batches(text):
        """Batches of the reports of training, in order."""
        return [int(line.split()[2]) for line in text.splitlines() if line.startswith("training   batch ")]

    def interrupt(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0, self.out())
        # One hint, that of det dev.
        self.assertIn("Go on with: det dev", self.out())
        self.assertNotIn("det-harness --resume", self.out())

    def test_training_goes_on_with_changed_code_and_survives_code_that_does_not_compile(self):
        process = self.start("--config", LENGTH)
        self.wait_for("training   batch ")
        self.edit('{{"loss", loss}}', '{{"loss", loss_of}}')
        self.wait_for("model_def.cpp does not compile")
        self.wait_for("The previous library keeps training")
        self.assertRegex(self.out(), r"model_def\.cpp:\d+:\d+: error: use of undeclared identifier 'loss_of'")
        reports = len(self.batches(self.out()))
        wait_until("more reports", lambda: len(self.batches(self.out())) > reports)

        self.edit('{{"loss", loss_of}}', '{{"changed_loss", loss}}')
        self.wait_for("changed_loss")
        text = self.out()
        self.assertEqual(text.count("starting from checkpoint"), 1, text)
        steps = self.batches(text)
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(len(set(steps)), len(steps), "no batch is trained twice")
        self.interrupt(process)
        self.assertIn(f"Go on with: det dev {self.trial} --config {LENGTH}", self.out())

    def test_a_saved_state_is_continued_and_fresh_starts_from_the_beginning(self):
        process = self.start("--config", LENGTH)
        self.wait_for("training   batch ")
        self.interrupt(process)
        last = self.batches(self.out())[-1]
        process = self.start("--config", LENGTH)
        self.wait_for("training   batch ")
        self.assertIn("starting from checkpoint", self.out())
        self.assertGreater(self.batches(self.out())[0], last)
        self.interrupt(process)
        process = self.start("--config", LENGTH, "--fresh")
        self.wait_for("training   batch ")
        self.assertNotIn("starting from checkpoint", self.out())
        self.assertEqual(self.batches(self.out())[0], 100)
        self.interrupt(process)

    def test_headers_that_cannot_be_precompiled_are_named_beside_the_training(self):
        (self.home / "cache" / "determinant" / "models").unlink()
        # One thread leaves the other processors to the compiler, which has the lowest priority.
        self.env["OMP_NUM_THREADS"] = "1"
        # Libraries of trials fit, precompiled headers do not.
        limit = 40 << 20
        process = self.start("--config", LENGTH,
                             before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.wait_for("training   batch ")
        self.wait_for("det: headers not precompiled: ")
        self.assertIn("; builds take 10 s longer", self.out())
        self.interrupt(process)

    def test_mistakes_wait_for_their_correction(self):
        config = self.trial / "const.yaml"
        good = config.read_text()
        config.write_text(good.replace("model_def:MyTrial", "model_def:MyTrail"))
        process = self.start("--config", "searcher.max_length.batches=3", "--config", "scheduling_unit=1")
        self.wait_for("Waiting for a change")
        self.assertIn("no class MyTrail; its trial classes: MyTrial; did you mean \"MyTrial\"?", self.out())
        self.assertNotIn("<stdin>", self.out())
        config.write_text(good)
        self.wait_for("Training is complete")
        config.write_text("searcher: {name: single, metric: [}\n")
        self.wait_for("Waiting for a change", count=3)
        self.assertIn("const.yaml:1:", self.out())
        self.interrupt(process)

    def test_a_file_that_is_not_compiled_repairs_a_trial_that_failed(self):
        self.edit("#include <det/det.h>\n", "#include <det/det.h>\n#include <fstream>\n")
        check = '  if (!std::ifstream("points.yaml")) throw std::runtime_error("no points.yaml");\n'
        self.edit("  auto generator", check + "  auto generator")
        process = self.start("--config", LENGTH)
        self.wait_for("the trial ended with")
        (self.trial / "points.yaml").write_text("count: 1\n")
        self.wait_for("training   batch ")
        self.interrupt(process)

    def test_a_state_that_does_not_fit_the_changed_model_is_refused(self):
        process = self.start("--config", LENGTH)
        self.wait_for("training   batch ")
        self.edit("Linear(hidden, 2)", "Linear(hidden, 3)")
        self.wait_for(f"does not fit the changed model: Ctrl-C, then det dev {self.trial}")
        self.assertRegex(self.out(), r"error: the checkpoint to start from: .*fc2")
        self.edit("Linear(hidden, 3)", "Linear(hidden, 2)")
        self.wait_for("starting from checkpoint")
        self.interrupt(process)
