"""Builds of trial classes: without slots, once in a cluster, final when the code does not compile."""
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from cluster import Cluster, wait_until
from test_main_job import BUILD, HERE, command, tiny

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "storage"))
import s3_server  # noqa: E402

TINY = HERE / "fixtures" / "tiny"


@contextlib.contextmanager
def cache_of(directory):
    """Agents that start inside have a build cache of their own, as on a machine of their own."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(directory)
    try:
        yield
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


class Clusters(unittest.TestCase):
    def start(self, *options):
        self.cluster = Cluster(BUILD, list(options))
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)

    def edited(self, name, more):
        """A copy of the trial with another text, which no cache has."""
        directory = self.cluster.dir / name
        shutil.copytree(TINY, directory)
        source = directory / "model_def.cpp"
        source.write_text(source.read_text() + f"// {self.cluster.dir}\n{more}\n")
        return directory

    def logged(self, trial, text):
        return self.cluster.logs(trial).count(text)

    def build_on_a_busy_agent(self, storage):
        """Agent a with its only slot in use builds a trial that shares its library in a checkpoint storage. Returns
        the experiment and the trial."""
        with cache_of(self.cluster.dir / "cache-a"):
            self.cluster.start_agent("a", slots=1)
        held = self.cluster.create(TINY, command("sleep 600"))
        self.cluster.wait_state(held, "RUNNING")
        config = tiny(10, storage=f"checkpoint_storage: {json.dumps(storage)}\n")
        id = self.cluster.create(self.edited("code", ""), config)
        return id, self.cluster.trial_id(id)

    def train_on_another_agent(self, id):
        """Agent a keeps its slot in use, so that the trial runs on b."""
        with cache_of(self.cluster.dir / "cache-b"):
            self.cluster.start_agent("b", slots=1)
        self.cluster.wait_state(id, "COMPLETED", timeout=240)


class Builds(Clusters):
    def setUp(self):
        self.start()

    def test_a_build_needs_no_slot_and_its_trial_starts_when_one_is_free(self):
        self.cluster.start_agent("only", slots=1)
        holder = self.cluster.create(TINY, command("sleep 600"))
        self.cluster.wait_state(holder, "RUNNING")
        id = self.cluster.create(self.edited("code", ""), tiny(10))
        trial = self.cluster.trial_id(id)
        building = wait_until("the state", lambda: self.cluster.trial(trial).get("buildTime") and self.cluster.trial(trial))
        self.assertEqual((building["state"], building["run"]), ("STATE_PULLING", 1))
        self.assertRegex(self.cluster.det("trial", "describe", trial), r"BUILDING \d+s")
        wait_until("the build", lambda: self.logged(trial, "model_def.cpp built in"), timeout=240)
        self.assertEqual(self.cluster.experiment(holder)["state"].removeprefix("STATE_"), "RUNNING")
        self.assertEqual(self.logged(trial, "was assigned to"), 0)
        self.cluster.det("experiment", "kill", holder)
        self.cluster.wait_state(id, "COMPLETED", timeout=120)
        self.assertEqual(self.cluster.trial(trial)["run"], 1)
        self.assertEqual(self.logged(trial, "taken from the build cache"), 1)

    def test_trials_that_wait_for_a_build_are_explained(self):
        with cache_of(self.cluster.dir / "cache"):
            self.cluster.start_agent("only", slots=1)
        search = tiny(10).replace("name: single", "name: random\n  max_trials: 2\n  max_concurrent_trials: 2")
        id = self.cluster.create(self.edited("code", ""), search)
        first, second = (trial["id"] for trial in self.cluster.experiment(id)["trials"])
        self.assertIn(f"trial {first} is being built on agent only", self.cluster.det("explain", "trial", first))
        self.assertIn("waits for the build of its experiment", self.cluster.det("explain", "trial", second))
        self.cluster.wait_state(id, "COMPLETED", timeout=240)

    def test_the_first_build_does_not_wait_for_the_precompiled_header_which_is_made_after_it(self):
        models = self.cluster.dir / "cache" / "determinant" / "models"
        with cache_of(self.cluster.dir / "cache"):
            self.cluster.start_agent("only", slots=1)  # Artificial slots: no header is made at the start.
        id = self.cluster.create(self.edited("code", ""), tiny(10))
        trial = self.cluster.trial_id(id)
        wait_until("the build", lambda: self.logged(trial, "model_def.cpp built in"), timeout=240)
        self.assertEqual(self.logged(trial, "which are not precompiled yet"), 1)
        # Its lock, at the lowest priority; a busy machine takes minutes to finish it.
        wait_until("the header", lambda: list(models.glob("header-*")))
        self.cluster.wait_state(id, "COMPLETED", timeout=120)

    def test_unchanged_code_is_not_built_again(self):
        self.cluster.start_agent("only", slots=1)
        code = self.edited("code", "")
        first = self.cluster.create(code, tiny(10))
        self.cluster.wait_state(first, "COMPLETED", timeout=240)
        second = self.cluster.create(code, tiny(10))
        self.cluster.wait_state(second, "COMPLETED", timeout=120)
        self.assertEqual(self.logged(self.cluster.trial_id(first), "without slots"), 1)
        self.assertEqual(self.logged(self.cluster.trial_id(second), "without slots"), 0)

    def test_code_that_does_not_compile_ends_a_search_once_and_without_a_slot(self):
        self.cluster.start_agent("only", slots=1)
        holder = self.cluster.create(TINY, command("sleep 600"))
        self.cluster.wait_state(holder, "RUNNING")
        search = tiny(10, max_restarts=5).replace(
            "name: single", "name: random\n  max_trials: 4\n  max_concurrent_trials: 4")
        id = self.cluster.create(self.edited("code", "int x = no_such_name;"), search)
        self.cluster.wait_state(id, "ERROR", timeout=240)
        trials = [trial["id"] for trial in self.cluster.experiment(id)["trials"]]
        self.assertEqual(len(trials), 4)
        self.assertEqual([self.logged(trial, "exited: model_def.cpp does not compile") for trial in trials], [1, 0, 0, 0])
        self.assertGreater(self.logged(trials[0], "no_such_name"), 0)
        self.assertEqual(sum(self.logged(trial, "was assigned to") for trial in trials), 0)
        self.cluster.det("experiment", "kill", holder)

    def directory(self):
        """A checkpoint storage, and its directory."""
        path = self.cluster.dir / "storage"
        path.mkdir()
        return {"type": "shared_fs", "host_path": str(path)}, path

    def test_an_agent_takes_the_library_that_another_one_has_built(self):
        storage, directory = self.directory()
        id, trial = self.build_on_a_busy_agent(storage)
        wait_until("the shared library", lambda: list((directory / "det-builds").glob("*.so")), timeout=240)
        self.train_on_another_agent(id)
        self.assertEqual(self.logged(trial, "model_def.cpp taken from the checkpoint storage"), 1)
        self.assertEqual(self.logged(trial, "model_def.cpp built in"), 1)

    def test_a_library_that_a_user_has_replaced_is_not_loaded(self):
        storage, directory = self.directory()
        id, trial = self.build_on_a_busy_agent(storage)
        wait_until("the shared library", lambda: list((directory / "det-builds").glob("*.so")), timeout=240)
        for library in (directory / "det-builds").glob("*.so"):
            library.write_bytes(b"not a library of this cluster")
        self.train_on_another_agent(id)
        self.assertEqual(self.logged(trial, "taken from the checkpoint storage"), 0)
        self.assertEqual(self.logged(trial, "model_def.cpp built in"), 2)


class BuildsInABucket(Clusters):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = self.enterContext(s3_server.Store(folder))
        self.store.make_bucket("checkpoints")
        self.start("--allowed-storage-hosts", "127.0.0.1", "--allowed-storage-buckets", f"{self.store.url}/checkpoints")

    def libraries(self):
        return [key for key in self.store.keys("checkpoints") if "/det-builds/" in key]

    def test_an_agent_takes_the_library_that_another_one_has_built(self):
        id, trial = self.build_on_a_busy_agent(
            {"type": "s3", "bucket": "checkpoints", "prefix": "tiny", "endpoint_url": self.store.url,
             "access_key": s3_server.ACCESS_KEY, "secret_key": s3_server.SECRET_KEY})
        wait_until("the shared library", self.libraries, timeout=240)
        self.train_on_another_agent(id)
        self.assertEqual(self.logged(trial, "model_def.cpp taken from the checkpoint storage"), 1)
        self.assertEqual(self.logged(trial, "model_def.cpp built in"), 1)
        self.assertEqual(len(self.libraries()), 1)
        # The library belongs to the cluster, not to the experiment that was first.
        self.cluster.det("experiment", "delete", id, "--yes")
        self.assertEqual(self.store.keys("checkpoints"), self.libraries())
