"""Clients without a right to upload send bodies of 100 MB, over HTTP and over gRPC. The memory of the master stays."""
import os
import secrets
import socket
import subprocess
import time
import unittest

from attacker import Attacker, stop_cleanly
from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
BODIES = 8
BODY_BYTES = 100_000_000
SECONDS = 8  # A body that is read arrives within this time.
GROWTH = 64 << 20  # Bytes.
CONFIG = "name: flood\nentrypoint: /bin/true\nsearcher: {name: single, metric: loss, max_length: {batches: 10}}\n"


class Floods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        password = cls.cluster.dir / "password-nobody"
        password.write_text("correct horse battery staple\n")
        cls.cluster.det("user", "create", "norole", "--password-file", password)
        cls.cluster.det("rbac", "unassign-role", "Editor", "-u", "norole", "-w", "Uncategorized")
        cls.norole = Attacker(cls.cluster, "norole", password.read_text().strip())

    @classmethod
    def tearDownClass(cls):
        stop_cleanly(cls.cluster)

    def proc(self, name):
        return f"/proc/{self.cluster.master.pid}/{name}"

    def memory(self, key):
        """VmRSS or VmHWM (its peak) of the master in bytes."""
        with open(self.proc("status")) as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith(key + ":"))

    def begin(self):
        with open(self.proc("clear_refs"), "w") as peak:
            peak.write("5")  # The peak begins at the present size.
        self.before = self.memory("VmRSS")

    def check_growth(self, what):
        growth = self.memory("VmHWM") - self.before
        print(f"{what}: the master grew by {growth / (1 << 20):.1f} MiB")
        self.assertLess(growth, GROWTH)

    def flood(self, authorization):
        """Sends BODIES bodies as far as the master reads. Returns the heads of the replies."""
        sockets = []
        for _ in range(BODIES):
            one = socket.create_connection(("127.0.0.1", self.cluster.port))
            one.sendall(f"POST /api/v1/experiments HTTP/1.1\r\nHost: m\r\n{authorization}"
                        f"Content-Type: application/json\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode())
            one.setblocking(False)
            sockets.append(one)
        piece = b'{"config":"' + b"x" * (1 << 20)
        end = time.monotonic() + SECONDS
        sending = {one: 0 for one in sockets}
        while sending and time.monotonic() < end:
            for one in list(sending):
                try:
                    sending[one] += one.send(piece[:BODY_BYTES - 1 - sending[one]])
                    if sending[one] >= BODY_BYTES - 1:
                        del sending[one]
                except BlockingIOError:
                    pass
                except OSError:
                    del sending[one]
        heads = []
        for one in sockets:
            try:
                heads.append(one.recv(12))
            except OSError:
                heads.append(b"")
            one.close()
        return heads

    def test_anonymous_bodies_are_not_read(self):
        self.begin()
        heads = self.flood("")
        self.check_growth(f"{BODIES} anonymous bodies of {BODY_BYTES >> 20} MiB")
        self.assertIn(b"HTTP/1.1 401", heads)

    def test_bodies_of_a_user_without_a_role_are_not_read(self):
        self.begin()
        heads = self.flood(f"Authorization: Bearer {self.norole.token}\r\n")
        self.check_growth(f"{BODIES} bodies of a user without a role")
        self.assertIn(b"HTTP/1.1 403", heads)

    def test_bodies_with_an_invented_allocation_token_are_not_read(self):
        self.begin()
        heads = self.flood("Grpc-Metadata-x-allocation-token: Bearer invented\r\n")
        self.check_growth(f"{BODIES} bodies with an invented token")
        self.assertIn(b"HTTP/1.1 401", heads)

    def test_small_bodies_with_an_invented_token_are_not_awaited(self):
        headers = {"allocation": "Grpc-Metadata-x-allocation-token: Bearer invented", "user": "Authorization: Bearer invented"}
        for name, header in headers.items():
            for path in ("/api/v1/trials/1/metrics", "/api/v1/task/logs", "/api/v1/checkpoints", "/api/v1/experiments"):
                with self.subTest(token=name, path=path), socket.create_connection(("127.0.0.1", self.cluster.port)) as one:
                    one.sendall(f"POST {path} HTTP/1.1\r\nHost: m\r\n{header}\r\n"
                                "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n".encode())
                    one.settimeout(SECONDS)
                    self.assertEqual(one.recv(12), b"HTTP/1.1 401")

    def test_grpc_uploads_of_a_user_without_a_role_are_not_read(self):
        code = self.cluster.dir / "noise"
        code.mkdir()
        (code / "noise").write_bytes(secrets.token_bytes(40 << 20))
        config = self.cluster.dir / "flood.yaml"
        config.write_text(CONFIG)
        env = {**self.cluster.env, "DET_USER_TOKEN": self.norole.token}
        self.begin()
        calls = [subprocess.Popen([self.cluster.bin / "det", "experiment", "create", config, code], env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(4)]
        for call in calls:
            text, _ = call.communicate(timeout=120)
            self.assertNotEqual(call.returncode, 0, text)
            self.assertIn("norole", text)
        self.check_growth("4 uploads of 40 MiB over gRPC of a user without a role")


if __name__ == "__main__":
    unittest.main()
