"""The HTTP API as clients of Determined 0.38 use it: contract/*.case against a real master. Every offered
endpoint of Determined's API is called at least once."""
import json
import os
import pathlib
import re
import threading
import unittest
import urllib.error
import urllib.request

import contract
from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
HERE = pathlib.Path(__file__).resolve().parent
ENDPOINTS = HERE.parent / "master" / "http" / "data" / "endpoints.tsv"
FIXTURES = HERE / "fixtures"
# Numbers of the endpoint groups that the .case files name. Calls of groups 38, 43 and 64 return 501.
NUMBERS = [str(n) for n in range(1, 66) if n != 42]


class Contract(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=2)
        cls.names = {"password": cls.cluster.password(), "place": str(cls.cluster.dir), "url": cls.cluster.url}
        status, body = cls.cluster.post("/api/v1/auth/login",
                                        {"username": "admin", "password": cls.names["password"]})
        assert status == 200, body
        cls.tokens = {"admin": json.loads(body)["token"]}
        (cls.cluster.dir / "checkpoints").mkdir()
        cls.make_done()
        cls.make_live()

    @classmethod
    def config(cls, *lines):
        return "\n".join(["max_restarts: 0",
                          f"checkpoint_storage: {{type: shared_fs, host_path: {cls.cluster.dir / 'checkpoints'}}}",
                          "searcher: {name: single, metric: val_loss, max_length: {batches: 100}}", *lines, ""])

    @classmethod
    def make_done(cls):
        """An ended experiment with metrics, logs and a checkpoint."""
        id = cls.cluster.create(FIXTURES / "http_harness", cls.config(
            "name: done", "labels: [one]", "entrypoint: python3 train.py", "hyperparameters: {steps: 2}"))
        cls.cluster.wait_state(id, "COMPLETED")
        trial = cls.cluster.experiment(id)["trials"][0]["id"]
        shown = json.loads(cls.cluster.get(f"/api/v1/trials/{trial}", cls.tokens["admin"])[1])["trial"]
        checkpoints = json.loads(cls.cluster.get(f"/api/v1/trials/{trial}/checkpoints", cls.tokens["admin"])[1])
        cls.names.update(experiment=id, trial=trial, task=shown["taskId"], allocation=shown["taskId"] + ".1",
                         checkpoint=checkpoints["checkpoints"][0]["uuid"])

    @classmethod
    def make_live(cls):
        """A trial that runs until the file `leave` appears, and the token of its process."""
        id = cls.cluster.create(FIXTURES / "hold", cls.config(
            "name: live", "entrypoint: python3 hold.py", f"hyperparameters: {{place: {cls.cluster.dir}}}",
            "resources: {slots_per_trial: 1}"))
        place = cls.cluster.dir / "environment"
        wait_until("the process to begin", place.exists)
        env = json.loads(place.read_text())
        cls.environment = env
        cls.tokens["allocation"] = env["DET_SESSION_TOKEN"]
        cls.names.update(live_experiment=id, live_trial=int(env["DET_TRIAL_ID"]), run=int(env["DET_TRIAL_RUN_ID"]),
                         live_task=env["DET_TASK_ID"], live_allocation=env["DET_ALLOCATION_ID"],
                         resources=env["DET_RESOURCES_ID"])

    def headers(self, caller):
        if caller == "nobody":
            return {}
        if caller == "allocation":
            return {"Grpc-Metadata-x-allocation-token": "Bearer " + self.tokens["allocation"]}
        if caller == "cookie":
            return {"Cookie": "auth=" + self.tokens["admin"]}
        return {"Authorization": "Bearer " + self.tokens[caller]}

    def ask(self, step):
        """Returns (status, text) of one step."""
        url = self.cluster.url + contract.fill(step.path, self.names)
        body = contract.fill(step.body, self.names).encode() if step.body else None
        if body is None and step.method in ("POST", "PUT", "PATCH"):
            body = b""
        request = urllib.request.Request(url, data=body, method=step.method,
                                         headers={"Content-Type": "application/json", **self.headers(step.caller)})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def check(self, step):
        where = f"{step.place} ({step.number} {step.words}): {step.method} {contract.fill(step.path, self.names)}"
        status, text = self.ask(step)
        if step.form == "until":
            def as_expected():
                nonlocal status, text
                status, text = self.ask(step)
                expected = json.loads(contract.fill(step.expected, self.names))
                return status == step.status and not contract.differences(expected, json.loads(text))
            wait_until(where, as_expected)
        self.assertEqual(status, step.status, f"{where}\n{text[:2000]}")
        if step.form == "text":
            self.assertIn(contract.fill(step.expected, self.names), text, where)
            return
        lines = text.split("\n") if step.form == "stream" else [text]
        answers = [json.loads(line) for line in lines if line]
        if step.form == "stream":
            self.assertTrue(answers, f"{where}\nno line came")
        if step.expected:
            expected = json.loads(contract.fill(step.expected, self.names))
            for answer in answers:
                wrong = contract.differences(expected, answer)
                self.assertEqual(wrong, [], f"{where}\n" + "\n".join(wrong))
        for name, path in step.keep.items():
            self.names[name] = contract.pick(answers[0], path)
            if name.startswith("token_"):
                self.tokens[name[6:]] = self.names[name]

    def run_file(self, name):
        for step in contract.read(HERE / "contract" / f"{name}.case"):
            self.check(step)

    def test_all_gather_returns_the_data_of_all_peers_and_repeats_it(self):
        answers = {}

        def gather(name):
            step = contract.Step("", "47", "", "allocation", "POST", "/api/v1/allocations/{live_allocation}/all_gather",
                                 json.dumps({"requestUuid": name, "numPeers": 2, "data": {"rank": name}}))
            answers.setdefault(name, []).append(self.ask(step))

        peers = [threading.Thread(target=gather, args=(name,)) for name in ("a", "b")]
        for peer in peers:
            peer.start()
        for peer in peers:
            peer.join(30)
        gather("a")
        expected = {"data": [{"rank": "a"}, {"rank": "b"}]}
        self.assertEqual([json.loads(text) for name in "ab" for _, text in answers[name]], [expected] * 3)

    def test_a_process_gets_the_variables_of_determineds_harness(self):
        for name in ("DET_MASTER", "DET_CLUSTER_ID", "DET_AGENT_ID", "DET_SLOT_IDS", "DET_TASK_ID", "DET_ALLOCATION_ID",
                     "DET_SESSION_TOKEN", "DET_TASK_TYPE", "DET_RESOURCES_ID", "DET_RESOURCES_TYPE", "DET_USER",
                     "DET_TRIAL_ID", "DET_EXPERIMENT_ID", "DET_TRIAL_SEED", "DET_HPARAMS", "DET_STEPS_COMPLETED",
                     "DET_TRIAL_RUN_ID", "DET_EXPERIMENT_CONFIG", "DET_CONTAINER_ID", "C10D_PORT",
                     "INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2"):
            self.assertIn(name, self.environment)
        self.assertEqual(self.environment["DET_MASTER"], self.cluster.url)
        self.assertNotIn("DET_USER_TOKEN", self.environment)

    @unittest.skipUnless(os.geteuid() == 0, "only root shows a task its own /run/determined")
    def test_a_process_gets_the_files_of_determineds_harness(self):
        info = json.loads((self.cluster.dir / "info").read_text())
        self.assertEqual(contract.differences({
            "cluster": {"master_url": self.cluster.url, "cluster_id": "<text>", "agent_id": "a1", "slot_ids": "<list>",
                        "task_id": self.names["live_task"], "allocation_id": self.names["live_allocation"],
                        "session_token": self.tokens["allocation"], "task_type": "TRIAL"},
            "trial": {"trial_id": self.names["live_trial"], "experiment_id": self.names["live_experiment"],
                      "trial_seed": "<int>", "hparams": "<object>", "config": {"checkpoint_storage": "<object>"},
                      "steps_completed": 0, "trial_run_id": self.names["run"], "debug": False},
            "rendezvous": {"container_addrs": ["<text>"], "container_rank": 0, "container_slot_counts": [1]},
            "resources": {"gpu_uuids": []}}, info), [])

    @unittest.skipUnless(os.geteuid() == 0, "only root shows a task the places of upstream's containers")
    def test_a_process_finds_model_and_storage_at_the_paths_of_determineds_containers(self):
        shown = json.loads((self.cluster.dir / "shown").read_text())
        self.assertEqual(shown["model"], ["hold.py"])
        self.assertIn(self.names["checkpoint"], shown["storage"])
        machines = pathlib.Path("/determined_shared_fs")
        self.assertNotIn(self.names["checkpoint"], [place.name for place in machines.glob("*")])

    def test_every_offered_endpoint_is_called_and_every_number_has_a_step(self):
        asked, numbers = [], set()
        for path in sorted((HERE / "contract").glob("*.case")):
            for step in contract.read(path):
                asked.append((step.method, re.sub(r"\{\w+\}", "x", step.path.split("?")[0])))
                numbers.add(step.number)
        asked.append(("POST", "/api/v1/allocations/x/all_gather"))
        numbers.add("47")
        silent = []
        for line in ENDPOINTS.read_text().split("\n"):
            cells = line.split("\t")
            if len(cells) != 3 or cells[2] != "there":
                continue
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(cells[1])) + "$")
            if not any(method == cells[0] and pattern.match(path) for method, path in asked):
                silent.append(f"{cells[0]} {cells[1]}")
        self.assertEqual(silent, [])
        self.assertEqual([n for n in NUMBERS if n not in numbers], [])


def add_case(name):
    def test(self):
        self.run_file(name)
    setattr(Contract, f"test_{name}", test)


for path in sorted((HERE / "contract").glob("*.case")):
    add_case(path.stem)
