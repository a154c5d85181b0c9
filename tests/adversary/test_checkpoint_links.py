"""A trial that may write to the checkpoint storage puts symbolic links there and asks the master for the files."""
import json
import os
import unittest

from attacker import Attacker
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
UUID = "0d9a3c6e-52c4-4d0e-9a55-%012x"


class CheckpointLinks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.storage = cls.cluster.dir / "master" / "checkpoints"
        cls.editor = Attacker.editor(cls.cluster)
        status, body = cls.editor.put_experiment("links")
        assert status == 200, body
        cls.task = cls.editor.start_trial(json.loads(body)["experiment"]["id"])

    def test_a_link_in_place_of_a_file_is_not_followed(self):
        uuid = UUID % 1
        (self.storage / uuid).mkdir(parents=True)
        (self.storage / uuid / "model").write_text("mine")
        (self.storage / uuid / "password").symlink_to(self.cluster.dir / "master" / "admin-password")
        status, body = self.editor.report_checkpoint(self.task, uuid, {"model": 4, "password": 33})
        self.assertEqual(status, 200, body)
        found = self.editor.download(uuid)
        self.assertNotIn("password", found)
        self.assertEqual(found.get("model", b"mine"), b"mine")

    def reported_link(self, number, name):
        """A checkpoint with a link as its directory, to the master's data directory, with one file."""
        uuid = UUID % number
        self.storage.mkdir(exist_ok=True)
        (self.storage / uuid).symlink_to(self.cluster.dir / "master")
        status, body = self.editor.report_checkpoint(self.task, uuid, {name: 4})
        self.assertEqual(status, 200, body)
        return uuid

    def test_a_link_in_place_of_the_directory_is_not_followed(self):
        uuid = self.reported_link(2, "admin-password")
        self.assertEqual(self.editor.download(uuid), {})

    def test_a_link_in_place_of_the_directory_deletes_nothing(self):
        probe = self.cluster.dir / "master" / "probe"
        probe.write_text("keep")
        deleted = self.reported_link(3, "probe")
        newest = UUID % 4
        status, body = self.editor.report_checkpoint(self.task, newest, {"model": 4}, steps=2)
        self.assertEqual(status, 200, body)
        status, body = self.editor.call("POST", "/api/v1/checkpoints/rm", {
            "checkpointUuids": [deleted], "checkpointGlobs": ["**"]})
        self.assertNotEqual(status, 200, body)
        self.assertTrue(probe.exists())
        # The removal of the whole checkpoint removes the link.
        self.editor.call("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [deleted]})
        self.assertTrue(probe.exists())

    def test_a_link_on_the_way_to_the_storage_is_not_followed(self):
        """The configuration names a directory of the allowed one; the link is made afterwards."""
        inside = self.storage / "mine"
        self.storage.mkdir(exist_ok=True)
        status, body = self.editor.put_experiment("way", "checkpoint_storage: {storage_path: mine}")
        self.assertEqual(status, 200, body)
        task = self.editor.start_trial(json.loads(body)["experiment"]["id"])
        target = self.cluster.dir / "elsewhere"
        (target / (UUID % 5)).mkdir(parents=True)
        (target / (UUID % 5) / "model").write_text("mine")
        inside.symlink_to(target)
        status, body = self.editor.report_checkpoint(task, UUID % 5, {"model": 4})
        self.assertEqual(status, 200, body)
        self.assertEqual(self.editor.download(UUID % 5), {})
