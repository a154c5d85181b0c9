"""Pilots through slurmrestd with a JSON web token: the tests of the commands of Slurm, without these commands."""
import pathlib
import tempfile
import unittest

from cluster import wait_until
from pilots import IDLE
from slurm import Pool
from test_slurm import OnSlurm

COMMANDS = ("sbatch", "squeue", "scancel")


class OverRest(OnSlurm):
    @classmethod
    def setUpClass(cls):
        # The master finds commands that fail. Those of the test and of the jobs come from elsewhere.
        folder = tempfile.TemporaryDirectory(prefix="det-rest-")
        cls.addClassCleanup(folder.cleanup)
        for name in COMMANDS:
            path = pathlib.Path(folder.name) / name
            path.write_text("#!/bin/sh\nexit 1\n")
            path.chmod(0o755)
        pool = Pool(rest=True, programs=folder.name, max_pilots=2, max_nodes=3, idle_timeout=f"{IDLE}s")
        cls.addClassCleanup(pool.close)
        cls.pool, cls.slurm, cls.cluster = pool, pool.slurm, pool.cluster
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def test_an_expired_token_is_explained_and_a_new_one_is_used(self):
        path = self.slurm.dir / "token"
        token = path.read_text()
        path.write_text("expired")
        try:
            id = self.create("true")
            wait_until("the error", lambda: "does not reply" in self.explanation(id))
        finally:
            path.write_text(token)
        self.cluster.wait_state(id, "COMPLETED")


del OnSlurm  # its tests run in their own file

if __name__ == "__main__":
    unittest.main()
