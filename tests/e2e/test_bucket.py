"""Checkpoints in a bucket: interrupted uploads, damaged checkpoints, deletion, and secrecy of the keys."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cluster import Cluster, Failed, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "storage"))
import s3_server  # noqa: E402

BUILD = os.environ["DET_E2E_BUILD"]
BUCKET, PREFIX, STEPS = "checkpoints", "of/e2e", 6


class Bucket(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = self.enterContext(s3_server.Store(self.folder / "store"))
        self.store.make_bucket(BUCKET)
        buckets = [f"{self.store.url}/{BUCKET}", f"{self.store.url}/nobodys", f"http://127.0.0.1:1/{BUCKET}",
                   f"http://localhost:1/{BUCKET}"]
        self.cluster = Cluster(BUILD, ["--log-level", "trace", "--allowed-storage-hosts", "127.0.0.1",
                                       "--allowed-storage-buckets", ",".join(buckets)])
        self.cluster.bind_mounts += f",{self.folder}"
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        self.cluster.start_agent()
        self.folder.chmod(0o755)  # tasks read it as users of their own
        self.go, self.context = self.folder / "go", self.folder / "context"
        self.context.mkdir()

    def config(self, **changes):
        storage = {"type": "s3", "bucket": BUCKET, "prefix": PREFIX, "endpoint_url": self.store.url,
                   "access_key": s3_server.ACCESS_KEY, "secret_key": s3_server.SECRET_KEY, **changes}
        program = pathlib.Path(BUILD).resolve() / "bin" / "bucket_program"
        return "\n".join([
            "name: bucket", f"entrypoint: [{program}]", "max_restarts: 3",
            f"hyperparameters: {{steps: {STEPS}, go: '{self.go}'}}",
            "searcher: {name: single, metric: loss, max_length: {batches: 100}}",
            "checkpoint_storage: " + json.dumps(storage), ""])

    def create(self):
        return self.cluster.create(self.context, self.config())

    def checkpoints(self, experiment, *states):
        """[(steps, uuid)], newest first."""
        listed = self.cluster.det_json("experiment", "list-checkpoints", experiment, "--json")
        return sorted(((c["metadata"]["steps_completed"], c["uuid"]) for c in listed
                       if c["state"].removeprefix("STATE_") in (states or ("COMPLETED",))), reverse=True)

    def keys(self):
        return self.store.keys(BUCKET)

    def complete(self):
        return {key.split("/")[2] for key in self.keys() if key.endswith("/manifest.json")}

    def test_a_search_can_be_canceled_while_its_store_stalls(self):
        cluster, store = self.cluster, self.store
        store.faults = [{"method": "PUT", "match": "manifest", "after": 1, "kind": "slow", "seconds": 120, "count": 1},
                        {"kind": "slow", "after": 10**9, "seconds": 120, "count": 10**6}]
        id = self.create()
        wait_until("the second upload to hang", lambda: store.faults[0]["count"] == 0, 120)
        store.faults[1]["after"] = 0  # All requests stall from here.
        begin = time.monotonic()
        cluster.det("experiment", "cancel", id)
        cluster.wait_state(id, "CANCELED")
        self.assertLess(time.monotonic() - begin, 15)
        store.faults = []
        self.assertEqual(len(self.checkpoints(id)), 1)

    def test_a_trial_killed_during_an_upload_resumes_and_a_damaged_checkpoint_is_skipped(self):
        cluster, store = self.cluster, self.store
        # The manifest of the third checkpoint stalls. Without a manifest the checkpoint does not exist.
        store.faults = [{"method": "PUT", "match": "manifest", "after": 2, "kind": "slow", "seconds": 60, "count": 1}]
        id = self.create()
        trial = cluster.trial_id(id)
        wait_until("the third upload to hang", lambda: store.faults[0]["count"] == 0, 120)
        [torn] = [key for key in self.keys() if key.endswith(".partial")]
        self.assertEqual(len(self.complete()), 2)
        for pid in cluster.task_processes(trial):
            try:
                if (pathlib.Path("/proc") / str(pid) / "comm").read_text().startswith("bucket_program"):
                    os.kill(pid, signal.SIGKILL)
            except FileNotFoundError:
                continue
        wait_until("the trial to go on", lambda: "going on behind step 2 with 3" in cluster.logs(trial), 60)
        self.assertIn(torn, self.keys())  # Removed by the next sweep of the storage, or with the experiment.

        wait_until("all checkpoints but the last", lambda: (self.checkpoints(id) or [(0,)])[0][0] == STEPS - 1, 60)
        cluster.det("experiment", "pause", id)
        wait_until("the trial to leave", lambda: not cluster.task_processes(trial))
        (newest, uuid), (before, _) = self.checkpoints(id)[:2]
        weights = store.path(BUCKET, f"{PREFIX}/{uuid}/weights")
        content = bytearray(weights.read_bytes())
        content[len(content) // 2] ^= 1
        weights.write_bytes(content)
        self.go.touch()
        cluster.det("experiment", "activate", id)
        cluster.wait_state(id, "COMPLETED")
        log = cluster.logs(trial)
        self.assertIn(f"checkpoint {uuid} (step {newest}) cannot be used", log)
        self.assertIn(f"going on behind step {before}", log)
        self.assertIn(f"ended with {sum(range(STEPS + 1))}", log)

        self.download(id)
        self.nobody_is_shown_the_keys(id, trial)
        cluster.det("experiment", "delete", id, "--yes")
        self.assertEqual(self.keys(), [])

    def download(self, id):
        cluster, (steps, uuid) = self.cluster, self.checkpoints(id)[0]
        self.assertEqual(steps, STEPS)
        wanted = self.store.path(BUCKET, f"{PREFIX}/{uuid}/weights").read_bytes()
        keys = {"AWS_ACCESS_KEY_ID": s3_server.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET_KEY}
        for mode, env in (("master", {}), ("direct", keys), ("auto", {})):
            target = self.folder / f"download-{mode}"
            subprocess.run([cluster.bin / "det", "checkpoint", "download", uuid, "-o", target, "--mode", mode], check=True,
                           env={**cluster.env, **env}, timeout=60, stdout=subprocess.DEVNULL)
            self.assertEqual((target / "weights").read_bytes(), wanted, mode)
            self.assertEqual((target / "code" / "of it").read_text(), str(STEPS))
            self.assertTrue((target / "manifest.json").exists())
        refused = cluster.run_det("checkpoint", "download", uuid, "-o", self.folder / "none", "--mode", "direct")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("AWS_ACCESS_KEY_ID", refused.stderr)

    def nobody_is_shown_the_keys(self, id, trial):
        cluster, secret = self.cluster, s3_server.SECRET_KEY
        shown = [cluster.logs(trial)]
        for words in (("experiment", "config", id), ("experiment", "describe", id, "--json"),
                      ("checkpoint", "describe", self.checkpoints(id)[0][1], "--json")):
            shown.append(cluster.det(*words))
        shown += [path.read_text(errors="replace") for path in cluster.dir.glob("*.log")]
        shown += [path.read_text(errors="replace") for path in (self.folder / "store").rglob("*") if path.is_file()]
        for text in shown:
            self.assertNotIn(secret, text)

    def test_an_unwritable_storage_is_refused_at_submission(self):
        for changes, words in (({"bucket": "nobodys"}, 'there is no bucket "nobodys"; make it, or mend'),
                               ({"secret_key": "wrong-one"}, "SignatureDoesNotMatch"),
                               ({"endpoint_url": "http://127.0.0.1:1"}, "127.0.0.1:1"),
                               ({"endpoint_url": "http://localhost:1"}, "host localhost is not among the cluster's allowed_storage_hosts: 127.0.0.1")):
            with self.assertRaises(Failed) as refused:
                self.cluster.create(self.context, self.config(**changes))
            self.assertIn("checkpoint_storage", str(refused.exception))
            self.assertIn(words, str(refused.exception))
            self.assertNotIn("wrong-one", str(refused.exception))
        self.assertEqual(self.keys(), [])


class OthersStores(unittest.TestCase):
    """A master without configured storage hosts."""

    def test_a_store_on_the_masters_machine_is_refused_under_any_name_and_receives_no_request(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        store = self.enterContext(s3_server.Store(folder / "store"))
        store.make_bucket(BUCKET)
        port = store.url.rsplit(":", 1)[1]
        hosts = ("127.0.0.1", "localhost", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0")
        # The bucket is named at each host, so that the check of the host decides.
        buckets = ",".join(f"http://{host}:{port}/{BUCKET}" for host in hosts)
        cluster = self.enterContext(Cluster(BUILD, ["--allowed-storage-buckets", buckets]))
        for host in hosts:
            storage = {"type": "s3", "bucket": BUCKET, "endpoint_url": f"http://{host}:{port}",
                       "access_key": s3_server.ACCESS_KEY, "secret_key": s3_server.SECRET_KEY}
            with self.assertRaises(Failed, msg=host) as refused:
                cluster.create(folder, "\n".join(["name: stolen", "entrypoint: ['true']",
                                                  "searcher: {name: single, metric: loss}",
                                                  "checkpoint_storage: " + json.dumps(storage), ""]))
            self.assertIn("checkpoint_storage", str(refused.exception))
            self.assertIn("allowed_storage_hosts", str(refused.exception), host)
        self.assertEqual(store.log, [])


if __name__ == "__main__":
    unittest.main()
