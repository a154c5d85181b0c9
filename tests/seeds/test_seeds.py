"""Every configuration, entry point and tutorial step of the seed documents on a cluster of one agent."""
import os
import pathlib
import statistics
import subprocess
import tarfile
import time
import unittest

import seeds
from cluster import Cluster

BUILD = pathlib.Path(os.environ["DET_E2E_BUILD"])
EXAMPLES = seeds.ROOT / "examples"
LONG = os.environ.get("DET_TEST_LONG") == "1"
SHORT = ("--config", "searcher.max_length={batches: 2}", "--config", "scheduling_unit=1")
SEARCH = ("--config", "searcher.max_trials=2", "--config", "searcher.max_time=4", "--config", "scheduling_unit=1")
SMALL_BATCH = ("--config", "hyperparameters.global_batch_size=8")

# Configuration files of the examples that a document names: document, folder, file, data set, options at short length.
FILES = [
    ("000", "mnist", "const.yaml", "mnist", SHORT),
    ("000", "mnist", "distributed.yaml", "mnist", SHORT),
    ("000", "mnist", "dist_random.yaml", "mnist", SHORT + ("--config", "searcher.max_trials=2")),
    ("000", "mnist", "adaptive.yaml", "mnist", SEARCH),
    ("001", "mnist_managed", "const.yaml", "mnist", ("--config", "searcher.max_steps=1")),
    ("003", "imagenet", "cifar10.yaml", "images", SHORT + SMALL_BATCH),
    ("003", "imagenet", "const.yaml", "images", SHORT + SMALL_BATCH),
    ("004", "shiftvit", "const_mnist.yaml", "mnist", SHORT),
    ("004", "shiftvit", "distributed_mnist.yaml", "mnist", SHORT),
    ("004", "shiftvit", "adaptive_mnist.yaml", "mnist", SEARCH),
    ("004", "shiftvit", "const_cifar10.yaml", "images", SHORT + SMALL_BATCH),
    ("004", "shiftvit", "distributed_cifar10.yaml", "images", SHORT + SMALL_BATCH),
    ("004", "shiftvit", "adaptive_cifar10.yaml", "images", SEARCH + SMALL_BATCH),
    ("004", "shiftvit", "distributed_imagenet.yaml", "images",
     SHORT + SMALL_BATCH + ("--config", "resources.slots_per_trial=2", "--config", "hyperparameters.depths=[1,1,1,1]")),
]
# Published accuracies: document, folder, file, data set, claimed value.
CLAIMS = [
    ("000", "mnist", "const.yaml", "mnist", 0.97),
    ("000", "mnist", "distributed.yaml", "mnist", 0.97),
    ("004", "shiftvit", "const_mnist.yaml", "mnist", 0.987),
    ("004", "shiftvit", "distributed_mnist.yaml", "mnist", 0.988),
    ("004", "shiftvit", "const_cifar10.yaml", "all images", 0.749),
    ("004", "shiftvit", "distributed_cifar10.yaml", "all images", 0.754),
]
CLAIM_SEEDS = (1, 2, 3)
TABLE = seeds.ROOT / "build" / "test-logs" / "seeds.md"


