"""A copy of the master's data (backup, disk, replica) contains no secret: not the dump of the database, and not the files
in the data directory beside the keys."""
import http.server
import json
import os
import re
import secrets
import stat
import subprocess
import threading
import unittest

from attacker import Attacker
from cluster import Cluster, processes, wait_until
from test_foreign_buckets import Recorder

BUILD = os.environ["DET_E2E_BUILD"]
# The keys themselves, and what the master hands out on its machine. All have mode 0600.
KEPT = {"secrets.key", "admin-password", "agent-join-token"}


class SecretsAtRest(unittest.TestCase):
    def setUp(self):
        self.planted = {}
        # A store that accepts everything.
        store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        threading.Thread(target=store.serve_forever, daemon=True).start()
        self.addCleanup(store.server_close)
        self.addCleanup(store.shutdown)
        endpoint = f"http://127.0.0.1:{store.server_port}"
        self.storage = {"type": "s3", "bucket": "models", "endpoint_url": endpoint, "access_key": "AKIAEXAMPLE"}
        self.cluster = Cluster(BUILD, ["--allowed-storage-hosts", "127.0.0.1", "--allowed-storage-buckets", endpoint + "/models"])
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        self.admin = Attacker.admin(self.cluster)

    def plant(self, kind):
        self.planted[kind] = f"canary-{secrets.token_hex(16)}"
        return self.planted[kind]

    def call(self, method, path, body=None):
        status, text = self.admin.call(method, path, body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def dump(self):
        """All data of the master's database as SQL."""
        # Line 4 of the file is the port, line 5 the directory of the socket.
        lines = (self.cluster.dir / "master" / "postgres" / "data" / "postmaster.pid").read_text().split("\n")
        done = subprocess.run(["pg_dump", "-h", lines[4], "-p", lines[3], "-U", "det", "--data-only", "det"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def plant_configurations(self):
        """Submits a secret in every place of a configuration. Returns the paused experiment."""
        cluster = self.cluster
        (cluster.dir / "code").mkdir()
        id = cluster.create(cluster.dir / "code", f"""
name: secretive
entrypoint: "true"
searcher: {{name: single, metric: loss, max_length: {{batches: 1}}}}
data: {{secrets: {{token: {self.plant("data.secrets")}}}}}
environment:
  environment_variables: [DB_PASSWORD={self.plant("variable of an experiment")}]
  registry_auth: {{username: u, password: {self.plant("registry_auth")}}}
""", "--paused")
        storage = {**self.storage, "secret_key": self.plant("key of a storage")}
        status, body = self.admin.put_experiment("stored", f"checkpoint_storage: {json.dumps(storage)}")
        self.assertEqual(status, 200, body)
        template = cluster.dir / "template.yaml"
        template.write_text(f"# with a comment\ndata: {{secrets: {{key: {self.plant('template')}}}}}\n")
        cluster.det("template", "create", "secretive", template)
        policy = cluster.dir / "policy.yaml"
        policy.write_text("invariant_config:\n  environment:\n    environment_variables:\n"
                          f"      - API_TOKEN={self.plant('config policy')}\n")
        cluster.det("config-policies", "set", "tasks", policy)
        command = cluster.dir / "command.yaml"
        command.write_text(f"environment: {{environment_variables: [DB_PASSWORD={self.plant('variable of a command')}]}}\n")
        cluster.det("command", "run", "-d", "--config-file", command, "true")
        self.call("POST", "/api/v1/workspaces", {"name": "sealed", "checkpointStorageConfig": {
            **self.storage, "secret_key": self.plant("key of a workspace")}})
        self.call("POST", "/api/v1/generic-tasks", {"config": "entrypoint: [sleep, \"1\"]\nresources: {slots: 0}\nenvironment:\n"
                                            f"  environment_variables: [MY_SECRET={self.plant('variable of a task')}]\n"})
        return id

    def plant_identities(self):
        """Creates a credential of every kind that the platform issues."""
        cluster = self.cluster
        password = cluster.dir / "password-ada"
        password.write_text(self.plant("password") + "\n")
        cluster.det("user", "create", "ada", "--password-file", password)
        self.planted["session"] = self.admin.token
        self.planted["access token"] = self.call("POST", "/api/v1/tokens", {"lifespan": "1h", "description": "ci"})["token"]
        self.planted["join token"] = cluster.det("join-token", "create").strip().split(".")[0]
        cluster.start_agent()
        task = cluster.det("cmd", "run", "-d", "sleep", "600").strip()
        mine = lambda: [env for _, env in processes().values() if f"DET_TASK_ID={task}\0" in env]  # noqa: E731
        environment = wait_until("the command", mine)[0]
        self.planted["token of an allocation"] = re.search("DET_SESSION_TOKEN=([^\0]+)", environment)[1]

    def plant_webhook(self):
        self.call("POST", "/api/v1/webhooks", {
            "url": f"https://hooks.example.org/{self.plant('path of a webhook')}", "webhookType": "WEBHOOK_TYPE_SLACK",
            "name": "secretive", "mode": "WEBHOOK_MODE_WORKSPACE", "workspaceId": 1,
            "triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}]})

    def test_no_secret_is_in_a_dump_of_the_database_or_in_the_files_of_the_master(self):
        cluster = self.cluster
        id = self.plant_configurations()
        self.plant_identities()
        self.plant_webhook()
        # A restarted master reads everything back.
        cluster.kill_master()
        cluster.start_master()
        self.assertIn("PAUSED", cluster.experiment(id)["state"])
        dump = self.dump()
        self.assertIn("secretive", dump)
        found = [f"{name}: in the dump" for name, secret in self.planted.items() if secret in dump]
        self.assertGreaterEqual(len(set(re.findall(r"sealed:1:[0-9a-f]{16}:", dump))), 1)
        cluster.stop_master()  # A checkpoint of PostgreSQL: all pages are files.
        for path in (cluster.dir / "master").rglob("*"):
            if not path.is_file():
                continue
            if path.name in KEPT:
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
                continue
            data = path.read_bytes()
            found += [f"{name}: in {path}" for name, secret in self.planted.items() if secret.encode() in data]
        self.assertEqual(found, [])
        print(f"{len(self.planted)} kinds of secrets: none at rest")


if __name__ == "__main__":
    unittest.main()
