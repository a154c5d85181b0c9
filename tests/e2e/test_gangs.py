"""Trials over several agents: one process a slot on two agents, shared failures, and explanations of the
queue."""
import json
import os
import signal
import unittest

from cluster import Cluster, processes, wait_until
from test_main_job import BUILD, HERE, command, tiny

PAIR = "{slots_per_trial: 2}"


class Gangs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        for name in ("left", "right"):
            cls.cluster.start_agent(name, slots=1)
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def create(self, line, *options, **more):
        id = self.cluster.create(self.empty, command(line, **more), *options)
        return id, self.cluster.trial_id(id)

    def sleepers(self, trial):
        found = processes()
        return [pid for pid in self.cluster.task_processes(trial) if found.get(pid, ("",))[0] == "sleep"]

    def end(self, *experiments):
        for id in experiments:
            self.cluster.det("experiment", "kill", id)
            self.cluster.wait_state(id, "CANCELED")

    def allocations(self, trial):
        status, body = self.cluster.get(f"/api/v1/trials/{trial}/allocations", self.token())
        self.assertEqual(status, 200, body)
        return json.loads(body)["allocations"]

    def token(self):
        status, body = self.cluster.post("/api/v1/auth/login", {"username": "admin", "password": self.cluster.password()})
        self.assertEqual(status, 200, body)
        return json.loads(body)["token"]

    def test_ranks_are_numbered_over_both_agents(self):
        id, trial = self.create("det-launch -- sh -c 'echo I am $RANK of $WORLD_SIZE, node $GROUP_RANK, at $MASTER_PORT'",
                                resources=PAIR)
        self.cluster.wait_state(id, "COMPLETED")
        log = self.cluster.logs(trial)
        ports = [line.split(" at ")[1] for line in log.splitlines() if "I am " in line]
        self.assertIn("I am 0 of 2, node 0", log)
        self.assertIn("I am 1 of 2, node 1", log)
        self.assertEqual(len(ports), 2)
        self.assertEqual(ports[0], ports[1])
        parts = self.allocations(trial)[0]["parts"]
        self.assertEqual([part["agentId"] for part in parts], ["left", "right"])

    def test_a_dead_rank_ends_all_with_its_reason_and_the_trial_runs_again(self):
        id, trial = self.create("det-launch -- sleep 600", resources=PAIR)
        wait_until("both ranks to run", lambda: len(self.sleepers(trial)) == 2)
        before = self.sleepers(trial)
        os.kill(before[0], signal.SIGKILL)
        wait_until("the other rank to end", lambda: not set(self.sleepers(trial)) & set(before), timeout=15)
        wait_until("both ranks to run again", lambda: len(set(self.sleepers(trial)) - set(before)) == 2)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        first = self.allocations(trial)[-1]
        self.assertEqual(first["exitKind"], "FAILED")
        self.assertIn("137", first["exitMessage"])
        self.end(id)

    def test_a_lost_agent_ends_the_gang_without_consuming_a_restart(self):
        id, trial = self.create("det-launch -- sleep 600", resources=PAIR)
        wait_until("both ranks to run", lambda: len(self.sleepers(trial)) == 2)
        before = self.sleepers(trial)
        self.cluster.stop_agent("right")
        wait_until("the whole gang to end", lambda: not self.sleepers(trial), timeout=30)
        self.cluster.start_agent("right", slots=1)
        wait_until("both ranks to run again", lambda: len(set(self.sleepers(trial)) - set(before)) == 2)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)
        self.end(id)

    def test_a_gang_survives_a_dead_master(self):
        id, trial = self.create("det-launch -- sleep 600", resources=PAIR)
        wait_until("both ranks to run", lambda: len(self.sleepers(trial)) == 2)
        before = self.sleepers(trial)
        self.cluster.kill_master()
        self.cluster.start_master()
        wait_until("both agents to be back", lambda: sum(
            agent.get("connected", False) for agent in self.cluster.det_json("agent", "list", "--json")) == 2)
        self.assertEqual(self.sleepers(trial), before)
        self.end(id)
        self.assertEqual(self.sleepers(trial), [])

    def test_a_waiting_gang_is_explained_and_can_be_moved(self):
        runs, trial = self.create("det-launch -- sleep 600", resources=PAIR)
        wait_until("both ranks to run", lambda: len(self.sleepers(trial)) == 2)
        first, _ = self.create("true", resources=PAIR)
        second, waits = self.create("true", resources=PAIR)
        told = self.cluster.det("explain", "trial", waits)
        self.assertIn(f"trial {trial}", told)
        explained = self.cluster.det_json("explain", "experiment", second, "--json")["explanation"]
        self.assertEqual(explained["reason"], "BUSY")
        self.assertEqual(explained["position"], 2)
        self.assertIn("PRIORITY", [each["what"] for each in explained["suggestions"]])
        order = lambda: [int(job["entityId"]) for job in self.cluster.det_json("job", "list", "--json")]
        self.assertEqual(order(), [runs, first, second])
        self.cluster.det("job", "update", second, "--ahead-of", first)
        self.assertEqual(order(), [runs, second, first])
        self.cluster.kill_master()
        self.cluster.start_master()
        self.assertEqual(order(), [runs, second, first])
        self.cluster.det("job", "update", first, "--priority", 100, expect=2)
        self.cluster.det("job", "update", first, "--priority", 1)  # Preempts the running trial.
        self.cluster.wait_state(first, "COMPLETED")
        self.assertIn("has ended", self.cluster.det("explain", "experiment", first))
        self.end(second, runs)

    def test_a_request_that_never_fits_is_refused_with_shapes_that_fit(self):
        path = self.cluster.dir / "config.yaml"
        for resources, mend in (("{slots_per_trial: 3}", "would fit: 1 slot on one agent, or 2 over 2 agents"),
                                ("{slots_per_trial: 2, is_single_node: true}", "2 over 2 agents")):
            path.write_text(command("true", resources=resources))
            done = self.cluster.run_det("experiment", "create", path, self.empty)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(mend, done.stdout + done.stderr)

    def test_a_disabled_agent_stays_disabled_over_a_restart(self):
        self.cluster.det("agent", "disable", "left")
        self.cluster.det("slot", "disable", "right", 0)
        id, trial = self.create("true")
        self.cluster.kill_master()
        self.cluster.start_master()
        wait_until("the agents to be back", lambda: sum(
            agent.get("connected", False) for agent in self.cluster.det_json("agent", "list", "--json")) == 2)
        agents = {agent["id"]: agent for agent in self.cluster.det_json("agent", "list", "--json")}
        self.assertFalse(agents["left"]["enabled"])
        self.assertEqual({(slot["enabled"], slot["draining"]) for slot in agents["left"]["slots"].values()}, {(False, False)})
        self.assertFalse(agents["right"]["slots"]["0"]["enabled"])
        self.assertIn("agent left is disabled", self.cluster.det("slot", "enable", "left", 0))
        self.assertEqual(self.allocations(trial), [])
        self.cluster.det("slot", "enable", "right", 0)
        self.cluster.wait_state(id, "COMPLETED")
        self.assertEqual(self.allocations(trial)[0]["agentId"], "right")
        self.cluster.det("agent", "enable", "left")

    @unittest.skipUnless(os.path.exists(f"{BUILD}/bin/det-harness"), "this build has no training library")
    def test_a_model_trains_over_two_agents(self):
        config = tiny(300, checkpoint_every=50, validate_every=100, resources=PAIR)
        id = self.cluster.create(HERE / "fixtures" / "tiny", config)
        trial = self.cluster.trial_id(id)
        self.cluster.wait_state(id, "COMPLETED", timeout=240)
        losses = [metrics["validation_loss"] for _, metrics in self.cluster.metrics(trial, "validation")]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])
        self.assertIn("[rank=1]", self.cluster.logs(trial))
