"""Rules that must hold after chaos, checked from outside the product: the trials' own ledgers, the rows of
PostgreSQL, the checkpoint storage, the processes of the machine. P1 to P9 as in ARCHITECTURE.md, "What must
survive"."""
import csv
import io
import os
import pathlib
import subprocess

from cluster import processes

STALE = -77.0  # The loss that only stale runs report.


def query(cluster, sql):
    """Rows as lists of text."""
    done = subprocess.run(["psql", "-h", str(cluster.dir / "master" / "postgres" / "socket"), "-U", "det", "-d", "det",
                           "-X", "--csv", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql],
                          capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"psql: {done.stderr}")
    return list(csv.reader(io.StringIO(done.stdout)))


class Books:
    """The acknowledged reports and the stored rows."""

    def __init__(self, cluster, ledger):
        self.cluster, self.folder = cluster, pathlib.Path(ledger)
        self.acknowledged, self.checkpoints = set(), {}
        for path in sorted(self.folder.glob("ledger-*")):
            for line in path.read_text().splitlines():
                words = line.split()
                if words[0] == "metric":
                    self.acknowledged.add((int(words[1]), int(words[2]), words[3], int(words[4]), float(words[5])))
                else:
                    self.checkpoints[words[2]] = (int(words[1]), int(words[3]))
        self.rows = {(int(trial), int(run), group, int(steps)): (float(loss), archived == "t")
                     for trial, run, group, steps, loss, archived in query(
                         cluster, "SELECT trial_id, run, grp, steps_completed, metrics->>'loss', archived FROM metrics"
                                  " WHERE grp IN ('training', 'validation')")}
        self.trials = {int(id): (int(experiment), state, int(run)) for id, experiment, state, run in
                       query(cluster, "SELECT id, experiment_id, state, run FROM trials")}
        self.stored = {uuid: (int(trial), state, int(steps)) for uuid, trial, state, steps in
                       query(cluster, "SELECT uuid, trial_id, state, steps_completed FROM checkpoints")}

    # P1
    def lost(self):
        """Acknowledged reports that are not stored as reported."""
        problems = [f"acknowledged and not stored: {line}" for line in sorted(self.acknowledged)
                    if self.rows.get(line[:4], (None,))[0] != line[4]]
        problems += [f"checkpoint {uuid} was acknowledged and has no row" for uuid, what in self.checkpoints.items()
                     if (self.stored.get(uuid) or (0, "", 0))[::2] != what]
        return problems

    # P2
    def doubled_or_missing(self, whole):
        """`whole` maps an experiment to the steps of its trial. In other experiments (searches) any prefix is
        correct."""
        problems, visible = [], {}
        for (trial, run, group, steps), (_, archived) in self.rows.items():
            if not archived:
                visible.setdefault((trial, group), {}).setdefault(steps, []).append(run)
        for (trial, group), seen in visible.items():
            steps = sorted(seen)
            problems += [f"trial {trial} shows {group} at {step} {len(seen[step])} times" for step in steps if len(seen[step]) > 1]
            every = 1 if group == "training" else 5
            expected = [step for step in range(1, steps[-1] + 1) if step % every == 0 or step == steps[-1]]
            if steps != expected:
                problems.append(f"trial {trial} lacks {group} at {sorted(set(expected) - set(steps))[:5]}"
                                f" or has too much: {sorted(set(steps) - set(expected))[:5]}")
            # P5: rows of a newer run never precede those of an older one.
            runs = [seen[step][0] for step in steps]
            if runs != sorted(runs):
                problems.append(f"trial {trial} shows {group} of an older run behind that of a newer one")
        for trial, (experiment, _, _) in self.trials.items():
            if experiment in whole and max(visible.get((trial, "training"), {0: []})) != whole[experiment]:
                problems.append(f"trial {trial} ended at {max(visible.get((trial, 'training'), {0: []}))} of {whole[experiment]}")
        return problems

    # P3
    def searches(self):
        problems = []
        for experiment, counted, stored, first, last in query(
                self.cluster, "SELECT e.id, e.searcher_events, count(s.number), min(s.number), max(s.number) FROM experiments e"
                              " LEFT JOIN searcher_events s ON s.experiment_id = e.id GROUP BY e.id"):
            if not counted == stored == str(int(last) + 1) or first != "0":
                problems.append(f"experiment {experiment} counts {counted} events and has {stored}, {first} to {last}")
        for trial, steps in query(
                self.cluster, "SELECT t.id, (s.event::json->>'steps_completed') FROM searcher_events s JOIN trials t ON"
                              " t.experiment_id = s.experiment_id WHERE s.event::json->>'type' = 'validated' AND"
                              " (SELECT count(*) FROM trials o WHERE o.experiment_id = t.experiment_id) = 1"):
            if not any(key[0] == int(trial) and key[2] == "validation" and key[3] == int(steps) for key in self.rows):
                problems.append(f"the search of trial {trial} heard of step {steps}, which is not stored")
        return problems

    # P4
    def overlaps(self):
        path = self.folder / "overlaps"
        return path.read_text().splitlines() if path.exists() else []

    # P5
    def stale(self):
        """Rows reported by replaced runs, archived or not."""
        return ([f"a stale run's report was stored: {key}" for key, (loss, _) in self.rows.items() if loss == STALE] +
                [f"a stale run's checkpoint was stored: {uuid}" for uuid in self.stored if uuid.startswith("57a1e000")])

    # P7
    def checkpoints_without_files(self, storage, damaged):
        """`damaged` are the checkpoints that the chaos damaged; a run may have met them or not."""
        return [f"checkpoint {uuid} is COMPLETED without its files" for uuid, (_, state, _) in self.stored.items()
                if state == "COMPLETED" and uuid not in damaged and not (pathlib.Path(storage) / uuid / "step").exists()]

    def damaged(self):
        """Checkpoints found damaged by a run that loaded them. The policy keeps all others, so only these are
        removed."""
        return [uuid for uuid, (_, state, _) in self.stored.items() if state in ("ERROR", "DELETED")]

    # P9
    def unfinished(self):
        return [f"trial {id} is {state}" for id, (_, state, _) in self.trials.items() if state != "COMPLETED"]


# P8
def leftovers(cluster):
    """Processes of trials, found by the variable that every process of an allocation inherits."""
    mark = f"DET_MASTER=http://127.0.0.1:{cluster.port}\0"
    return [f"process {pid} ({name}) outlives its allocation" for pid, (name, env) in processes().items()
            if mark in env and "DET_ALLOCATION_ID=" in env and pid != os.getpid()]
