"""Stand-in for torch.utils.tensorboard, which needs the package tensorboard: writers make a file without events. And
changes of modules of the machine's torch."""
import importlib.abc
import importlib.machinery
import pathlib
import shutil
import sys
import time
import types


class SummaryWriter:
    def __init__(self, log_dir=None, **_):
        self.directory = pathlib.Path(log_dir or ".")

    def add_scalar(self, *_, **__):
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / f"events.out.tfevents.{time.time_ns()}").touch()

    def flush(self):
        """Has nothing to write."""

    def close(self):
        """Has nothing to write."""


module = types.ModuleType("torch.utils.tensorboard")
module.SummaryWriter = SummaryWriter
sys.modules[module.__name__] = module


def mend_launcher(api):
    """Since Python 3.11 a loop over a Flag leaves out its zero, so torch 1.13 finds no value for "0"."""
    of_text = api.Std.from_str
    api.Std.from_str = classmethod(lambda cls, text: cls(int(text)) if text.isdigit() else of_text(text))


def serve_mnist(mnist):
    """Datasets come from the runner's copy, because the machine may have no network."""
    copies = pathlib.Path(sys.prefix).parent / "mnist"

    def provide(_, download_root, filename, **__):
        shutil.copy(copies / filename, download_root)
        mnist.extract_archive(f"{download_root}/{filename}", download_root)

    if copies.is_dir():
        mnist.download_and_extract_archive = provide


CHANGES = {"torch.distributed.elastic.multiprocessing.api": mend_launcher, "torchvision.datasets.mnist": serve_mnist}


class Changer(importlib.abc.MetaPathFinder):
    """Changes modules when they are loaded, so that no process loads them for this."""

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in CHANGES else None
        if spec is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), CHANGES[name](module))
        return spec


sys.meta_path.insert(0, Changer())
