"""Stand-in for torch.utils.tensorboard, which needs the package tensorboard: writers make a file without events."""
import pathlib
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
