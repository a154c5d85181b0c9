"""A copy of the database (backup, disk, replica) contains no secret of a configuration."""
import os
import re
import secrets
import stat
import subprocess
import unittest

from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]

CONFIG = """
name: secretive
entrypoint: "true"
searcher: {{name: single, metric: loss, max_length: {{batches: 1}}}}
data: {{secrets: {{token: {data}}}}}
environment:
  environment_variables: [DB_PASSWORD={variable}]
  registry_auth: {{username: u, password: {registry}}}
"""


class SecretsAtRest(unittest.TestCase):
    def dump(self, cluster):
        """All data of the master's database as SQL."""
        # Line 4 of the file is the port, line 5 the directory of the socket.
        lines = (cluster.dir / "master" / "postgres" / "data" / "postmaster.pid").read_text().split("\n")
        done = subprocess.run(["pg_dump", "-h", lines[4], "-p", lines[3], "-U", "det", "--data-only", "det"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_dump_of_the_database_holds_no_secret_of_a_configuration(self):
        planted = {name: f"canary-{name}-{secrets.token_hex(12)}" for name in ("data", "variable", "registry", "template")}
        with Cluster(BUILD) as cluster:
            path = cluster.dir / "code"
            path.mkdir()
            id = cluster.create(path, CONFIG.format(**planted), "--paused")
            template = cluster.dir / "template.yaml"
            template.write_text(f"data: {{secrets: {{key: {planted['template']}}}}}\n")
            cluster.det("template", "create", "secretive", template)
            # A restarted master reads everything back.
            cluster.kill_master()
            cluster.start_master()
            self.assertIn("PAUSED", cluster.experiment(id)["state"])
            dump = self.dump(cluster)
            self.assertIn("secretive", dump)
            for name, secret in planted.items():
                self.assertNotIn(secret, dump, name)
            self.assertGreaterEqual(len(set(re.findall(r"sealed:1:[0-9a-f]{16}:", dump))), 1)
            key = cluster.dir / "master" / "secrets.key"
            self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
