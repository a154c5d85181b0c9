"""Commands on real processes: output, exit code, files, kill, the queue, and a dead master."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from cluster import Cluster, processes, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
POOL_SETTINGS = """
task_container_defaults:
  environment_variables: [WHOSE=master, ALL=yes]
  startup_hook: echo hook of the master
resource_pools:
- pool_name: large
  task_container_defaults:
    environment_variables: [WHOSE=pool]
    startup_hook: |
      echo hook of the pool
      export FROM_HOOK=exported
- pool_name: broken
  task_container_defaults: {startup_hook: exit 9}
"""


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=1)

    def run_command(self, *arguments, expect=0):
        """Runs a command to its end. Returns its id and the lines that it printed."""
        done = self.cluster.run_det("command", "run", *arguments)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        id = done.stdout.split("(id: ", 1)[1].split(")")[0]
        entries = [json.loads(line) for line in self.cluster.det("cmd", "logs", id, "--json", "--source", "task").splitlines()]
        return id, [entry["log"] for entry in entries]

    def detach(self, *arguments):
        return self.cluster.det("cmd", "run", "-d", *arguments).strip()

    def command(self, id):
        return self.cluster.det_json("command", "describe", id, "--json")

    def wait_state(self, id, state, timeout=30):
        wait_until(f"command {id} to be {state}", lambda: self.command(id)["state"] == "STATE_" + state, timeout)
        return self.command(id)

    def processes_of(self, id):
        return [pid for pid, (_, env) in processes().items() if f"DET_TASK_ID={id}\0" in env]

    def test_a_command_passes_on_its_output_and_exit_code(self):
        id, lines = self.run_command("sh", "-c", "echo to stdout; echo $DET_TASK_TYPE; echo to stderr >&2; exit 7", expect=7)
        self.assertEqual(sorted(lines), ["COMMAND", "to stderr", "to stdout"])
        row = self.command(id)
        self.assertEqual((row["state"], row["exitCode"], row["username"]), ("STATE_TERMINATED", 7, "admin"))
        self.assertIn("7", row["exitStatus"])
        self.assertIn(id, self.cluster.det("command", "list", "-q"))
        self.assertIn("entrypoint", self.cluster.det("command", "config", id))

    def test_a_task_has_the_user_of_its_submitter_and_the_group_of_its_workspace(self):
        c = self.cluster
        if c.det_json("agent", "list", "--json")[0]["sandbox"] == "off":
            self.skipTest("this machine permits no sandbox")
        token = json.loads(c.post("/api/v1/auth/login", {"username": "admin", "password": c.password()})[1])["token"]
        c.det("user", "link-with-agent-user", "admin", "--agent-uid", "2000000000", "--agent-user", "ada",
              "--agent-gid", "300", "--agent-group", "staff")
        show = ("sh", "-c", "echo $(id -un):$(id -u):$(id -gn):$(id -g):$USER; echo mine > file && stat -c %u:%g file")
        try:
            _, lines = self.run_command(*show)
            self.assertEqual(lines, ["ada:2000000000:staff:300:ada", "2000000000:300"])
            status, body = c.post("/api/v1/workspaces", {"name": "Group", "agentUserGroup": {
                "agentGid": 1234, "agentGroup": "lab"}}, token)
            self.assertEqual(status, 200, body)
            _, lines = self.run_command("-w", "Group", *show)
            self.assertEqual(lines, ["ada:2000000000:lab:1234:ada", "2000000000:1234"])
            # The user is a name only: files of this account on the machine stay out of reach.
            _, lines = self.run_command("sh", "-c", "cat /proc/self/uid_map; unshare -r true || echo no namespace")
            self.assertEqual(lines[0].split()[0::2], ["2000000000", "1"])
            self.assertIn("no namespace", lines)
        finally:
            c.post("/api/v1/users/1", {"agentUserGroup": {}}, token, "PATCH")

    def test_a_task_may_write_beside_its_working_directory_and_sees_nothing_of_others_there(self):
        _, lines = self.run_command("sh", "-c", "ls -A ..; mkdir ../data && echo kept > ../data/set && cat ../data/set; "
                                    "(echo x > ../spec.json) 2>/dev/null || echo refused")
        self.assertEqual(lines[-2:], ["kept", "refused"])
        self.assertEqual(set(lines[:-2]), {"run", "spec.json", "workdir"})

    def test_bind_mounts_show_system_directories_and_those_of_the_agent(self):
        mounts = "bind_mounts=[{host_path: /bin, container_path: /tools}, {host_path: %s, container_path: here}]"
        shared = self.cluster.dir / "shared"
        shared.mkdir()
        (shared / "seen").write_text("it is\n")
        _, lines = self.run_command("--config", mounts % shared, "sh", "-c",
                                    "ls /tools/sh; cat here/seen; touch /tools/x 2>/dev/null || echo read-only")
        self.assertEqual(lines, ["/tools/sh", "it is", "read-only"])
        done = self.cluster.run_det("command", "run", "--config",
                                    "bind_mounts=[{host_path: /root, container_path: /x}]", "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("do not see /root", done.stdout + done.stderr)

    def test_bind_mounts_below_each_other_need_a_place_in_the_outer_one(self):
        mounts = "bind_mounts=[{host_path: /usr/bin, container_path: /data/%s}, {host_path: %s, container_path: /data}]"
        outer = self.cluster.dir / "outer"
        (outer / "tools").mkdir(parents=True)
        (outer / "seen").write_text("it is\n")
        _, lines = self.run_command("--config", mounts % ("tools", outer), "sh", "-c", "cat /data/seen; ls /data/tools/sh")
        self.assertEqual(lines, ["it is", "/data/tools/sh"])
        done = self.cluster.run_det("command", "run", "--config", mounts % ("none", outer), "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/usr/bin cannot be mounted at /data/none", done.stdout + done.stderr)
        self.assertIn(f"create {outer}/none on the agent's machine", done.stdout + done.stderr)
        self.assertFalse((outer / "none").exists())

    def test_arguments_arrive_unchanged(self):
        # Flags of the command are not parsed by det.
        _, lines = self.run_command("printf", "%s\n", "-c", "a  b", "$HOME", "--config", "ü", "")
        self.assertEqual(lines, ["-c", "a  b", "$HOME", "--config", "ü", ""])

    def test_a_command_gets_its_files(self):
        files = self.cluster.dir / "files"
        (files / "inner").mkdir(parents=True)
        (files / "inner" / "data.txt").write_text("forty-two\n")
        _, lines = self.run_command("-c", files, "--config", "environment.environment_variables=[COLOR=blue]",
                                    "sh", "-c", "cat inner/data.txt; echo $COLOR")
        self.assertEqual(lines, ["forty-two", "blue"])
        _, lines = self.run_command("--config", "work_dir=/usr", "pwd")
        self.assertEqual(lines, ["/usr"])

    def test_a_command_without_slots_starts_on_a_full_cluster_and_a_kill_takes_seconds(self):
        holder = self.detach("sleep", "600")
        self.wait_state(holder, "RUNNING")
        waits = self.detach("true")
        self.run_command("--config", "resources.slots=0", "true")
        self.assertEqual(self.command(waits)["state"], "STATE_QUEUED")
        jobs = {job["entityId"]: job for job in self.cluster.det_json("job", "list", "--json")}
        self.assertEqual((jobs[waits]["type"], jobs[waits]["summary"]["state"]), ("TYPE_COMMAND", "STATE_QUEUED"))
        self.assertEqual(jobs[holder]["allocatedSlots"], 1)
        self.cluster.det("command", "set", "priority", waits, 3)
        self.assertEqual(self.command(waits)["priority"], 3)
        status, text = self.cluster.get(f"/api/v1/commands/{waits}/explain", self.token())
        self.assertEqual(status, 200, text)
        self.assertIn("command " + holder, json.loads(text)["explanation"]["text"])
        begun = time.monotonic()
        self.cluster.det("command", "kill", holder)
        self.wait_state(holder, "TERMINATED", timeout=10)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(self.processes_of(holder), [])
        self.wait_state(waits, "TERMINATED")
        self.assertEqual(self.command(waits)["exitCode"], 0)
        self.cluster.det("command", "kill", holder)  # A repeated kill succeeds.
        self.cluster.det("command", "kill", "no-such", expect=1)

    def test_a_waiting_command_is_killed_without_a_run(self):
        holder = self.detach("sleep", "600")
        self.wait_state(holder, "RUNNING")
        waits = self.detach("touch", self.cluster.dir / "it-ran")
        self.cluster.det("command", "kill", waits, holder)
        self.assertEqual(self.wait_state(waits, "TERMINATED")["exitStatus"], "killed before it began")
        self.wait_state(holder, "TERMINATED")
        self.assertFalse((self.cluster.dir / "it-ran").exists())

    def test_a_command_keeps_running_and_is_followed_while_the_master_is_down(self):
        go, count = self.cluster.dir / "go", self.cluster.dir / "count"
        follower = subprocess.Popen(
            [self.cluster.bin / "det", "command", "run", "sh", "-c",
             f"echo x >> {count}; echo before; while [ ! -e {go} ]; do sleep 0.1; done; echo after; exit 3"],
            env=self.cluster.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        lines = []
        while not lines or "before" not in lines[-1]:
            lines.append(follower.stdout.readline())
            self.assertTrue(lines[-1], lines)
        self.cluster.kill_master()
        go.touch()
        self.cluster.start_master()
        rest, _ = follower.communicate(timeout=90)
        self.assertIn("after", rest)
        self.assertEqual(follower.returncode, 3)
        self.assertEqual(count.read_text(), "x\n")

    def test_a_bad_configuration_is_refused_with_all_its_problems(self):
        done = self.cluster.run_det("cmd", "run", "--config", "resources.slots=-1", "--config", "shade=blue", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("resources.slots", done.stderr)
        self.assertIn("shade", done.stderr)
        done = self.cluster.run_det("cmd", "run", "--config", "resources.slots=2", "true")
        self.assertEqual(done.returncode, 2, "no agent has two slots")
        self.assertEqual(self.cluster.run_det("cmd", "run").returncode, 2)

    def token(self):
        status, body = self.cluster.post("/api/v1/auth/login", {"username": "admin", "password": self.cluster.password()})
        self.assertEqual(status, 200, body)
        return json.loads(body)["token"]

    def test_the_http_api_launches_lists_and_kills(self):
        token = self.token()
        status, body = self.cluster.post("/api/v1/commands", {
            "config": {"entrypoint": ["cat", "a.txt"], "description": "over http", "resources": {"slots": 0}},
            "files": [{"path": "a.txt", "type": 48, "content": "aGVsbG8K", "mode": 420}]}, token)
        self.assertEqual(status, 200, body)
        launched = json.loads(body)["command"]
        self.wait_state(launched["id"], "TERMINATED")
        status, body = self.cluster.get(f"/api/v1/tasks/{launched['id']}/logs", token)
        self.assertEqual(status, 200)
        self.assertIn("hello", [json.loads(line)["result"]["log"] for line in body.splitlines()])
        status, body = self.cluster.get("/api/v1/commands?limit=500&orderBy=ORDER_BY_DESC", token)
        self.assertEqual(json.loads(body)["commands"][0]["description"], "over http")
        status, body = self.cluster.get(f"/api/v1/tasks/{launched['id']}", token)
        self.assertEqual(json.loads(body)["task"]["taskType"], "TASK_TYPE_COMMAND")
        status, _ = self.cluster.get("/api/v1/commands/none", token)
        self.assertEqual(status, 404)
        status, _ = self.cluster.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}}, "guessed")
        self.assertEqual(status, 401)


# Calls the API as a task and prints its token, its user and the statuses.
CALLER = """
import json, os, urllib.error, urllib.request
token = os.environ.get("DET_USER_TOKEN", "")
master = os.environ["DET_MASTER"]
def call(method, path, body=None):
    request = urllib.request.Request((master if "://" in master else "http://" + master) + path, method=method,
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}
calls = json.loads(os.environ["CALLS"])
print(json.dumps({"token": token, "allocation": os.environ["DET_ALLOCATION_ID"], "own": os.environ["DET_SESSION_TOKEN"],
                  "answers": [call(*each) for each in calls]}), flush=True)
