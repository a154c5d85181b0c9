#!/usr/bin/env python3
"""Nodes of a real Kubernetes API server that run the first container of a pod as a process.

Usage: k8s_kubelet.py DIR NODES CPUS. Real are the API server, the scheduler and the controllers. Not real: images
(ignored), volumes (a directory of the pod, put in place of the mount path in arguments), and the completion index of a
Job, which the controllers of 1.20 lack: the first free index of the Job's pods, as an annotation of the pod.
"""
import base64
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request

INDEX = "batch.kubernetes.io/job-completion-index"
MERGE = "application/merge-patch+json"


class Api:
    """The few calls of a kubelet."""

    def __init__(self, dir):
        settings = dict(word.split("=", 1) for word in (dir / "settings").read_text().split())
        self.server, self.token = settings["server"], settings["token"]
        self.tls = ssl.create_default_context(cafile=dir / "certs" / "apiserver.crt")

    def open(self, method, path, body=None, kind="application/json", timeout=20):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": kind}
        request = urllib.request.Request(self.server + path, data=data, method=method, headers=headers)
        return urllib.request.urlopen(request, context=self.tls, timeout=timeout)

    def call(self, *arguments):
        """Returns the object, or None for a missing one. Repeats while the server is away."""
        while not stopping.is_set():
            try:
                with self.open(*arguments) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                if error.code in (404, 409):
                    return None
                if error.code < 500:
                    raise
                stopping.wait(0.2)
            except OSError:
                stopping.wait(0.2)
        return None


stopping = threading.Event()


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Pod:
    """A pod on a node of this process."""
    indexes = {}  # uid of a Job: indexes of its live pods
    lock = threading.Lock()

    def __init__(self, api, dir, pod):
        self.api, self.pod, self.meta = api, pod, pod["metadata"]
        self.path = f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"
        self.dir = dir / "pods" / self.meta["uid"]
        self.process = self.index = None
        self.removed = False
        threading.Thread(target=self.run, daemon=True).start()

    def take_index(self):
        owner = (self.meta.get("ownerReferences") or [{"uid": self.meta["uid"]}])[0]["uid"]
        with self.lock:
            taken = self.indexes.setdefault(owner, set())
            self.index = next(i for i in range(1000) if i not in taken)
            taken.add(self.index)
        self.meta.setdefault("annotations", {})[INDEX] = str(self.index)
        self.api.call("PATCH", self.path, {"metadata": {"annotations": {INDEX: str(self.index)}}}, MERGE)
        return owner

    def mounts(self, container):
        """Directories of the volumes by mount path."""
        found = {}
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            directory = self.dir / mount["name"]
            directory.mkdir(parents=True, exist_ok=True)
            secret = volumes[mount["name"]].get("secret")
            if secret:
                path = f"/api/v1/namespaces/{self.meta['namespace']}/secrets/{secret['secretName']}"
                for key, value in (self.api.call("GET", path) or {}).get("data", {}).items():
                    (directory / key).write_bytes(base64.b64decode(value))
                    (directory / key).chmod(0o600)
            found[mount["mountPath"]] = str(directory)
        return found

    def variables(self, container):
        values = {}
        for entry in container.get("env", []):
            field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            annotation = re.fullmatch(r"metadata\.annotations\['(.*)'\]", field)
            values[entry["name"]] = self.meta["annotations"].get(annotation[1], "") if annotation else entry.get("value", "")
        return values

    def run(self):
        owner = self.take_index()
        container = self.pod["spec"]["containers"][0]
        mounts, values = self.mounts(container), self.variables(container)

        def place(word):
            word = re.sub(r"\$\((\w+)\)", lambda found: values.get(found[1], found[0]), word)
            for path, directory in mounts.items():
                word = word.replace(path, directory)
            return word

        command = [place(word) for word in container.get("command", []) + container.get("args", [])]
        with open(self.dir.parent / f"{self.meta['name']}.log", "ab") as log:
            try:
                self.process = subprocess.Popen(command, env={**os.environ, **values}, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, start_new_session=True)
            except OSError as error:
                log.write(f"{error}\n".encode())
        code = 127
        if self.process:
            self.status("Running", {"running": {"startedAt": now()}})
            code = self.process.wait()
        with self.lock:
            self.indexes[owner].discard(self.index)
        shutil.rmtree(self.dir, ignore_errors=True)
        lines = (self.dir.parent / f"{self.meta['name']}.log").read_text(errors="replace").splitlines() or [""]
        if not self.removed:
            self.status("Succeeded" if code == 0 else "Failed", {"terminated": {
                "exitCode": code if code >= 0 else 128 - code, "message": lines[-1], "startedAt": now(), "finishedAt": now(),
                "reason": "Completed" if code == 0 else "Error"}})

    def status(self, phase, state):
        types = ("Initialized", "Ready", "ContainersReady", "PodScheduled") if phase == "Running" else ()
        name = self.pod["spec"]["containers"][0]["name"]
        self.api.call("PATCH", self.path + "/status", {"status": {
            "phase": phase, "startTime": now(), "podIP": "127.0.0.1", "hostIP": "127.0.0.1",
            "conditions": [{"type": one, "status": "True", "lastTransitionTime": now()} for one in types],
            "containerStatuses": [{"name": name, "image": "process", "imageID": "", "ready": phase == "Running",
                                   "restartCount": 0, "state": state}]}}, MERGE)

    def signal(self, number):
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def delete(self, grace):
        """The deletion of a kubelet: SIGTERM to the first process, SIGKILL to all after the grace."""
        self.removed = True
        if self.process:
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.api.call("DELETE", self.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.meta["uid"]}})


