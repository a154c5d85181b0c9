"""A trial that may write to the checkpoint storage puts symbolic links there and asks the master for the files, or waits
for a user who copies them; and a checkpoint that is larger than the memory of its reader."""
import json
import os
import resource
import secrets
import subprocess
import unittest

from attacker import Attacker
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
UUID = "0d9a3c6e-52c4-4d0e-9a55-%012x"
LARGE_BYTES = 192 << 20
MEMORY_LIMIT = 128 << 20  # Bytes of private memory of det.


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

    def stored(self, number, **files):
        """A checkpoint with files (bytes) and links (paths), reported with their sizes. Returns its id."""
        uuid = UUID % number
        (self.storage / uuid).mkdir(parents=True)
        sizes = {}
        for name, content in files.items():
            place = self.storage / uuid / name
            if isinstance(content, bytes):
                place.write_bytes(content)
                sizes[name] = len(content)
            else:
                place.symlink_to(content)
                sizes[name if content.is_file() else f"{name}/model"] = 4
        status, body = self.editor.report_checkpoint(self.task, uuid, sizes)
        self.assertEqual(status, 200, body)
        return uuid

    def test_a_copy_without_the_master_follows_no_link(self):
        outside = self.cluster.dir / "outside"
        outside.mkdir()
        (outside / "model").write_text("note")
        links = {"file": {"notes": outside / "model"}, "directory": {"notes": outside}}
        for number, (kind, link) in enumerate(links.items(), 6):
            with self.subTest(kind):
                uuid = self.stored(number, weights=b"mine", **link)
                target = self.cluster.dir / f"copy-of-{kind}"
                done = self.cluster.run_det("checkpoint", "download", uuid, "-o", target, "--mode", "direct")
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn("notes", done.stderr)
                self.assertFalse([each for each in target.rglob("*") if each.is_file() and each.read_text() == "note"])
        # Without a link, the copy is complete.
        target = self.cluster.dir / "copy"
        self.cluster.det("checkpoint", "download", self.stored(8, weights=b"mine"), "-o", target, "--mode", "direct")
        self.assertEqual((target / "weights").read_bytes(), b"mine")

    def test_a_download_does_not_hold_the_checkpoint_in_memory(self):
        content = secrets.token_bytes(LARGE_BYTES)
        uuid = self.stored(9, weights=content)

        def limit():
            # Threads have stacks of the size of the limit.
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))

        for mode in ("master", "direct"):
            with self.subTest(mode):
                target = self.cluster.dir / f"large-{mode}"
                done = subprocess.run([self.cluster.bin / "det", "checkpoint", "download", uuid, "-o", target, "--mode", mode],
                                      env=self.cluster.env, preexec_fn=limit, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertTrue((target / "weights").read_bytes() == content)


if __name__ == "__main__":
    unittest.main()
