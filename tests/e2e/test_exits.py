"""Failures as reported to the user: the program's last output, memory, storage, a lost machine."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

from cluster import Cluster, wait_until
from test_main_job import command

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURE = pathlib.Path(__file__).resolve().parent / "fixtures" / "http_harness"


class Exits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("a1")
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def exit_kind(self, trial):
        token = self.cluster.det("dev", "auth-token").strip()
        _, body = self.cluster.get(f"/api/v1/trials/{trial}/allocations", token)
        return next(one["exitKind"] for one in json.loads(body)["allocations"] if one["exitKind"])

    def test_the_last_output_of_a_failed_program_is_shown_with_its_exit(self):
        id = self.cluster.create(self.empty, command("python3 -c 'raise ValueError(\"bad \" + \"rate\")'", max_restarts=0))
        self.cluster.wait_state(id, "ERROR")
        trial = self.cluster.trial_id(id)
        self.assertEqual(self.exit_kind(trial), "FAILED")
        told = self.cluster.det("trial", "describe", trial)
        self.assertRegex(told, r"Last failure: exit code 1\n(.*\n)*ValueError: bad rate\n")
        self.assertIn(f"Trial {trial}, last failure: exit code 1: ValueError: bad rate",
                      self.cluster.det("experiment", "describe", id))
        self.assertEqual(self.cluster.logs(trial).count("bad rate"), 1, "the log has it already")

    def test_a_log_policy_keeps_a_trial_off_the_agent_whose_log_matched(self):
        script = '[ "$DET_TRIAL_RUN_ID" = 1 ] && echo "Xid 79 on this machine" && exit 7; echo fine'
        id = self.cluster.create(self.empty, command(script, max_restarts=1) +
                                 "\nlog_policies: [{pattern: Xid 79, action: exclude_node}]\n")
        self.addCleanup(self.cluster.det, "experiment", "kill", id)
        trial = self.cluster.trial_id(id)
        told = wait_until("the trial to wait", lambda: [
            text for text in [self.cluster.det("explain", "trial", trial)] if "exclude a1" in text])[0]
        self.assertIn("its log policies exclude the agents that could hold it", told)
        self.cluster.start_agent("a2")
        self.addCleanup(self.cluster.stop_agent, "a2")
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        log = self.cluster.logs(trial)
        self.assertIn("therefore will not schedule on agent a1", log)
        self.assertIn("fine", log)

    def test_an_out_of_memory_kill_is_reported_with_the_limit(self):
        root = pathlib.Path("/sys/fs/cgroup/memory")
        group = (root if root.exists() else root.parent) / f"det-e2e-{os.getpid()}"
        try:
            group.mkdir()
            (group / ("memory.limit_in_bytes" if root.exists() else "memory.max")).write_text(str(200 << 20))
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")
        self.addCleanup(lambda: wait_until("the group to be empty", lambda: self.gone(group)))
        self.cluster.start_agent("small")
        self.addCleanup(self.cluster.stop_agent, "small")
        (group / "cgroup.procs").write_text(str(self.cluster.agents["small"].pid))
        self.cluster.det("agent", "disable", "a1")
        self.addCleanup(self.cluster.det, "agent", "enable", "a1")
        id = self.cluster.create(self.empty, command("python3 -c 'x = bytearray(1 << 30)'; exit $?", max_restarts=0))
        self.cluster.wait_state(id, "ERROR")
        trial = self.cluster.trial_id(id)
        self.assertEqual(self.exit_kind(trial), "OUT_OF_MEMORY")
        self.assertIn("out of memory (the limit is 200.0MB)", self.cluster.det("trial", "describe", trial))

    def test_a_trial_on_a_dead_agent_is_explained_and_its_kill_takes_seconds(self):
        cluster = self.cluster
        first_id, second_id = (cluster.create(self.empty, command("sleep 600", max_restarts=0)) for _ in range(2))
        first = cluster.trial_id(first_id)
        wait_until("the first to run", lambda: cluster.task_processes(first))
        cluster.kill_agent("a1")
        told = wait_until("its agent to be missed", lambda: [
            text for text in [cluster.det("explain", "experiment", first_id)] if "unreachable" in text])[0]
        self.assertRegex(told, rf"; trial {first} is on agent a1 \(1 slot\); agent a1 is unreachable: .*, or in \d+ s, ")
        self.assertIn("agent a1 is unreachable", cluster.det("explain", "trial", first))
        cluster.det("experiment", "kill", first_id)
        cluster.wait_state(first_id, "CANCELED", timeout=15)
        self.assertTrue(cluster.task_processes(first), "nobody was there to end it")
        # The agent must end the old trial before the slot is used again.
        cluster.start_agent("a1")
        second = cluster.trial_id(second_id)
        wait_until("the second to run", lambda: cluster.task_processes(second))
        self.assertEqual(cluster.task_processes(first), [])
        cluster.det("experiment", "kill", second_id)
        cluster.wait_state(second_id, "CANCELED", timeout=15)

    @staticmethod
    def gone(group):
        try:
            group.rmdir()
            return True
        except OSError:
            return False

    def test_a_hung_trial_is_ended_reported_and_restarted(self):
        # Writes the heartbeat of libdet, then hangs. The second run succeeds.
        script = 'touch "$DET_RUN_DIR/heartbeat"; [ "$DET_TRIAL_RUN_ID" = 1 ] && echo stuck && sleep 600; echo done'
        id = self.cluster.create(self.empty, command(script, max_restarts=1, hang_timeout=2))
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial_id(id)
        token = self.cluster.det("dev", "auth-token").strip()
        _, body = self.cluster.get(f"/api/v1/trials/{trial}/allocations", token)
        self.assertEqual(sorted(one["exitKind"] for one in json.loads(body)["allocations"]), ["HUNG", "SUCCEEDED"])
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        self.assertIn("the task hung: no batch, no report and no output for 2s (hang_timeout)",
                      self.cluster.det("trial", "describe", trial))
        self.assertRegex(self.cluster.logs(trial), r"sleep \(pid \d+\): state S")

    def test_a_full_storage_consumes_no_restart_and_the_trial_resumes_when_there_is_space(self):
        storage = self.cluster.dir / "small-storage"
        storage.mkdir()
        if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", storage],
                                              capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", storage])
        go = self.cluster.dir / "go"
        go.touch()
        with open(storage / "ballast", "wb", buffering=0) as ballast, self.assertRaises(OSError):
            while True:
                ballast.write(b"x" * 4096)
        id = self.cluster.create(FIXTURE, "\n".join([
            "name: full", "entrypoint: python3 train.py", "max_restarts: 0",
            f"hyperparameters: {{steps: 3, best: 1, go: '{go}'}}",
            "searcher: {name: single, metric: val_loss, max_length: {batches: 100}}",
            f"checkpoint_storage: {{type: shared_fs, host_path: {storage}}}", ""]))
        trial = self.cluster.trial_id(id)
        wait_until("it to be put off", lambda: "the storage was full again" in self.cluster.logs(trial), 30)
        told = self.cluster.det("trial", "describe", trial)
        self.assertIn("storage full", told)
        self.assertIn("No space left on device", told)
        (storage / "ballast").unlink()
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)

    def test_a_trial_with_a_stopped_agent_reports_the_loss_while_it_waits(self):
        self.cluster.stop_agent("a1")
        self.cluster.start_agent("a1", options=("--stop-timeout", "0s"))
        id = self.cluster.create(self.empty, command("echo up; sleep 600"))
        trial = self.cluster.trial_id(id)
        wait_until("it to run", lambda: "up" in self.cluster.logs(trial))
        self.cluster.stop_agent("a1")
        wait_until("the loss", lambda: "the agent was stopped" in self.cluster.det("trial", "describe", trial), 20)
        self.assertEqual(self.exit_kind(trial), "LOST")
        self.cluster.start_agent("a1")
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")

    def test_a_trial_that_ignores_signals_is_killed_within_15_s(self):
        id = self.cluster.create(self.empty, command("trap '' TERM; echo up; while :; do sleep 1; done"))
        trial = self.cluster.trial_id(id)
        wait_until("it to run", lambda: "up" in self.cluster.logs(trial))
        for pid in self.cluster.task_processes(trial)[1:]:
            os.kill(pid, signal.SIGSTOP)
        self.cluster.det("experiment", "kill", id)
        wait_until("its end", lambda: self.cluster.experiment(id)["state"] == "STATE_CANCELED", 13)

    def test_killing_a_trial_that_floods_its_log_completes_within_15_s(self):
        id = self.cluster.create(self.empty, command("trap '' TERM; echo up; while :; do echo 'a line of a flood'; done"))
        trial = self.cluster.trial_id(id)
        wait_until("it to run", lambda: "up" in self.cluster.logs(trial, "--head", "20"))
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED", timeout=15)

    def test_a_trial_on_a_frozen_agent_is_killed_within_15_s_and_gone_when_the_agent_wakes(self):
        id = self.cluster.create(self.empty, command("echo up; sleep 600"))
        trial = self.cluster.trial_id(id)
        wait_until("it to run", lambda: "up" in self.cluster.logs(trial))
        agent = self.cluster.agents["a1"].pid
        os.kill(agent, signal.SIGSTOP)
        self.addCleanup(os.kill, agent, signal.SIGCONT)
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED", timeout=15)
        os.kill(agent, signal.SIGCONT)
        wait_until("its processes to be gone", lambda: not self.cluster.task_processes(trial))


if __name__ == "__main__":
    unittest.main()