"""


END_LIMIT = 1  # Seconds from the end of a task to that of its token.


class TaskUserTokens(unittest.TestCase):
    """Tasks with a token of their owner: off by default, on with `task_user_tokens`."""

    def start(self, *options):
        cluster = Cluster(BUILD, options)
        cluster.__enter__()
        self.addCleanup(cluster.close)
        cluster.start_agent(slots=1)
        self.files = cluster.dir / "files"
        self.files.mkdir()
        (self.files / "call.py").write_text(CALLER)
        return cluster

    @staticmethod
    def log_in(cluster, name, password):
        status, body = cluster.post("/api/v1/auth/login", {"username": name, "password": password})
        assert status == 200, body
        return json.loads(body)["token"]

    def run_calls(self, cluster, session, calls, then="exit 0"):
        """Makes `calls` in a task of the owner of `session`. Returns the task's id and what it printed."""
        env = {**cluster.env, "DET_USER_TOKEN": session}
        id = subprocess.run(
            [cluster.bin / "det", "command", "run", "-d", "-c", self.files, "--config", "resources.slots=0", "--config",
             "environment.environment_variables=" + json.dumps(["CALLS=" + json.dumps(calls)]), "sh", "-c",
             f"python3 call.py; {then}"], env=env, check=True, capture_output=True, text=True).stdout.strip()

        def printed():
            lines = [json.loads(line)["log"] for line in
                     cluster.det("command", "logs", id, "--json", "--source", "task").splitlines()]
            return next((line for line in lines if line.startswith("{")), None)
        return id, json.loads(wait_until("the calls of the task", printed, timeout=30))

    def ends(self, cluster, token, ended):
        """The token, which is in use, ends with the task."""
        def used():
            cluster.get("/api/v1/me", token)
            return ended()
        wait_until("the end of the task", used)
        wait_until("the end of the token", lambda: cluster.get("/api/v1/me", token)[0] == 401, timeout=END_LIMIT)

    def test_a_task_has_no_token_of_its_owner_by_default(self):
        cluster = self.start()
        session = self.log_in(cluster, "admin", cluster.password())
        _, found = self.run_calls(cluster, session, [("GET", "/api/v1/me")], "sleep 600")
        self.assertEqual((found["token"], found["answers"][0][0]), ("", 401))
        # The token that the task would have.
        made = f"task-{found['allocation']}.{found['own']}"
        self.assertEqual(cluster.get("/api/v1/me", made)[0], 401)

    def test_a_task_calls_the_api_as_its_owner_until_it_ends(self):
        cluster = self.start("--task-user-tokens")
        password = cluster.dir / "password-ada"
        password.write_text("correct horse battery staple\n")
        cluster.det("user", "create", "ada", "--password-file", password)
        for name in ("open", "closed"):
            cluster.det("workspace", "create", name)
        ids = {each["name"]: each["id"] for each in cluster.det_json("workspace", "list", "--json")}
        cluster.det("rbac", "assign-role", "Editor", "-u", "ada", "-w", "open")
        admin, ada = self.log_in(cluster, "admin", cluster.password()), self.log_in(cluster, "ada", password.read_text().strip())
        me = json.loads(cluster.get("/api/v1/me", ada)[1])["user"]["id"]
        calls = [("GET", "/api/v1/me"), ("POST", f"/api/v1/workspaces/{ids['open']}/projects", {"name": "of-a-task"}),
                 ("GET", f"/api/v1/workspaces/{ids['closed']}"),
                 ("POST", f"/api/v1/workspaces/{ids['closed']}/projects", {"name": "x"}),
                 ("POST", "/api/v1/users", {"user": {"username": "eve", "active": True}}),
                 ("POST", "/api/v1/tokens", {"userId": me}), ("POST", f"/api/v1/users/{me}/password", "a new password 1")]
        id, found = self.run_calls(cluster, ada, calls, "sleep 600")
        self.assertEqual(found["answers"][0][1]["user"]["username"], "ada")
        self.assertEqual(found["answers"][1][1]["project"]["username"], "ada")
        # What ada may not do, and what would outlast the task.
        self.assertEqual([status for status, _ in found["answers"]], [200, 200, 404, 404, 403, 403, 403])
        self.assertEqual(cluster.get("/api/v1/me", found["token"])[0], 200)
        self.assertEqual(cluster.get("/api/v1/me", found["own"])[0], 401)
        cluster.det("command", "kill", id)
        self.ends(cluster, found["token"], lambda: cluster.det_json("command", "describe", id, "--json")["state"] ==
                  "STATE_TERMINATED")

        # A task of an administrator is an Editor; it ends with its owner's account, too.
        _, found = self.run_calls(cluster, admin, calls[2:5], "sleep 600")
        self.assertEqual([status for status, _ in found["answers"]], [200, 200, 403])
        _, found = self.run_calls(cluster, ada, calls[:1], "sleep 600")
        self.assertEqual(cluster.post(f"/api/v1/users/{me}", {"active": False}, admin, "PATCH")[0], 200)
        self.assertEqual(cluster.get("/api/v1/me", found["token"])[0], 401)

    def test_a_trial_calls_the_api_as_its_owner_until_it_ends(self):
        cluster = self.start("--task-user-tokens")
        experiment = cluster.create(self.files, "name: t\nentrypoint: [sleep, \"600\"]\n"
                                                "searcher: {name: single, metric: loss, max_length: {batches: 1}}\n")
        trial = cluster.trial_id(experiment)
        pid = wait_until("the trial", lambda: cluster.task_processes(trial))[0]
        environment = dict(line.split("=", 1) for line in processes()[pid][1].split("\0") if "=" in line)
        token = environment["DET_USER_TOKEN"]
        status, body = cluster.get("/api/v1/me", token)
        self.assertEqual((status, json.loads(body)["user"]["username"]), (200, "admin"))
        cluster.det("experiment", "kill", experiment)
        self.ends(cluster, token, lambda: cluster.experiment(experiment)["state"].endswith("CANCELED"))


