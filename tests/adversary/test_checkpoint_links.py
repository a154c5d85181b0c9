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
