"""An image for the tests whose experiments name one of Determined: the machine's own programs under its name.

Uses podman with a store of its own, below a directory that the caller removes."""
import contextlib
import io
import shutil
import subprocess
import tarfile

NAME = "docker.io/determinedai/pytorch-tensorflow-cpu-dev:0736b6d"


def archive():
    """Root directory of the image: links into /usr, which agents mount, and the files that programs expect."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("usr", "etc", "tmp", "proc", "dev", "run", "root", "work"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name in ("bin", "sbin", "lib", "lib64"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(entry)
        for name, text in (("passwd", "root:x:0:0::/root:/bin/sh\n"), ("group", "root:x:0:\n"), ("hosts", "127.0.0.1 localhost\n")):
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@contextlib.contextmanager
def engine(directory, path):
    """Runs podman's service with the image, whose programs have this PATH. Yields the options of agents that use it:
    none without podman."""
    podman = ["podman", "--root", directory / "images", "--runroot", directory / "images-run", "--storage-driver", "vfs"]
    made = shutil.which("podman") and subprocess.run(
        [*podman, "import", "--change", f"ENV PATH={path}", "-", NAME], input=archive(), capture_output=True)
    if not made or made.returncode != 0:
        yield ()
        return
    socket = f"unix://{directory}/podman.sock"
    service = subprocess.Popen([*podman, "system", "service", "--time=0", socket], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        yield ("--container-engine", socket)
    finally:
        service.terminate()
        service.wait()