class PoolDefaults(unittest.TestCase):
    """Settings and startup hook of a pool go over those of the master."""

    @classmethod
    def setUpClass(cls):
        file = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="det-e2e-"))) / "master.yaml"
        file.write_text(POOL_SETTINGS)
        cls.cluster = Cluster(BUILD, ("--config", file))
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        for name in ("default", "large", "broken"):
            cls.cluster.start_agent(name, slots=1, options=("--pool", name))

    def output(self, pool, expect=0):
        """Runs a command in a pool. Returns the lines that it printed."""
        done = self.cluster.run_det("command", "run", "--config", f"resources.resource_pool={pool}", "sh", "-c",
                                    "echo $WHOSE $ALL $FROM_HOOK")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        id = done.stdout.split("(id: ", 1)[1].split(")")[0]
        logs = self.cluster.det("cmd", "logs", id, "--json", "--source", "task")
        return [json.loads(line)["log"] for line in logs.splitlines()]

    def test_a_command_has_the_defaults_of_its_pool(self):
        self.assertEqual(self.output("default"), ["hook of the master", "master yes"])
        self.assertEqual(self.output("large"), ["hook of the pool", "pool yes exported"])

    def test_a_failing_hook_ends_the_task_with_its_exit_code(self):
        self.assertEqual(self.output("broken", expect=9), [])

    def test_a_trial_has_the_defaults_of_its_pool(self):
        empty = self.cluster.dir / "empty"
        empty.mkdir()
        id = self.cluster.create(empty, "\n".join([
            "name: defaults", "entrypoint: echo $WHOSE $ALL $FROM_HOOK", "max_restarts: 0", "resources: {resource_pool: large}",
            "searcher: {name: single, metric: x, max_length: {batches: 1}}", ""]))
        self.cluster.wait_state(id, "COMPLETED")
        log = self.cluster.logs(self.cluster.trial_id(id))
        self.assertIn("hook of the pool", log)
        self.assertIn("pool yes exported", log)
        self.assertIn("WHOSE=pool", self.cluster.det("experiment", "config", id))

    def test_a_bound_pool_runs_work_of_its_workspaces_only(self):
        c = self.cluster
        for name in ("Vision", "Speech"):
            c.det("workspace", "create", name)
        run = ("cmd", "run", "--config", "resources.resource_pool=large", "-w")
        c.det("resource-pool", "bindings", "add", "large", "Vision")
        try:
            self.assertEqual(c.det("rp", "bindings", "list-workspaces", "large", "-q").split(), ["Vision"])
            refused = c.run_det(*run, "Speech", "true")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("large", refused.stderr)
            c.det(*run, "Vision", "true")
            c.det("rp", "bindings", "replace", "large", "Speech")
            c.det(*run, "Speech", "true")
        finally:
            c.det("rp", "bindings", "remove", "large", "Vision", "Speech")
        self.assertEqual(c.det("rp", "bindings", "list-workspaces", "large", "-q"), "")
        pools = {pool["name"]: pool["numAgents"] for pool in c.det_json("resource-pool", "list", "--json")}
        self.assertEqual(pools, {"broken": 1, "default": 1, "large": 1})


if __name__ == "__main__":
    unittest.main()
