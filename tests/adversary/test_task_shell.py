"""Users who want shells in tasks of others, shells that want out of the sandbox of their task, and terminals that want
the memory of the master."""
import json
import os
import pathlib
import subprocess
import unittest

from attacker import Attacker
from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
GROWTH = 64 << 20
FLOOD = 100 << 20


class TaskShell(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=1)
        cls.mallory = Attacker.editor(cls.cluster)
        # Every user may edit in the default workspace, so the tasks are in another one.
        cls.owner = Attacker.editor(cls.cluster, "olivia")
        cls.shell = cls.cluster.det("shell", "start", "-d", "-w", "olivia", "--config", "resources.slots=0").strip()
        wait_until("the shell's task", lambda: cls.run_as(cls.owner, "shell", "open", cls.shell, "true").returncode == 0)

    @classmethod
    def run_as(cls, user, *arguments, **options):
        return subprocess.run([BUILD + "/bin/det", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              env={**cls.cluster.env, "DET_USER_TOKEN": user.token}, stdin=subprocess.DEVNULL, **options)

    def test_a_user_of_another_workspace_does_not_learn_that_the_task_exists(self):
        unknown = "00000000-0000-4000-8000-000000000000"
        got, other = (self.run_as(self.mallory, "shell", "open", id, "id") for id in (self.shell, unknown))
        self.assertEqual((got.returncode, other.returncode, got.stdout), (1, 1, ""))
        self.assertEqual(got.stderr.replace(self.shell, "X"), other.stderr.replace(unknown, "X"))
        for verb in ("config", "kill", "logs"):
            self.assertEqual(self.run_as(self.mallory, "shell", verb, self.shell).returncode, 1)
        self.assertNotIn(self.shell, self.run_as(self.mallory, "shell", "list", "-a").stdout)

    def test_a_viewer_may_not_open_a_shell_and_sees_no_token_of_a_notebook(self):
        viewer = Attacker.editor(self.cluster, "vera")
        self.cluster.det("rbac", "assign-role", "Viewer", "-u", "vera", "-w", "olivia")
        refused = self.run_as(viewer, "shell", "open", self.shell, "id")
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("olivia", self.run_as(viewer, "workspace", "list").stdout)
        notebook = self.run_as(self.owner, "notebook", "start", "-d", "-w", "olivia", "--config", "resources.slots=0").stdout.strip()
        owned = json.loads(self.owner.call("GET", f"/api/v1/notebooks/{notebook}")[1])["notebook"]["serviceAddress"]
        seen = json.loads(viewer.call("GET", f"/api/v1/notebooks/{notebook}")[1])["notebook"]["serviceAddress"]
        self.assertIn("?token=", owned)
        self.assertEqual(seen, f"/proxy/{notebook}/")

    def test_a_shell_of_a_trial_in_a_workspace_without_rights_is_hidden(self):
        (code := self.cluster.dir / "waits").mkdir()
        (code / "wait.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(1000)\n")
        config = ("name: waits\nworkspace: olivia\nproject: attacks\nentrypoint: python3 wait.py\nmax_restarts: 0\n"
                  "resources: {slots_per_trial: 0}\n"
                  "searcher: {name: single, metric: loss, max_length: {batches: 10}}\n")
        trial = self.cluster.trial_id(self.cluster.create(code, config))
        wait_until("the trial", lambda: "up" in self.cluster.logs(trial))
        self.assertEqual(self.run_as(self.owner, "trial", "shell", trial, "echo", "in").stdout, "in\n")
        refused = self.run_as(self.mallory, "trial", "shell", trial, "id")
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("not found", refused.stderr)

    def test_a_shell_ends_with_the_right_to_use_its_task(self):
        eve = Attacker.editor(self.cluster, "eve")
        self.cluster.det("rbac", "assign-role", "Editor", "-u", "eve", "-w", "olivia")
        child = subprocess.Popen([BUILD + "/bin/det", "shell", "open", self.shell, "sh", "-c", "echo up; sleep 1000"],
                                 env={**self.cluster.env, "DET_USER_TOKEN": eve.token}, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), b"up\n")
        self.cluster.det("rbac", "unassign-role", "Editor", "-u", "eve", "-w", "olivia")
        self.assertNotEqual(child.wait(30), 0)

    @unittest.skipIf(os.geteuid() != 0, "tasks have users of their own only if the agent is root")
    def test_a_shell_has_the_rights_of_its_task_only(self):
        secret = self.cluster.dir / "agent-a1"
        out = self.run_as(self.owner, "shell", "open", self.shell, "sh", "-c",
                          f"id -u; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; ls /root {secret} 2>&1; "
                          "ls /proc | grep -c '^[0-9]'; cat /proc/1/environ 2>&1 | head -c 100; unshare -U true 2>&1").stdout
        lines = out.splitlines()
        self.assertGreater(int(lines[0]), 1000)
        self.assertEqual([line.split()[1] for line in lines[1:4]], ["0" * 16, "1", "2"])
        self.assertIn("Permission denied", out)
        self.assertIn("Operation not permitted", out)

    def master_bytes(self):
        status = pathlib.Path(f"/proc/{self.cluster.master.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def test_a_flood_reaches_a_reader_whole_and_waits_for_one_that_does_not_read(self):
        before = self.master_bytes()
        flood = subprocess.Popen([BUILD + "/bin/det", "shell", "open", self.shell, "yes"], env=self.cluster.env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(flood.communicate)
        self.addCleanup(flood.kill)
        flood.stdout.read(1)
        # Nothing more is read of it, while another shell carries its flood.
        script = f"yes | head -c {FLOOD}"
        done = subprocess.run([BUILD + "/bin/det", "shell", "open", self.shell, "sh", "-c", script], env=self.cluster.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120)
        self.assertEqual(len(done.stdout), FLOOD)
        self.assertLess(self.master_bytes() - before, GROWTH)


if __name__ == "__main__":
    unittest.main()
