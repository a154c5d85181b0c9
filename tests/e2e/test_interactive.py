"""Shells in tasks, notebooks and TensorBoards. The programs of the latter two are stand-ins with their options."""
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
SERVER = pathlib.Path(__file__).parent / "fixtures" / "page_server.py"
START_LIMIT = 2  # Seconds from the command to a usable shell, beside the start of a task.


class Terminal:
    """A det command, or `argv`, on a terminal of its own."""

    def __init__(self, test, cluster, *arguments, argv=None, rows=30, columns=101):
        self.master, slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.child = subprocess.Popen(argv or [BUILD + "/bin/det", *map(str, arguments)],
                                      env={**cluster.env, "TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave,
                                      start_new_session=True)
        os.close(slave)
        test.addCleanup(self.end)
        self.output = b""

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()

    def send(self, text):
        os.write(self.master, text.encode())

    def reads(self, part, timeout=30):
        """Waits for `part` in what was not read yet."""
        end = time.monotonic() + timeout
        while part.encode() not in self.output:
            ready = select.select([self.master], [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                raise AssertionError(f"waited in vain for {part!r} after {self.output[-2000:]!r}")
            try:
                self.output += os.read(self.master, 65536)
            except OSError:
                raise AssertionError(f"the command ended before {part!r}: {self.output[-2000:]!r}") from None
        self.output = self.output.split(part.encode(), 1)[1]

    def answers(self, line, part):
        """Sends a line and tells whether `part` is read within a second."""
        self.send(line)
        try:
            self.reads(part, timeout=1)
        except AssertionError:
            return False
        return True

    def exit_code(self, timeout=30):
        """Reads the rest of the output: ssh ends when its terminal has shown all of it."""
        while select.select([self.master], [], [], timeout)[0]:
            try:
                self.output += os.read(self.master, 65536)
            except OSError:
                break
        try:
            return self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the command does not end after {self.output[-2000:]!r}") from None

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.child.pid, signal.SIGWINCH)


class Interactive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.code, cls.programs = cls.cluster.dir / "code", cls.cluster.dir / "programs"
        cls.code.mkdir()
        cls.programs.mkdir()
        for name in ("jupyter-lab", "tensorboard"):
            (cls.programs / name).write_text(SERVER.read_text())
            (cls.programs / name).chmod(0o755)
        # Tasks find the stand-ins in the PATH of their agent.
        paths = os.environ["PATH"]
        os.environ["PATH"] = f"{cls.programs}:{paths}"
        try:
            cls.cluster.start_agent(slots=1)
        finally:
            os.environ["PATH"] = paths
        status, body = cls.cluster.post("/api/v1/auth/login", {"username": "admin", "password": cls.cluster.password()})
        assert status == 200, body
        cls.token = json.loads(body)["token"]

    def det(self, *arguments, expect=0):
        return self.cluster.det(*arguments, expect=expect)

    def start_shell(self):
        shell = self.det("shell", "start", "-d", "--config", "resources.slots=0").strip()
        self.addCleanup(self.cluster.run_det, "shell", "kill", shell)
        wait_until("the shell's task", lambda: self.cluster.run_det("shell", "open", shell, "true").returncode == 0)
        return shell

    def start_trial(self):
        (self.code / "wait.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(1000)\n")
        config = ("name: waits\nentrypoint: python3 wait.py\nmax_restarts: 0\nresources: {slots_per_trial: 0}\n"
                  "searcher: {name: single, metric: loss, max_length: {batches: 10}}\n")
        experiment = self.cluster.create(self.code, config)
        self.addCleanup(self.cluster.run_det, "experiment", "kill", experiment)
        trial = self.cluster.trial_id(experiment)
        wait_until("the trial", lambda: "up" in self.cluster.logs(trial))
        return trial

    def test_a_command_line_runs_beside_a_trial_and_its_exit_code_is_that_of_det(self):
        trial = self.start_trial()
        started = time.monotonic()
        out = self.det("trial", "shell", trial, "sh", "-c", "ls; echo trial=$DET_TRIAL_ID; echo bad >&2; exit 7", expect=7)
        taken = time.monotonic() - started
        self.assertIn("wait.py\n", out)
        self.assertIn(f"trial={trial}\nbad\n", out)
        self.assertLess(taken, START_LIMIT)
        # The process list of the sandbox has the trial.
        self.assertIn("wait.py", self.det("trial", "shell", trial, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))

    def test_an_interactive_shell_has_a_terminal(self):
        shell = self.start_shell()
        terminal = Terminal(self, self.cluster, "shell", "open", shell)
        started = time.monotonic()
        terminal.send("stty size; echo term=$TERM\r")
        terminal.reads("30 101")
        self.assertLess(time.monotonic() - started, START_LIMIT)
        terminal.reads("term=xterm")
        terminal.resize(31, 77)
        # The new size and what is typed travel apart.
        wait_until("the new size", lambda: terminal.answers("stty size\r", "31 77"))
        terminal.send("sleep 1000; echo interrupted=$?\r")
        terminal.reads("interrupted=$?")
        wait_until("the command", lambda: "sleep 1000" in self.det("shell", "open", shell, "sh", "-c",
                                                                   "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
        terminal.send("\x03")
        terminal.send("echo again=$((40+2))\r")
        terminal.reads("again=42")
        terminal.send("exit 5\r")
        self.assertEqual(terminal.child.wait(30), 5)

    def test_input_of_a_pipe_is_read_to_its_end(self):
        shell = self.start_shell()
        sent = os.urandom(3 << 20)
        done = subprocess.run([BUILD + "/bin/det", "shell", "open", shell, "cat"], env=self.cluster.env, input=sent,
                              capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout == sent, "the data changed on its way")

    def test_a_lost_connection_ends_the_shell_and_not_its_task(self):
        shell = self.start_shell()
        terminal = Terminal(self, self.cluster, "shell", "open", shell)
        terminal.send("sleep 54321\r")
        inside = ("shell", "open", shell, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        wait_until("the command", lambda: "sleep 54321" in self.det(*inside))
        terminal.child.kill()
        wait_until("its end", lambda: "sleep 54321" not in self.det(*inside))

    def test_a_shell_is_opened_again_after_a_restart_of_the_master(self):
        shell = self.start_shell()
        self.det("shell", "open", shell, "sh", "-c", "echo kept > file")
        terminal = Terminal(self, self.cluster, "shell", "open", shell)
        terminal.send("echo up=$((1+1))\r")
        terminal.reads("up=2")
        self.cluster.kill_master()
        self.assertNotEqual(terminal.child.wait(30), 0)
        self.cluster.start_master()
        done = wait_until("the shell", lambda: (again := self.cluster.run_det("shell", "open", shell, "cat", "file")).returncode
                          == 0 and again)
        self.assertEqual(done.stdout, "kept\n")

    def test_shells_are_listed_and_killed_and_a_killed_one_opens_no_more(self):
        shell = self.start_shell()
        self.assertIn(shell, self.det("shell", "list", "-q").split())
        self.assertNotIn(shell, self.det("command", "list", "-q").split())
        self.assertNotIn(shell, self.det("notebook", "list", "-q", "-a").split())
        self.assertIn("sleep", self.det("shell", "config", shell))
        self.det("shell", "set", "priority", shell, "7")
        self.assertIn("Killed shell", self.det("shell", "kill", shell))
        wait_until("its end", lambda: f'"{shell}"' not in self.det("task", "list", "--json"))
        refused = self.cluster.run_det("shell", "open", shell, "true")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has ended", refused.stderr)

    def get(self, path, token=None):
        status, body = self.cluster.get(path, token or self.token)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def test_a_notebook_serves_below_the_master_with_a_token(self):
        out = self.det("notebook", "start", "-c", self.code, "--config", "resources.slots=0")
        notebook = out.split("id: ")[1].split(")")[0]
        self.addCleanup(self.cluster.run_det, "notebook", "kill", notebook)
        self.assertIn(f"{self.cluster.url}/proxy/{notebook}/?token=", out)
        token = out.split("?token=")[1].split()[0]
        page = self.get(f"/proxy/{notebook}/lab")
        self.assertEqual((page["path"], page["token"]), (f"/proxy/{notebook}/lab", token))
        self.assertIn(f"--ServerApp.base_url=/proxy/{notebook}/", page["arguments"])
        # The token is in no list and no configuration.
        self.assertNotIn(token, self.det("notebook", "list", "--json") + self.det("notebook", "config", notebook))
        self.assertEqual(self.get(f"/api/v1/tasks/{notebook}")["task"]["taskType"], "TASK_TYPE_NOTEBOOK")
        self.assertEqual(self.get("/api/v1/tasks/count")["notebooks"], 1)
        self.assertIn("JUPYTER_TOKEN=****", self.det("notebook", "start", "--preview"))

    def test_a_notebook_without_its_program_names_the_package(self):
        program = self.programs / "jupyter-lab"
        program.rename(self.programs / "away")
        self.addCleanup((self.programs / "away").rename, program)
        done = self.cluster.run_det("notebook", "start", "--config", "resources.slots=0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has ended", done.stderr)
        notebook = done.stdout.split("id: ")[1].split(")")[0]
        self.assertIn("jupyterlab", self.det("task", "logs", notebook))

    def test_an_idle_notebook_ends_and_one_in_use_goes_on(self):
        options = ("-d", "-c", self.code, "--config", "resources.slots=0", "--config", "idle_timeout=6s")
        idle, used = (self.det("notebook", "start", *options).strip() for _ in range(2))
        self.addCleanup(self.cluster.run_det, "notebook", "kill", used)
        wait_until("the notebook", lambda: self.cluster.get(f"/proxy/{used}/", self.token)[0] == 200)

        def state(notebook):
            self.cluster.get(f"/proxy/{used}/", self.token)
            return self.get(f"/api/v1/notebooks/{notebook}")["notebook"]["state"]
        wait_until("the end of the idle one", lambda: state(idle) == "STATE_TERMINATED")
        self.assertEqual(state(used), "STATE_RUNNING")

    def create_with_storage(self):
        """Returns an experiment and its storage, where a TensorBoard finds its event files."""
        storage = self.cluster.dir / "storage"
        config = (f"name: waits\nentrypoint: 'true'\nmax_restarts: 0\nresources: {{slots_per_trial: 0}}\n"
                  f"checkpoint_storage: {{type: shared_fs, host_path: {storage}}}\n"
                  "searcher: {name: single, metric: loss, max_length: {batches: 10}}\n")
        return self.cluster.create(self.code, config), storage

    def test_tensorboard_reads_the_event_files_of_experiments_and_trials(self):
        experiment, storage = self.create_with_storage()
        trial = self.cluster.trial_id(experiment)
        events = storage / "tensorboard" / f"experiment_{experiment}" / f"trial_{trial}"
        events.mkdir(parents=True)
        (events / "events.out.tfevents.1").write_bytes(b"scalars")
        out = self.det("tensorboard", "start", experiment)
        board = out.split("id: ")[1].split(")")[0]
        self.addCleanup(self.cluster.run_det, "tensorboard", "kill", board)
        name = f"experiment_{experiment}"
        page = self.get(f"/proxy/{board}/data")
        self.assertEqual(page["files"], [f"{name}/trial_{trial}/events.out.tfevents.1"])
        self.assertFalse(page["writable"])
        # Later files are seen, too.
        (events / "events.out.tfevents.2").write_bytes(b"scalars")
        self.assertEqual(len(self.get(f"/proxy/{board}/data")["files"]), 2)
        row = next(row for row in self.get("/api/v1/tensorboards")["tensorboards"] if row["id"] == board)
        self.assertEqual((row["experimentIds"], row["trialIds"]), ([experiment], []))
        refused = self.cluster.run_det("command", "run", "--config", f"event_files=[{{base: {storage}, below: x, name: y}}]",
                                       "true")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("event_files: set by the cluster only", refused.stderr)

    def test_a_viewer_uses_tensorboards_and_runs_no_program_in_them(self):
        experiment, _ = self.create_with_storage()
        password = self.cluster.dir / "password"
        password.write_text("a long enough Password 1")
        self.det("user", "create", "vera", "--password-file", password)
        self.det("rbac", "unassign-role", "Editor", "-u", "vera", "-w", "Uncategorized")
        self.det("rbac", "assign-role", "Viewer", "-u", "vera")
        status, body = self.cluster.post("/api/v1/auth/login", {"username": "vera", "password": password.read_text()})
        self.assertEqual(status, 200, body)
        vera = json.loads(body)["token"]

        def launch(**fields):
            return self.cluster.post("/api/v1/tensorboards", {"experimentIds": [experiment], **fields}, vera)
        for fields in ({"config": {"environment": {"environment_variables": ["A=b"]}}}, {"templateName": "any"},
                       {"config": {"tensorboard_args": ["--logdir=/"]}}, {"config": {"resources": {"slots": 1}}},
                       {"files": [{"path": "startup-hook.sh", "type": 48, "content": "aWQK", "mode": 420}]}):
            self.assertEqual(launch(**fields)[0], 403, fields)
        self.assertEqual(self.cluster.post("/api/v1/notebooks", {}, vera)[0], 403)
        # The id of another task does not make a TensorBoard of that task.
        command = self.det("command", "run", "-d", "--config", "resources.slots=0", "sleep", "600").strip()
        self.addCleanup(self.cluster.run_det, "command", "kill", command)
        self.assertEqual(launch(requestId=command)[0], 409)
        self.assertEqual(self.get(f"/api/v1/tasks/{command}")["task"]["taskType"], "TASK_TYPE_COMMAND")
        status, body = launch(config={"description": "seen by vera", "idle_timeout": "1h", "environment": {}})
        self.assertEqual(status, 200, body)
        own = json.loads(body)["tensorboard"]["id"]
        other = self.det("tensorboard", "start", "-d", experiment).strip()
        self.addCleanup(self.cluster.run_det, "tensorboard", "kill", other)
        wait_until("its page", lambda: self.cluster.get(f"/proxy/{own}/data", vera)[0] == 200)
        wait_until("the other page", lambda: self.cluster.get(f"/proxy/{other}/data", vera)[0] == 200)
        shell = subprocess.run([BUILD + "/bin/det", "shell", "open", own, "true"], capture_output=True, text=True,
                               env={**self.cluster.env, "DET_USER_TOKEN": vera}, check=False)
        self.assertIn("needs the role Editor", shell.stderr)
        status, body = self.cluster.post(f"/api/v1/tensorboards/{other}/kill", {}, vera)
        self.assertEqual(status, 403, body)
        status, body = self.cluster.post(f"/api/v1/tensorboards/{own}/kill", {}, vera)
        self.assertEqual(status, 200, body)
        # The priority of a task that has ended changes nothing.
        wait_until("its end", lambda: self.get(f"/api/v1/tensorboards/{own}")["tensorboard"]["state"] == "STATE_TERMINATED")
        status, body = self.cluster.post(f"/api/v1/tensorboards/{own}/set_priority", {"priority": 3}, self.token)
        self.assertEqual(status, 200, body)


if __name__ == "__main__":
    unittest.main()
