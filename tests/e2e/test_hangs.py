"""Hangs of gangs: the failure names the rank that the others wait for, its call, and its stack."""
import os
import pathlib
import unittest

from cluster import Cluster
from test_main_job import command

BUILD = os.environ["DET_E2E_BUILD"]


class Hangs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=3)
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    def failure(self, how):
        """The description and the log of a trial in which rank 1 leaves out one of ten all-reduces."""
        program = pathlib.Path(BUILD).resolve() / "bin" / "hang_program"
        id = self.cluster.create(self.empty, command(f"det-launch -- {program} {how}", max_restarts=0, hang_timeout=2,
                                                     resources="{slots_per_trial: 3}"))
        self.cluster.wait_state(id, "ERROR")
        trial = self.cluster.trial_id(id)
        return self.cluster.det("trial", "describe", trial), self.cluster.logs(trial)

    def test_a_rank_that_skips_an_all_reduce_is_named_with_the_call_it_is_stuck_in(self):
        described, log = self.failure("barrier")
        self.assertIn("the task hung: no batch, no report and no output for 2s (hang_timeout)", described)
        self.assertRegex(described, r"rank 1 is stuck in barrier \d+; ranks 0, 2 wait in all_reduce 10 \(3\.9KB\)")
        self.assertRegex(log, r"ERROR: rank 1: at main \(main\.cpp:\d+\)")

    def test_a_rank_that_waits_outside_of_collectives_is_named_with_its_stack(self):
        described, log = self.failure("read")
        self.assertRegex(described, r"rank 1 is stuck outside of all_reduce 10 \(3\.9KB\); "
                                    r"the last call of rank 1 was all_reduce 9 \(3\.9KB\); ranks 0, 2 wait")
        self.assertRegex(described, r"at .*next_record\(\) \(main\.cpp:\d+\)")
        self.assertRegex(log, r"ERROR: rank 1: at .*next_record\(\) \(main\.cpp:\d+\)")


if __name__ == "__main__":
    unittest.main()
