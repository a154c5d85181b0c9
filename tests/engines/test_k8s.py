"""Pilots on a real Kubernetes control plane: Jobs, gangs, release, reasons, a server that is away, deleted pods."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from cluster import Cluster, wait_until
from pilots import IDLE, PilotTests
from test_main_job import BUILD, HERE, ROOT, tiny

ENGINES = pathlib.Path(__file__).resolve().parent
SCRIPT = ENGINES / "k8s.sh"
CACHE = os.environ.get("DET_K8S_CACHE", os.path.expanduser("~/.cache/det-k8s"))

MASTER = """
resource_pools:
  - pool_name: default
    provider:
      type: kubernetes
      kubeconfig: {kubeconfig}
      namespace: pilots
      max_pilots: 2
      slots_per_node: 2
      max_nodes: 3
      idle_timeout: {idle}s
      start_timeout: 8s
      grace: 25s
      image: none
      agent: {agent}
      agent_arguments: [--artificial-slots=2, --sandbox=best_effort, "--bind-mounts={mounts}:rw"]
      master: {master}
      join_token_secret: det-join-token
      resources: {{cpu: 3}}
"""


def built():
    return subprocess.run([ENGINES / "k8s_build.sh", "built", CACHE], check=False).returncode == 0


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@unittest.skipUnless(built(), "Kubernetes is not built; run tests/engines/k8s_build.sh ~/.cache/det-k8s")
class OnKubernetes(PilotTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="det-k8s-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.addClassCleanup(subprocess.run, [SCRIPT, "stop", cls.dir / "k8s"], check=False)
        subprocess.run([SCRIPT, "start", cls.dir / "k8s", CACHE], check=True, timeout=300, stdout=subprocess.DEVNULL)
        cls.kubectl("create", "namespace", "pilots")
        # The master has the rights of the documented role, and no others.
        manifest = (ROOT / "deploy" / "kubernetes" / "master.yaml").read_text()
        role = next(one for one in manifest.split("---\n") if "kind: Role\n" in one)
        (cls.dir / "role.yaml").write_text(role)
        cls.kubectl("apply", "-n", "pilots", "-f", cls.dir / "role.yaml")
        cls.kubectl("create", "rolebinding", "det-master", "-n", "pilots", "--role=det-master", "--user=determinant")
        config = cls.dir / "master.yaml"
        cls.cluster = Cluster(BUILD, ("--config", config))
        cls.cluster.port = free_port()
        config.write_text(MASTER.format(
            kubeconfig=cls.dir / "k8s" / "master.kubeconfig", idle=IDLE, agent=cls.cluster.bin / "det-agent",
            master=f"127.0.0.1:{cls.cluster.port}", mounts=cls.cluster.dir))
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.kubectl("create", "secret", "generic", "det-join-token", "-n", "pilots",
                    f"--from-file=token={cls.cluster.dir / 'master' / 'agent-join-token'}")
        cls.empty = cls.cluster.dir / "empty"
        cls.empty.mkdir()

    @classmethod
    def kubectl(cls, *arguments):
        done = subprocess.run([f"{CACHE}/bin/kubectl", "--kubeconfig", cls.dir / "k8s" / "kubeconfig", *arguments],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {arguments}: {done.stderr}")
        return done.stdout

    def tearDown(self):
        wait_until("all pilots to be released", lambda: not self.jobs() and not self.pods(), timeout=90)

    def objects(self, kind):
        return json.loads(self.kubectl("get", kind, "-n", "pilots", "-o", "json"))["items"]

    def jobs(self):
        """Jobs that have not ended."""
        return [job["metadata"]["name"] for job in self.objects("jobs") if not job["status"].get("conditions")]

    def pods(self):
        """Pods that have not ended."""
        return [pod["metadata"]["name"] for pod in self.objects("pods") if pod["status"]["phase"] in ("Pending", "Running")]

    def test_two_gangs_that_need_the_same_nodes_both_complete(self):
        ids = [self.create("det-launch -- sh -c 'echo node $GROUP_RANK'", slots=4) for _ in range(2)]
        for id in ids:
            self.cluster.wait_state(id, "COMPLETED")

    def test_a_gang_that_finds_too_few_nodes_is_explained_and_released(self):
        id = self.create("true", slots=6)  # three nodes, and there are two
        wait_until("the reason", lambda: "Unschedulable" in self.explanation(id))
        wait_until("the release", lambda: "only some of its pods" in self.explanation(id), timeout=60)
        self.end(id)

    def test_the_api_server_restarts_and_neither_trials_nor_submissions_are_lost(self):
        running = self.create("sleep 30")
        trial = self.cluster.trial_id(running)
        wait_until("the trial to run", lambda: self.cluster.task_processes(trial))
        before = self.jobs()
        pid = int((self.dir / "k8s" / "apiserver.pid").read_text())
        os.kill(pid, 9)
        queued = self.create("true", slots=2)  # needs a second pilot
        wait_until("the error", lambda: "does not reply" in self.explanation(queued), timeout=60)
        subprocess.run([SCRIPT, "restart", self.dir / "k8s", CACHE, "apiserver"], check=True, timeout=300)
        self.cluster.wait_state(queued, "COMPLETED")
        self.cluster.wait_state(running, "COMPLETED")
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)
        self.assertEqual(len(before), 1)

    def test_the_trial_of_a_deleted_pod_is_saved_and_goes_on(self):
        id = self.cluster.create(HERE / "fixtures" / "tiny", tiny(60000, 60000, 60000))
        trial = self.cluster.trial_id(id)
        wait_until("the trial to report", lambda: self.cluster.metrics(trial, "training"), timeout=300)
        self.kubectl("delete", "pod", "-n", "pilots", "--wait=false", self.pods()[0])
        wait_until("a checkpoint", lambda: self.cluster.trial(trial)["latestCheckpointUuid"])
        self.cluster.wait_state(id, "COMPLETED", timeout=300)
        self.assertEqual(self.cluster.trial(trial)["restarts"], 0)

    def test_a_deleted_job_is_replaced_and_the_trial_goes_on(self):
        id = self.create("sleep 600")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: self.cluster.task_processes(trial))
        before = self.jobs()
        self.kubectl("delete", "job", "-n", "pilots", before[0])
        wait_until("the trial to run on another pilot", lambda: self.jobs() and self.jobs() != before
                   and self.cluster.task_processes(trial), timeout=120)
        self.end(id)

    def test_a_master_that_is_killed_finds_its_pilot_again(self):
        id = self.create("sleep 15")
        wait_until("the submission", self.jobs)
        self.cluster.kill_master()
        self.cluster.start_master()
        self.cluster.wait_state(id, "COMPLETED")
        self.assertLessEqual(len(self.jobs()), 1, "the submission was repeated under another name")

    def test_a_refused_submission_is_explained(self):
        self.kubectl("create", "quota", "none", "-n", "pilots", "--hard=count/jobs.batch=0")
        try:
            wait_until("the quota to be known", lambda: self.objects("quota")[0].get("status", {}).get("hard"))
            id = self.create("true")
            wait_until("the reason", lambda: "exceeded quota" in self.explanation(id))
        finally:
            self.kubectl("delete", "quota", "none", "-n", "pilots")
        self.cluster.wait_state(id, "COMPLETED")


if __name__ == "__main__":
    unittest.main()