class Nodes:
    def __init__(self, dir, names, cpus):
        self.api, self.dir, self.names, self.cpus = Api(dir), dir, names, cpus
        self.pods, self.deleted = {}, set()

    def register(self):
        for name in self.names:
            self.api.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
            capacity = {"cpu": str(self.cpus), "memory": "8Gi", "pods": "100"}
            self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
                "capacity": capacity, "allocatable": capacity, "conditions": [
                    {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(),
                     "lastTransitionTime": now()}]}}, MERGE)
            self.api.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE)

    def beat(self):
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        while not stopping.is_set():
            for name in self.names:
                spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()[:-1] + ".000000Z"}
                lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
                         "metadata": {"name": name, "namespace": "kube-node-lease"}}
                if self.api.call("PATCH", f"{leases}/{name}", lease, MERGE) is None:
                    self.api.call("POST", leases, lease)
            stopping.wait(5)

    def take(self, pod):
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") not in self.names:
            return
        if uid not in self.pods and pod["status"].get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp"):
            self.pods[uid] = Pod(self.api, self.dir, pod)
        if pod["metadata"].get("deletionTimestamp") and uid not in self.deleted:
            self.deleted.add(uid)
            known = self.pods.get(uid)
            grace = pod["metadata"].get("deletionGracePeriodSeconds", 30)
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            last = (known.delete, (grace,)) if known else (self.api.call, ("DELETE", path, {"gracePeriodSeconds": 0}))
            threading.Thread(target=last[0], args=last[1], daemon=True).start()

    def follow(self):
        while not stopping.is_set():
            listed = self.api.call("GET", "/api/v1/pods")
            for pod in (listed or {}).get("items", []):
                self.take(pod)
            version = (listed or {}).get("metadata", {}).get("resourceVersion")
            try:
                query = f"/api/v1/pods?watch=1&resourceVersion={version}&timeoutSeconds=60"
                with self.api.open("GET", query, None, "application/json", 70) as stream:
                    for line in stream:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        self.take(event["object"])
            except (OSError, ValueError):
                stopping.wait(0.2)

    def end(self):
        for pod in self.pods.values():
            if pod.process and pod.process.poll() is None:
                os.killpg(pod.process.pid, signal.SIGKILL)


def main():
    dir, count, cpus = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    (dir / "pods").mkdir(exist_ok=True)
    nodes = Nodes(dir, [f"n{i + 1}" for i in range(count)], cpus)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    nodes.register()
    threading.Thread(target=nodes.beat, daemon=True).start()
    threading.Thread(target=nodes.follow, daemon=True).start()
    print("ready", flush=True)
    stopping.wait()
    nodes.end()


main()
