"""Tests that every engine passes which runs agents as its jobs."""
from cluster import wait_until
from test_main_job import command

IDLE = 3  # seconds until an idle pilot is released


class PilotTests:
    """Mixin of a TestCase with `cluster`, `empty` (a model directory) and jobs(), the names of jobs that have not ended."""

    def create(self, line, slots=1):
        return self.cluster.create(self.empty, command(line, resources=f"{{slots_per_trial: {slots}}}"))

    def explanation(self, id):
        return self.cluster.det("explain", "experiment", id)

    def end(self, id):
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")

    def end_all(self):
        for experiment in self.cluster.det_json("experiment", "list", "--all", "--json"):
            if experiment["state"] not in ("COMPLETED", "CANCELED", "ERROR"):
                self.end(str(experiment["id"]))

    def test_a_queued_trial_runs_on_a_pilot_that_leaves_when_it_is_idle(self):
        id = self.create("true")
        self.cluster.wait_state(id, "COMPLETED")
        wait_until("the pilot to leave", lambda: not self.jobs(), timeout=IDLE + 30)

    def test_a_gang_runs_on_the_nodes_of_one_pilot(self):
        id = self.create("det-launch -- sh -c 'echo I am $RANK of $WORLD_SIZE on node $GROUP_RANK'", slots=4)
        self.cluster.wait_state(id, "COMPLETED")
        self.assertIn("I am 3 of 4 on node 1", self.cluster.logs(self.cluster.trial_id(id)))
