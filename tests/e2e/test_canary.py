"""Secrets must not leak. Unique strings are planted as secrets, a cluster runs with full logging, and all
visible output is searched for them. Also checks that every act is in the audit log."""
import json
import os
import pathlib
import secrets
import ssl
import threading
import time
import unittest
import urllib.error
import urllib.request

from cluster import Cluster, processes, wait_until

BUILD = os.environ["DET_E2E_BUILD"]

TRIAL = """
import os, time
print("trial has its secret:", os.environ["DB_PASSWORD"][:6])
while not os.path.exists(os.environ["STOP_FILE"]): time.sleep(0.05)
"""


def canary(kind):
    return f"canary-{kind}-{secrets.token_hex(12)}"


class Watch(threading.Thread):
    """Collects the command lines of all processes repeatedly."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.done = set(), threading.Event()

    def run(self):
        while not self.done.wait(0.02):
            for entry in pathlib.Path("/proc").iterdir():
                if entry.name.isdigit():
                    try:
                        self.seen.add((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                    except OSError:
                        continue


class Canary(unittest.TestCase):
    def setUp(self):
        self.planted, self.heard = {}, []
        self.defaults = canary("default")
        self.planted["a registry's password of the defaults"] = self.defaults
        config = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"det-canary-{os.getpid()}.yaml"
        config.write_text("task_container_defaults:\n  registry_auth: {username: u, password: " + self.defaults + "}\n")
        self.addCleanup(config.unlink)
        self.cluster = Cluster(BUILD, ["--config", str(config), "--log-level", "trace"], tls=True)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.close)
        self.watch = Watch()
        self.watch.start()
        self.planted["the first admin's password"] = self.cluster.password()

    # ---- calls ----
    def call(self, method, path, body=None, token=None, headers=()):
        """Returns (status, headers and body)."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.cluster.url + path, data=data, method=method, headers=dict(headers))
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.cluster.trust()) as answer:
                return answer.status, str(answer.headers) + answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, str(error.headers) + error.read().decode(errors="replace")

    def hear(self, *arguments, **options):
        """Makes a call. search() fails if its response contains a secret."""
        status, answer = self.call(*arguments, **options)
        self.heard.append((f"{arguments[0]} {arguments[1]}", answer))
        return status, answer

    def say(self, *arguments, **options):
        """Runs a det command. search() fails if its output contains a secret."""
        done = self.cluster.run_det(*arguments, **options)
        self.heard.append(("det " + " ".join(map(str, arguments)), done.stdout + done.stderr))
        return done

    def log_in(self, name, password):
        status, answer = self.call("POST", "/api/v1/auth/login", {"username": name, "password": password})
        self.assertEqual(status, 200, answer)
        token = json.loads(answer[answer.index("\n\n") + 1:] if "\n\n" in answer else answer)["token"]
        self.planted[f"{name}'s session"] = token
        return token

    # ---- the test ----
    def test_no_secret_leaks_and_every_act_is_audited(self):
        cluster = self.cluster
        admin = self.log_in("admin", cluster.password())
        tokens = self.make_accounts(admin)
        self.join_an_agent()
        id, trial = self.run_a_trial()
        self.make_mistakes()
        events = self.listen_to_events(tokens["ada"])
        for who, token in {"admin": admin, **tokens, "nobody": None}.items():
            self.read_everything(id, trial, token, who)
        for words in (("experiment", "describe", id, "--json"), ("experiment", "config", id), ("trial", "logs", trial),
                      ("experiment", "list", "--json"), ("user", "list", "--json"), ("token", "list", "--json"),
                      ("join-token", "list", "--json"), ("audit", "list", "--json", "--tail", "1000"), ("master", "info"),
                      ("template", "describe", "with-secrets"), ("agent", "list", "--json"), ("job", "list", "--json")):
            self.say(*words)
        self.assertIn("password: '****'", self.say("master", "config", "show").stdout.replace('"', "'"))
        self.assertGreater(self.say("master", "logs").stdout.count("\n"), 50, "everything is logged")
        (cluster.dir / "stop").write_text("")
        cluster.wait_state(id, "COMPLETED")
        self.check_revocation(admin, tokens)
        self.check_throttle()
        events.join(10)
        self.check_audit()
        self.search()

    def make_accounts(self, admin):
        password = canary("pw") + "A1"
        self.planted["a user's password"] = password
        tokens = {}
        for name in ("ada", "eve"):
            status, answer = self.hear("POST", "/api/v1/users", {"user": {"username": name, "active": True},
                                                                 "password": password, "isHashed": False}, token=admin)
            self.assertEqual(status, 200, answer)
            tokens[name] = self.log_in(name, password)
        status, answer = self.call("POST", "/api/v1/tokens", {"lifespan": "1h", "description": "ci"}, token=tokens["ada"])
        self.assertEqual(status, 200, answer)
        self.access = json.loads(answer[answer.index("\n\n"):])
        self.planted["an access token"] = self.access["token"]
        # eve has no role in any workspace.
        self.say("rbac", "unassign-role", "Editor", "-u", "eve", "-w", "Uncategorized")
        return tokens

    def join_an_agent(self):
        cluster = self.cluster
        path = cluster.dir / "join-token"
        path.write_text(cluster.det("join-token", "create"))
        self.planted["a join token"] = path.read_text().strip().split(".")[0]
        cluster.start_agent("a1", 1, ["--join-token-file", path, "--log-level", "trace"])
        for name, file in (("the authority's key", "master/tls/ca.key"), ("the agent's key", "agent-a1/tls/agent.key")):
            file = cluster.dir / file
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)
            self.planted[name] = file.read_text().split("\n")[1]

    def config(self):
        planted = {kind: canary(kind) for kind in ("env", "registry", "data")}
        self.planted |= {f"a configuration's {kind} secret": value for kind, value in planted.items()}
        return "\n".join([
            "name: with secrets", "entrypoint: python3 train.py", "max_restarts: 0",
            "searcher: {name: single, metric: loss, max_length: {batches: 1}}",
            "environment:", f"  registry_auth: {{username: u, password: {planted['registry']}}}",
            "  environment_variables:", f"    - DB_PASSWORD={planted['env']}",
            f"    - STOP_FILE={self.cluster.dir}/stop",
            f"data: {{secrets: {{key: {planted['data']}}}}}", ""])

    def run_a_trial(self):
        cluster, config = self.cluster, self.config()
        directory = cluster.dir / "context"
        directory.mkdir()
        (directory / "train.py").write_text(TRIAL)
        id = cluster.create(directory, config)
        trial = cluster.trial_id(id)
        wait_until("the trial to speak", lambda: "trial has its secret: canary" in cluster.logs(trial))
        [pid] = [pid for pid, (name, env) in processes().items() if f"DET_TRIAL_ID={trial}\0" in env
                 and f"DET_MASTER={cluster.address}\0" in env and name.startswith("python3")][:1]
        environment = dict(line.split("=", 1) for line in processes()[pid][1].split("\0") if "=" in line)
        self.planted["an allocation's token"] = environment["DET_SESSION_TOKEN"]
        self.assertNotIn("DET_USER_TOKEN", environment)
        template = cluster.dir / "template.yaml"
        secret = canary("template")
        self.planted["a template's secret"] = secret
        template.write_text(f"environment: {{environment_variables: [API_TOKEN={secret}]}}\n")
        self.say("template", "set", "with-secrets", template)
        return id, trial

    def make_mistakes(self):
        """Invalid requests get an error that does not contain the secret."""
        wrong = self.planted["a mistaken secret"] = canary("wrong")
        for body in ({"username": "ada", "password": wrong}, {"username": "ada", "password": [wrong]},
                     {"username": "ada", "password": {"a": wrong}}, {"username": "ada", "passwrod": wrong},
                     ('{"username":"ada","password":"' + wrong).encode(), b'{"username":"ada","password":"\\q' + wrong.encode()):
            status, _ = self.hear("POST", "/api/v1/auth/login", body)
            self.assertIn(status, (400, 401), body)
        for headers in ({"Authorization": "Bearer " + wrong}, {"Authorization": wrong}, {"Cookie": "auth=" + wrong},
                        {"Grpc-Metadata-x-allocation-token": "Bearer " + wrong}):
            self.hear("GET", "/api/v1/me", headers=headers)
        for text in (f"environment: {{registry_auth: {{username: u, password: [{wrong}]}}}}",
                     f"environment: {{registry_auth: {{username: u, pasword: {wrong}}}}}",
                     f"environment: {{registry_auth: {wrong}}}",
                     f"environment: {{environment_variables: {{DB_PASSWORD: [{wrong}]}}}}",
                     f"environment: {{environment_variables: ['DB PASSWORD={wrong}', {wrong}]}}",
                     f"checkpoint_storage: {{type: s3, bucket: 7, access_key: {wrong}, secret_key: {wrong}}}",
                     f"checkpoint_storage: {{type: s3, bucket: b, access_key: [{wrong}], secret_key: 5}}",
                     f"data: {{secrets: {wrong}}}\nname: [a]"):
            path = self.cluster.dir / "wrong.yaml"
            path.write_text("entrypoint: x\nsearcher: {name: single, metric: m}\n" + text + "\n")
            token = self.planted["ada's session"]
            self.hear("POST", "/api/v1/experiments", {"config": path.read_text()}, token=token)
            self.say("experiment", "create", path, self.cluster.dir / "context")
            self.say("template", "set", "wrong", path)

    def listen_to_events(self, token):
        def run():
            request = urllib.request.Request(self.cluster.url + "/api/v1/events", headers={"Authorization": "Bearer " + token})
            with urllib.request.urlopen(request, timeout=60, context=self.cluster.trust()) as answer:
                for line in answer:
                    self.heard.append(("/api/v1/events", line.decode()))
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def read_everything(self, id, trial, token, who):
        """Sends every GET of the API description with existing ids, and requests the paths beside the API."""
        status, text = self.call("GET", "/api/v1/api.swagger.json")
        described = json.loads(text[text.index("\n\n"):])
        known = {"experiment_id": id, "trial_id": trial, "id": id, "user_id": 2, "username": "ada", "agent_id": "a1",
                 "template_name": "with-secrets", "workload_type": "EXPERIMENT", "run_id": trial}
        count = 0
        for path, verbs in described["paths"].items():
            if "get" not in verbs or path.endswith("/events"):
                continue
            for name in {part.strip("{}") for part in path.split("/") if part.startswith("{")}:
                snake = "".join("_" + c.lower() if c.isupper() else c for c in name)
                path = path.replace("{" + name + "}", str(known.get(snake, id)))
            if "logs" in path or "stream" in path:
                path += "?limit=1000"
            self.hear("GET", path, token=token)
            count += 1
        self.assertGreater(count, 20, who)
        for path in ("/health", "/", "/metrics", "/prom/det-state-metrics", "/debug/pprof", "/api/v1/nothing", "/docs/rest-api/"):
            self.hear("GET", path, token=token)

    def check_revocation(self, admin, tokens):
        """The stream of a revoked token ends within a second."""
        request = urllib.request.Request(self.cluster.url + "/api/v1/events",
                                         headers={"Authorization": "Bearer " + self.access["token"]})
        with urllib.request.urlopen(request, timeout=20, context=self.cluster.trust()) as stream:
            status, answer = self.hear("PATCH", f"/api/v1/tokens/{self.access['tokenId']}", {"setRevoked": True},
                                       token=tokens["ada"])
            self.assertEqual(status, 200, answer)
            begun = time.monotonic()
            try:
                while stream.readline():
                    pass
            except (urllib.error.URLError, ssl.SSLError, ConnectionError, ValueError):
                pass
            self.assertLess(time.monotonic() - begun, 1.5)
        self.assertEqual(self.hear("GET", "/api/v1/me", token=self.access["token"])[0], 401)
        self.assertEqual(self.hear("POST", "/api/v1/auth/logout", token=tokens["eve"])[0], 200)
        self.assertEqual(self.hear("GET", "/api/v1/me", token=tokens["eve"])[0], 401)

    def check_throttle(self):
        """Guessing is throttled, for existing and unknown names alike."""
        for name in ("eve", "nobody-of-this-name"):
            answers = [self.hear("POST", "/api/v1/auth/login", {"username": name, "password": f"guess {i}"})[0] for i in range(12)]
            self.assertIn(401, answers)
            self.assertTrue(set(answers) - {401}, f"nobody slowed the guessing down: {answers}")

    def check_audit(self):
        entries = self.cluster.det_json("audit", "list", "--json", "--tail", "1000")
        noted = {(e["action"], e["outcome"]) for e in entries}
        for act in (("AuthService/Login", "OK"), ("AuthService/Login", "Unauthenticated"), ("AuthService/Logout", "OK"),
                    ("UserService/PostUser", "OK"), ("TokenService/PostAccessToken", "OK"),
                    ("TokenService/PatchAccessToken", "OK"), ("RoleService/RemoveAssignments", "OK"),
                    ("JoinService/PostJoinToken", "OK"), ("JoinService/Join", "OK"), ("ExperimentService/UploadExperiment", "OK"),
                    ("TemplateService/PutTemplate", "OK")):
            self.assertIn(act, noted)

        uploads = [e["object"] for e in entries if (e["action"], e["outcome"]) == ("ExperimentService/UploadExperiment", "OK")]
        self.assertRegex(uploads[0], r"^experiment \d+$")

    def search(self):
        """No planted secret is in responses, logs or command lines. Passwords and tokens are also in no file
        of the master, except the file for the first password."""
        self.watch.done.set()
        self.watch.join()
        cluster, found = self.cluster, []
        logs = {str(p): p.read_text(errors="replace") for p in cluster.dir.glob("*.log")}
        logs |= {str(p): p.read_text(errors="replace") for p in (cluster.dir / "master" / "postgres").rglob("*log*") if p.is_file()
                 and "pg_wal" not in str(p)}
        self.assertGreater(sum(map(len, logs.values())), 5_000, "everything is logged")
        self.assertGreater(len(self.heard), 200)
        for name, secret in self.planted.items():
            found += [f"{name} in the answer to {where}" for where, text in self.heard if secret in text]
            found += [f"{name} in the log {where}" for where, text in logs.items() if secret in text]
            found += [f"{name} in the command line {line[:200]}" for line in self.watch.seen if secret in line]
        hashed = [n for n in self.planted if "password" in n and "registry" not in n or "token" in n or "session" in n]
        self.assertGreaterEqual(len(hashed), 6)
        for path in (cluster.dir / "master").rglob("*"):
            if not path.is_file() or path.name in ("admin-password", "admin_password"):
                continue
            data = path.read_bytes()
            found += [f"{name} in the file {path}" for name in hashed if self.planted[name].encode() in data]
        self.assertEqual(sorted(set(found)), [])


if __name__ == "__main__":
    unittest.main()
