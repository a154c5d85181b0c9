"""A real agent and master with a stand-in of NVML: errors of GPUs, checks before the return of a slot, readings."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from cluster import Cluster, wait_until
from test_prometheus import parse, value

BUILD = os.environ["DET_E2E_BUILD"]
GPUS = ["GPU-00000000-0000-0000-0000-00000000000a", "GPU-00000000-0000-0000-0000-00000000000b"]
READINGS = {"utilization": 37, "memory_used": 3 << 30, "memory_total": 80 << 30, "temperature": 61, "power": 412500,
            "sm_clock": 1980, "memory_clock": 2619, "slowdown": 0x4, "ecc": 2, "remap_pending": 0, "remap_failed": 0}


class GpuFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.script = cls.cluster.dir / "nvml"
        cls.script.mkdir()
        (cls.script / "gpus").write_text("".join(f"{gpu}\n" for gpu in GPUS))
        os.mkfifo(cls.script / "events")
        for gpu in (0, 1):
            cls.set_readings(gpu)
        # The check of the training library, on the CPU, unless the test has broken the device.
        cls.broken = cls.cluster.dir / "broken"
        check = cls.cluster.dir / "check"
        check.write_text(f"#!/bin/sh\n[ ! -e {cls.broken}-$CUDA_VISIBLE_DEVICES ] || {{ echo a matrix product is wrong; exit 1; }}\n"
                         f"exec {pathlib.Path(BUILD).resolve()}/bin/det-harness --check-device cpu\n")
        check.chmod(0o755)
        cls.options = ("--slot-type", "cuda", "--device-check", str(check))
        cls.environment = {"LD_LIBRARY_PATH": f"{pathlib.Path(BUILD).resolve()}/tests/scripted_nvml", "DET_SCRIPTED_NVML": str(cls.script)}
        cls.cluster.start_agent(slots=0, options=cls.options, environment=cls.environment)
        status, body = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, body
        cls.token = json.loads(body)["token"]

    @classmethod
    def set_readings(cls, gpu, **changes):
        lines = "".join(f"{key} {number}\n" for key, number in {**READINGS, **changes}.items())
        (cls.script / f"{gpu}.new").write_text(lines)
        (cls.script / f"{gpu}.new").rename(cls.script / str(gpu))

    def event(self, gpu, kind, data):
        with open(self.script / "events", "w") as fifo:
            fifo.write(f"{gpu} {kind} {data}\n")

    def slots(self):
        return {slot["id"]: slot for slot in self.cluster.det_json("slot", "list", "--json")}

    def problem(self, slot):
        return self.slots()[str(slot)].get("problem", "")

    def wait_healthy(self):
        wait_until("all slots to be in service", lambda: not any(slot.get("problem") for slot in self.slots().values()))

    def prometheus(self):
        status, text = self.cluster.get("/prom/det-state-metrics", self.token)
        self.assertEqual(status, 200, text)
        return parse(text)

    def test_an_error_of_the_hardware_takes_a_slot_out_of_service_until_its_check_passes(self):
        self.event(1, 8, 79)
        wait_until("slot 1 to be out of service", lambda: self.problem(1))
        self.assertEqual(self.problem(1), "GPU error Xid 79 (fallen off the bus); see dmesg")
        self.assertEqual(self.problem(0), "")
        self.assertTrue(self.slots()["1"]["enabled"], "the setting of the administrators is another one")
        self.assertRegex(self.cluster.det("slot", "list"), r"Problem\n(.*\n)*.*GPU error Xid 79")
        self.assertIn("slot 1: GPU error Xid 79", self.cluster.det("agent", "list"))
        labels = dict(agent="a1", pool="default")
        self.assertEqual([value(self.prometheus(), "det_slot_out_of_service", slot=str(slot), gpu_uuid=GPUS[slot], **labels)
                          for slot in (0, 1)], [0, 1])
        # One command runs on the other slot, the second one waits, with the reason.
        first = self.cluster.det("cmd", "run", "-d", "sleep", "600").strip()
        second = self.cluster.det("cmd", "run", "-d", "sleep", "600").strip()
        wait_until("the first command to run", lambda: self.slots()["0"].get("container"))
        status, text = self.cluster.get(f"/api/v1/commands/{second}/explain", self.token)
        self.assertEqual(status, 200, text)
        self.assertIn("slot 1 of agent a1 is out of service: GPU error Xid 79", json.loads(text)["explanation"]["text"])
        self.assertFalse(self.slots()["1"].get("container"))
        # A check that fails keeps it out.
        broken = pathlib.Path(f"{self.broken}-{GPUS[1]}")
        broken.touch()
        self.assertIn("It takes no work yet: GPU error Xid 79", self.cluster.det("slot", "enable", "a1", "1"))
        wait_until("the check to fail", lambda: self.problem(1).endswith("; the check failed: a matrix product is wrong"))
        self.assertFalse(self.slots()["1"].get("container"))
        broken.unlink()
        self.cluster.det("slot", "enable", "a1", "1")
        wait_until("the second command to run", lambda: self.slots()["1"].get("container"))
        self.assertEqual(self.slots()["1"]["container"]["taskId"], second)
        self.assertEqual(self.problem(1), "")
        for command in (first, second):
            self.cluster.det("cmd", "kill", command)

    def test_an_error_of_a_program_retires_nothing(self):
        for xid in (13, 31, 43, 45):
            self.event(0, 8, xid)
            wait_until(f"Xid {xid} in the agent's log", lambda: re.search(
                rf"error of a GPU.*xid=.?{xid}\b", (self.cluster.dir / "agent-a1.log").read_text()))
        # Events are in order: after one of the other GPU has arrived, these had no effect.
        self.event(1, 2, 0)
        wait_until("slot 1 to be out of service", lambda: self.problem(1) == "uncorrectable memory error of the GPU")
        self.assertEqual(self.problem(0), "")
        self.cluster.det("slot", "enable", "a1", "1")
        self.wait_healthy()

    def test_a_failure_on_a_device_with_a_fault_consumes_no_restart(self):
        config = "name: fault\nentrypoint: [sh, {script}]\nmax_restarts: 0\nsearcher: {{name: single, metric: x, max_length: {{batches: 1}}}}\n"
        script = self.cluster.dir / "fails.sh"
        # The first run fails at once; the driver reports the error only through its counter, by the next reading.
        script.write_text(f"sed -i 's/^ecc .*/ecc 3/' {self.script}/$(cat {self.script}/slot-of-$CUDA_VISIBLE_DEVICES)\n"
                          f"[ $DET_TRIAL_RUN_ID -gt 1 ]\n")
        for slot, gpu in enumerate(GPUS):
            (self.script / f"slot-of-{gpu}").write_text(str(slot))
        (self.cluster.dir / "empty").mkdir()
        id = self.cluster.create(self.cluster.dir / "empty", config.format(script=script))
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial(self.cluster.trial_id(id))
        self.assertEqual((trial["restarts"], trial["run"]), (0, 2))
        self.assertRegex(self.cluster.logs(self.cluster.trial_id(id)),
                         r"exit code 1, agent a1 has a fault on slot \d: uncorrectable memory error of the GPU")
        for slot in (0, 1):
            self.cluster.det("slot", "enable", "a1", slot)
            self.set_readings(slot)
        self.wait_healthy()

    def test_a_slot_that_was_disabled_is_checked_before_it_takes_work(self):
        broken = pathlib.Path(f"{self.broken}-{GPUS[0]}")
        broken.touch()
        self.cluster.det("slot", "disable", "a1", "0")
        self.assertIn("It takes no work yet: its device is", self.cluster.det("slot", "enable", "a1", "0"))
        wait_until("the check to fail", lambda: self.problem(0) == "the check failed: a matrix product is wrong")
        broken.unlink()
        self.cluster.det("slot", "enable", "a1", "0")
        self.wait_healthy()

    def test_a_fault_survives_a_restart_of_the_agent_and_of_the_master(self):
        self.event(1, 8, 119)
        wait_until("slot 1 to be out of service", lambda: self.problem(1))
        self.cluster.kill_agent()
        self.cluster.kill_master()
        self.cluster.start_master()
        self.cluster.start_agent(slots=0, options=self.options, environment=self.environment)
        self.assertIn("GPU error Xid 119", self.problem(1))
        self.cluster.det("slot", "enable", "a1", "1")
        self.wait_healthy()

    def test_a_pending_reset_keeps_a_slot_out_of_service_while_it_lasts(self):
        self.set_readings(0, remap_pending=1)
        wait_until("slot 0 to be out of service", lambda: self.problem(0))
        self.assertIn("the GPU needs a reset", self.problem(0))
        self.cluster.det("slot", "enable", "a1", "0")
        self.assertIn("the GPU needs a reset", self.problem(0))
        self.set_readings(0)

        def back():
            self.cluster.det("slot", "enable", "a1", "0")
            return not self.problem(0)
        wait_until("slot 0 to be in service after its reset", back)

    def test_the_check_of_the_training_library_passes_on_the_cpu_and_fails_without_a_gpu(self):
        def check(device):
            return subprocess.run([f"{BUILD}/bin/det-harness", "--check-device", device], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        good = check("cpu")
        self.assertEqual((good.returncode, good.stdout), (0, "the cpu device is good: 2 matrix products, 16777216 bytes copied\n"), good.stderr)
        missing = check("cuda")
        self.assertEqual((missing.returncode, missing.stdout), (1, ""))
        self.assertRegex(missing.stderr, r"^LibTorch finds no usable CUDA device \(LibTorch .*\); check nvidia-smi\n$")
        self.assertEqual(check("gpu").returncode, 2)

    def test_readings_of_the_gpus_are_in_prometheus_and_in_the_list_of_slots(self):
        labels = dict(agent="a1", pool="default", slot="1", gpu_uuid=GPUS[1])
        self.set_readings(1, temperature=64)
        wait_until("a reading", lambda: value(self.prometheus(), "det_gpu_temperature_celsius", **labels) == 64)
        metrics = self.prometheus()
        self.assertEqual({name: value(metrics, name, **labels) for name in metrics if name.startswith("det_gpu_") and name != "det_gpu_uuid_container_id"},
                         {"det_gpu_utilization_ratio": 0.37, "det_gpu_memory_used_bytes": 3 << 30,
                          "det_gpu_memory_total_bytes": 80 << 30, "det_gpu_temperature_celsius": 64,
                          "det_gpu_power_watts": 412.5, "det_gpu_sm_clock_hertz": 1980e6, "det_gpu_memory_clock_hertz": 2619e6})
        reading = self.slots()["1"]["reading"]
        self.assertEqual((reading["temperature"], reading["utilization"], reading["slowdown"]), (64, 0.37, "power cap"))


if __name__ == "__main__":
    unittest.main()
