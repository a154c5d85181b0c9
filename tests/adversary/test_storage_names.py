"""An editor uses storages by name and tries to reach another workspace's part, another storage, or its keys."""
import json
import os
import unittest

from attacker import Attacker
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
SECRET = "canary-of-a-storage-4711"


class StorageNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, storage_paths=())
        cls.archive = cls.cluster.dir / "archive"
        cls.archive.mkdir()
        config = cls.cluster.dir / "master.yaml"
        config.write_text(f"""
allowed_storage_hosts: 127.0.0.1
storages:
  - {{name: archive, type: shared_fs, host_path: {cls.archive}, per_workspace: true}}
  - {{name: cold, type: s3, bucket: models, endpoint_url: "http://127.0.0.1:1", access_key: k, secret_key: {SECRET}}}
""")
        cls.cluster.master_options += ["--config", str(config)]
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.editor = Attacker.editor(cls.cluster)
        cls.victim = Attacker.editor(cls.cluster, "victim")

    def put(self, who, name, storage):
        status, body = who.put_experiment(name, f"checkpoint_storage: {storage}")
        return status, json.loads(body)

    def test_each_workspace_has_its_own_part_of_a_storage(self):
        mine, others = (self.put(who, name, "{name: archive}") for who, name in
                        ((self.editor, "mine"), (self.victim, "others")))
        self.assertEqual((mine[0], others[0]), (200, 200), (mine, others))
        parts = [answer["config"]["checkpoint_storage"]["storage_path"] for _, answer in (mine, others)]
        self.assertEqual(len(set(parts)), 2, parts)
        for number, storage in enumerate((
                f"{{name: archive, type: shared_fs, host_path: {self.archive}, storage_path: {parts[1]}}}",
                f"{{name: archive, storage_path: {parts[1]}}}",
                f"{{name: archive, host_path: {self.archive}/{parts[1]}}}",
                f"{{type: shared_fs, host_path: {self.archive}, storage_path: {parts[1]}}}",
                f"{{type: directory, container_path: {self.archive}/{parts[1]}}}",
                "{name: archive, type: directory, container_path: /etc}")):
            status, body = self.put(self.editor, f"theirs-{number}", storage)
            self.assertEqual(status, 400, body)
            self.assertIn("E-CFG-SECURITY", json.dumps(body))

    def test_an_unknown_storage_is_refused_with_the_names_that_exist(self):
        status, body = self.put(self.editor, "unknown", "{name: payroll}")
        self.assertEqual(status, 400)
        self.assertIn("archive, cold", body["error"]["details"][0]["message"])

    def test_the_keys_of_a_storage_are_shown_to_nobody(self):
        # Detached: the store need not be reachable.
        status, body = self.put(self.editor, "keys", "{name: cold}")
        self.assertEqual(status, 200, body)
        id = body["experiment"]["id"]
        for text in (json.dumps(body), self.editor.call("GET", f"/api/v1/experiments/{id}")[1],
                     Attacker.admin(self.cluster).call("GET", "/api/v1/master/config")[1]):
            self.assertIn("cold", text)
            self.assertNotIn(SECRET, text)
        self.assertNotIn(SECRET, self.cluster.log_tail("master.log", 9999))
