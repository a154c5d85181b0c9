"""A user opens a hundred downloads and does not read them. Calls of other users go on; the downloads end."""
import json
import os
import secrets
import select
import socket
import time
import unittest
import uuid

from attacker import Attacker, stop_cleanly
from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
DOWNLOADS = 100
PER_USER = 6
FILE_BYTES = 16 << 20  # More than the buffers of both sockets.
ROUNDS = 25  # Each has four changes.
P99, BUSY = 0.1, 5  # Seconds. Other work of the machine slows changes down; a held place stops them for 30 s.
SERIES = 5
STALL = 30  # Seconds after which a client that does not read loses its place.
CONFIG = "name: steered\nentrypoint: /bin/true\nsearcher: {name: single, metric: loss, max_length: {batches: 10}}\n"


class StalledReaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, storage_paths=["shared"])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.shared = cls.cluster.dir / "shared"
        cls.shared.mkdir()
        cls.admin = Attacker.admin(cls.cluster)
        code = cls.cluster.dir / "code"
        code.mkdir()
        cls.experiment = cls.cluster.create(code, CONFIG)
        cls.editor = Attacker.editor(cls.cluster)
        cls.checkpoint = cls.make_checkpoint()
        cls.sockets = []
        cls.addClassCleanup(lambda: [one.close() for one in cls.sockets])

    @classmethod
    def make_checkpoint(cls):
        status, body = cls.editor.put_experiment("stalled", f"checkpoint_storage: {{type: shared_fs, host_path: {cls.shared}}}")
        assert status == 200, body
        task = cls.editor.start_trial(json.loads(body)["experiment"]["id"])
        checkpoint = str(uuid.uuid4())
        (cls.shared / checkpoint).mkdir()
        (cls.shared / checkpoint / "noise").write_bytes(secrets.token_bytes(FILE_BYTES))
        status, body = cls.editor.report_checkpoint(task, checkpoint, {"noise": FILE_BYTES})
        assert status == 200, body
        return checkpoint

    @classmethod
    def open_download(cls):
        """A download with an unread reply."""
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", cls.cluster.port))
        one.sendall(f"GET /checkpoints/{cls.checkpoint} HTTP/1.1\r\nHost: m\r\n"
                    f"Authorization: Bearer {cls.editor.token}\r\n\r\n".encode())
        one.setblocking(False)
        cls.sockets.append(one)
        return one

    @staticmethod
    def status_of(one):
        """The status of the reply, which stays unread; None before it has come."""
        try:
            head = one.recv(16, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        return int(head.split()[1]) if len(head) > 12 else None

    def steer(self, path, body):
        """Seconds of a change."""
        begun = time.monotonic()
        status, answer = self.admin.call("POST", path, body)
        self.assertEqual(status, 200, answer)
        return time.monotonic() - begun

    @classmethod
    def tearDownClass(cls):
        sockets = [cls.open_download() for _ in range(DOWNLOADS)]
        wait_until("downloads to begin", lambda: sum(cls.status_of(one) == 200 for one in sockets) >= 2)
        stop_cleanly(cls.cluster)  # While downloads stall.

    def is_idle(self):
        """Whether the master uses less than a fifth of a processor for half a second."""
        def ticks():
            fields = open(f"/proc/{self.cluster.master.pid}/stat").read().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        before = ticks()
        select.select([], [], [], 0.5)
        return ticks() - before < 0.1 * os.sysconf("SC_CLK_TCK")

    def p99(self):
        """Seconds that 99 of 100 changes take at most, of one experiment and of a list."""
        one, many = f"/api/v1/experiments/{self.experiment}", "/api/v1/experiments"
        body = {"experimentIds": [self.experiment]}
        times = []
        for _ in range(ROUNDS):
            times += [self.steer(f"{one}/pause", {}), self.steer(f"{one}/activate", {}),
                      self.steer(f"{many}/pause", body), self.steer(f"{many}/activate", body)]
        return sorted(times)[len(times) * 99 // 100 - 1]

    def test_stalled_downloads_delay_no_change_and_end_by_themselves(self):
        quiet = min(self.p99() for _ in range(2))
        begun = time.monotonic()
        sockets = [self.open_download() for _ in range(DOWNLOADS)]
        wait_until("all downloads to have a reply", lambda: all(self.status_of(one) for one in sockets))
        # One user holds a few places; the reply to the others says so.
        statuses = [self.status_of(one) for one in sockets]
        self.assertEqual(statuses.count(200), PER_USER, statuses)
        self.assertEqual(statuses.count(429), DOWNLOADS - PER_USER, statuses)
        wait_until("the downloads to stall", self.is_idle)
        series = [self.p99()]
        while len(series) < SERIES and time.monotonic() - begun < STALL - 10:
            series.append(self.p99())
        busy = os.getloadavg()[0] > os.cpu_count()
        print(f"{4 * ROUNDS} changes beside {DOWNLOADS} stalled downloads: p99 {min(series) * 1000:.0f} ms, the best of "
              f"{len(series)} series; without them {quiet * 1000:.0f} ms" + (", on a busy machine" if busy else ""))
        self.assertLess(min(series), BUSY if busy else P99)
        # A client that does not read loses its place after 30 s.
        wait_until("a place for another download", lambda: self.editor.download(self.checkpoint), timeout=120)
        self.assertEqual(self.steer("/api/v1/experiments/kill", {"experimentIds": [self.experiment]}) < 5, True)


if __name__ == "__main__":
    unittest.main()
