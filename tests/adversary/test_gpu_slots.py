"""A real agent and master with a stand-in of NVML: which GPUs a task gets."""
import json
import os
import pathlib
import unittest

from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]


class ScriptedGpus(unittest.TestCase):
    def start(self, gpus, values=None, options=()):
        """Starts a cluster with an agent. `gpus`, `values`: files of the stand-in."""
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
        self.cluster.start_agent(slots=0, options=("--slot-type", "cuda", *options), environment=self.environment)

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


if __name__ == "__main__":
    unittest.main()
