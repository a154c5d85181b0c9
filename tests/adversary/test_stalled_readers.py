"""A user opens a hundred downloads and does not read them. Calls of other users go on; the downloads end."""
import json
import os
import secrets
import socket
import time
import unittest
import uuid

from attacker import Attacker
from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
DOWNLOADS = 100
PER_USER = 6
FILE_BYTES = 16 << 20  # More than the buffers of both sockets.
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

    def open_download(self):
        """A download whose reply is not read."""
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", self.cluster.port))
        one.sendall(f"GET /checkpoints/{self.checkpoint} HTTP/1.1\r\nHost: m\r\n"
                    f"Authorization: Bearer {self.editor.token}\r\n\r\n".encode())
        one.setblocking(False)
        self.sockets.append(one)
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

    def test_stalled_downloads_delay_no_change_and_end_by_themselves(self):
        sockets = [self.open_download() for _ in range(DOWNLOADS)]
        wait_until("two downloads to begin", lambda: sum(self.status_of(one) == 200 for one in sockets) >= 2)
        one, many = f"/api/v1/experiments/{self.experiment}", "/api/v1/experiments"
        body = {"experimentIds": [self.experiment]}
        times = []
        for _ in range(10):
            times += [self.steer(f"{one}/pause", {}), self.steer(f"{one}/activate", {}),
                      self.steer(f"{many}/pause", body), self.steer(f"{many}/activate", body)]
        print(f"{len(times)} changes beside {DOWNLOADS} stalled downloads: slowest {max(times) * 1000:.0f} ms")
        self.assertLess(max(times), 5)

        # One user holds a few places; the reply to the others says so.
        wait_until("all downloads to have a reply", lambda: all(self.status_of(one) for one in sockets))
        statuses = [self.status_of(one) for one in sockets]
        self.assertEqual(statuses.count(200), PER_USER, statuses)
        self.assertEqual(statuses.count(429), DOWNLOADS - PER_USER, statuses)
        # A client that does not read loses its place after 30 s.
        wait_until("a place for another download", lambda: self.editor.download(self.checkpoint), timeout=120)
        self.assertEqual(self.steer(f"{many}/kill", body) < 5, True)


if __name__ == "__main__":
    unittest.main()
