#!/usr/bin/env python3
"""Chaos test on real processes: a cluster of three agents trains while its parts are killed, frozen and
restarted in the order that a seed determines. Afterwards everything must finish and the records must match
(checks.py).

chaos.py BUILD_DIR [--seeds A..B] [--faults N]
Ends with `N passed, N failed`. Keeps the directory of a failed seed."""
import argparse
import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from checks import STALE, Books, leftovers  # noqa: E402
from cluster import Cluster, processes, wait_until  # noqa: E402

AGENTS = {"a1": 2, "a2": 2, "a3": 1}
FINISH = 120  # Seconds from the last fault to the end of everything.
# An agent is lost after LEASE, its grace and the margin. A frozen machine may sleep longer than that.
LEASE = 6
TIMERS = ["--heartbeat", "1s", "--agent-lease", f"{LEASE}s", "--agent-kill-grace", "2s", "--agent-margin", "1s"]


# Bytes of the disk of each daemon.
DISKS = {"master": 64 << 20, "postgres": 512 << 20, **{f"agent-{name}": 192 << 20 for name in AGENTS}}


class Disks:
    """Small file systems for the data of the master, of PostgreSQL and of each agent, which can be filled.
    Only root can mount them."""

    def __init__(self, directory):
        self.places = {}
        if os.geteuid() == 0:
            self.places = {name: directory / ("master/postgres" if name == "postgres" else name) for name in DISKS}

    def __enter__(self):
        for name, place in self.places.items():  # The master's comes before that of PostgreSQL below it.
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISKS[name]}", "tmpfs", place], check=True)
        return self

    def __exit__(self, *_):
        for place in reversed(self.places.values()):
            subprocess.run(["umount", "-l", place], check=False)
            shutil.rmtree(place, ignore_errors=True)

    def fill(self, name):
        """Leaves no free byte. Returns the file that takes them."""
        ballast = self.places[name] / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError:
                pass
        return ballast


def config(cluster, ledger, searcher, steps, slots=1, litter=False):
    return f"""
name: chaos
entrypoint: [{cluster.bin / "chaos_program"}]
max_restarts: 100
hyperparameters: {{ledger: "{ledger}", steps: {steps}, milliseconds: 80, save_every: 12, litter: {str(litter).lower()},
                  x: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{{searcher}, metric: loss}}
resources: {{slots_per_trial: {slots}, is_single_node: true}}
checkpoint_storage: {{type: shared_fs, host_path: "{cluster.dir / "checkpoints"}", save_experiment_best: 100,
                     save_trial_best: 100, save_trial_latest: 100}}
"""


