"""A user asks for diagnoses while the storage of the cluster does not reply. Queries of all users go on."""
import concurrent.futures
import os
import socket
import time
import unittest

from attacker import Attacker
from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
CALLS = 8


class SlowStorage(unittest.TestCase):
    def test_diagnoses_hold_up_no_query(self):
        silent = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        cluster = Cluster(BUILD)
        config = cluster.dir / "master.yaml"
        config.write_text(f"""
allowed_storage_hosts: 127.0.0.1
checkpoint_storage: {{type: s3, bucket: models, endpoint_url: "http://127.0.0.1:{silent.getsockname()[1]}", access_key: k, secret_key: s}}
""")
        cluster.master_options += ["--config", str(config)]
        self.enterContext(cluster)
        user = Attacker.editor(cluster)
        with concurrent.futures.ThreadPoolExecutor(CALLS) as pool:
            calls = [pool.submit(user.call, "GET", "/api/v1/diagnosis") for _ in range(CALLS)]
            wait_until("all calls but one", lambda: sum(call.done() for call in calls) >= CALLS - 1, timeout=8)
            begun = time.monotonic()
            status, body = user.call("GET", "/api/v1/experiments")
            took = time.monotonic() - begun
            silent.close()  # Ends the probe that waits.
            answers = [call.result() for call in calls]
        self.assertEqual(status, 200, body)
        self.assertLess(took, 5)
        self.assertEqual(sorted(status for status, _ in answers), [200] + [503] * (CALLS - 1), answers)
        self.assertIn("another diagnosis is running", dict(answers)[503])


if __name__ == "__main__":
    unittest.main()