@unittest.skipIf(seeds.missing(), seeds.missing())
class Seeds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.bind_mounts += f",{seeds.DATA}"
        cls.cluster.start_agent("agent", slots=8)
        cls.images = seeds.small_images(cls.cluster.dir / "images")
        cls.has_weights = seeds.resnet18_weights(cls.images / "resnet18.pth")
        cls.data = {"mnist": seeds.MNIST, "images": cls.images}
        if LONG:
            TABLE.parent.mkdir(parents=True, exist_ok=True)
            TABLE.write_text(f"{os.cpu_count()} cores, {os.uname().machine}; median and range of {len(CLAIM_SEEDS)} seeds.\n\n"
                             "| document | configuration | claimed | here | time of one |\n|---|---|---|---|---|\n")

    def all_images(self):
        """The folders with all images of CIFAR-10."""
        folder = self.cluster.dir / "cifar10"
        if not folder.exists():
            with tarfile.open(seeds.DATA / "cifar10-jpeg.tar.gz") as tar:
                tar.extractall(folder)
        return folder

    def create(self, folder, configuration, *options):
        out = self.cluster.det("experiment", "create", configuration, EXAMPLES / folder, *options, cwd=EXAMPLES / folder)
        return int(out.split("Created experiment ")[1].split()[0])

    def assert_trained(self, id, timeout=240):
        """The experiment completes, and each trial has its searcher's metric and a checkpoint."""
        self.cluster.wait_state(id, "COMPLETED", timeout=timeout)
        experiment = self.cluster.experiment(id)
        metric = experiment["config"]["searcher"]["metric"]
        self.assertGreater(len(experiment["trials"]), 0)
        for trial in experiment["trials"]:
            reported = self.cluster.metrics(trial["id"], "validation")
            self.assertIn(metric, reported[-1][1], f"trial {trial['id']}")
            self.assertTrue(trial["latestCheckpointUuid"], f"trial {trial['id']} has no checkpoint")
        return experiment

    def written(self, seed):
        """The document's only configuration, as a file."""
        [text] = seeds.blocks(seed)
        path = self.cluster.dir / f"{seed}.yaml"
        path.write_text(text)
        return path

    def test_the_configuration_of_001_trains_as_it_is_written(self):
        length = () if LONG else ("--config", "searcher.max_steps=1")
        self.assert_trained(self.create("mnist_managed", self.written("001"), "--config", f"data.dir={seeds.MNIST}", *length))

    def test_the_configuration_of_002_is_accepted_as_it_is_written(self):
        # Its entry point needs Determined's Python package. tests/determined runs that one.
        id = self.create("mnist", self.written("002"), "--paused")
        self.assertEqual(self.cluster.experiment(id)["config"]["resources"]["slots_per_trial"], 8)
        self.cluster.det("experiment", "kill", id)

    def test_the_configuration_of_003_trains_as_it_is_written(self):
        if not self.has_weights:
            self.skipTest("python3-torch is not installed: pretrained weights are made with it")
        # Its batch of 256 is larger than the small data set, which is one batch then.
        id = self.create("imagenet", self.written("003"), "--config", f"hyperparameters.data={self.images}",
                         "--config", "searcher.max_length={batches: 2}")
        self.assert_trained(id)

    def test_local_programs_train(self):
        for program, folder, file, processes in (("mnist_train", "mnist", "const.yaml", 1), ("mnist_train", "mnist", "distributed.yaml", 2),
                                                 ("mnist_managed_train", "mnist_managed", "const.yaml", 1)):
            with self.subTest(program=program, file=file):
                self.run_program(program, folder, file, (), processes, seeds.MNIST)

    def test_every_step_of_the_porting_tutorial_runs(self):
        for step in ("1_model", "2_optimizer", "3_data", "4_batch", "train"):
            with self.subTest(step=step):
                self.run_program(f"imagenet_{step}", "imagenet", "cifar10.yaml", ("const.yaml", "--test"), 1, self.images)

    def run_program(self, program, folder, file, arguments, processes, data):
        """Runs a program of the examples with two batches per process. It reads const.yaml of its directory."""
        directory = self.cluster.dir / f"{program}-{file}"
        directory.mkdir()
        text = (EXAMPLES / folder / file).read_text()
        text = text.replace("# data:\n#   dir: /path/to/mnist ", "data:\n  dir: DATA ").replace("dir: data ", "dir: DATA ")
        self.assertIn("dir: DATA", text)
        text = text.replace("DATA", str(data)).replace("max_steps: 20", "max_length: {batches: 2}")
        text = text.replace("max_length:\n    epochs: 1\n", "max_length:\n    batches: 2\n")
        (directory / "const.yaml").write_text(text)
        argv = [BUILD / "examples" / program, *arguments]
        if processes > 1:
            argv = [BUILD / "bin" / "det-launch", "--nproc-per-node", str(processes), "--", *argv]
        done = subprocess.run(argv, cwd=directory, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
                              text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-4000:])


def add_file(seed, folder, file, data, options):
    def test(self):
        self.assert_trained(self.create(folder, file, "--config", f"data.dir={self.data[data]}", *options))

    name = f"test_{folder}_{file.removesuffix('.yaml')}_of_{seed}_trains"
    setattr(Seeds, name, test)


for entry in FILES:
    add_file(*entry)


def add_claim(seed, folder, file, data, claimed):
    """A test that trains the file with three experiment seeds and adds its row to the table of published figures."""
    @unittest.skipUnless(LONG, "only with --long")
    def test(self):
        path = self.all_images() if data == "all images" else self.data[data]
        begin, values = time.monotonic(), []
        for number in CLAIM_SEEDS:
            id = self.create(folder, file, "--config", f"data.dir={path}", "--config",
                             f"reproducibility.experiment_seed={number}")
            self.assert_trained(id, timeout=4 * 3600)
            reported = self.cluster.metrics(self.cluster.trial_id(id), "validation")
            values.append(max(metrics["accuracy"] for _, metrics in reported))
        middle = statistics.median(values)
        row = (f"| {seed} | {folder}/{file} | {claimed:.1%} | {middle:.2%} ({min(values):.2%} to {max(values):.2%}) | "
               f"{(time.monotonic() - begin) / len(CLAIM_SEEDS):.0f} s |")
        print(row, flush=True)
        with TABLE.open("a") as table:
            table.write(row + "\n")
        self.assertGreaterEqual(middle, claimed)

    setattr(Seeds, f"test_{folder}_{file.removesuffix('.yaml')}_of_{seed}_reaches_its_published_accuracy", test)


for claim in CLAIMS:
    add_claim(*claim)
