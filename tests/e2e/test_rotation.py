"""`det-master rotate-secret`: everything is sealed with another key, logins end, agents and data stay."""
import os
import subprocess
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]


class Rotation(unittest.TestCase):
    def rotate(self, cluster, expect=0):
        done = subprocess.run([cluster.bin / "det-master", "rotate-secret", "--data-dir", cluster.dir / "master"],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def login(self, cluster):
        cluster.det("user", "login", "admin", "--password-file", cluster.dir / "master" / "admin-password")

    def test_a_rotation_ends_logins_and_keeps_agents_and_secrets(self):
        with Cluster(BUILD) as cluster:
            cluster.start_agent()
            template = cluster.dir / "template.yaml"
            template.write_text("data: {secrets: {key: canary-rotation}}\n")
            cluster.det("template", "create", "secretive", template)
            keys, join = cluster.dir / "master" / "secrets.key", cluster.dir / "master" / "agent-join-token"
            old_keys, old_join = keys.read_text().split(), join.read_text()
            # A running master has the lock of the database.
            self.rotate(cluster, expect=1)
            self.assertEqual(keys.read_text().split(), old_keys)
            cluster.stop_master()
            out = self.rotate(cluster)
            self.assertRegex(out, "Ended [1-9][0-9]* logins and access tokens")
            new_keys = keys.read_text().split()
            self.assertEqual((len(new_keys), new_keys[1:]), (2, old_keys))
            cluster.start_master()
            self.assertNotEqual(cluster.run_det("user", "whoami").returncode, 0)
            self.login(cluster)
            # A secret that cannot be decrypted is an error; one that can is masked.
            self.assertIn("****", cluster.det("template", "describe", "secretive"))
            self.assertNotEqual(join.read_text(), old_join)
            wait_until("the agent to come back", lambda: any(
                a["id"] == "a1" and a.get("connected") for a in cluster.det_json("agent", "list", "--json")))
            cluster.det("command", "run", "true")


if __name__ == "__main__":
    unittest.main()
