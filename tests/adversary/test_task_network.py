"""Tasks with a network of their own (task_network: cluster): what they reach, and what still works for them."""
import json
import os
import pathlib
import socket
import threading
import unittest

from cluster import Cluster, free_port, wait_until
from test_main_job import HERE as E2E, command, tiny

BUILD = os.environ["DET_E2E_BUILD"]
HERE = pathlib.Path(__file__).resolve().parent
CLOSED = ["--sandbox", "required", "--task-network", "cluster"]
# A machine without a gateway or without IPv6 refuses some.
MIN_SUCCEED_WITHOUT = 9


def machine_address():
    """An address of this machine that is not loopback; that of loopback if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


class Services:
    """Services of the machine that a task must not reach."""

    def __init__(self, test):
        self.test, self.ended = test, threading.Event()
        test.addCleanup(self.ended.set)
        self.targets = {"service": self.serve(socket.AF_INET, ("127.0.0.1", 0))[1],
                        "wide": self.serve(socket.AF_INET, ("0.0.0.0", 0))[1],
                        "service6": self.serve(socket.AF_INET6, ("::1", 0))[1] if socket.has_ipv6 else 1,
                        "machine": machine_address(), "callback": free_port(),
                        "abstract": f"det-probe-{os.getpid()}-{id(self)}"}
        self.serve(socket.AF_UNIX, "\0" + self.targets["abstract"])
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        test.addCleanup(datagrams.close)
        datagrams.bind(("127.0.0.1", 0))
        self.targets["datagrams"] = datagrams.getsockname()[1]
        threading.Thread(target=self.echo, args=(datagrams,), daemon=True).start()
        threading.Thread(target=self.call, daemon=True).start()

    def serve(self, family, address):
        try:
            server = socket.socket(family, socket.SOCK_STREAM)
            self.test.addCleanup(server.close)
            server.bind(address)
        except OSError:
            return None, 1
        server.listen(64)
        return server.getsockname()

    def echo(self, datagrams):
        while not self.ended.is_set():
            try:
                _, sender = datagrams.recvfrom(100)
                datagrams.sendto(b"pong", sender)
            except OSError:
                return

    def call(self):
        """Connects to the port that the task may have taken on the machine."""
        while not self.ended.wait(0.1):
            try:
                socket.create_connection(("127.0.0.1", self.targets["callback"]), timeout=1).close()
            except OSError:
                continue


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class TaskNetwork(unittest.TestCase):
    def start(self, options, **more):
        cluster = Cluster(BUILD, **more)
        cluster.__enter__()
        self.addCleanup(cluster.close)
        cluster.start_agent(slots=2, options=options)
        return cluster

    def run_probes(self, cluster):
        targets = {**Services(self).targets, "master_port": cluster.port, "other_task": free_port()}
        other = cluster.det("cmd", "run", "-d", "--config", "resources.slots=0", "python3", "-m", "http.server",
                            targets["other_task"], "--bind", "127.0.0.1").strip()
        wait_until("the other task", lambda: cluster.det_json("command", "describe", other, "--json")["state"] == "STATE_RUNNING")
        done = cluster.run_det("command", "run", "-c", HERE / "fixtures", "python3", "network_probes.py", json.dumps(targets))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        id = done.stdout.split("(id: ", 1)[1].split(")")[0]
        lines = [json.loads(line)["log"] for line in
                 cluster.det("cmd", "logs", id, "--json", "--source", "task").splitlines()]
        results = json.loads(next(line for line in lines if line.startswith("{")))
        self.assertEqual(results.pop("master"), 200)
        return results

    def test_no_probe_reaches_beyond_the_master_and_the_same_probes_do_without(self):
        inside = self.run_probes(self.start(CLOSED))
        self.assertEqual([name for name, refusal in inside.items() if refusal is None], [], inside)
        outside = self.run_probes(self.start(["--sandbox", "off"]))
        self.assertEqual(set(outside), set(inside))
        refused = {name: refusal for name, refusal in outside.items() if refusal is not None}
        print(f"{len(inside)} network probes: 0 succeed with a network of its own, "
              f"{len(outside) - len(refused)} without a sandbox; refused by the machine: {refused}")
        self.assertGreaterEqual(len(outside) - len(refused), MIN_SUCCEED_WITHOUT, refused)

    def test_a_trial_trains_reports_and_survives_a_restart_of_agent_and_master(self):
        cluster = self.start(CLOSED)
        id = cluster.create(E2E / "fixtures" / "tiny", tiny(2000))
        trial = cluster.trial_id(id)
        wait_until("the first metrics", lambda: cluster.metrics(trial, "training"))
        cluster.kill_agent()
        cluster.kill_master()
        cluster.start_master()
        cluster.start_agent(slots=2, options=CLOSED)
        cluster.wait_state(id, "COMPLETED")
        self.assertEqual(cluster.trial(trial)["restarts"], 0)

    def test_a_trial_verifies_the_master_through_the_relay(self):
        cluster = self.start(CLOSED, tls=True)
        cluster.wait_state(cluster.create(E2E / "fixtures" / "tiny", tiny(100)), "COMPLETED")

    def test_a_trial_over_two_agents_is_refused_with_the_setting(self):
        cluster = self.start(CLOSED)
        cluster.start_agent("a2", slots=2, options=CLOSED)
        (cluster.dir / "empty").mkdir()
        id = cluster.create(cluster.dir / "empty", command("true", resources="{slots_per_trial: 4}", max_restarts=5))
        cluster.wait_state(id, "ERROR")
        trial = cluster.trial_id(id)
        self.assertIn("task_network: cluster", cluster.logs(trial))
        self.assertEqual(cluster.trial(trial)["restarts"], 0)


if __name__ == "__main__":
    unittest.main()
