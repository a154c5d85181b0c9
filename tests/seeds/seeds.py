"""The seed documents, and small copies of their data sets."""
import os
import pathlib
import re
import subprocess
import tarfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEDS = pathlib.Path(os.environ.get("DET_TEST_SEEDS", ROOT.parent / "shared" / "seeds")).resolve()
DATA = pathlib.Path(os.environ.get("DET_TEST_DATA", ROOT.parent / "shared" / "data")).resolve()
MNIST = DATA / "mnist"
IMAGES_PER_CLASS = 4


def missing():
    """Why the suite cannot run; "" when it can."""
    for path in (SEEDS, MNIST, DATA / "cifar10-jpeg.tar.gz"):
        if not path.exists():
            return f"{path} does not exist; set DET_TEST_SEEDS and DET_TEST_DATA"
    return ""


def blocks(seed):
    """The configurations in a document: indented blocks with an entrypoint and a searcher."""
    text = next(SEEDS.glob(f"{seed}_*.txt")).read_text()
    found = re.findall(r"^\.\. code:: \w+\n\n((?:[ ]+.*\n|\n)+)", text, re.MULTILINE)
    configurations = [textwrap.dedent(block).strip() + "\n" for block in found]
    return [one for one in configurations if re.search(r"^entrypoint:", one, re.M) and re.search(r"^searcher:", one, re.M)]


def small_images(folder):
    """Image folders with a few JPEG files of each class of CIFAR-10: `train`, `test`, and `val`, as ImageNet has it."""
    counts = {}
    with tarfile.open(DATA / "cifar10-jpeg.tar.gz") as tar:
        for member in tar:
            part, kind, name = (pathlib.PurePosixPath(member.name).parts[-3:] + ("", ""))[:3]
            if not member.isfile() or part not in ("train", "test"):
                continue
            counts[part, kind] = counts.get((part, kind), 0) + 1
            if counts[part, kind] > IMAGES_PER_CLASS:
                continue
            path = folder / part / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tar.extractfile(member).read())
    (folder / "val").symlink_to("test")
    return folder


def resnet18_weights(path):
    """Writes random weights of a ResNet-18 with 1000 classes under torchvision's names. Returns whether Python has
    PyTorch."""
    program = f"""
import sys
sys.path.insert(0, {str(ROOT / 'tests' / 'examples')!r})
import torch
from curve import ResNet18
torch.manual_seed(1)
model = ResNet18()
model.fc = torch.nn.Linear(512, 1000)
torch.save(model.state_dict(), sys.argv[1])
"""
    return subprocess.run(["/usr/bin/python3", "-c", program, str(path)], capture_output=True).returncode == 0
