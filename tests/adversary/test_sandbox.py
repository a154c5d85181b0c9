"""A command tries to leave its sandbox. The same attempts are made without a sandbox, where they must succeed as far
as the machine allows: an attempt that never succeeds proves nothing."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import unittest

from cluster import Cluster, processes, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
# The rest needs devices or rights that a machine may lack.
MIN_SUCCEED_WITHOUT = 45


class Sandbox(unittest.TestCase):
    def start(self, mode):
        cluster = Cluster(BUILD, storage_paths=["checkpoints", "foreign"])
        cluster.bind_mounts = ""
        cluster.__enter__()
        self.addCleanup(cluster.close)
        for name in ("checkpoints", "foreign"):
            (cluster.dir / name).mkdir()
        cluster.dir.chmod(0o755)
        (cluster.dir / "secret").write_text("secret\n")
        shared = pathlib.Path("/dev/shm") / cluster.dir.name
        shared.write_text("")
        self.addCleanup(shared.unlink)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind("\0" + cluster.dir.name)
        listener.listen()
        os.environ["SECRET_OF_THE_AGENT"] = "hunter2"
        self.addCleanup(os.environ.pop, "SECRET_OF_THE_AGENT", None)
        cluster.start_agent(slots=2, options=["--sandbox", mode])
        return cluster

    def run_probes(self, cluster):
        # Another task with a token, in a directory of its own.
        other = cluster.det("cmd", "run", "-d", "--config", "resources.slots=0", "sleep", "600").strip()
        wait_until("the other task", lambda: cluster.det_json("command", "describe", other, "--json")["state"] == "STATE_RUNNING")
        done = cluster.run_det("command", "run", "-c", FIXTURES, "python3", "probes.py", cluster.dir,
                               cluster.agents["a1"].pid)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        id = done.stdout.split("(id: ", 1)[1].split(")")[0]
        lines = [json.loads(line)["log"] for line in
                 cluster.det("cmd", "logs", id, "--json", "--source", "task").splitlines()]
        return json.loads(next(line for line in lines if line.startswith("{")))

    @unittest.skipUnless(os.geteuid() == 0 and os.uname().machine == "x86_64", "needs root on x86-64")
    def test_no_probe_succeeds_in_a_sandbox_and_the_same_probes_succeed_without(self):
        inside = self.run_probes(self.start("required"))
        self.assertEqual([name for name, refusal in inside.items() if refusal is None], [], inside)
        outside = self.run_probes(self.start("off"))
        self.assertEqual(set(outside), set(inside))
        succeeded = [name for name, refusal in outside.items() if refusal is None]
        refused = {name: refusal for name, refusal in outside.items() if refusal is not None}
        print(f"{len(inside)} probes: 0 succeed in a sandbox, {len(succeeded)} without; refused by the machine: {refused}")
        self.assertGreaterEqual(len(succeeded), MIN_SUCCEED_WITHOUT, refused)

    def test_an_agent_below_var_tmp_starts_tasks_in_a_sandbox(self):
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = "/var/tmp"
        cluster = self.start("required")
        done = cluster.run_det("command", "run", "sh", "-c",
                               f"pwd; echo mine > /var/tmp/a; cat /tmp/a; test ! -e {cluster.dir}/secret")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{cluster.dir}/agent-a1/", done.stdout)
        self.assertIn("mine", done.stdout)
        self.assertFalse(os.path.exists("/var/tmp/a"))

    def daemons(self, mark):
        return [pid for pid, (name, _) in processes().items() if name == mark]

    def test_a_task_that_leaves_a_daemon_behind_ends_with_it(self):
        cluster = self.start("required")
        mark = f"d{os.getpid()}"
        script = f"cp /bin/sleep /tmp/{mark}; setsid env -i /tmp/{mark} 600 & sleep 0.5"
        cluster.det("command", "run", "sh", "-c", script)
        self.assertEqual(self.daemons(mark), [])

    def test_daemons_of_a_task_end_when_its_supervisor_is_killed(self):
        cluster = self.start("required")
        mark = f"k{os.getpid()}"
        cluster.det("command", "run", "-d", "sh", "-c",
                    f"cp /bin/sleep /tmp/{mark}; setsid env -i /tmp/{mark} 600 & sleep 600")
        wait_until("the daemon", lambda: self.daemons(mark))
        for pid, (name, env) in processes().items():
            if name == "det-supervisor" and str(cluster.dir) in env:
                os.kill(pid, signal.SIGKILL)
        wait_until("the end of the daemon", lambda: not self.daemons(mark), timeout=15)

    def test_a_required_sandbox_that_is_not_possible_stops_the_agent(self):
        cluster = Cluster(BUILD)
        cluster.__enter__()
        self.addCleanup(cluster.close)
        # Without bubblewrap in PATH.
        done = subprocess.run([cluster.bin / "det-agent", "--master", cluster.address, "--data-dir", cluster.dir / "agent",
                               "--sandbox", "required"], env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bubblewrap", done.stderr)


if __name__ == "__main__":
    unittest.main()
