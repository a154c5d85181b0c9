"""A real Slurm for a test (tests/engines/slurm.sh), a cluster with pilots there, and the evidence that a failed test
prints."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from cluster import Cluster, processes, wait_until
from test_main_job import BUILD, ROOT

# Starts a program of this machine from a job, when Slurm runs in a root of its own (tests/engines/slurm_root.sh).
PREFIX = os.environ.get("DET_SLURM_AGENT_PREFIX", "")

SCRIPT = ROOT / "tests" / "engines" / "slurm.sh"
LAST_LINES = 40  # of each log in the evidence

MASTER = """
resource_pools:
  - pool_name: default
    provider:
      type: slurm
      slots_per_node: 2
      walltime: 30m
      partition: low
      agent: {agent}
      agent_config: {dir}/agent.yaml
"""
AGENT = """
master: {master}
join_token_file: {token}
{slots}
stop_timeout: {stop_timeout}
bind_mounts: {mounts}:rw
"""


def installed():
    return SCRIPT.exists() and subprocess.run([SCRIPT, "installed"], check=False).returncode == 0


class Slurm:
    """A Slurm with two nodes of two CPUs in a temporary directory. `env` is the environment of its clients."""

    def __init__(self, *options):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="det-slurm-"))
        self.dir.chmod(0o711)  # slurmrestd is another user
        self.home = self.dir / "slurm"
        started = subprocess.run([SCRIPT, "start", self.home, *options], check=True, text=True,
                                 stdout=subprocess.PIPE, timeout=60)
        self.settings = dict(line.split("=", 1) for line in started.stdout.split())
        self.env = {**os.environ, **self.settings}

    def close(self):
        subprocess.run([SCRIPT, "stop", self.home], check=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, *command, **env):
        done = subprocess.run(list(map(str, command)), env={**self.env, **env}, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
        return done.stdout.strip()

    def jobs(self, prefix=""):
        """[(id, name, state)] of the jobs that have not ended, with names that begin with `prefix`."""
        lines = [line.split("|") for line in self.run("squeue", "-h", "-o", "%i|%j|%T").splitlines()]
        return [tuple(line) for line in lines if line[1].startswith(prefix)]

    def names(self, prefix="det-"):
        return [name for _, name, _ in self.jobs(prefix)]

    def processes(self):
        """[(pid, command name)] of what runs in jobs."""
        conf = f"SLURM_CONF={self.settings['SLURM_CONF']}\0"
        return [(pid, name) for pid, (name, env) in processes().items() if "SLURM_JOB_ID=" in env and conf in env]

    # ---- daemons ----
    def controller(self):
        """The process of slurmctld; 0 if it is not there."""
        try:
            return int((self.home / "slurmctld.pid").read_text())
        except (OSError, ValueError):
            return 0

    def kill_controller(self):
        if pid := self.controller():
            os.kill(pid, signal.SIGKILL)
            wait_until("slurmctld to end", lambda: not pathlib.Path(f"/proc/{pid}/exe").exists())

    def start_controller(self):
        self.run("slurmctld")
        wait_until("slurmctld to reply", lambda: subprocess.run(
            ["scontrol", "ping"], env=self.env, capture_output=True, timeout=60).returncode == 0)

    def kill_node(self, node):
        """Kills slurmd. The steps of the node run on."""
        os.kill(int((self.home / f"{node}.pid").read_text()), signal.SIGKILL)

    def start_node(self, node):
        self.run("slurmd", "-N", node)

    # ---- evidence ----
    def evidence(self, *logs):
        """The state of all jobs and their processes, and the ends of the daemons' logs and of `logs`."""
        parts = []
        details = [("scontrol", "-d", "show", "job", id) for id, _, _ in self.jobs()]
        for command in (("squeue", "-a", "-l"), ("sinfo", "-N", "-l"), *details):
            done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60)
            parts.append(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        parts.append("$ processes of jobs\n" + "\n".join(describe(pid) for pid, _ in self.processes()))
        for path in [*sorted((self.home / "log").glob("*.log")), *map(pathlib.Path, logs)]:
            lines = path.read_text(errors="replace").splitlines()[-LAST_LINES:] if path.exists() else ["no such file"]
            parts.append(f"$ tail {path}\n" + "\n".join(lines))
        return "\n\n".join(parts)

    def wait_without_jobs(self, prefix="det-", timeout=60):
        """Waits until no job is left and no process of one."""
        wait_until("all jobs to end", lambda: not self.jobs(prefix), timeout)
        wait_until("the processes of all jobs to end", lambda: not self.processes(), timeout)


class Pool:
    """A cluster whose default pool is supplied by a Slurm of its own. `provider`: further keys of the provider.
    `programs`: a directory before the others on the master's PATH. `sbatch`: further options of sbatch. `rest`: the
    master uses slurmrestd, and has no commands of Slurm. `gpus`: imaginary GPUs of a node; without them, agents have
    artificial slots. `stop_timeout`: of the agents."""

    def __init__(self, slurm_options=(), master_options=(), programs="", sbatch=(), rest=False, gpus=0, stop_timeout="5s",
                 **provider):
        self.slurm = Slurm("--gpus", str(gpus), *(["--rest"] if rest else []), *slurm_options)
        self.before = dict(os.environ)
        os.environ.update(self.slurm.settings)
        if programs:
            os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
        dir = self.slurm.dir
        agent = pathlib.Path(BUILD).resolve() / "bin" / "det-agent"
        if gpus or PREFIX:
            agent = self.write_agent(agent, gpus)
        keys = "".join(f"      {key}: {value}\n" for key, value in provider.items())
        transport = self.rest_keys() if rest else f"      sbatch_options: {json.dumps([f'--output={dir}/pilot-%j.log', *sbatch])}\n"
        (dir / "master.yaml").write_text(MASTER.format(agent=agent, dir=dir) + transport + keys)
        self.cluster = Cluster(BUILD, ("--config", dir / "master.yaml", *master_options))
        try:
            self.cluster.__enter__()
        except BaseException:
            self.close()
            raise
        slots = "slot_type: cuda" if gpus else "artificial_slots: 2"
        (dir / "agent.yaml").write_text(AGENT.format(master=self.cluster.address, mounts=self.cluster.dir, slots=slots, stop_timeout=stop_timeout,
                                                     token=self.cluster.dir / "master" / "agent-join-token"))

    def write_agent(self, agent, gpus):
        """A program that becomes the agent, beside a stub of NVIDIA's management library."""
        path = self.slurm.dir / "start-agent"
        nvml = f"export LD_LIBRARY_PATH={BUILD}/tests/fake_nvml DET_FAKE_NVML_DEVICES={gpus}\n" if gpus else ""
        path.write_text(f'#!/bin/sh\n{nvml}exec {PREFIX} {agent} "$@"\n')
        path.chmod(0o755)
        return path

    def rest_keys(self):
        """The keys of slurmrestd, with a token of root."""
        dir, token = self.slurm.dir, self.slurm.run("scontrol", "token", "username=root", "lifespan=3600")
        (dir / "token").touch(0o600)
        (dir / "token").write_text(token.split("=", 1)[1])
        return (f"      rest_url: {self.slurm.settings['DET_SLURMRESTD_URL']}\n      rest_user: root\n"
                f"      rest_version: {self.slurm.settings['DET_SLURMRESTD_VERSION']}\n"
                f"      rest_token_file: {dir}/token\n      rest_job:\n        standard_output: {dir}/pilot-%j.log\n"
                f"        environment: {{SLURM_CONF: {self.slurm.settings['SLURM_CONF']}}}\n")

    def evidence(self):
        return self.slurm.evidence(*self.logs())

    def logs(self):
        return self.cluster.dir / "master.log", *sorted(self.slurm.dir.glob("pilot-*.log"))[-3:]

    def close(self):
        self.cluster.close()
        self.slurm.close()
        for key in [*self.slurm.settings, "PATH"]:
            if key in self.before:
                os.environ[key] = self.before[key]
            else:
                os.environ.pop(key, None)


def describe(pid):
    """The command line, state, parent and open streams of a process, in one line."""
    try:
        at = pathlib.Path(f"/proc/{pid}")
        status = (at / "status").read_text()
        found = re.findall(r"^(?:State|PPid):\s*(\S+)", status, re.MULTILINE)
        line = (at / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
        streams = [os.readlink(at / "fd" / str(number)) for number in (0, 1, 2) if (at / "fd" / str(number)).exists()]
        return f"{pid} {' '.join(found)} {line} {streams}"
    except OSError as error:
        return f"{pid} {error.strerror}"
