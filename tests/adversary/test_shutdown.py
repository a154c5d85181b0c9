"""The private PostgreSQL is frozen. SIGTERM still ends the master within 10 s, and leaves no process behind."""
import os
import pathlib
import signal
import time
import unittest

from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
LIMIT = 12  # Seconds: 10 s and the delay of a loaded machine.


def parents():
    """Maps pid to (parent, state) of all processes."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(entry.name)] = (int(fields[1]), fields[0])
    return found


class Shutdown(unittest.TestCase):
    def postgres_of(self, cluster):
        """The pids of the private PostgreSQL, the server first."""
        server = int((cluster.dir / "master/postgres/data/postmaster.pid").read_text().split()[0])
        return [server] + [pid for pid, (parent, _) in parents().items() if parent == server]

    def end_frozen(self, count):
        with Cluster(BUILD) as cluster:
            frozen = self.postgres_of(cluster)
            self.assertGreater(len(frozen), 3)
            for pid in frozen[:count]:
                os.kill(pid, signal.SIGSTOP)
            begun = time.monotonic()
            cluster.stop_master(timeout=60)
            took = time.monotonic() - begun
            end = time.monotonic() + 3
            while time.monotonic() < end:
                left = [pid for pid in frozen if parents().get(pid, (0, "Z"))[1] != "Z"]
                if not left:
                    break
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            print(f"the master ended {took:.1f} s after SIGTERM")
            self.assertEqual(left, [])
            self.assertLess(took, LIMIT)

    def test_a_frozen_server_is_ended(self):
        self.end_frozen(1)

    def test_a_server_is_ended_with_its_frozen_children(self):
        self.end_frozen(100)


if __name__ == "__main__":
    unittest.main()
