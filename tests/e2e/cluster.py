"""A real cluster for a test: det-master with a private PostgreSQL, det-agent, the det command. Everything
lives in one temporary directory and ends with the test. A failed test keeps the directory and prints its
path."""
import functools
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

POLL = 0.05  # Seconds between polls of a condition without an event.


def wait_until(what, condition, timeout=60):
    """Returns the first truthy value of condition(). AssertionError naming `what` after the timeout."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s in vain for {what}")
        select.select([], [], [], POLL)


def processes():
    """Maps pid to (command name, environment text) for all readable processes."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = ((entry / "comm").read_text().strip(),
                                          (entry / "environ").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return found


class Failed(AssertionError):
    """A det command returned an unexpected exit code."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """`with Cluster(build) as cluster:` starts the master. Agents are started by start_agent(). Experiments may
    name the directories `storage_paths`, relative to the cluster's own, as checkpoint storage."""

    def __init__(self, build, master_options=(), listen="127.0.0.1", tls=False, storage_paths=(".",)):
        self.bin = pathlib.Path(build).resolve() / "bin"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="det-e2e-"))
        self.listen, self.tls = listen, tls
        self.master_options = list(master_options) + (["--security-tls-enabled"] if tls else [])
        allowed = ",".join(os.path.normpath(self.dir / path) for path in storage_paths)
        self.master_options += ["--allowed-storage-paths", allowed] if allowed else []
        self.master = None
        self.agents = {}
        # Tasks see the files of the test, as its owner.
        self.bind_mounts = f"{self.dir}:rw"
        self.url = None
        self.port = 0
        self.token = None  # of the user of `det`
        self.env = {**os.environ, "XDG_CONFIG_HOME": str(self.dir / "config"), "NO_COLOR": "1"}
        self.env.pop("DET_MASTER_CERT_FILE", None)
        if tls:
            self.env["DET_MASTER_CERT_FILE"] = str(self.dir / "master" / "tls" / "ca.pem")
        for name in ("DET_MASTER", "DETERMINED_MASTER", "DET_MASTER_ADDR", "DET_USER", "DET_PASS", "DET_USER_TOKEN"):
            self.env.pop(name, None)

    def __enter__(self):
        try:
            self.start_master()
            self.det("user", "login", "admin", "--password-file", str(self.dir / "master" / "admin-password"))
        except BaseException:
            self.close(keep=True)
            raise
        return self

    def __exit__(self, kind, *_):
        self.close(keep=kind is not None)

    # ---- master ----
    def start_master(self, timeout=60):
        log = open(self.dir / "master.log", "ab")
        self.master = subprocess.Popen(
            [self.bin / "det-master", "--data-dir", self.dir / "master", "--listen", f"{self.listen}:{self.port}",
             *self.master_options], stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        end = time.monotonic() + timeout
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([self.master.stdout], [], [], max(0, end - time.monotonic()))
            piece = os.read(self.master.stdout.fileno(), 4096) if readable else b""
            if not piece:
                raise AssertionError(f"det-master did not get ready; see {self.dir}/master.log\n" + self.log_tail("master.log"))
            line += piece
        self.url = line.decode().split("ready ", 1)[1].split()[0]
        self.port = int(self.url.rsplit(":", 1)[1])
        self.env["DET_MASTER"] = self.url
        # The address that agents use and pass to their trials.
        self.address = self.url if self.tls else f"{self.listen}:{self.port}"

    def kill_master(self):
        os.kill(self.master.pid, signal.SIGKILL)
        self.master.wait()

    def stop_master(self, timeout=30):
        self.master.terminate()
        return self.master.wait(timeout)

    # ---- agents ----
    def start_agent(self, name="a1", slots=1, options=(), environment=None, user=None):
        self.launch_agent(name, slots, options, environment, user)
        wait_until(f"agent {name} to connect", lambda: any(
            a["id"] == name and a.get("connected") for a in self.look("/api/v1/agents").get("agents", [])))

    def launch_agent(self, name, slots, options=(), environment=None, user=None):
        """Starts an agent without waiting for its connection. It joins with the token of the master's machine,
        unless `options` name another one. `user`: number of its user, if it is another one."""
        if "--stop-timeout" not in options:
            options = ("--stop-timeout", "10s", *options)
        if "--join-token-file" not in options:
            options = ("--join-token-file", self.dir / "master" / "agent-join-token", *options)
        log = open(self.dir / f"agent-{name}.log", "ab")
        self.agents[name] = subprocess.Popen(
            [self.bin / "det-agent", "--master", self.address, "--data-dir", self.dir / f"agent-{name}",
             "--id", name, "--artificial-slots", str(slots), "--bind-mounts", self.bind_mounts, *options],
            stdout=log, stderr=log, start_new_session=True, env={**os.environ, **(environment or {})},
            **({} if user is None else {"user": user, "group": user, "extra_groups": []}))

    def kill_agent(self, name="a1"):
        os.kill(self.agents[name].pid, signal.SIGKILL)
        self.agents[name].wait()

    def stop_agent(self, name="a1", timeout=40):
        self.agents[name].terminate()
        return self.agents.pop(name).wait(timeout)

    # ---- the det command ----
    def run_det(self, *arguments, cwd=None, timeout=120):
        return subprocess.run([str(self.bin / "det"), *map(str, arguments)], cwd=cwd, env=self.env, timeout=timeout,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def det(self, *arguments, expect=0, cwd=None, timeout=120):
        done = self.run_det(*arguments, cwd=cwd, timeout=timeout)
        if done.returncode != expect:
            raise Failed(f"det {' '.join(map(str, arguments))} ended with {done.returncode}, not {expect}\n"
                         f"stdout: {done.stdout}\nstderr: {done.stderr}")
        return done.stdout

    def det_json(self, *arguments):
        return json.loads(self.det(*arguments))

    # ---- experiments ----
    def create(self, directory, config, *options):
        """Submits `config` (text) with `directory` as its context. Returns the experiment's id."""
        path = self.dir / "config.yaml"
        path.write_text(config)
        out = self.det("experiment", "create", path, directory, *options)
        return int(out.split("Created experiment ")[1].split()[0])

    def experiment(self, id):
        return self.det_json("experiment", "describe", id, "--json")

    def trial_id(self, experiment):
        return wait_until("the first trial", lambda: self.experiment(experiment)["trials"])[0]["id"]

    def trial(self, id):
        return self.det_json("trial", "describe", id, "--metrics", "--json")

    def logs(self, trial, *options):
        return self.det("trial", "logs", *options, trial)

    def wait_state(self, experiment, *states, timeout=120):
        def reached():
            found = self.look(f"/api/v1/experiments/{experiment}")
            state = (found["experiment"] if found else self.experiment(experiment))["state"].removeprefix("STATE_")
            if state in ("ERROR", "CANCELED", "COMPLETED") and state not in states:
                trial = self.experiment(experiment)["trials"]
                raise AssertionError(f"experiment {experiment} became {state}, not {states}\n"
                                     + (self.logs(trial[0]["id"])[-4000:] if trial else ""))
            return state in states and state
        return wait_until(f"experiment {experiment} to be {' or '.join(states)}", reached, timeout)

    def metrics(self, trial, group):
        """[(total batches, metrics)] of a group ("training", "validation"), in order."""
        rows = []
        for workload in self.trial(trial)["workloads"]:
            if workload.get(group):
                rows.append((workload[group]["totalBatches"], workload[group]["metrics"]["avgMetrics"]))
        return rows

    @functools.cached_property
    def admin_token(self):
        status, body = self.post("/api/v1/auth/login", {"username": "admin", "password": self.password()})
        assert status == 200, body
        return json.loads(body)["token"]

    def reports(self, trial, group):
        """The metrics of the reports of any group, in order."""
        status, body = self.get(f"/api/v1/trials/metrics/trial_metrics?trialIds={trial}&group={group}", self.admin_token)
        assert status == 200, body
        return [report["metrics"] for line in body.splitlines() if line
                for report in json.loads(line)["result"]["metrics"]]

    def metrics_best(self, trial, name):
        """The highest value of a validation metric."""
        return max((metrics[name] for _, metrics in self.metrics(trial, "validation")), default=0)

    def trust(self):
        """The SSL context that verifies the master; None without TLS."""
        return ssl.create_default_context(cafile=self.env["DET_MASTER_CERT_FILE"]) if self.tls else None

    def get(self, path, token=None):
        """(status, body) of an HTTP GET."""
        request = urllib.request.Request(self.url + path)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.trust()) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def look(self, path):
        """The JSON of an HTTP GET as the user of `det`; {} if it fails. For polls, because each start of `det` costs
        25 ms of CPU time."""
        self.token = self.token or self.det("dev", "auth-token").strip()
        try:
            status, body = self.get(path, self.token)
        except OSError:
            return {}
        if status == 401:
            self.token = None
        return json.loads(body) if status == 200 else {}

    def post(self, path, body, token=None, method="POST"):
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode(), method=method)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.trust()) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def password(self):
        return (self.dir / "master" / "admin-password").read_text().strip()

    def task_processes(self, trial):
        """Processes of a trial, found by the variable that every process of an allocation inherits."""
        return [pid for pid, (_, env) in processes().items() if f"DET_TRIAL_ID={trial}\0" in env
                and f"DET_MASTER={self.url}\0" in env]

    def log_tail(self, name, lines=30):
        path = self.dir / name
        return "\n".join(path.read_text(errors="replace").split("\n")[-lines:]) if path.exists() else ""

    def evidence(self):
        return "\n\n".join(f"$ tail {path.name}\n{self.log_tail(path.name)}" for path in sorted(self.dir.glob("*.log")))

    # ---- shutdown ----
    def close(self, keep=False):
        for name in list(self.agents):
            try:
                self.stop_agent(name)
            except subprocess.TimeoutExpired:
                self.agents.pop(name, None)
        if self.master and self.master.poll() is None:
            try:
                self.stop_master()
            except subprocess.TimeoutExpired:
                self.kill_master()
        marker = str(self.dir)
        for pid, (_, env) in processes().items():
            if pid != os.getpid() and self.url and f"DET_MASTER={self.url}\0" in env:
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["pkill", "-KILL", "-f", marker], check=False)
        if keep:
            print(f"\nkept for inspection: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