class Chaos:
    def __init__(self, cluster, disks, seed):
        self.cluster, self.disks, self.dice = cluster, disks, random.Random(seed)
        self.filled, self.exits = 0, []  # Full disks, and daemons that exited on one.
        self.ledger = cluster.dir / "ledger"
        self.ledger.mkdir()
        self.whole, self.experiments, self.history = {}, [], []
        self.storage, self.damaged = cluster.dir / "checkpoints", set()
        self.refused, self.accepted = 0, []  # Calls of stale runs.

    # ---- jobs ----
    def submit(self):
        empty = self.cluster.dir / "empty"
        empty.mkdir()
        for number in range(5):
            steps = self.dice.randint(100, 180)
            slots = 2 if number == 4 else 1
            id = self.cluster.create(empty, config(self.cluster, self.ledger, "name: single, max_length: {batches: 1000}", steps,
                                                   slots, litter=number == 1))
            self.whole[id] = steps
            self.experiments.append(id)
        search = "name: adaptive_asha, max_trials: 6, max_time: 60, time_metric: batches, max_concurrent_trials: 2, divisor: 3"
        self.experiments.append(self.cluster.create(empty, config(self.cluster, self.ledger, search, 60)))

    # ---- faults ----
    def pids(self, name, mark=""):
        own = f"DET_MASTER=http://127.0.0.1:{self.cluster.port}\0"
        return sorted(pid for pid, (comm, env) in processes().items() if comm == name and (own in env or (mark and mark in env)))

    def postgres(self):
        """The postmaster of this cluster."""
        path = self.cluster.dir / "master" / "postgres" / "data" / "postmaster.pid"
        try:
            return int(path.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def kill_master(self):
        if self.cluster.master.poll() is None:
            self.cluster.kill_master()

    def end_master(self):
        if self.cluster.master.poll() is None:
            self.cluster.stop_master()

    def freeze_master(self):
        self.freeze(self.cluster.master.pid)

    def kill_agent(self):
        name = self.dice.choice(sorted(AGENTS))
        if self.cluster.agents[name].poll() is None:
            self.cluster.kill_agent(name)

    def freeze_agent(self):
        self.freeze(self.cluster.agents[self.dice.choice(sorted(AGENTS))].pid)

    def kill_trial(self):
        if found := self.pids("chaos_program"):
            self.kill(self.dice.choice(found))

    def freeze_trial(self):
        if found := self.pids("chaos_program"):
            self.freeze(self.dice.choice(found))

    def freeze_machine(self):
        """Freezes an agent with all its processes for longer than the lease. Its trials run elsewhere when it
        wakes, so its later reports are stale."""
        name = self.dice.choice(sorted(AGENTS))
        mark = f"DET_AGENT_ID={name}\0"
        own = f"DET_MASTER=127.0.0.1:{self.cluster.port}\0"
        frozen = [pid for pid, (_, env) in processes().items() if mark in env and own in env]
        frozen += [pid for pid, (comm, _) in processes().items()
                   if comm == "det-supervisor" and str(self.cluster.dir / f"agent-{name}") in command_line(pid)]
        frozen.append(self.cluster.agents[name].pid)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in frozen:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            if number == signal.SIGSTOP:
                self.wait_beside(self.dice.uniform(LEASE + 4, LEASE + 7))

    def wait_beside(self, seconds):
        """Waits, and restarts the master if it exits meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            select.select([], [], [], 1)
            if self.cluster.master.poll() is not None:
                self.cluster.start_master()

    def damage_checkpoint(self):
        """Damages the newest checkpoint of a running trial while it is stopped, then kills it: the next run
        must load it."""
        found = self.pids("chaos_program")
        self.dice.shuffle(found)
        break_it = self.dice.choice([lambda path: path.write_text("damaged"), pathlib.Path.unlink])
        for pid in found:
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                continue
            if newest := self.newest_checkpoint(variable(pid, "DET_TRIAL_ID")):
                break_it(newest / "step")
                self.damaged.add(newest.name)
                return self.kill(pid)
            os.kill(pid, signal.SIGCONT)

    def newest_checkpoint(self, trial):
        made = []
        for path in self.storage.glob("*/manifest.json"):
            if (path.parent / "step").exists() and str(json.loads(path.read_text())["owner"]["trial"]) == trial:
                made.append((path.stat().st_mtime_ns, path.parent))
        return max(made)[1] if made else None

    def replay(self):
        """Sends new reports as every replaced run. All of them must be refused."""
        runs = {}
        for path in self.ledger.glob("token-*"):
            _, trial, run = path.name.split("-")
            runs.setdefault(int(trial), {})[int(run)] = path.read_text().split()
        for trial, of_one in runs.items():
            for run in sorted(of_one)[:-1]:
                if len(of_one[run]) >= 2:
                    self.replay_run(trial, run, *of_one[run][:2])

    def replay_run(self, trial, run, allocation, token):
        steps = 1_000_000 + run
        metrics = {"trialId": trial, "trialRunId": run, "stepsCompleted": steps, "metrics": {"avgMetrics": {"loss": STALE}}}
        bodies = [(f"/trials/{trial}/metrics", {"group": group, "metrics": metrics}) for group in ("training", "validation")]
        bodies += [(f"/trials/{trial}/progress", {"progress": 0.99, "isRaw": False}),
                   ("/checkpoints", {"uuid": f"57a1e000-0000-4000-8000-{trial:06}{run:06}", "allocationId": allocation,
                                     "resources": {"step": "1"}, "metadata": {"steps_completed": steps},
                                     "state": "STATE_COMPLETED"}),
                   (f"/allocations/{allocation}/signals/ack_preemption", {})]
        for path, body in bodies:
            request = urllib.request.Request(self.cluster.url + "/api/v1" + path, method="POST", data=json.dumps(body).encode(),
                                             headers={"Grpc-Metadata-x-allocation-token": "Bearer " + token,
                                                      "Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    self.accepted.append(f"a stale run's {path} was answered {answer.status}")
            except urllib.error.HTTPError:
                self.refused += 1
            except OSError:
                return  # The master is down.

    def kill_supervisor(self):
        if found := [pid for pid, (name, _) in processes().items()
                     if name == "det-supervisor" and str(self.cluster.dir) in command_line(pid)]:
            self.kill(self.dice.choice(sorted(found)))

    def kill_postgres(self):
        if pid := self.postgres():
            self.kill(pid)

    def kill_connection(self):
        """Kills a server process of PostgreSQL, which closes all connections."""
        if pid := self.postgres():
            children = [child for child in processes() if parent(child) == pid]
            if children:
                self.kill(self.dice.choice(sorted(children)))

    def pause(self):
        id = self.dice.choice(self.experiments)
        self.cluster.run_det("experiment", "pause", id)
        select.select([], [], [], self.dice.uniform(0, 2))
        self.cluster.run_det("experiment", "activate", id)

    def fill_disk(self):
        """Fills the disk of one daemon for some seconds. The daemons stay: a full disk is a state."""
        if not self.disks.places:
            return
        name = self.dice.choice(sorted(self.disks.places))
        daemons = {"master": self.cluster.master, **self.cluster.agents}
        alive = [each for each, process in daemons.items() if process.poll() is None]
        ballast = self.disks.fill(name)
        self.filled += 1
        self.history[-1] += f" {name}"
        select.select([], [], [], self.dice.uniform(2, 8))
        self.exits += [f"{each} exited while the disk of {name} was full" for each in alive
                       if daemons[each].poll() is not None]
        ballast.unlink()

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def freeze(self, pid):
        try:
            os.kill(pid, signal.SIGSTOP)
            select.select([], [], [], self.dice.uniform(0.5, 4))
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    FAULTS = [kill_master, kill_master, end_master, freeze_master, kill_agent, kill_agent, freeze_agent, kill_trial, kill_trial,
              freeze_trial, kill_supervisor, kill_postgres, kill_connection, pause, freeze_machine,
              damage_checkpoint, damage_checkpoint, fill_disk, fill_disk, fill_disk]

    def repair(self):
        """Restarts exited daemons, like an init system."""
        if self.cluster.master.poll() is not None:
            self.cluster.start_master()
        for name, slots in AGENTS.items():
            if self.cluster.agents[name].poll() is not None:
                self.cluster.launch_agent(name, slots)

    # ---- a run ----
    def run(self, faults):
        for name, slots in AGENTS.items():
            self.cluster.start_agent(name, slots)
        self.submit()
        wait_until("the first trial to train", lambda: list(self.ledger.glob("ledger-*")))
        begin = time.monotonic()
        for _ in range(faults):
            select.select([], [], [], self.dice.uniform(0.2, 2.5))
            fault = self.dice.choice(self.FAULTS)
            self.history.append(f"{time.monotonic() - begin:.1f} s {fault.__name__}")
            fault(self)
            self.replay()
            if self.dice.random() < 0.8:  # Otherwise the process stays down until the next fault.
                self.repair()
        end = time.monotonic()
        self.finish(end)
        return time.monotonic() - end

    def finish(self, since):
        def over():
            self.repair()
            if self.cluster.master.poll() is not None:
                return False
            states = {}
            for id in self.experiments:
                done = self.cluster.run_det("experiment", "describe", id, "--json")
                if done.returncode != 0:
                    return False
                states[id] = json.loads(done.stdout)["state"].removeprefix("STATE_")
                if states[id] == "PAUSED":
                    self.cluster.run_det("experiment", "activate", id)
            return all(state in ("COMPLETED", "ERROR", "CANCELED") for state in states.values())
        wait_until("every experiment to end", over, max(1, FINISH - (time.monotonic() - since)))
        wait_until("processes to be gone", lambda: not leftovers(self.cluster), 10)
        for _ in range(20):
            self.replay()

    def problems(self):
        books = Books(self.cluster, self.ledger)
        found = (books.lost() + books.doubled_or_missing(self.whole) + books.searches() + books.overlaps() +
                 books.checkpoints_without_files(self.storage, self.damaged) + books.unfinished() + books.stale() +
                 self.accepted + self.exits)
        if len(books.acknowledged) < sum(self.whole.values()):
            found.append(f"only {len(books.acknowledged)} reports were acknowledged")
        return books, found


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def variable(pid, name):
    """The value of a variable in a process's environment; "" if unset."""
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return next((each.split("=", 1)[1] for each in environment if each.startswith(name + "=")), "")


def parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def sees_faults(chaos, books):
    """Self-test of the checks: each must detect records that do not match."""
    missed = []
    key, (loss, _) = next((k, v) for k, v in books.rows.items() if not v[1] and k[2] == "training" and k[3] == 7)
    other = (key[0], key[1] + 1, *key[2:])
    books.rows.pop(key)
    books.acknowledged.add((*key, loss))
    if not books.lost():
        missed.append("a lost report")
    if not books.doubled_or_missing(chaos.whole):
        missed.append("a missing row")
    books.rows[key] = books.rows[other] = (loss, False)
    if not books.doubled_or_missing(chaos.whole):
        missed.append("a doubled row")
    books.checkpoints["no-such-uuid"] = (1, 1)
    if len(books.lost()) != 1:
        missed.append("a lost checkpoint")
    books.stored["no-such-uuid"] = (1, "COMPLETED", 1)
    if not books.checkpoints_without_files(chaos.storage, chaos.damaged):
        missed.append("a checkpoint without files")
    books.rows[(*key[:3], 1_000_001)] = (STALE, True)
    if not books.stale():
        missed.append("a stale run's report")
    return [f"the checks do not see {what}" for what in missed]


def one(build, seed, faults):
    """Returns the number of damaged checkpoints and of those that a run met. Raises when there is a
    problem."""
    cluster = Cluster(build, TIMERS)
    with Disks(cluster.dir) as disks, cluster:
        chaos = Chaos(cluster, disks, seed)
        try:
            seconds = chaos.run(faults)
            books, found = chaos.problems()
            print(f"seed {seed}: {len(books.acknowledged)} reports acknowledged, {chaos.refused} of stale runs refused, "
                  f"{len(books.damaged())} of {len(chaos.damaged)} damaged checkpoints met, "
                  f"{chaos.filled} full disks, over {seconds:.1f} s after the last fault", flush=True)
            found += sees_faults(chaos, books) if not found else []
            if found:
                raise AssertionError("\n".join(found[:20]))
            return len(chaos.damaged), len(books.damaged())
        except BaseException:
            print(f"seed {seed} FAILED\n  " + "\n  ".join(chaos.history))
            raise


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build")
    parser.add_argument("--seeds", default="1..3")
    parser.add_argument("--faults", type=int, default=10)
    given = parser.parse_args()
    first, _, last = given.seeds.partition("..")
    passed = failed = damaged = met = 0
    for seed in range(int(first), int(last or first) + 1):
        try:
            of_one = one(given.build, seed, given.faults)
            passed, damaged, met = passed + 1, damaged + of_one[0], met + of_one[1]
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed += 1
    # A run meets no damage if it was replaced before it reported its newest checkpoint, or had just ended.
    # This cannot apply to all of them.
    if damaged >= 5 and not met:
        print(f"{damaged} checkpoints were damaged and no run met one: that fault tests nothing")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
