"""Media of trials: reported over HTTP and from C++, listed, read, replaced, downloaded, and deleted with the
experiment. Traces of running trials on request."""
import base64
import gzip
import json
import os
import pathlib
import struct
import unittest
import urllib.error
import urllib.request
import zlib

from cluster import Cluster, wait_until
from test_main_job import command

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURE = pathlib.Path(__file__).resolve().parent / "fixtures" / "media"


def png(red):
    """A PNG of one pixel."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes([0, red, 0, 0]))) + chunk(b"IEND", b""))


class Media(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent()
        cls.storage = cls.cluster.dir / "checkpoints"
        cls.storage.mkdir()
        status, text = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, text
        cls.token = json.loads(text)["token"]

    def start(self):
        """A trial that waits for the file `go`, and the token of its allocation."""
        go, token = self.cluster.dir / "go", self.cluster.dir / "token"
        for path in (go, token):
            path.unlink(missing_ok=True)
        self.addCleanup(go.touch)
        id = self.cluster.create(FIXTURE, "\n".join([
            "name: media", "entrypoint: python3 train.py", "max_restarts: 0",
            f"hyperparameters: {{go: '{go}', token: '{token}'}}",
            "searcher: {name: single, metric: loss, max_length: {batches: 100}}",
            f"checkpoint_storage: {{type: shared_fs, host_path: {self.storage}}}", ""]))
        wait_until("the token of the trial", token.exists)
        return id, self.cluster.trial_id(id), token.read_text(), go

    def report(self, trial, token, **entry):
        """(status, body) of a report."""
        entry["content"] = base64.b64encode(entry["content"]).decode()
        request = urllib.request.Request(
            f"{self.cluster.url}/api/v1/trials/{trial}/media", data=json.dumps(entry).encode(), method="POST",
            headers={"Grpc-Metadata-x-allocation-token": "Bearer " + token, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def listed(self, trial):
        status, text = self.cluster.get(f"/api/v1/media?trialIds={trial}", self.token)
        self.assertEqual(status, 200, text)
        return json.loads(text)["media"]

    def stored(self, trial):
        return sorted(path.name for path in self.storage.glob(f"*/media/experiment/*/trial/{trial}/*"))

    def fetch(self, path):
        """(headers, content) of a file of a trial."""
        request = urllib.request.Request(self.cluster.url + path, headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.headers, answer.read()

    def test_reported_media_are_listed_read_replaced_and_deleted_with_the_experiment(self):
        experiment, trial, token, go = self.start()
        image = dict(name="val/digit", stepsCompleted=10, kind="KIND_IMAGE", caption="3 <b>as</b> 8")
        status, text = self.report(trial, token, content=png(1), **image)
        self.assertEqual(status, 200, text)
        first = json.loads(text)["digest"]
        # The same step again replaces the entry and its content; equal contents are stored once.
        second = json.loads(self.report(trial, token, content=png(2), **image)[1])["digest"]
        for _ in range(2):
            self.assertEqual(self.report(trial, token, content=png(2), **{**image, "stepsCompleted": 20})[0], 200)
        self.assertNotEqual(first, second)
        self.assertEqual(self.stored(trial), [second])
        self.assertEqual([(one["name"], int(one["stepsCompleted"]), one["digest"], one["caption"]) for one in self.listed(trial)],
                         [("val/digit", 10, second, "3 <b>as</b> 8"), ("val/digit", 20, second, "3 <b>as</b> 8")])
        status, text = self.cluster.post("/api/v1/media/contents", {"trialIds": [trial], "digests": [second]}, self.token)
        self.assertEqual((status, base64.b64decode(json.loads(text)["contents"][0])), (200, png(2)))
        self.assertEqual(self.cluster.post("/api/v1/media/contents", {"trialIds": [trial], "digests": [first]}, self.token)[0], 404)
        go.touch()
        self.cluster.wait_state(experiment, "COMPLETED")
        # The process has ended: its token reports no more.
        self.assertEqual(self.report(trial, token, content=png(3), **image)[0], 401)
        self.cluster.det("experiment", "delete", experiment, "--yes")
        self.assertEqual(self.stored(trial), [])
        self.assertEqual(self.listed(trial), [])

    def test_a_restarted_trial_replaces_its_entries(self):
        id = self.cluster.create(FIXTURE, "\n".join([
            "name: crashing", "entrypoint: python3 train.py", "max_restarts: 1", "hyperparameters: {crash: true}",
            "searcher: {name: single, metric: loss, max_length: {batches: 100}}",
            f"checkpoint_storage: {{type: shared_fs, host_path: {self.storage}}}", ""]))
        self.cluster.wait_state(id, "COMPLETED")
        trial = self.cluster.trial_id(id)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 1)
        self.assertEqual([(one["name"], int(one["stepsCompleted"])) for one in self.listed(trial)], [("run", 1), ("run", 2), ("run", 3)])
        self.assertEqual(len(self.stored(trial)), 3)

    def test_content_of_a_trial_is_never_sent_as_a_page(self):
        experiment, trial, token, go = self.start()
        page = b"<script>alert(1)</script><svg onload='alert(2)'/>"
        self.assertEqual(self.report(trial, token, name="page", stepsCompleted=1, kind="KIND_FILE", fileName="page.html", content=page)[0], 200)
        for kind in ("KIND_IMAGE", "KIND_TABLE", "KIND_HISTOGRAM"):
            status, text = self.report(trial, token, name="page", stepsCompleted=1, kind=kind, content=page)
            self.assertEqual(status, 400, kind + text)
        path = json.loads(self.cluster.get(f"/api/v1/trials/{trial}/files", self.token)[1])["files"][0]["path"]
        headers, content = self.fetch(f"/trial-files/{trial}/{path}")
        self.assertEqual(content, page)
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        self.assertEqual(headers["Content-Disposition"].split(";")[0], "attachment")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertIn("default-src 'none'; sandbox", headers.get_all("Content-Security-Policy"))
        self.assertEqual(self.cluster.get(f"/trial-files/{trial}/{path}")[0], 401)
        go.touch()
        self.cluster.wait_state(experiment, "COMPLETED")

    def test_names_of_media_and_files_lead_nowhere_else(self):
        experiment, trial, token, go = self.start()
        for name in ("../x", "/etc/passwd", "a//b", ".hidden", "a\\b", "", "a/../../b", "x" * 129):
            self.assertEqual(self.report(trial, token, name=name, stepsCompleted=1, kind="KIND_TEXT", content=b"x")[0], 400, name)
        self.assertEqual(self.report(trial, token, name="f", stepsCompleted=1, kind="KIND_FILE", fileName="../f", content=b"x")[0], 400)
        (self.storage / "secret").write_text("secret")
        own = self.storage / "tensorboard" / f"experiment_{experiment}" / f"trial_{trial}"
        own.mkdir(parents=True)
        (own / "events").write_text("scalars")
        (own / "link").symlink_to(self.storage / "secret")
        (own / "out").symlink_to(self.storage)
        files = json.loads(self.cluster.get(f"/api/v1/trials/{trial}/files", self.token)[1])["files"]
        self.assertEqual([file["path"] for file in files], ["tensorboard/events"])
        self.assertEqual(self.fetch(f"/trial-files/{trial}/tensorboard/events")[1], b"scalars")
        for path in ("tensorboard/link", "tensorboard/out/secret", "tensorboard/../../../secret", "tensorboard/%2e%2e/%2e%2e/secret",
                     "secret", "media/secret", "tensorboard//etc/passwd", "tensorboard/none"):
            self.assertIn(self.cluster.get(f"/trial-files/{trial}/{path}", self.token)[0], (400, 404, 412, 409), path)
        # A link in place of the directory of media is not followed either.
        target, media = self.cluster.dir / "elsewhere", self.storage / json.loads(self.cluster.get("/api/v1/master")[1])["clusterId"]
        target.mkdir()
        aside = media.with_suffix(".aside")
        if media.exists():
            media.rename(aside)
        media.symlink_to(target)
        status, text = self.report(trial, token, name="t", stepsCompleted=1, kind="KIND_TEXT", content=b"x")
        self.assertGreaterEqual(status, 400, text)
        self.assertEqual(list(target.iterdir()), [])
        media.unlink()
        if aside.exists():
            aside.rename(media)
        go.touch()
        self.cluster.wait_state(experiment, "COMPLETED")

    def test_files_of_a_trial_are_listed_and_downloaded_with_the_command(self):
        experiment, trial, token, go = self.start()
        self.assertEqual(self.report(trial, token, name="notes", stepsCompleted=3, kind="KIND_TEXT", content="# Käse".encode())[0], 200)
        own = self.storage / "tensorboard" / f"experiment_{experiment}" / f"trial_{trial}" / "plugins"
        own.mkdir(parents=True)
        (own / "w.pt.trace.json").write_text("{}" * 1_000_000)
        paths = [file["path"] for file in self.cluster.det_json("trial", "files", trial, "--json")]
        self.assertEqual(paths[1], "tensorboard/plugins/w.pt.trace.json")
        self.assertTrue(paths[0].startswith("media/notes/3-") and paths[0].endswith("-text.txt"), paths[0])
        target = self.cluster.dir / "fetched"
        self.assertEqual(self.cluster.det("trial", "download-files", trial, "-o", target), f"Downloaded 2 files to {target}\n")
        self.assertEqual((target / paths[1]).stat().st_size, 2_000_000)
        self.assertEqual((target / paths[0]).read_text(), "# Käse")
        self.cluster.det("trial", "download-files", trial, "tensorboard/none", expect=1)
        go.touch()
        self.cluster.wait_state(experiment, "COMPLETED")


class Profile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent()

    def refused(self, trial):
        done = self.cluster.run_det("trial", "profile", trial, cwd=self.cluster.dir, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def test_the_machine_of_a_trial_is_measured_without_profiling(self):
        id = self.cluster.create(FIXTURE.parent / "tiny", "\n".join([
            "name: measured", "entrypoint: model_def:TinyTrial", "max_restarts: 0",
            "hyperparameters: {learning_rate: 0.001, global_batch_size: 32}",
            "searcher: {name: single, metric: validation_loss, max_length: {batches: 100000000}}", ""]))
        trial = self.cluster.trial_id(id)
        wait_until("training", lambda: self.cluster.metrics(trial, "training"), timeout=400)
        wait_until("use of the machine", lambda: self.cluster.reports(trial, "network"), timeout=60)
        for group, name, least in (("cpu", "cpu_util_simple", 0), ("memory", "memory_free", 1e6), ("disk", "disk_util", 0)):
            found = self.cluster.reports(trial, group)
            self.assertGreaterEqual(found[0]["avg_metrics"][name], least, found)
        self.assertEqual(self.cluster.reports(trial, "timing"), [])
        self.cluster.det("experiment", "kill", id)

    def test_batches_of_a_running_trial_are_traced_until_it_is_paused(self):
        id = self.cluster.create(FIXTURE.parent / "tiny", "\n".join([
            "name: traced", "entrypoint: model_def:TinyTrial", "max_restarts: 0",
            "hyperparameters: {learning_rate: 0.001, global_batch_size: 32}",
            "searcher: {name: single, metric: validation_loss, max_length: {batches: 100000000}}",
            "scheduling_unit: 100", ""]))
        trial = self.cluster.trial_id(id)
        wait_until("training", lambda: self.cluster.metrics(trial, "training"), timeout=400)
        file = self.cluster.dir / "trace.json"
        told = self.cluster.det("trial", "profile", trial, "--batches", 5, "--shapes", "--memory", "-o", file)
        self.assertIn(f"Wrote {file}. Open it at https://ui.perfetto.dev", told)
        trace = json.loads(file.read_text())
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        batches = [int(span["name"].split()[1]) for span in spans if span["name"].startswith("batch ")]
        self.assertEqual(batches, list(range(batches[0], batches[0] + 5)))
        names = [span["name"] for span in spans]
        # Two layers; the batch has 32 records of 8 numbers.
        self.assertEqual(names.count("aten::addmm"), 10)
        self.assertLessEqual({"data", "forward", "backward", "optimizer"}, set(names))
        shapes = [span["args"]["Input Dims"] for span in spans if span["name"] == "aten::addmm"]
        self.assertEqual(shapes[0][:3], [[32], [32, 8], [8, 32]])
        self.assertTrue(any(event["name"] == "[memory]" for event in trace["traceEvents"]))
        # Each operator of the training thread lies within a batch.
        steps = [span for span in spans if span["name"].startswith("batch ")]
        for span in spans:
            if span["name"] == "aten::addmm":
                self.assertTrue(any(step["ts"] <= span["ts"] and span["ts"] + span["dur"] <= step["ts"] + step["dur"] + 1
                                    for step in steps), span)
        # The same trace is a file of the trial.
        files = [one["path"] for one in self.cluster.det_json("trial", "files", trial, "--json") if "/profile/" in one["path"]]
        self.assertEqual(len(files), 1)
        self.assertTrue(files[0].endswith(f"-batches-{batches[0]}-{batches[-1]}.pt.trace.json.gz"), files)
        self.cluster.det("trial", "download-files", trial, files[0], "-o", self.cluster.dir / "files")
        stored = (self.cluster.dir / "files" / files[0]).read_bytes()
        self.assertEqual(gzip.decompress(stored), file.read_bytes())
        # A second request is another trace; training goes on.
        self.cluster.det("trial", "profile", trial, "--batches", 1, "-o", self.cluster.dir / "one.json.gz")
        one = json.loads(gzip.decompress((self.cluster.dir / "one.json.gz").read_bytes()))
        self.assertEqual(sum(event["name"].startswith("batch ") for event in one["traceEvents"]), 1)
        self.cluster.det("experiment", "pause", id)
        self.cluster.wait_state(id, "PAUSED")
        wait_until("the process to end", lambda: not self.cluster.task_processes(trial))
        self.assertIn("no training process of the library is connected", self.refused(trial))
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")
        self.assertIn(f"trial {trial} has ended (CANCELED); only running trials can be traced", self.refused(trial))

    def test_a_program_without_the_library_and_an_unknown_trial_are_refused(self):
        empty = self.cluster.dir / "empty"
        empty.mkdir()
        id = self.cluster.create(empty, command("sleep 600", max_restarts=0))
        self.cluster.wait_state(id, "RUNNING")
        self.assertIn("no training process of the library is connected", self.refused(self.cluster.trial_id(id)))
        self.cluster.det("experiment", "kill", id)
        self.assertIn("not found", self.refused(999999))


if __name__ == "__main__":
    unittest.main()
