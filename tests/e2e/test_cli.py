"""The det command on a real cluster, where master, agent and command interact."""
import json
import os
import pathlib
import random
import socket
import subprocess
import threading
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
CONFIG = """
name: cli
entrypoint: "echo first; echo second"
searcher: {name: single, metric: loss, max_length: {batches: 1}}
max_restarts: 0
reproducibility: {experiment_seed: 1}
"""


class SlowRelay:
    """Relays connections to a local port, and everything from there `delay` seconds late."""

    def __init__(self, test, port, delay):
        self.target, self.delay = port, delay
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        test.addCleanup(self.server.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client = self.server.accept()[0]
                master = socket.create_connection(("127.0.0.1", self.target))
                threading.Thread(target=self.relay, args=(client, master, 0), daemon=True).start()
                threading.Thread(target=self.relay, args=(master, client, self.delay), daemon=True).start()
        except OSError:
            pass

    def relay(self, source, sink, delay):
        try:
            while data := source.recv(65536):
                threading.Event().wait(delay)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.env["XDG_CACHE_HOME"] = str(cls.cluster.dir / "cache")
        cls.cluster.start_agent()

    def test_no_program_loads_libraries_from_the_working_directory(self):
        programs = [self.cluster.bin / name for name in ("det", "det-master", "det-agent", "det-supervisor", "det-launch")]
        directory = self.cluster.dir / "libraries"
        directory.mkdir()
        for program in programs:
            needed = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
            for line in needed.splitlines():
                if line.split()[:1] == ["NEEDED"]:
                    (directory / line.split()[1]).write_text("not a library")
        for program in programs:
            done = subprocess.run([program, "--help"], cwd=directory, capture_output=True, text=True)
            self.assertNotIn("error while loading", done.stderr, program)

    def test_another_server_is_called_no_master(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def answer():
            client = server.accept()[0]
            client.recv(65536)
            # HTTP/2: SETTINGS, its acknowledgment, and once the request is there the status 404.
            client.sendall(bytes.fromhex("000000040000000000" "000000040100000000"))
            received = b""
            while b"/det." not in received and (data := client.recv(65536)):
                received += data
            client.sendall(bytes.fromhex("000001010500000001" "8d"))
            client.recv(65536)

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        password = self.cluster.dir / "master" / "admin-password"
        done = self.cluster.run_det("-m", url, "user", "login", "admin", "--password-file", password)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"the server at {url} is no master (HTTP status 404); name another with -m or DET_MASTER", done.stderr)

    def test_a_master_that_answers_late_is_reached(self):
        relay = SlowRelay(self, self.cluster.port, 0.8)
        password = self.cluster.dir / "master" / "admin-password"
        out = self.cluster.det("-m", f"http://127.0.0.1:{relay.port}", "user", "login", "admin", "--password-file", password)
        self.assertIn(f"Logged in as admin at http://127.0.0.1:{relay.port}", out)

    def project(self, name):
        directory = self.cluster.dir / name
        directory.mkdir()
        # More than one chunk of an upload, also when it is compressed.
        (directory / "table.csv").write_text(random.Random(1).randbytes(1 << 20).hex())
        (directory / "code.py").write_text("one\n")
        return directory

    def sent(self):
        """The number of submissions of each kind, from the audit log."""
        entries = self.cluster.det_json("audit", "list", "--tail", "1000", "--json")
        actions = [entry["action"] for entry in entries]
        return {kind: sum(kind in action for action in actions) for kind in ("UploadExperiment", "CreateFromCodeArchive")}

    def files(self, experiment):
        directory = self.cluster.dir / f"model-def-{experiment}"
        self.cluster.det("experiment", "download-model-def", experiment, "--output-dir", directory)
        subprocess.run(["tar", "-xzf", directory / f"experiment_{experiment}_model_def.tgz", "-C", directory], check=True)
        return {str(path.relative_to(directory)): path.read_text()
                for path in sorted(directory.rglob("*")) if path.is_file() and path.suffix != ".tgz"}

    def test_an_unchanged_project_is_sent_once(self):
        cluster, directory = self.cluster, self.project("changing")
        before = self.sent()
        first = cluster.create(directory, CONFIG, "--paused")
        again = cluster.create(directory, CONFIG, "--paused")
        self.assertEqual(self.sent()["UploadExperiment"], before["UploadExperiment"] + 1)
        self.assertEqual(self.files(first), self.files(again))
        (directory / "code.py").write_text("two\n")
        changed = cluster.create(directory, CONFIG, "--paused")
        self.assertEqual(self.sent(), {"UploadExperiment": before["UploadExperiment"] + 2,
                                       "CreateFromCodeArchive": before["CreateFromCodeArchive"] + 3})
        files = self.files(changed)
        self.assertEqual(sorted(files), ["code.py", "table.csv"])
        self.assertEqual(files["code.py"], "two\n")
        diff = cluster.det("experiment", "diff", first, changed)
        self.assertIn("-one\n+two\n", diff)
        self.assertIn("Configuration: the same", diff)
        # Files of another user are not found by their digest.
        password = cluster.dir / "password"
        password.write_text("a long enough Password 1")
        cluster.det("user", "create", "bea", "--password-file", password)
        cluster.det("rbac", "assign-role", "Editor", "-u", "bea")
        cluster.det("user", "login", "bea", "--password-file", password)
        try:
            cluster.create(directory, CONFIG, "--paused")
        finally:
            cluster.det("user", "login", "admin", "--password-file", cluster.dir / "master" / "admin-password")
        self.assertEqual(self.sent()["UploadExperiment"], before["UploadExperiment"] + 3)

    def test_doctor_reports_a_healthy_cluster_and_a_disabled_agent(self):
        found = {each["what"]: each for each in self.cluster.det_json("doctor", "--json")}
        for what in ("master", "versions", "login", "database", "storage", "clock", "agents"):
            self.assertEqual(found[what]["level"], "ok", found[what])
        self.cluster.det("agent", "disable", "--all")
        try:
            found = {each["what"]: each for each in json.loads(self.cluster.det("doctor", "--json", expect=1))}
        finally:
            self.cluster.det("agent", "enable", "--all")
        self.assertEqual(found["agent a1"]["level"], "warn")
        self.assertEqual(found["slots"]["level"], "fail")

    def test_watch_prints_changes_and_ends_with_the_experiment(self):
        cluster = self.cluster
        id = cluster.create(self.project("watched"), CONFIG, "--paused")
        watch = subprocess.Popen([cluster.bin / "det", "experiment", "watch", str(id)], env=cluster.env,
                                 stdout=subprocess.PIPE, text=True)
        self.assertIn("PAUSED", watch.stdout.readline())
        cluster.det("experiment", "activate", id)
        rest = watch.communicate(timeout=60)[0]
        self.assertEqual(watch.returncode, 0, rest)
        self.assertIn("COMPLETED", rest.splitlines()[-1])

    def test_following_the_masters_log_survives_restarts_without_duplicates(self):
        cluster = self.cluster
        with subprocess.Popen([cluster.bin / "det", "master", "logs", "-f", "--json"], env=cluster.env,
                              stdout=subprocess.PIPE, text=True) as follower:
            self.addCleanup(follower.kill)
            lines = []

            def read_until(words):
                while words not in (lines[-1]["message"] if lines else ""):
                    line = follower.stdout.readline()
                    self.assertTrue(line, f"ended before: {words}")
                    lines.append(json.loads(line))
            for kill in (cluster.kill_master, cluster.stop_master):
                read_until("serving")
                kill()
                cluster.start_master()
                lines.append({"message": "another master"})
            read_until("serving")
            follower.kill()
        lives = []
        for id in [line["id"] for line in lines if "id" in line]:
            lives.append([]) if id == 1 else None
            lives[-1].append(id)
        self.assertEqual(len(lives), 3)
        for life in lives:
            self.assertEqual(life, list(range(1, len(life) + 1)))

    def test_tasks_bundles_and_completion_list_running_objects(self):
        cluster = self.cluster
        id = cluster.create(self.project("running"), CONFIG.replace("echo second", "tail -f /dev/null"))
        self.addCleanup(cluster.run_det, "experiment", "kill", id)  # It holds the only slot.
        trial = cluster.trial_id(id)
        tasks = wait_until("the task", lambda: cluster.det_json("task", "list", "--json"))
        self.assertEqual(tasks[0]["name"], f"Trial {trial}")
        wait_until("its log", lambda: "first" in cluster.det("task", "logs", tasks[0]["taskId"]))
        self.assertIn(str(id), cluster.det("completion", "bash", "--", "experiment", "kill", "").split())
        self.assertIn(str(trial), cluster.det("completion", "bash", "--", "trial", "logs", "").split())
        self.assertEqual(cluster.det("completion", "bash", "--", "agent", "disable", "a").split(), ["a1"])
        cluster.det("experiment", "kill", id)
        cluster.wait_state(id, "CANCELED")
        cluster.det("trial", "support-bundle", trial, "-o", cluster.dir)
        listed = subprocess.run(["tar", "-tzf", cluster.dir / f"det-bundle-trial-{trial}.tar.gz"], check=True,
                                capture_output=True, text=True).stdout
        for name in ("trial.log", "trial.json", "experiment.json", "workloads.json", "master.json"):
            self.assertIn(f"det-bundle-trial-{trial}/{name}", listed)


if __name__ == "__main__":
    unittest.main()
