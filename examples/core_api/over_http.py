"""Stages 2 to 5 in Python, over HTTP and with the standard library only. Any program that can send HTTP
requests can be a trial. `python3 over_http.py` runs without a cluster and prints its metrics.
`det experiment create over_http.yaml .` runs a search; over_http_distributed.yaml runs two processes."""
import json
import math
import os
import pathlib
import ssl
import threading
import urllib.request
import uuid


class Alone:
    """The trial without a cluster: default hyperparameters, no checkpoints."""
    hparams = {"learning_rate": 0.3, "batches": 500}
    steps_completed = 0
    rank, ranks = 0, 1

    def gather(self, round, share):
        return [share]

    def report(self, group, steps, metrics):
        print(group, steps, metrics)

    def progress(self, fraction):
        pass

    def should_preempt(self):
        return False

    def save(self, steps, name, text):
        pass

    def invalid_hp(self):
        print("these hyperparameters lead nowhere")


class Trial(Alone):
    """One run of a trial on a cluster. The agent sets the environment variables."""

    def __init__(self):
        self.trial, self.run = int(os.environ["DET_TRIAL_ID"]), int(os.environ["DET_TRIAL_RUN_ID"])
        self.task, self.allocation = os.environ["DET_TASK_ID"], os.environ["DET_ALLOCATION_ID"]
        self.hparams = json.loads(os.environ["DET_HPARAMS"])
        self.steps_completed = int(os.environ["DET_STEPS_COMPLETED"])
        self.latest_checkpoint = os.environ.get("DET_LATEST_CHECKPOINT")
        storage = json.loads(os.environ["DET_EXPERIMENT_CONFIG"])["checkpoint_storage"]
        self.storage = pathlib.Path(storage["host_path"], storage.get("storage_path") or "")
        self.rank, self.ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.trust = ssl.create_default_context(cafile=os.environ.get("DET_MASTER_CERT_FILE"))
        self.leave = threading.Event()
        if self.rank == 0:
            threading.Thread(target=self.watch, daemon=True).start()

    def call(self, method, path, body=None):
        master = os.environ["DET_MASTER"]
        request = urllib.request.Request(
            (master if "://" in master else "http://" + master) + "/api/v1" + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Grpc-Metadata-x-allocation-token": "Bearer " + os.environ["DET_SESSION_TOKEN"]})
        with urllib.request.urlopen(request, timeout=90, context=self.trust) as answer:
            return json.loads(answer.read())

    def watch(self):
        """Long poll: the master responds when it preempts the trial, at the latest after the timeout."""
        path = f"/allocations/{self.allocation}/signals/preemption?timeout_seconds=60"
        while not self.leave.is_set():
            if self.call("GET", path)["preempt"]:
                self.leave.set()

    def gather(self, round, share):
        """Returns the shares of all ranks, in order of rank: the master sorts them by requestUuid."""
        answer = self.call("POST", f"/allocations/{self.allocation}/all_gather", {
            "requestUuid": f"{round}.{self.rank:04}", "numPeers": self.ranks, "data": {"share": share}})
        return [data["share"] for data in answer["data"]]

    def should_preempt(self):
        if self.leave.is_set():
            self.call("POST", f"/allocations/{self.allocation}/signals/ack_preemption", {})
        return self.leave.is_set()

    def report(self, group, steps, metrics):
        self.call("POST", f"/trials/{self.trial}/metrics", {"group": group, "metrics": {
            "trialId": self.trial, "trialRunId": self.run, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}}})

    def progress(self, fraction):
        self.call("POST", f"/trials/{self.trial}/progress", {"progress": fraction})

    def save(self, steps, name, text):
        """Saves a checkpoint: a directory that is then reported to the master."""
        id = str(uuid.uuid4())
        (self.storage / id).mkdir(parents=True)
        (self.storage / id / name).write_text(text)
        self.call("POST", "/checkpoints", {
            "uuid": id, "taskId": self.task, "allocationId": self.allocation, "state": "STATE_COMPLETED",
            "resources": {name: str(len(text))}, "metadata": {"steps_completed": steps}})

    def invalid_hp(self):
        self.call("POST", f"/trials/{self.trial}/early_exit", {"reason": "EXITED_REASON_INVALID_HP"})


POINTS = [(x, math.sin(3 * x)) for x in (2 * i / 63 - 1 for i in range(64))]


def slope(c, rank=0, ranks=1):
    """Returns a rank's share of the mean squared error of the cubic with coefficients c, and of its gradient."""
    loss, by_c = 0, [0] * 4
    for x, y in POINTS[rank::ranks]:
        miss = c[0] + x * (c[1] + x * (c[2] + x * c[3])) - y
        loss += miss * miss / len(POINTS)
        by_c = [d + 2 * miss * x**i / len(POINTS) for i, d in enumerate(by_c)]
    return loss, by_c


def main():
    trial = Trial() if "DET_TRIAL_ID" in os.environ else Alone()
    rate, batches, c = trial.hparams["learning_rate"], trial.hparams["batches"], [0] * 4
    if trial.steps_completed > 0:
        c = json.loads((trial.storage / trial.latest_checkpoint / "cubic.json").read_text())
    for batch in range(trial.steps_completed + 1, batches + 1):
        shares = trial.gather(batch, [*slope(c, trial.rank, trial.ranks), trial.should_preempt()])
        losses, slopes, asked = zip(*shares)
        loss, leave = sum(losses), any(asked)
        if not loss < 100:
            return trial.rank == 0 and trial.invalid_hp()
        c = [value - rate * sum(each) for value, each in zip(c, zip(*slopes))]
        if trial.rank == 0:
            tell(trial, batch, batches, loss, c, leave)
        if leave:
            return


def tell(trial, batch, batches, loss, c, leave):
    if batch % 10 == 0:
        trial.report("training", batch, {"loss": loss})
        trial.progress(batch / batches)
    if batch % 25 == 0:
        trial.report("validation", batch, {"validation_loss": slope(c)[0]})
    if batch == batches or leave:
        trial.save(batch, "cubic.json", json.dumps(c))


main()
