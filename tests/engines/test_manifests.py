"""What goes to Kubernetes is valid by its published API: the manifests, the chart, and what the master submits."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

import yaml

from cluster import Cluster, free_port, wait_until
from k8s_schema import Schema
from test_main_job import BUILD, ROOT, command

HERE = pathlib.Path(__file__).resolve().parent
MANIFESTS = ROOT / "deploy" / "kubernetes"
GO_LIBRARY = pathlib.Path("/usr/share/gocode")
KUBECONFIG = """
clusters: [{{name: test, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: me, user: {{token: secret}}}}]
contexts: [{{name: test, context: {{cluster: test, user: me}}}}]
current-context: test
"""
# Every key that changes a Job.
PROVIDER = {
    "type": "kubernetes", "namespace": "det", "max_pilots": 1, "slots_per_node": 2, "max_nodes": 2, "image": "image:1",
    "master": "https://master:8080", "join_token_secret": "token", "agent_arguments": ["--slot-type=cuda"], "walltime": "4h",
    "resources": {"nvidia.com/gpu": "{slots}", "cpu": 8, "memory": "32Gi"}, "node_selector": {"zone": "a"}, "grace": "90s",
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}], "priority_class": "low", "labels": {"team": "a"},
    "pod_template": {"metadata": {"annotations": {"a": "b"}},
                     "spec": {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}],
                              "containers": [{"name": "agent", "volumeMounts": [{"name": "c", "mountPath": "/c"}]}]}}}


class Server(http.server.BaseHTTPRequestHandler):
    """Stores what is created, and lists it. PodGroups have the version of Kubernetes 1.36."""

    protocol_version = "HTTP/1.1"
    objects, lock = [], threading.Lock()

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        text = (json.dumps(body) + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def created(self, plural):
        with self.lock:
            return [one for kind, one in self.objects if kind == plural]

    def do_GET(self):
        path, _, query = self.path.partition("?")
        plural = path.split("/namespaces/det/")[1]
        if "/" in plural:  # the ConfigMap that owns the Jobs
            return self.reply(404, {"message": "not found"})
        version = str(len(self.objects))
        if "watch=1" not in query:
            return self.reply(200, {"metadata": {"resourceVersion": version}, "items": self.created(plural)})
        threading.Event().wait(0.2)
        events = [{"type": "ADDED", "object": one} for one in self.created(plural)]
        return self.reply(200, events[-1] if events else
                          {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "v1alpha3" in self.path:
            return self.reply(404, {"message": "not found"})
        with self.lock:
            body["metadata"].update(uid=f"uid-{len(self.objects)}", resourceVersion=str(len(self.objects) + 1))
            self.objects.append((self.path.rpartition("/")[2], body))
        return self.reply(201, body)


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = Schema(ROOT / "build" / "k8s-schema")

    def check(self, document):
        self.assertEqual(self.schema.problems(document), [], json.dumps(document, indent=1))

    def plain(self):
        return [document for name in ("master", "postgres")
                for document in yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text())]

    def test_the_schema_refuses_what_a_server_would_refuse(self):
        spec = {"paralelism": 2, "template": {"spec": {"containers": [{"image": "x", "env": [{"name": "a", "value": 1}]}]}}}
        found = self.schema.problems({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec})
        self.assertEqual(sorted(found), ["Job.spec.paralelism does not exist",
                                         "Job.spec.template.spec.containers[0].env[0].value: 1 is no string",
                                         "Job.spec.template.spec.containers[0].name is missing"])

    def test_the_plain_manifests_are_valid(self):
        for document in self.plain():
            self.check(document)

    @unittest.skipUnless(shutil.which("go") and (GO_LIBRARY / "src/github.com/Masterminds/sprig").exists(),
                         "needs Go (deploy/deps.sh engines)")
    def test_the_chart_is_valid_and_equals_the_plain_manifests(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="det-chart-")))
        env = {**os.environ, "GO111MODULE": "off", "GOPATH": str(GO_LIBRARY), "GOCACHE": str(ROOT / "build" / "go-cache"), "GOFLAGS": "-p=1"}
        subprocess.run(["go", "build", "-o", folder / "render", HERE / "render_chart.go"], env=env, check=True, timeout=300)

        def render(values):
            (folder / "values.yaml").write_text(yaml.safe_dump(values))
            done = subprocess.run([folder / "render", MANIFESTS / "chart", folder / "values.yaml"], check=True, stdout=subprocess.PIPE)
            return json.loads(done.stdout)

        def settings(documents):
            """Takes the settings of the master out of its ConfigMap, and the digest that follows from them."""
            for one in documents:
                one["spec"]["template"]["metadata"].pop("annotations", None) if one["kind"] == "StatefulSet" else None
            found = next(one for one in documents if one["kind"] == "ConfigMap")
            return yaml.safe_load(found["data"].pop("master.yaml"))
        default, plain = render({}), self.plain()
        for document in default:
            self.check(document)
        self.assertEqual(settings(default), settings(plain))
        self.assertEqual(default, plain)
        other = render({"names": "det.example.org", "settings": {"cluster_name": "x"}, "storage": {"checkpointsClass": "nfs"},
                        "database": {"url": "host=db"}, "pools": [{"name": "a", "provider": PROVIDER}]})
        for document in other:
            self.check(document)
        self.assertNotIn("det-postgres", [one["metadata"]["name"] for one in other])
        self.assertEqual(settings(other)["resource_pools"][0]["provider"]["pod_template"], PROVIDER["pod_template"])

    def submitted(self, **keys):
        """The Job and the PodGroups that the master creates for a gang of two nodes."""
        Server.objects.clear()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="det-manifests-")))
        (folder / "kubeconfig").write_text(KUBECONFIG.format(port=server.server_port))
        pool = {"pool_name": "default", "provider": {**PROVIDER, "kubeconfig": str(folder / "kubeconfig"), **keys}}
        (folder / "master.yaml").write_text(yaml.safe_dump({"resource_pools": [pool]}))
        with Cluster(BUILD, ("--config", folder / "master.yaml")) as cluster:
            (cluster.dir / "empty").mkdir()
            cluster.create(cluster.dir / "empty", command("true", resources="{slots_per_trial: 4}"))
            kinds = ("jobs", "podgroups") if "gang" in keys else ("jobs",)
            wait_until("the objects", lambda: set(kinds) <= {kind for kind, _ in Server.objects})
        self.assertEqual(len(Server.objects), len(kinds) + 1, "and the ConfigMap")
        found = {kind: one for kind, one in Server.objects}
        self.check(found["jobs"])
        self.check(found["configmaps"])
        return found["jobs"], found.get("podgroups")

    def test_the_job_of_a_plain_gang_is_valid(self):
        job, _ = self.submitted()
        self.assertEqual((job["spec"]["parallelism"], job["spec"]["completionMode"]), (2, "Indexed"))

    def test_the_job_for_kueue_is_valid(self):
        job, _ = self.submitted(queue="gpus")
        self.assertTrue(job["spec"]["suspend"])

    def test_a_pod_group_and_its_job_are_valid(self):
        job, group = self.submitted(gang="pod_group")
        self.check(group)
        self.assertEqual(job["spec"]["template"]["spec"]["schedulingGroup"], {"podGroupName": group["metadata"]["name"]})

    def test_the_job_for_volcano_is_valid(self):
        job, group = self.submitted(gang="volcano", queue="gpus")
        self.assertEqual(group["apiVersion"], "scheduling.volcano.sh/v1beta1")
        self.assertEqual(job["spec"]["template"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"], group["metadata"]["name"])


if __name__ == "__main__":
    unittest.main()
