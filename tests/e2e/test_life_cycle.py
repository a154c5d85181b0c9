"""The life cycle of trials on plain agents. The same tests run on Slurm and on Kubernetes."""
import unittest

from cluster import Cluster
from life_cycle import LifeCycle
from test_main_job import BUILD


class OnAgents(LifeCycle, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        for name in ("left", "right"):
            cls.cluster.start_agent(name, slots=2)
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()


if __name__ == "__main__":
    unittest.main()
