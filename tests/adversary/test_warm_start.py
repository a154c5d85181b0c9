"""A trial that is forked from det-fork-server has the same sandbox as one that is executed, and no failure of the
server costs a trial."""
import json
import os
import pathlib
import shutil
import signal
import socket
import unittest

from cluster import Cluster, processes, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
SHORT = ("--config", "scheduling_unit=1", "--config", "searcher.max_length.batches=1", "--config", "max_restarts=0")
# A trial with a variable of its own is executed.
EXECUTED = ("--config", "environment.environment_variables=[OWN=1]")
ACT = """
static det::TrialContext& act(det::TrialContext& context) {
  const std::string command = context.get_hparam<std::string>("command");
  if (command == "exit") std::exit(3);
  if (command == "abort") std::abort();
  if (!command.empty() && std::system(command.c_str()) != 0) throw std::runtime_error("the command failed");
  return context;
}

class MyTrial"""


class WarmStart(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("a1", options=["--sandbox", "required"])
        cls.place = cls.cluster.dir / "trial"
        cls.cluster.det("init", cls.place)
        path = cls.place / "model_def.cpp"
        text = path.read_text().replace("class MyTrial", ACT, 1)
        path.write_text(text.replace(": context_(context)", ": context_(act(context))", 1))
        for name in ("probes.py", "identity.py"):
            shutil.copy(FIXTURES / name, cls.place)
        # Builds the trial, and loads the server.
        cls.run_trial("true")
        wait_until("the fork server to listen", (cls.cluster.dir / "agent-a1" / "fork-server").exists)

    @classmethod
    def begin_trial(cls, command, *options):
        out = cls.cluster.det("experiment", "create", "const.yaml", ".", *SHORT, "--config",
                              f"hyperparameters.command={json.dumps(command)}", *options, cwd=cls.place)
        return int(out.split("Created experiment ")[1].split()[0])

    @classmethod
    def run_trial(cls, command, *options, state="COMPLETED"):
        """Returns the trial's id."""
        id = cls.begin_trial(command, *options)
        cls.cluster.wait_state(id, state, timeout=180)
        return cls.cluster.trial_id(id)

    def printed(self, trial):
        lines = [json.loads(line)["log"] for line in
                 self.cluster.det("trial", "logs", trial, "--json", "--source", "task").splitlines()]
        return json.loads(next(line for line in lines if line.startswith("{")))

    @staticmethod
    def servers(parent):
        """The pids of the fork servers, or of their forked processes, with this parent."""
        found = []
        for pid, (name, _) in processes().items():
            try:
                its = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
            if name == "det-fork-server" and its == str(parent):
                found.append(pid)
        return found

    def server(self):
        """The pid of the fork server; None if there is none."""
        return next(iter(self.servers(self.cluster.agents["a1"].pid)), None)

    def restart_agent(self):
        self.cluster.stop_agent("a1")
        self.cluster.start_agent("a1", options=["--sandbox", "required"])

    def test_a_forked_trial_has_the_privileges_of_an_executed_one(self):
        executed = self.printed(self.run_trial("python3 identity.py", *EXECUTED))
        forked = self.printed(self.run_trial("python3 identity.py"))
        self.assertEqual((executed["program"], forked["program"]), ("det-harness", "det-fork-server"))
        executed["same"]["variables"].remove("OWN")
        self.assertEqual(forked["same"], executed["same"])
        for name, place in forked["namespaces"].items():
            own = os.readlink(f"/proc/self/ns/{name}")
            (self.assertEqual if name == "net" else self.assertNotEqual)(place, own, name)
        self.assertEqual(forked["same"]["status"]["CapBnd"], "0000000000000000")
        self.assertEqual(forked["same"]["status"]["NoNewPrivs"], "1")

    @unittest.skipUnless(os.geteuid() == 0 and os.uname().machine == "x86_64", "needs root on x86-64")
    def test_no_probe_succeeds_in_a_forked_trial_beyond_those_of_an_executed_one(self):
        command = f"python3 probes.py {self.cluster.dir} {self.cluster.agents['a1'].pid}"
        executed = self.printed(self.run_trial(command, *EXECUTED))
        forked = self.printed(self.run_trial(command))
        succeeded = [{name for name, refusal in probes.items() if refusal is None} for probes in (executed, forked)]
        self.assertGreaterEqual(len(forked), 45)
        self.assertEqual(succeeded[1] - succeeded[0], set(), forked)

    def test_the_exit_of_a_forked_trial_is_reported(self):
        for command, told in (("exit", "exit code 3"), ("abort", "signal 6")):
            trial = self.run_trial(command, state="ERROR")
            self.assertIn(told, self.cluster.det("trial", "describe", trial))

    def test_a_killed_server_costs_no_trial(self):
        go = self.cluster.dir / "go"
        id = self.begin_trial(f"until [ -e {go} ]; do sleep 0.1; done")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: any(
            name == "sleep" and f"DET_TRIAL_ID={trial}\0" in env for name, env in processes().values()))
        server = self.server()
        waiting = wait_until("a process that waits for the next trial", lambda: self.servers(server))
        os.kill(server, signal.SIGKILL)
        wait_until("that process to end", lambda: not set(waiting) & set(processes()))
        go.touch()
        self.cluster.wait_state(id, "COMPLETED")
        self.run_trial("true")
        wait_until("a new server", lambda: self.run_trial("true") and self.server())

    def test_a_forked_trial_survives_its_agent_and_the_server_does_not(self):
        server = wait_until("the server", lambda: self.run_trial("true") and self.server())
        go = self.cluster.dir / "survived"
        id = self.begin_trial(f"until [ -e {go} ]; do sleep 0.1; done")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: any(
            name == "sleep" and f"DET_TRIAL_ID={trial}\0" in env for name, env in processes().values()))
        self.cluster.kill_agent("a1")
        wait_until("the server to end", lambda: server not in processes())
        self.cluster.start_agent("a1", options=["--sandbox", "required"])
        go.touch()
        self.cluster.wait_state(id, "COMPLETED")
        self.assertIn("run 1)", self.cluster.logs(trial))
        self.assertNotIn("run 2)", self.cluster.logs(trial))

    def test_a_server_whose_program_was_replaced_is_started_again(self):
        prefix = self.cluster.dir / "prefix"
        shutil.copytree(self.cluster.bin.parent / "lib", prefix / "lib", symlinks=True)
        shutil.copytree(self.cluster.bin.parent / "share", prefix / "share")
        (prefix / "bin").mkdir()
        for name in ("det-agent", "det-supervisor", "det-task-init", "det-task-shell", "det-task-ssh", "det-fork-server", "det-harness"):
            shutil.copy2(self.cluster.bin / name, prefix / "bin")
        self.cluster.stop_agent("a1")
        self.addCleanup(self.restart_agent)
        built, self.cluster.bin = self.cluster.bin, prefix / "bin"
        self.cluster.launch_agent("a1", 1, ["--sandbox", "required"])
        self.cluster.bin = built
        old = wait_until("the server", lambda: self.run_trial("true") and self.server())
        program = prefix / "bin" / "det-fork-server"
        shutil.copy2(program, f"{program}.new")
        os.replace(f"{program}.new", program)
        new = wait_until("another server", lambda: self.run_trial("true") and self.server() not in (None, old) and self.server())
        self.assertEqual(os.readlink(f"/proc/{new}/exe"), str(program))

    def test_a_server_that_does_not_answer_costs_no_trial(self):
        server = wait_until("the server", lambda: self.run_trial("true") and self.server())
        os.kill(server, signal.SIGSTOP)
        stopped = [server, *self.servers(server)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            trial = self.run_trial("true")
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        self.assertIn("det-fork-server is not used", self.cluster.logs(trial))

    def test_a_server_that_cannot_serve_a_request_says_why(self):
        wait_until("the server", lambda: self.run_trial("true") and self.server())
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(connection.close)
        connection.settimeout(20)
        connection.connect(str(self.cluster.dir / "agent-a1" / "fork-server"))
        # Three streams, and one descriptor instead of a sandbox's namespaces.
        with open("/dev/null") as null:
            socket.send_fds(connection, [b"run /nowhere"], [null.fileno()] * 4)
        self.assertRegex(connection.recv(8192).decode(), r"^failed expected \d+ namespaces$")

    def test_a_forked_trial_that_is_killed_leaves_no_process(self):
        wait_until("the server", lambda: self.run_trial("true") and self.server())
        id = self.begin_trial("sleep 600")
        trial = self.cluster.trial_id(id)
        wait_until("the trial to run", lambda: any(
            name == "sleep" and f"DET_TRIAL_ID={trial}\0" in env for name, env in processes().values()))
        self.assertTrue(self.cluster.task_processes(trial))
        self.cluster.det("experiment", "kill", id)
        self.cluster.wait_state(id, "CANCELED")
        wait_until("the processes to end", lambda: not self.cluster.task_processes(trial), timeout=15)


if __name__ == "__main__":
    unittest.main()
