"""Users and calls of the attacks: an editor of one workspace, and detached experiments that the editor owns."""
import io
import json
import os
import tarfile
import time
import urllib.error
import urllib.request

from cluster import wait_until

SEARCHER = "searcher: {name: single, metric: loss, max_length: {batches: 10}}"


class Attacker:
    """A signed-in user that calls the HTTP API of a cluster."""

    def __init__(self, cluster, name, password):
        self.cluster = cluster
        status, body = self.call("POST", "/api/v1/auth/login", {"username": name, "password": password})
        assert status == 200, body
        self.token = json.loads(body)["token"]

    token = None
    workspace = None  # Experiments are created in its project `attacks`.

    @classmethod
    def admin(cls, cluster):
        return cls(cluster, "admin", cluster.password())

    @classmethod
    def editor(cls, cluster, name="mallory"):
        """Creates an editor of a new workspace with the project `attacks`, named like the user, and signs in."""
        password = cluster.dir / f"password-{name}"
        password.write_text("correct horse battery staple\n")
        cluster.det("user", "create", name, "--password-file", password)
        cluster.det("workspace", "create", name)
        cluster.det("project", "create", name, "attacks")
        cluster.det("rbac", "assign-role", "Editor", "-u", name, "-w", name)
        editor = cls(cluster, name, password.read_text().strip())
        editor.workspace = name
        return editor

    def call(self, method, path, body=None, raw=False):
        """(status, body) of a call with a JSON body. The body is bytes with `raw`."""
        request = urllib.request.Request(self.cluster.url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.cluster.trust()) as answer:
                status, got = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, got = error.code, error.read()
        return status, got if raw else got.decode(errors="replace")

    def put_experiment(self, name, *lines):
        """(status, body) of PUT for a detached experiment with the configuration lines."""
        place = [f"workspace: {self.workspace}", "project: attacks"] if self.workspace else []
        config = "\n".join([f"name: {name}", SEARCHER, *place, *lines, ""])
        return self.call("PUT", f"/api/v1/experiments/by-external-id/{name}", {"config": config, "unmanaged": True})

    def start_trial(self, experiment):
        """Starts the trial of a detached experiment. Returns its task id."""
        status, body = self.call("POST", "/api/v1/trials", {"experimentId": experiment, "hparams": {}, "unmanaged": True})
        assert status == 200, body
        trial = json.loads(body)["trial"]
        status, body = self.call("POST", f"/api/v1/trials/{trial['id']}/start", {"trialId": trial["id"], "resume": True})
        assert status == 200, body
        return trial["taskId"]

    def report_checkpoint(self, task, uuid, files, steps=1):
        """(status, body) of a report; `files` maps names to sizes."""
        return self.call("POST", "/api/v1/checkpoints", {
            "uuid": uuid, "taskId": task, "allocationId": task, "metadata": {"steps_completed": steps},
            "state": "STATE_COMPLETED", "training": {}, "resources": {name: str(size) for name, size in files.items()}})

    def download(self, uuid):
        """{name: bytes} of a checkpoint's files, as far as the download got."""
        _, body = self.call("GET", f"/checkpoints/{uuid}", raw=True)
        return unpacked(body)


STOP_SECONDS = 10


def stop_cleanly(cluster):
    """Ends an attacked master with SIGTERM: within 10 s, with exit code 0, and without a process of PostgreSQL."""
    server = int((cluster.dir / "master/postgres/data/postmaster.pid").read_text().split()[0])
    begun = time.monotonic()
    code = cluster.stop_master(timeout=60)
    took = time.monotonic() - begun
    print(f"the master ended {took:.1f} s after SIGTERM")
    assert code == 0 and took <= STOP_SECONDS, f"exit code {code} after {took:.1f} s"
    wait_until("the end of PostgreSQL", lambda: not os.path.exists(f"/proc/{server}"), timeout=1)


def unpacked(body):
    """{name: bytes} of the readable files of a tar.gz."""
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r|gz") as archive:
            for entry in archive:
                if entry.isfile():
                    found[entry.name] = archive.extractfile(entry).read()
    except (tarfile.TarError, EOFError, OSError):
        pass
    return found
