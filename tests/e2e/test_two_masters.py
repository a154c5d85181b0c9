"""Two masters on one database: the second is refused with the name of the first while that exists, even
frozen, and takes over afterwards. A master that is interrupted twice leaves no private database."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]


class Postgres:
    """An external PostgreSQL server."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="det-e2e-pg-"))
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres")) or [pathlib.Path(shutil.which("postgres"))]
        self.bin = found[-1].parent
        self.user = []
        if os.getuid() == 0:  # PostgreSQL refuses to run as root.
            self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(self.dir, "postgres", "postgres")
        self.run("initdb", "-D", self.dir / "data", "-A", "trust", "-U", "postgres", "--no-sync")
        self.run("pg_ctl", "-D", self.dir / "data", "-w", "-l", self.dir / "log", "-o",
                 f"-c listen_addresses= -c unix_socket_directories={self.dir}", "start")
        self.url = f"host={self.dir} user=postgres dbname=postgres"

    def run(self, program, *arguments):
        subprocess.run([*self.user, self.bin / program, *map(str, arguments)], check=True, timeout=120, cwd="/",
                       stdout=subprocess.DEVNULL)

    def stop(self):
        self.run("pg_ctl", "-D", self.dir / "data", "-m", "immediate", "stop")
        shutil.rmtree(self.dir, ignore_errors=True)


class TwoMasters(unittest.TestCase):
    def setUp(self):
        self.postgres = Postgres()
        self.addCleanup(self.postgres.stop)
        self.cluster = Cluster(BUILD, ["--database-url", self.postgres.url])
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)

    def start_second(self):
        """Starts a second master with its own data directory."""
        return subprocess.run([self.cluster.bin / "det-master", "--data-dir", self.cluster.dir / "second", "--listen",
                               "127.0.0.1:0", "--database-url", self.postgres.url],
                              capture_output=True, text=True, timeout=30)

    def refused(self):
        done = self.start_second()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("ready", done.stdout)
        self.assertRegex(done.stderr, rf"pid {self.cluster.master.pid}\b")
        self.assertTrue(re.search(r"host \S+", done.stderr), done.stderr)

    def test_a_second_master_is_refused_while_the_first_serves_or_is_frozen_and_takes_over_when_it_is_gone(self):
        cluster = self.cluster
        empty = cluster.dir / "empty"
        empty.mkdir()
        id = cluster.create(empty, "name: kept\nentrypoint: echo hello\nsearcher: {name: single, metric: loss}\n"
                                   f"checkpoint_storage: {{type: shared_fs, host_path: {empty}}}\n")
        self.refused()
        self.assertEqual(cluster.experiment(id)["name"], "kept")

        os.kill(cluster.master.pid, signal.SIGSTOP)
        self.refused()
        os.kill(cluster.master.pid, signal.SIGCONT)
        cluster.start_agent()
        cluster.wait_state(id, "COMPLETED")

        first, log = cluster.master, cluster.dir / "master.log"
        cluster.kill_master()
        cluster.start_master()  # "The second": it needs nothing of the first's data directory.
        self.assertNotEqual(first.pid, cluster.master.pid)
        wait_until("the second to show what the first stored", lambda: cluster.experiment(id)["state"] == "STATE_COMPLETED")
        self.refused()
        self.assertNotIn("broken", log.read_text())

    def test_a_frozen_master_that_lost_its_lock_exits_when_it_wakes_and_writes_nothing(self):
        cluster, first = self.cluster, self.cluster.master
        empty = cluster.dir / "empty"
        empty.mkdir()
        os.kill(first.pid, signal.SIGSTOP)
        # Like after a cut network: the server ends the sessions of an unreachable client.
        subprocess.run(["psql", "-X", "-q", self.postgres.url, "-c", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"], check=True, timeout=60, stdout=subprocess.DEVNULL)
        cluster.port = 0
        cluster.start_master()
        cluster.det("user", "login", "admin", "--password-file", cluster.dir / "master" / "admin-password")
        self.addCleanup(first.wait, 60)
        self.addCleanup(first.kill)
        config = ("name: of the second\nentrypoint: echo hello\nsearcher: {name: single, metric: loss}\n"
                  f"checkpoint_storage: {{type: shared_fs, host_path: {empty}}}\n")
        id = cluster.create(empty, config)
        os.kill(first.pid, signal.SIGCONT)
        self.assertEqual(first.wait(90), 1)
        self.assertEqual([e["id"] for e in cluster.det_json("experiment", "list", "--json")], [id])
        cluster.start_agent()
        cluster.wait_state(id, "COMPLETED")


class SecondSignal(unittest.TestCase):
    def test_a_second_signal_ends_the_master_and_its_private_database_at_once(self):
        with Cluster(BUILD) as cluster:
            pid = int((cluster.dir / "master" / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
            os.kill(cluster.master.pid, signal.SIGSTOP)
            # Both are pending when it goes on.
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
                os.kill(cluster.master.pid, number)
            self.assertEqual(cluster.master.wait(20), 1)
            wait_until("the database to end", lambda: not pathlib.Path(f"/proc/{pid}").exists(), timeout=5)
            cluster.start_master()
            self.assertEqual(cluster.det_json("experiment", "list", "--json"), [])


if __name__ == "__main__":
    unittest.main()
