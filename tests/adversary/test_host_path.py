"""An editor without an agent names directories of the master's machine as the storage of a detached experiment,
names PostgreSQL's directories as checkpoints, and asks for the files or their deletion."""
import json
import os
import unittest

from attacker import Attacker
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
UUID = "5f0e6a52-7d0b-4bd0-8f2b-%012x"


class HostPath(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, storage_paths=["shared"])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.shared = cls.cluster.dir / "shared"
        cls.shared.mkdir()
        cls.master = cls.cluster.dir / "master"
        cls.database = cls.master / "postgres" / "data" / "base"
        assert cls.database.is_dir(), cls.database
        cls.editor = Attacker.editor(cls.cluster)

    def refused(self, name, *lines):
        status, body = self.editor.put_experiment(name, *lines)
        self.assertEqual(status, 400, body)
        problem = json.loads(body)["error"]["details"][0]
        self.assertEqual(problem["code"], "E-CFG-SECURITY", body)
        self.assertTrue(problem["path"].startswith("checkpoint_storage"), body)
        # The message names what may be used.
        self.assertIn(str(self.shared), problem["message"])

    def test_a_directory_of_the_master_is_refused_as_shared_fs(self):
        self.refused("s1", f"checkpoint_storage: {{type: shared_fs, host_path: {self.database}}}")

    def test_a_directory_of_the_master_is_refused_as_directory(self):
        self.refused("s2", f"checkpoint_storage: {{type: directory, container_path: {self.database}}}")

    def test_dots_do_not_lead_out_of_an_allowed_directory(self):
        self.refused("dots", f"checkpoint_storage: {{type: directory, container_path: {self.shared}/../master}}")
        self.refused("sibling", f"checkpoint_storage: {{type: shared_fs, host_path: {self.shared}-2}}")

    def test_a_template_may_not_name_a_directory_of_the_master(self):
        status, body = self.editor.call("POST", "/api/v1/templates/evil", {
            "workspaceId": self.workspace_id(), "config": {
                "checkpoint_storage": {"type": "shared_fs", "host_path": str(self.database)}}})
        self.assertEqual(status, 400, body)

    def workspace_id(self):
        status, body = self.editor.call("GET", "/api/v1/workspaces?name=mallory")
        self.assertEqual(status, 200, body)
        return json.loads(body)["workspaces"][0]["id"]

    def allowed_task(self, name):
        status, body = self.editor.put_experiment(
            name, f"checkpoint_storage: {{type: shared_fs, host_path: {self.shared}}}")
        self.assertEqual(status, 200, body)
        return self.editor.start_trial(json.loads(body)["experiment"]["id"])

    def test_a_checkpoint_id_that_is_not_a_uuid_is_refused(self):
        task = self.allowed_task("ids")
        (self.shared / "16384").mkdir()
        (self.shared / "16384" / "16393").write_text("secret")
        for id in ("16384", "", "..", "a/b", (UUID % 1).upper(), UUID % 1 + "0"):
            status, body = self.editor.report_checkpoint(task, id, {"16393": 6})
            self.assertEqual(status, 400, (id, body))
            self.assertIn("UUID", body)
        self.assertEqual(self.editor.download("16384"), {})

    def test_a_file_name_that_leaves_the_checkpoint_is_refused(self):
        task = self.allowed_task("names")
        for name in ("../x", "/etc/passwd", "a/../../x", "a//b", "./a", "", "a\\b", "a\nb", "x" * 1025):
            status, body = self.editor.report_checkpoint(task, UUID % 2, {name: 1})
            self.assertEqual(status, 400, (name[:20], body))

    def test_a_patched_file_list_may_not_leave_the_checkpoint(self):
        uuid = UUID % 3
        task = self.allowed_task("patched")
        (self.shared / uuid).mkdir()
        (self.shared / "victim").write_text("keep")
        status, body = self.editor.report_checkpoint(task, uuid, {"model": 4})
        self.assertEqual(status, 200, body)
        status, body = self.editor.call("PATCH", "/api/v1/checkpoints", {
            "checkpoints": [{"uuid": uuid, "resources": {"resources": {"../victim": "4"}}}]})
        self.assertEqual(status, 400, body)
        self.assertTrue((self.shared / "victim").exists())
