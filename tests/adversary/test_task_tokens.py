"""A trial calls every route of the API with the token of its allocation, in each header that takes a token, about
objects of another workspace and about its own."""
import json
import os
import unittest
import urllib.error
import urllib.request

from attacker import Attacker
from cluster import Cluster, processes, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
CONFIG = ("name: token\nentrypoint: [sleep, \"600\"]\nsearcher: {name: single, metric: loss, max_length: {batches: 1}}\n"
          "workspace: WORKSPACE\nproject: attacks\n")
ALLOCATION = "Grpc-Metadata-x-allocation-token"
# Routes that need no token.
OPEN = {"/api/v1/master", "/api/v1/auth/login"}
# A request that names no object: an empty list of log lines.
NOTHING_NAMED = {"post /api/v1/task/logs"}
MIN_ROUTES = 200


class TaskTokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=3)
        cls.own, cls.other, cls.last = cls.start("mallory"), cls.start("victim"), cls.start("late")
        cls.token = cls.own["token"]
        with urllib.request.urlopen(cls.cluster.url + "/api/v1/api.swagger.json", timeout=30) as answer:
            cls.routes = [(path, verb) for path, verbs in json.load(answer)["paths"].items() for verb in verbs]

    @classmethod
    def start(cls, name):
        """Ids and the token of a running trial of a new editor."""
        Attacker.editor(cls.cluster, name)
        (cls.cluster.dir / "empty").mkdir(exist_ok=True)
        experiment = cls.cluster.create(cls.cluster.dir / "empty", CONFIG.replace("WORKSPACE", name))
        trial = cls.cluster.trial_id(experiment)
        wait_until("the trial", lambda: cls.cluster.task_processes(trial))
        pid = cls.cluster.task_processes(trial)[0]
        environment = dict(line.split("=", 1) for line in processes()[pid][1].split("\0") if "=" in line)
        workspace = next(each["id"] for each in cls.cluster.det_json("workspace", "list", "--json") if each["name"] == name)
        return {"trial": trial, "run": trial, "experiment": experiment, "task": environment["DET_TASK_ID"],
                "allocation": environment["DET_ALLOCATION_ID"], "workspace": workspace,
                "token": environment["DET_SESSION_TOKEN"]}

    def call(self, verb, path, headers):
        request = urllib.request.Request(self.cluster.url + path, method=verb.upper(), headers=headers,
                                         data=None if verb == "get" else b"{}")
        if verb != "get":
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    @staticmethod
    def filled(path, ids):
        """The path with ids in place of its parameters."""
        for name in [part.strip("{}") for part in path.split("/") if "{" in part]:
            plain = name.replace("_", "").lower()
            value = next((ids[kind] for kind in ("trial", "run", "task", "allocation", "experiment", "workspace")
                          if kind in plain), 1)
            path = path.replace("{" + name + "}", str(value))
        return path

    def admitted(self, ids, headers):
        """The routes that do what the caller asks for."""
        statuses = {f"{verb} {path}": self.call(verb, self.filled(path, ids), headers) for path, verb in self.routes
                    if path not in OPEN}
        self.assertGreater(len(statuses), MIN_ROUTES)
        return {route for route, status in statuses.items() if status < 400}

    def test_a_token_of_a_task_is_no_token_of_a_user(self):
        self.assertEqual(self.admitted(self.own, {"Authorization": f"Bearer {self.token}"}), set())

    def test_a_token_of_a_task_opens_nothing_of_another_task(self):
        self.assertEqual(self.admitted(self.other, {ALLOCATION: f"Bearer {self.token}"}), NOTHING_NAMED)

    def test_a_token_of_a_task_opens_the_calls_of_its_own_trial_only(self):
        found = self.admitted(self.own, {ALLOCATION: f"Bearer {self.token}"})
        self.assertEqual({route for route in found - NOTHING_NAMED
                          if not route.split("/api/v1/")[1].startswith(("trials/", "allocations/", "runs/", "tasks/"))}, set())
        self.assertGreaterEqual(len(found), 12)
        self.assertFalse([route for route in found if route.startswith(("delete", "put", "patch"))])

    def test_a_token_of_an_ended_task_opens_nothing(self):
        self.cluster.det("experiment", "kill", self.last["experiment"])
        self.cluster.wait_state(self.last["experiment"], "CANCELED")
        self.assertEqual(self.admitted(self.last, {ALLOCATION: f"Bearer {self.last['token']}"}), set())


if __name__ == "__main__":
    unittest.main()
