"""Tests that every engine passes which runs agents as its jobs."""
from cluster import wait_until
from life_cycle import LifeCycle

IDLE = 3  # seconds until an idle pilot is released


class PilotTests(LifeCycle):
    """Mixin of a TestCase as for LifeCycle, and jobs(), the names of jobs that have not ended."""

    def explanation(self, id):
        return self.cluster.det("explain", "experiment", id)

    def end_all(self):
        for experiment in self.cluster.det_json("experiment", "list", "--all", "--json"):
            if experiment["state"] not in ("STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR"):
                self.end(str(experiment["id"]))

    def test_a_queued_trial_runs_on_a_pilot_that_leaves_when_it_is_idle(self):
        id = self.create("true")
        self.cluster.wait_state(id, "COMPLETED")
        wait_until("the pilot to leave", lambda: not self.jobs(), timeout=IDLE + 30)
