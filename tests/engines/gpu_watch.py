"""Watches which GPUs the processes of trials use, on which nodes, and the GPUs of the jobs that run them."""
import collections
import pathlib
import re
import threading
import time

from cluster import processes

INTERVAL = 0.2  # seconds between looks
OTHER = "other"  # name of jobs that are no pilots
Place = collections.namedtuple("Place", "node gpus job")


def variable(environment, name):
    found = re.search(rf"(?:^|\0){name}=([^\0]*)", environment)
    return found[1] if found else ""


def numbers(devices):
    """The numbers of "0,2", and of "GPU-fake-0,GPU-fake-2" (tests/agent/fake_nvml.cc)."""
    return frozenset(int(part.rsplit("-", 1)[-1]) for part in devices.split(",") if part)


def agent_id(pid):
    """The value of --id in the command line of an agent."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return words[words.index("--id") + 1] if "--id" in words else ""


class GpuWatch:
    """A thread that looks at all processes. `master`: the address of the cluster, as its trials have it."""

    def __init__(self, slurm, master):
        self.conf = f"SLURM_CONF={slurm.settings['SLURM_CONF']}\0"
        self.mark = f"DET_MASTER={master}\0"
        self.agents = collections.defaultdict(lambda: Place("", frozenset(), ""))  # by the id of an agent
        self.job_of_run = {}  # (trial, run): job
        self.problems = {}  # description: time since the start
        self.begin = time.monotonic()
        self.trials_seen, self.others_seen = set(), set()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def start(self):
        self.thread.start()

    def stop(self):
        self.over.set()
        self.thread.join()

    def run(self):
        while not self.over.wait(INTERVAL):
            self.look()

    @staticmethod
    def job_of(pid):
        """The job of Slurm that a process belongs to; "" if the process has ended."""
        return variable(processes().get(pid, ("", ""))[1], "SLURM_JOB_ID")

    def trials(self, found=None):
        """{pid: (trial, run, agent)} of the processes of trials, without their launchers."""
        return {pid: (int(variable(env, "DET_TRIAL_ID")), int(variable(env, "DET_TRIAL_RUN_ID")), variable(env, "DET_AGENT_ID"))
                for pid, (name, env) in (found or processes()).items() if name == "chaos_program" and self.mark in env}

    def look(self):
        shared = self.shared(processes())
        if shared:
            # Reading all processes takes a while: one may have ended before the other began. Both still run now?
            shared = {text: pids for text, pids in shared.items() if self.are_alive(pids)}
        for text in shared:
            self.problems.setdefault(text, f"{time.monotonic() - self.begin:.1f} s")

    @staticmethod
    def are_alive(pids):
        found = processes()
        return all(pid in found for pid in pids)

    def shared(self, found):
        """{description: pids} of the GPUs that a trial and another job use. Notes what runs, and GPUs without a job."""
        held = {}  # (node, GPU): {user: pid}
        for pid, (name, env) in found.items():
            if self.conf not in env or not variable(env, "SLURM_JOB_ID"):
                continue
            place = Place(variable(env, "SLURMD_NODENAME"), numbers(variable(env, "CUDA_VISIBLE_DEVICES")),
                          variable(env, "SLURM_JOB_ID"))
            if name == "det-agent" and (id := agent_id(pid)):
                self.agents[id] = place
            if name == "sleep" and variable(env, "SLURM_JOB_NAME") == OTHER:
                self.others_seen.add(place.job)
                self.hold(held, place.node, place.gpus, f"job {place.job}", pid)
        for pid, (trial, run, agent) in self.trials(found).items():
            gpus = numbers(variable(found[pid][1], "CUDA_VISIBLE_DEVICES"))
            place = self.agents[agent]
            if not gpus or not gpus <= place.gpus:
                self.problems[f"run {run} of trial {trial} has GPUs {set(gpus)}; the job of {agent} has {set(place.gpus)}"] = ""
            self.trials_seen.add((trial, run))
            self.job_of_run[trial, run] = place.job
            self.hold(held, place.node, gpus, f"run {run} of trial {trial} in job {place.job}", pid)
        return {f"GPU {gpu} of {node} is used by {' and '.join(sorted(users))}": set(users.values())
                for (node, gpu), users in held.items() if len(users) > 1}

    @staticmethod
    def hold(held, node, gpus, user, pid):
        for gpu in gpus:
            held.setdefault((node, gpu), {})[user] = pid
