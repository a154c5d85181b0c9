"""Trials that attack while they are compiled and when they are loaded: they embed files of the master, and reach for
the build cache; other trials load its entries. The same attempts succeed without a sandbox."""
import os
import pathlib
import re
import shutil
import tempfile
import unittest
from unittest import mock

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
CONFIG = """
name: {name}
entrypoint: model_def:{trial}
searcher: {{name: single, metric: loss, max_length: {{batches: 1}}}}
max_restarts: 0
resources: {{slots_per_trial: 1}}
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class BuildSandbox(unittest.TestCase):
    def start(self, mode, cache=None):
        """A cluster with one agent. `cache`: a build cache of its own."""
        cluster = Cluster(BUILD)
        cluster.bind_mounts = ""
        cluster.__enter__()
        self.addCleanup(cluster.close)
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(cache)} if cache else {}):
            cluster.start_agent(options=["--sandbox", mode])
        return cluster

    def run_trial(self, cluster, name, trial, directory=None):
        model = cluster.dir / (directory or name)
        shutil.copytree(FIXTURES / name, model)
        source = model / "model_def.cpp"
        source.write_text(source.read_text().replace("PLACE", str(cluster.dir)))
        id = cluster.create(model, CONFIG.format(name=name, trial=trial))
        cluster.wait_state(id, "ERROR", timeout=300)
        return cluster.logs(cluster.experiment(id)["trials"][0]["id"])

    def test_a_source_cannot_embed_files_of_the_master(self):
        for mode in ("required", "off"):
            cluster = self.start(mode)
            password = (cluster.dir / "master" / "admin-password").read_text().strip()
            log = self.run_trial(cluster, "thief", "ThiefTrial")
            if mode == "off":
                self.assertIn("stolen: " + password, log)
            else:
                self.assertNotIn(password, log)
                self.assertIn("admin-password", log)  # the compiler names the file that it does not find

    def attempts(self, log):
        self.assertIn("attempts are over", log)
        return dict(re.findall(r"attempt: ([^:]+): (\w+)", log))

    def test_a_trial_cannot_change_what_other_trials_load(self):
        cache = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, cache)
        cluster = self.start("required", cache)
        # The agent makes the precompiled header after the first build, at the lowest priority.
        self.run_trial(cluster, "vandal", "VandalTrial", "first")
        wait_until("the header", lambda: list(cache.glob("determinant/models/header-*/header.pch")), timeout=600)
        inside = self.attempts(self.run_trial(cluster, "vandal", "VandalTrial"))
        self.assertEqual(set(inside.values()), {"failed"}, inside)
        outside = self.attempts(self.run_trial(self.start("off", cache), "vandal", "VandalTrial"))
        self.assertEqual({name for name, result in outside.items() if result == "failed"}, {"see models of others"})


if __name__ == "__main__":
    unittest.main()
