"""A process on the master's machine floods its gRPC port with header frames, which gRPC 1.51 keeps in memory."""
import os
import pathlib
import socket
import struct
import unittest

from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]
FRAME_BYTES = 16 * 1024
FRAMES = 6400  # 100 MiB
HEADERS, SETTINGS, CONTINUATION = 1, 4, 9


def frame(kind, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, 0]) + struct.pack(">I", stream) + payload


class LoopbackFlood(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)

    def memory(self):
        """Resident memory of the master in bytes."""
        pages = pathlib.Path(f"/proc/{self.cluster.master.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def test_a_flood_of_header_frames_on_loopback_ends_its_connection_and_takes_no_memory(self):
        before = self.memory()
        sent = 0
        with socket.create_connection(("127.0.0.1", self.cluster.port), timeout=20) as flood:
            flood.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, b"")
                          + frame(HEADERS, 1, b"\x82"))
            try:
                for _ in range(FRAMES):
                    flood.sendall(frame(CONTINUATION, 1, b"\x00" * FRAME_BYTES))
                    sent += FRAME_BYTES
            except OSError:
                pass
        self.assertLess(sent, 16 << 20)
        self.assertLess(self.memory() - before, 64 << 20)
        self.cluster.det("user", "whoami")


if __name__ == "__main__":
    unittest.main()
