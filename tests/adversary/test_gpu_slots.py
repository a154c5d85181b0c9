"""A real agent and master with a stand-in of NVML: which GPUs a task gets."""
import json
import os
import pathlib
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
MPS_CONTROL = pathlib.Path(__file__).resolve().parents[1] / "standins" / "fake_mps_control.sh"


class ScriptedGpus(unittest.TestCase):
    def start(self, gpus, values=None, options=(), agent=True):
        """Starts a cluster, with an agent if wanted. `gpus`, `values`: files of the stand-in."""
        self.cluster = Cluster(BUILD)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        script = self.cluster.dir / "nvml"
        script.mkdir()
        (script / "gpus").write_text("".join(f"{gpu}\n" for gpu in gpus))
        os.mkfifo(script / "events")
        for name, text in (values or {}).items():
            (script / name).write_text(text)
        self.environment = {"LD_LIBRARY_PATH": f"{pathlib.Path(BUILD).resolve()}/tests/scripted_nvml",
                            "DET_SCRIPTED_NVML": str(script)}
        self.options = ("--slot-type", "cuda", *options)
        if agent:
            self.start_agent()

    def start_agent(self, user=None):
        self.cluster.start_agent(slots=0, options=self.options, environment=self.environment, user=user)

    def share_gpus(self, gpus, *options):
        """Starts a cluster for an agent whose GPUs are two slots each."""
        self.start(gpus, options=("--slots-per-device", "2", *options), agent=False)
        programs = self.cluster.dir / "programs"
        programs.mkdir()
        (programs / "nvidia-cuda-mps-control").symlink_to(MPS_CONTROL)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        self.mps = self.cluster.dir / "agent-a1" / "mps"

    def agent_error(self):
        """Starts an agent that refuses to start. Returns its message."""
        self.cluster.launch_agent("a1", 0, self.options, self.environment)
        self.assertEqual(self.cluster.agents.pop("a1").wait(60), 1)
        return (self.cluster.dir / "agent-a1.log").read_text()

    def create(self, slots, script, **more):
        """Creates an experiment that runs a shell script on `slots` slots. Returns its id."""
        (self.cluster.dir / "empty").mkdir(exist_ok=True)
        config = {"name": "gpus", "entrypoint": ["sh", "-c", script], "max_restarts": 0, "resources": {"slots_per_trial": slots},
                  "searcher": {"name": "single", "metric": "x", "max_length": {"batches": 1}}, **more}
        return self.cluster.create(self.cluster.dir / "empty", json.dumps(config))

    def test_a_trial_of_two_slots_gets_a_pair_of_gpus_that_nvlink_connects(self):
        self.start(["GPU-a", "GPU-b", "GPU-c", "GPU-d"], {"0": "link0 2\n", "1": "link0 3\n", "2": "link0 0\n", "3": "link0 1\n"})
        id = self.create(2, "echo sees $CUDA_VISIBLE_DEVICES.")
        self.cluster.wait_state(id, "COMPLETED")
        self.assertIn("sees GPU-a,GPU-c.", self.cluster.logs(self.cluster.trial_id(id)))

    def test_a_task_gets_one_mig_device_and_several_are_refused(self):
        self.start(["GPU-a mig MIG-1 MIG-2"])
        slots = self.cluster.det_json("slot", "list", "--json")
        self.assertEqual([slot["device"]["uuid"] for slot in slots], ["MIG-1", "MIG-2"])
        one = self.create(1, "echo sees $CUDA_VISIBLE_DEVICES.")
        self.cluster.wait_state(one, "COMPLETED")
        self.assertRegex(self.cluster.logs(self.cluster.trial_id(one)), r"sees MIG-[12]\.")
        two = self.create(2, "echo starts", max_restarts=3)
        self.cluster.wait_state(two, "ERROR")
        trial = self.cluster.trial_id(two)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)
        self.assertIn("slots of agent a1 are MIG devices, of which CUDA offers a process only one and which NCCL does not "
                      "connect; set resources.slots_per_trial: 1", self.cluster.logs(trial))
        self.assertNotIn("starts", self.cluster.logs(trial))

    def test_tasks_share_a_gpu_through_mps_and_a_gang_gets_different_gpus(self):
        # Tasks of an agent of root have users of their own in the sandbox.
        self.share_gpus(["GPU-a", "GPU-b"], "--sandbox", "off")
        self.start_agent()
        slots = self.cluster.det_json("slot", "list", "--json")
        self.assertEqual([slot["device"]["uuid"] for slot in slots], ["GPU-a", "GPU-b", "GPU-a", "GPU-b"])
        daemon = (self.mps / "pipes" / "nvidia-cuda-mps-control.pid").read_text()
        hold = self.cluster.dir / "hold"
        hold.touch()
        script = ("echo $CUDA_VISIBLE_DEVICES has $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE % by $CUDA_MPS_PIPE_DIRECTORY.; "
                  f"while [ -e {hold} ]; do sleep 0.05; done; true")
        one, two = self.create(1, script), self.create(2, script)
        for id, gpus in ((one, "GPU-a"), (two, "GPU-a,GPU-b")):
            wait_until("the trial to run", lambda: f"{gpus} has 50 % by {self.mps}/pipes." in
                       self.cluster.logs(self.cluster.trial_id(id)))
        # The daemon survives an agent that is killed, as the tasks do.
        self.cluster.kill_agent()
        self.start_agent()
        self.assertEqual((self.mps / "pipes" / "nvidia-cuda-mps-control.pid").read_text(), daemon)
        hold.unlink()
        for id in (one, two):
            self.cluster.wait_state(id, "COMPLETED")
        self.cluster.stop_agent()
        self.assertEqual((self.mps / "log" / "commands").read_text().split("\n")[-2:], ["quit", ""])
        wait_until("the daemon to end", lambda: not pathlib.Path(f"/proc/{daemon.strip()}/environ").exists()
                   or not pathlib.Path(f"/proc/{daemon.strip()}/cmdline").read_bytes())

    def test_a_task_in_its_sandbox_reaches_the_mps_daemon(self):
        self.share_gpus(["GPU-a"], "--sandbox", "required")
        user = None
        if os.geteuid() == 0:
            user = 65534
            self.mps.parent.mkdir()
            os.chown(self.mps.parent, user, user)
            self.cluster.dir.chmod(0o755)  # bubblewrap of Debian 13 reads it
            (self.cluster.dir / "nvml" / "events").chmod(0o666)
            token = self.cluster.dir / "token"
            token.write_text((self.cluster.dir / "master" / "agent-join-token").read_text())
            self.options += ("--join-token-file", str(token))
            self.environment["HOME"] = str(self.mps.parent)
        self.start_agent(user)
        shared = pathlib.Path(f"/dev/shm/{self.cluster.dir.name}")
        self.addCleanup(shared.unlink, missing_ok=True)
        text = self.cluster.det("cmd", "run", "sh", "-c", f"ls $CUDA_MPS_PIPE_DIRECTORY; touch $CUDA_MPS_PIPE_DIRECTORY/client {shared}; "
                                f"ls {self.mps.parent} {self.mps}; echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE %")
        self.assertIn("nvidia-cuda-mps-control.pid", text)
        self.assertIn("50 %", text)
        self.assertTrue((self.mps / "pipes" / "client").exists())
        self.assertTrue(shared.exists())
        for hidden in ("instance", "log"):
            self.assertNotRegex(text, rf"\b{hidden}\n")

    def test_a_task_whose_slots_share_a_gpu_is_refused(self):
        self.share_gpus(["GPU-a"], "--sandbox", "off")
        self.start_agent()
        id = self.create(2, "echo starts", max_restarts=3)
        self.cluster.wait_state(id, "ERROR")
        trial = self.cluster.trial_id(id)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)
        self.assertIn("slots of agent a1 share GPU GPU-a, and NCCL needs one for each process", self.cluster.logs(trial))
        self.assertNotIn("starts", self.cluster.logs(trial))

    def test_an_agent_that_cannot_share_gpus_does_not_start(self):
        self.share_gpus(["GPU-a"])
        if os.geteuid() == 0:
            self.assertIn("MPS serves one user at a time", self.agent_error())
        self.options += ("--sandbox", "off")
        (self.cluster.dir / "programs" / "nvidia-cuda-mps-control").unlink()
        self.assertIn("slots_per_device: 2: nvidia-cuda-mps-control is not in PATH; install it", self.agent_error())


if __name__ == "__main__":
    unittest.main()
