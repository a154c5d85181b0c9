"""The detached mode: a program started by hand against a real master without agents."""
import json
import os
import pathlib
import subprocess
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]


class Program:
    """One run of the program. Each tell() is a step and returns its result."""

    def __init__(self, cluster, storage, env=None, *arguments):
        self.process = subprocess.Popen([pathlib.Path(BUILD) / "bin" / "detached_program", storage, *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**cluster.env, **(env or {})})
        self.first = self.process.stdout.readline()
        words = self.first.split()
        self.experiment, self.trial = (int(words[1]), int(words[3])) if len(words) == 4 else (0, 0)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        """Returns its last lines and its exit code."""
        out, _ = self.process.communicate(timeout=60)
        return out, self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate()


class Detached(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # No agent: detached trials need none.
        cls.cluster = Cluster(BUILD, ["--detached-limit", "4s"])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.storage = cls.cluster.dir / "checkpoints"

    def start(self, *arguments, **env):
        program = Program(self.cluster, self.storage, env, *arguments)
        self.addCleanup(program.kill)
        self.assertTrue(program.experiment, program.first)
        return program

    def trial_state(self, program):
        return self.cluster.trial(program.trial)["state"].removeprefix("STATE_")

    def test_the_machine_of_the_program_is_measured(self):
        program = self.start()
        wait_until("use of the machine", lambda: self.cluster.reports(program.trial, "memory"), timeout=60)

    def test_media_of_every_kind_are_stored_and_a_step_reported_again_replaces_them(self):
        program = self.start()
        texts = []
        for step in (1, 2):
            self.assertEqual(program.tell("media"), f"step {step}")
            target = self.cluster.dir / f"media{step}"
            self.cluster.det("trial", "download-files", program.trial, "media", "-o", target)
            files = {path.parent.name: path for path in target.glob("media/*/7-*")}
            self.assertEqual(sorted(files), ["file", "histogram", "image", "table", "text"])
            self.assertEqual(len(list(target.rglob("7-*"))), 5)
            texts.append(files["text"].read_text())
        self.assertEqual(texts, ["step 1", "step 2"])
        self.assertEqual(json.loads(files["histogram"].read_text()), {"edges": [0, 0.25, 0.5, 0.75, 1], "counts": [1, 1, 0, 1]})
        self.assertEqual(json.loads(files["table"].read_text()), {"columns": ["class", "count"], "rows": [["cat", 3], ["dog", None]]})
        self.assertEqual(files["image"].read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(files["file"].read_text(), "detached_progra\n")

    def test_reports_are_read_back_with_the_command(self):
        program = self.start()
        self.assertEqual(program.tell("go"), "step 1")
        described = self.cluster.experiment(program.experiment)
        self.assertEqual(described["state"], "STATE_RUNNING")
        self.assertEqual(described["name"], "by hand")
        self.assertTrue(described["unmanaged"])
        self.assertEqual(described["labels"], ["blue"])
        self.assertEqual(program.tell("validate"), "step 2")
        saved = program.tell("save").split()
        self.assertEqual(saved[0], "saved")
        self.assertEqual(program.process.stdout.readline(), "step 3\n")
        self.assertEqual(program.end(), ("", 0))
        self.cluster.wait_state(program.experiment, "COMPLETED", timeout=10)
        self.assertEqual(self.cluster.metrics(program.trial, "training"),
                         [(1, {"loss": 1}), (2, {"loss": 0.5}), (3, {"loss": 1 / 3})])
        self.assertEqual(self.cluster.metrics(program.trial, "validation"), [(2, {"accuracy": 0.2})])
        trial = self.cluster.trial(program.trial)
        self.assertEqual(trial["state"], "STATE_COMPLETED")
        self.assertEqual(trial["hparams"], {"lr": 0.5, "layers": {"hidden": 64}})
        self.assertEqual(trial["latestCheckpointUuid"], saved[1])
        self.assertEqual((self.storage / saved[1] / "model").read_text(), "abc")
        target = self.cluster.dir / "downloaded"
        self.cluster.det("checkpoint", "download", saved[1], "-o", target)
        self.assertEqual((target / "model").read_text(), "abc")

    def test_an_exception_or_a_reported_failure_ends_the_trial_in_error(self):
        program = self.start()
        self.assertEqual(program.tell("throw"), "error: step 1 went wrong")
        self.assertEqual(program.end()[1], 1)
        self.assertEqual(self.trial_state(program), "ERROR")
        program = self.start()
        program.tell("fail")
        self.assertEqual(program.end()[1], 0)
        trial = self.cluster.trial(program.trial)
        self.assertEqual((trial["state"], trial["exitReason"]), ("STATE_ERROR", "the program says so"))

    def test_an_uncaught_exception_or_an_exit_ends_the_trial_in_error_and_loses_no_report(self):
        for line, code, reason in (("throw", 1, "step 2 went wrong"), ("exit", 3, "the program called exit(3)")):
            program = self.start("uncaught")
            program.tell("go")
            program.tell(line)
            self.assertEqual(program.end()[1], code)
            trial = self.cluster.trial(program.trial)
            self.assertEqual(trial["state"], "STATE_ERROR")
            self.assertIn(reason, trial["exitReason"])
            self.assertEqual([steps for steps, _ in self.cluster.metrics(program.trial, "training")], [1, 2])

    def test_a_silent_trial_fails_and_an_idle_live_one_does_not(self):
        dead, living = self.start(), self.start()
        dead.tell("go")
        dead.kill()
        wait_until("the killed program's trial to fail", lambda: self.trial_state(dead) == "ERROR", 30)
        self.assertEqual(self.cluster.trial(dead.trial)["exitReason"], "no report for 4 s")
        # The other program has sent only heartbeats meanwhile.
        self.assertEqual(self.trial_state(living), "RUNNING")
        self.assertEqual(living.tell("go"), "step 1")
        self.assertEqual(living.end(), ("", 0))
        self.assertEqual(self.trial_state(living), "COMPLETED")

    def test_canceling_the_experiment_preempts_the_program(self):
        program = self.start()
        program.tell("go")
        self.cluster.det("experiment", "cancel", program.experiment)
        self.assertEqual(self.trial_state(program), "CANCELED")
        wait_until("the program to be asked to leave", lambda: program.tell("go") == "preempted", 30)
        self.assertEqual(program.end(), ("", 0))
        self.assertEqual(self.trial_state(program), "CANCELED")
        refused = self.cluster.run_det("experiment", "pause", self.start().experiment)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("runs outside the cluster and cannot be paused", refused.stderr)

    def test_an_external_id_can_be_used_again_after_the_deletion_of_its_experiment(self):
        def put():
            config = "name: again\nsearcher: {name: single, metric: loss, max_length: {batches: 1}}\n"
            status, body = self.cluster.post("/api/v1/experiments/by-external-id/again", {"config": config, "unmanaged": True},
                                             self.cluster.admin_token, "PUT")
            self.assertEqual(status, 200, body)
            return json.loads(body)["experiment"]["id"]

        first = put()
        self.assertEqual(put(), first)
        self.cluster.det("experiment", "kill", first)
        self.cluster.wait_state(first, "CANCELED", "ERROR")
        self.cluster.det("experiment", "delete", first, "--yes")
        self.assertGreater(put(), first)

    def test_a_restart_of_the_master_loses_nothing(self):
        program = self.start()
        self.assertEqual(program.tell("validate"), "step 1")
        self.cluster.kill_master()
        self.cluster.start_master()
        self.assertEqual(program.tell("validate"), "step 2")
        self.assertEqual(program.tell("validate"), "step 3")
        self.assertEqual(program.end(), ("", 0))
        self.assertEqual([steps for steps, _ in self.cluster.metrics(program.trial, "validation")], [1, 2, 3])
        self.assertEqual(self.trial_state(program), "COMPLETED")

    def test_a_missing_login_is_reported_and_environment_credentials_work(self):
        program = Program(self.cluster, self.storage, {"XDG_CONFIG_HOME": str(self.cluster.dir / "nobody")})
        self.assertIn("error: detached mode: not logged in at", program.first)
        self.assertIn("run `det user login`", program.first)
        self.assertEqual(program.end()[1], 1)
        password = self.cluster.password()
        program = self.start(XDG_CONFIG_HOME=str(self.cluster.dir / "nobody"), DET_USER="admin", DET_PASS=password)
        self.assertEqual(program.tell("go"), "step 1")
        self.assertEqual(program.end(), ("", 0))


class DetachedTls(unittest.TestCase):
    """The same over TLS with the authority that the program is given."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, tls=True)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.storage = cls.cluster.dir / "checkpoints"

    def test_a_trusted_master_gets_reports_also_after_a_restart(self):
        program = Program(self.cluster, self.storage)
        self.addCleanup(program.kill)
        self.assertTrue(program.experiment, program.first)
        self.assertTrue(self.cluster.url.startswith("https://"))
        self.assertEqual(program.tell("validate"), "step 1")
        saved = program.tell("save").split()
        self.assertEqual(program.process.stdout.readline(), "step 2\n")
        self.cluster.kill_master()
        self.cluster.start_master()
        self.assertEqual(program.tell("validate"), "step 3")
        self.assertEqual(program.end(), ("", 0))
        trial = self.cluster.trial(program.trial)
        self.assertEqual((trial["state"], trial["latestCheckpointUuid"]), ("STATE_COMPLETED", saved[1]))
        self.assertEqual([steps for steps, _ in self.cluster.metrics(program.trial, "validation")], [1, 3])

    def test_a_master_of_another_authority_gets_no_report(self):
        foreign, key = self.cluster.dir / "foreign.pem", self.cluster.dir / "foreign.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", foreign, "-days", "1",
                        "-subj", "/CN=somebody"], check=True, capture_output=True)
        before = len(self.cluster.det_json("experiment", "list", "--all", "--json"))
        program = Program(self.cluster, self.storage, {"DET_MASTER_CERT_FILE": str(foreign)})
        self.addCleanup(program.kill)
        self.assertIn("error: detached mode:", program.first)
        self.assertEqual(program.end()[1], 1)
        self.assertEqual(len(self.cluster.det_json("experiment", "list", "--all", "--json")), before)


if __name__ == "__main__":
    unittest.main()
