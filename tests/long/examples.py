#!/usr/bin/env python3
"""The examples on real data must reach their published results, but for the seed documents' configurations, which the
seeds suite trains: tests/long/examples.py BUILD_DIR. The data is ../shared/data, or DET_TEST_DATA: mnist/ and
cifar10-jpeg.tar.gz. Ends with `N passed, N failed`."""
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("DET_TEST_DATA", ROOT.parent / "shared" / "data")).resolve()
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release").resolve()
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


def last(name, out):
    return float(re.findall(rf"{name} (\S+)", out)[-1])


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "data").mkdir()
        (self.folder / "data" / "mnist").symlink_to(DATA / "mnist")

    def train(self, program, example, config, edits=(), processes=1):
        text = (ROOT / "examples" / example / config).read_text()
        for old, new in edits:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.folder / "const.yaml").write_text(text)
        argv = [BUILD / "examples" / program] + ([] if example.startswith("mnist") else ["const.yaml"])
        if processes > 1:
            argv = [BUILD / "bin" / "det-launch", "--nproc-per-node", str(processes), "--", *argv]
        done = subprocess.run(argv, cwd=self.folder, env=ENV, capture_output=True, text=True, timeout=1400)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def mnist(self):
        return [("# data:\n#   dir: /path/to/mnist ", f"data:\n  dir: {DATA / 'mnist'} ")]

    def test_mnist_reaches_98_5_percent_in_one_epoch_on_one_process_and_on_two(self):
        one = last("accuracy", self.train("mnist_train", "mnist", "const.yaml", self.mnist()))
        two = last("accuracy", self.train("mnist_train", "mnist", "distributed.yaml", self.mnist(), processes=2))
        print(f"MNIST: {one} and {two}")
        self.assertGreaterEqual(one, 0.985)
        self.assertLessEqual(abs(one - two), 0.003)

    def test_managed_mnist_learns_in_twenty_steps(self):
        out = self.train("mnist_managed_train", "mnist_managed", "const.yaml", self.mnist())
        self.assertLess(last("validation_error", out), 0.04)

    def test_resnet_18_follows_pytorchs_loss_curve_for_200_batches_of_cifar_10(self):
        # Batches and the optimizer's steps are rounded as in Python, so that only the order of summation
        # differs.
        with tarfile.open(DATA / "cifar10-jpeg.tar.gz") as tar:
            tar.extractall(self.folder / "jpeg", filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(
                self.folder / "jpeg")
        binary = self.folder / "binary"
        binary.mkdir()
        subprocess.run([BUILD / "bin" / "examples_probe", "cifar10", self.folder / "jpeg", binary], check=True)
        done = subprocess.run(["/usr/bin/python3", ROOT / "tests" / "examples" / "curve.py",
                               BUILD / "examples" / "imagenet_train", "200", "0.001", "0.001"],
                              env={**ENV, "DET_CIFAR10": str(binary)}, capture_output=True, text=True)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Examples)
    if len(sys.argv) > 2:
        suite = unittest.TestSuite(test for test in suite if sys.argv[2] in test.id())
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{max(0, result.testsRun - failed)} passed, {failed} failed")
    return 1 if failed or result.testsRun == 0 else 0


sys.exit(main())
