"""ssh into shells through the master, as the client of Determined AI does: with the key of the shell and a WebSocket
without a login."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from cluster import Cluster, free_port, wait_until
from fixtures.websocket_pipe import connect
from test_interactive import Terminal

BUILD = os.environ["DET_E2E_BUILD"]
PIPE = pathlib.Path(__file__).parent / "fixtures" / "websocket_pipe.py"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
LOGINS = 8  # Logins of one shell at once.
OPTIONS = ("UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "IdentitiesOnly=yes", "IdentityAgent=none",
           "BatchMode=yes", "LogLevel=ERROR")


class SshCluster(unittest.TestCase):
    MASTER, AGENT = ("--shell-ssh",), ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, cls.MASTER)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent(slots=1, options=cls.AGENT)
        cls.token = cls.log_in("admin", cls.cluster.password())
        cls.shell = cls.start_shell()

    @classmethod
    def log_in(cls, name, password):
        status, body = cls.cluster.post("/api/v1/auth/login", {"username": name, "password": password})
        assert status == 200, body
        return json.loads(body)["token"]

    @classmethod
    def start_shell(cls, *options):
        shell = cls.cluster.det("shell", "start", "-d", "--config", "resources.slots=0", *options).strip()
        wait_until("the shell's task", lambda: cls.cluster.run_det("shell", "open", shell, "true").returncode == 0)
        return shell

    def get(self, path, token=None):
        status, body = self.cluster.get(path, token or self.token)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def keys(self, shell, token=None):
        found = self.get(f"/api/v1/shells/{shell}", token)["shell"]
        return found["privateKey"], found["publicKey"]

    def write_key(self, name, text):
        path = self.cluster.dir / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def ssh_command(self, shell, key, *command, options=()):
        proxy = f"{sys.executable} {PIPE} 127.0.0.1 {self.cluster.port} /proxy/%h/"
        argv = ["ssh", "-F", "none", "-o", f"ProxyCommand={proxy}"]
        for option in OPTIONS:
            argv += ["-o", option]
        return [*argv, "-i", str(key), *options, f"root@{shell}", *command]

    def ssh(self, shell, key, *command, **more):
        return subprocess.run(self.ssh_command(shell, key, *command, options=more.pop("options", ())), text=True,
                              capture_output=True, timeout=60, **{"stdin": subprocess.DEVNULL, **more})

    def status(self, path, token=None):
        """Status code of a WebSocket to `path`."""
        one, status, _ = connect("127.0.0.1", self.cluster.port, path, token)
        self.addCleanup(one.close)
        return int(status.split()[1])


class WithoutTheOption(SshCluster):
    MASTER = ()

    def test_a_shell_has_no_key_and_a_websocket_needs_a_login(self):
        self.assertEqual(self.keys(self.shell), ("", ""))
        self.assertEqual([self.status(f"/proxy/{id}/") for id in (self.shell, UNKNOWN)], [401, 401])
        self.assertEqual(self.status(f"/proxy/{self.shell}/", self.token), 404)


class ShellSsh(SshCluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        self = cls()
        cls.key = self.write_key("key", self.keys(cls.shell)[0])

    def test_ssh_with_the_key_of_the_shell_runs_commands_in_its_task(self):
        done = self.ssh(self.shell, self.key, "echo task=$DET_TASK_ID; id -u; exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)
        inside = self.cluster.det("shell", "open", self.shell, "id", "-u")
        self.assertEqual(done.stdout, f"task={self.shell}\n{inside}")

    def test_ssh_passes_input_to_its_end(self):
        sent = "".join(f"{i}\n" for i in range(300_000))
        done = self.ssh(self.shell, self.key, "cat", input=sent, stdin=None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout == sent, "the data changed on its way")

    def test_ssh_has_a_terminal_that_changes_its_size(self):
        terminal = Terminal(self, self.cluster, argv=self.ssh_command(self.shell, self.key, options=("-tt",)))
        terminal.send("stty size; echo term=$TERM\r")
        terminal.reads("30 101")
        terminal.reads("term=xterm")
        terminal.resize(31, 77)
        terminal.send("stty size\r")
        terminal.reads("31 77")
        # Printed by a process that has the terminal: before that, Ctrl C ends nothing.
        terminal.send("sh -c 'echo started=$((1+1)); exec sleep 1000'\r")
        terminal.reads("started=2")
        terminal.send("\x03")
        terminal.reads("^C")
        terminal.send("echo again=$((40+2))\r")
        terminal.reads("again=42")
        terminal.send("exit 5\r")
        self.assertEqual(terminal.exit_code(), 5)

    def test_another_key_is_refused(self):
        other = self.start_shell()
        self.addCleanup(self.cluster.run_det, "shell", "kill", other)
        key = self.write_key("other", self.keys(other)[0])
        done = self.ssh(self.shell, key, "echo in")
        self.assertEqual((done.returncode, done.stdout), (255, ""))
        self.assertIn("Permission denied (publickey)", done.stderr)
        self.assertEqual(self.ssh(other, key, "echo in").stdout, "in\n")

    def test_a_websocket_without_a_login_reaches_shells_only(self):
        port = free_port()
        command = self.cluster.det("cmd", "run", "-d", "-p", port, "--config", "resources.slots=0", "sleep", "600").strip()
        self.addCleanup(self.cluster.run_det, "cmd", "kill", command)
        wait_until("it to run", lambda: self.cluster.det_json("command", "describe", command, "--json")["state"]
                   == "STATE_RUNNING")
        for path in (f"/proxy/{command}/", f"/proxy/{command}:{port}/", f"/proxy/{UNKNOWN}/", f"/proxy/{self.shell}:22/",
                     f"/proxy/{self.shell}/~ticket/"):
            self.assertEqual(self.status(path), 401, path)
        # A request that is no WebSocket, and a token that is none.
        self.assertEqual(self.cluster.get(f"/proxy/{self.shell}/")[0], 401)
        self.assertEqual(self.status(f"/proxy/{self.shell}/", "wrong"), 401)
        self.assertEqual(self.status(f"/proxy/{self.shell}/"), 101)

    def test_only_users_that_may_edit_the_shell_get_its_key(self):
        private, public = self.keys(self.shell)
        self.assertTrue(private.startswith("-----BEGIN EC PRIVATE KEY-----\n"))
        self.assertTrue(public.startswith("ecdsa-sha2-nistp256 "))
        password = self.write_key("password", "correct horse battery staple\n")
        self.cluster.det("user", "create", "vera", "--password-file", password)
        self.cluster.det("rbac", "unassign-role", "Editor", "-u", "vera", "-w", "Uncategorized")
        self.cluster.det("rbac", "assign-role", "Viewer", "-u", "vera", "-w", "Uncategorized")
        viewer = self.log_in("vera", password.read_text().strip())
        self.assertEqual(self.keys(self.shell, viewer), ("", ""))
        # A login without the right is worth less than no login.
        self.assertEqual(self.status(f"/proxy/{self.shell}/", viewer), 403)
        self.assertEqual(self.status(f"/proxy/{self.shell}/", self.token), 101)
        listed = next(each for each in self.get("/api/v1/shells")["shells"] if each["id"] == self.shell)
        self.assertEqual((listed["privateKey"], listed["publicKey"]), ("", ""))
        secret = private.splitlines()[1]
        for log in ("master.log", "agent-a1.log"):
            self.assertNotIn(secret, (self.cluster.dir / log).read_text())
        self.assertNotIn(secret, self.cluster.det("audit", "list", "--json") + self.cluster.det("shell", "list", "--json"))

    def test_logins_that_are_not_complete_are_bounded_and_end(self):
        shell = self.start_shell()
        self.addCleanup(self.cluster.run_det, "shell", "kill", shell)
        opened = [connect("127.0.0.1", self.cluster.port, f"/proxy/{shell}/") for _ in range(LOGINS)]
        for one, status, _ in opened:
            self.addCleanup(one.close)
            self.assertIn(" 101 ", status)
        self.assertEqual(self.status(f"/proxy/{shell}/"), 429)
        # `det shell open` does not count.
        self.assertEqual(self.cluster.det("shell", "open", shell, "echo", "in"), "in\n")
        opened[0][0].settimeout(40)
        while opened[0][0].recv(4096):
            pass
        wait_until("room for a login", lambda: self.status(f"/proxy/{shell}/") == 101)

    def test_connections_without_a_login_do_not_keep_a_shell_in_use(self):
        shell = self.start_shell("--config", "idle_timeout=6s")
        self.addCleanup(self.cluster.run_det, "shell", "kill", shell)

        def ended():
            one, status, _ = connect("127.0.0.1", self.cluster.port, f"/proxy/{shell}/")
            one.close()
            return " 401 " in status
        wait_until("the end of the idle shell", ended, timeout=30)

    def test_the_key_and_the_connections_of_a_shell_end_with_it(self):
        shell = self.start_shell()
        key = self.write_key("ended", self.keys(shell)[0])
        child = subprocess.Popen(self.ssh_command(shell, key, "echo up; sleep 1000"), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), b"up\n")
        self.cluster.det("shell", "kill", shell)
        self.assertEqual(child.wait(30), 255)
        wait_until("its end", lambda: self.get(f"/api/v1/shells/{shell}")["shell"]["state"] == "STATE_TERMINATED")
        self.assertEqual(self.keys(shell), ("", ""))
        self.assertEqual(self.status(f"/proxy/{shell}/"), 401)

    def test_ssh_works_again_after_a_restart_of_the_master(self):
        self.cluster.kill_master()
        self.cluster.start_master()
        done = wait_until("the agent", lambda: (again := self.ssh(self.shell, self.key, "echo in")).returncode == 0 and again)
        self.assertEqual(done.stdout, "in\n")


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class ShellSshIntoANetworkOfTheTask(SshCluster):
    AGENT = ("--sandbox", "required", "--task-network", "cluster")

    def test_ssh_needs_no_network_of_the_machine(self):
        key = self.write_key("key", self.keys(self.shell)[0])
        self.assertEqual(self.ssh(self.shell, key, "cat /proc/net/dev | grep -c :").stdout, "1\n")


if __name__ == "__main__":
    unittest.main()
