"""Runs Determined's own client and end-to-end tests, unmodified, against a cluster of this build.

DET_UPSTREAM names a copy of Determined's repository, release 0.38.1: a work tree or a git directory. Its parts
are unpacked into build/determined, which git ignores. Ends with a table and `N passed, N failed`."""
import argparse
import collections
import gzip
import importlib.util
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "determined"
SOURCE = WORK / "source"
VERSION = "0.38.1"
PACKAGES = ("appdirs argcomplete boto3 docker filelock git kubernetes matplotlib packaging pandas paramiko pathspec pexpect psutil "
            "pytest pytest-timeout requests ruamel.yaml tabulate termcolor torch tqdm tz zmq").split()
MODULES = {"git": "git", "pytest-timeout": "pytest_timeout", "tz": "pytz"}

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import image  # noqa: E402
from cluster import Cluster  # noqa: E402


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the parent, for a module like ruamel.yaml
        return False


def missing():
    """The reason why the tests cannot run here, or None."""
    upstream = os.environ.get("DET_UPSTREAM")
    if not upstream:
        return "DET_UPSTREAM does not name a copy of Determined's repository"
    if not pathlib.Path(upstream).is_dir():
        return f"DET_UPSTREAM: {upstream} is not a directory"
    absent = [p for p in PACKAGES if not is_installed(MODULES.get(p, p.replace("-", "_")))]
    if absent:
        return "install the packages " + " ".join(f"python3-{p}" for p in absent)
    return None


def unpack(upstream):
    """Copies the client, its tests and its examples to SOURCE. Does nothing when they are there."""
    if SOURCE.is_dir():
        return
    parts = ["harness", "e2e_tests", "examples"]
    partial = SOURCE.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    archive = subprocess.run(["git", "-C", upstream, "archive", "HEAD", *parts], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(partial)
    partial.rename(SOURCE)


def shorten_mnist(data, target, records=600):
    """Writes the first records of each file of MNIST. The examples train up to 20 epochs."""
    target.mkdir(exist_ok=True)
    for packed in data.glob("*-ubyte.gz"):
        content = gzip.decompress(packed.read_bytes())
        header, size = (16, 28 * 28) if "idx3" in packed.name else (8, 1)
        (target / packed.name).write_bytes(gzip.compress(content[:4] + records.to_bytes(4, "big") + content[8:header + records * size], 1))


def mnist_archive():
    """Makes the archive of MNIST that fixtures download, from DET_TEST_DATA or ../shared/data. Returns its path or None."""
    data = pathlib.Path(os.environ.get("DET_TEST_DATA", ROOT.parent / "shared" / "data")) / "mnist"
    archive = WORK / "torch_dataset_mnist.tgz"
    if data.is_dir():
        shorten_mnist(data, WORK / "mnist")
    if archive.exists() or not data.is_dir():
        return archive if archive.exists() else None
    partial = archive.with_suffix(".partial")
    with tarfile.open(partial, "w:gz", compresslevel=1) as tar:
        for packed in sorted(data.glob("*-ubyte.gz")):
            content = gzip.decompress(packed.read_bytes())
            entry = tarfile.TarInfo(f"MNIST/raw/{packed.stem}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    partial.rename(archive)
    return archive


def provide_downloads(venv):
    """Puts a curl into the environment that has MNIST without a network, and is the real one for other addresses."""
    archive, real = mnist_archive(), shutil.which("curl", path=os.defpath) or "/usr/bin/curl"
    curl = venv / "bin" / "curl"
    curl.unlink(missing_ok=True)
    if archive:
        curl.write_text(f"#!/bin/sh\ncase $1 in */{archive.name}) exec cat {archive} ;; esac\nexec {real} \"$@\"\n")
        curl.chmod(0o755)


def environment():
    """Makes a virtual environment with the client. Returns its directory."""
    venv = WORK / "venv"
    if not (venv / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", venv], check=True)
    site = next((venv / "lib").glob("python3*")) / "site-packages"
    (site / "determined.pth").write_text(f"{SOURCE / 'harness'}\n{HERE / 'site'}\nimport det_standins\n")
    info = site / f"determined-{VERSION}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: determined\nVersion: {VERSION}\n")
    det = venv / "bin" / "det"
    det.write_text(f"#!{venv}/bin/python\nfrom determined.cli.cli import main\nmain()\n")
    det.chmod(0o755)
    # Programs that agents start for notebooks and TensorBoards.
    for name in ("jupyter-lab", "tensorboard"):
        shutil.copy(ROOT / "tests" / "e2e" / "fixtures" / "page_server.py", venv / "bin" / name)
        (venv / "bin" / name).chmod(0o755)
    provide_downloads(venv)
    # Tests kill and pause tasks that only print a line. Determined's tasks take seconds to begin, for their container.
    echo = venv / "bin" / "echo"
    echo.write_text('#!/bin/sh\nsleep 3\nexec /bin/echo "$@"\n')
    echo.chmod(0o755)
    return venv


def reason(text):
    """Returns (class, first telling line) of a failure."""
    lines = [line.strip("E \t") for line in text.split("\n") if line.startswith("E ")] or text.split("\n")
    telling = next((line for line in lines if re.search(r"Error|Exception|assert|exit status", line)), lines[0])
    offered = re.search(r"not offered: [^\"'\\\n#]*|[\w.]+: not offered; leave it out", text)
    if offered:
        return "not offered", offered[0][:150]
    absent = re.search(r"No module named '?[\w.]+|docker\.errors\S*", text)
    return ("environment", absent[0]) if absent else ("failed", telling[:230])


def outcomes(report):
    """Yields (file, test, class, line) from a JUnit report."""
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        file, test = (case.get("classname") or "").removeprefix("tests."), case.get("name")
        # The test during which the limit was reached has no name.
        if not test:
            continue
        found = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        if found is None:
            yield file, test, "passed", ""
        elif found.tag == "skipped":
            yield file, test, "skipped", found.get("message", "")[:150]
        else:
            yield (file, test, *reason((found.get("message") or "") + "\n" + (found.text or "")))


def show(rows):
    """Prints the table of files, then each test that did not pass with its reason. Returns counts by class."""
    classes = ("passed", "failed", "not offered", "environment", "skipped")
    files = collections.defaultdict(collections.Counter)
    for file, _, kind, _ in rows:
        files[file][kind] += 1
    print(f"{'file':44}" + "".join(f"{kind:>13}" for kind in classes))
    for file, counts in sorted(files.items()):
        print(f"{file:44}" + "".join(f"{counts[kind]:13}" for kind in classes))
    for file, test, kind, line in rows:
        if kind != "passed":
            print(f"{kind}: {file}::{test}: {line}")
    return sum(files.values(), collections.Counter())


def fallen(rows):
    """The tests of floor.txt that ran and did not pass."""
    floor = set((HERE / "floor.txt").read_text().split("\n"))
    return [f"{file}::{test}" for file, test, kind, _ in rows
            if kind != "passed" and f"{file}::{test}" in floor]


def prepare_users(cluster, with_roles):
    """Gives the two users that the tests know one password."""
    def call(path, body):
        status, answer = cluster.post(path, body, token)
        if status != 200:
            raise SystemExit(f"POST {path}: {status} {answer}")
        return json.loads(answer or "{}")

    token = None
    login = call("/api/v1/auth/login", {"username": "admin", "password": cluster.password()})
    token, cluster.user_password = login["token"], "A1a" + secrets.token_hex(8)
    made = call("/api/v1/users", {"user": {"username": "determined", "active": True}, "password": cluster.user_password})
    # Determined without RBAC lets every user manage every workspace.
    if not with_roles:
        call("/api/v1/roles/add-assignments", {"userRoleAssignments": [
            {"userId": made["user"]["id"], "roleAssignment": {"role": {"name": "WorkspaceAdmin"}, "scopeCluster": True}}]})
    call(f"/api/v1/users/{login['user']['id']}/password", cluster.user_password)


def file_settings(directory):
    """Options of a master whose experiments have both keys of a shared_fs storage, and whose pool has task defaults."""
    file = pathlib.Path(directory) / "master.yaml"
    file.write_text(f"checkpoint_storage: {{type: shared_fs, host_path: {directory}, storage_path: checkpoints}}\n"
                    "resource_pools:\n- pool_name: default\n  task_container_defaults:\n"
                    "    environment_variables: [SOMEVAR=SOMEVAL]\n"
                    "    startup_hook: echo hello from rp tcd startup hook\n")
    return ["--config", file]


def run_tests(cluster, venv, options):
    """Runs pytest of the copy. Returns the rows of its report."""
    host, port = cluster.listen, str(cluster.port)
    env = {**cluster.env, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "NO_PROXY": host, "HOME": str(cluster.dir)}
    # Runs beside each other have files of their own.
    report, log_file = cluster.dir / "report.xml", cluster.dir / "pytest.log"
    command = [venv / "bin" / "python", "-m", "pytest", "-p", "no:cacheprovider", "-q", "--no-header", "--tb=short", "-m",
               options.marker, "--timeout", str(options.timeout), "--junit-xml", report, "--master-host", host,
               "--master-port", port, "--user-password", cluster.user_password, "--no-compare-stats"]
    command += ["-k", options.k] if options.k else []
    # test_ship_logs.py runs a program of Determined's own master, without a cluster.
    command += ["--ignore", "tests/deploy", "--ignore", "tests/cluster/test_saml.py", "--ignore", "tests/cluster/test_ship_logs.py",
                "--ignore", "tests/cluster/managed_cluster_k8s.py", *options.tests]
    with open(log_file, "wb") as log:
        pytest = subprocess.Popen(command, cwd=SOURCE / "e2e_tests", env=env, stdout=log, stderr=log)
        try:
            pytest.wait(options.limit)
        except subprocess.TimeoutExpired:
            # pytest then reports what it has run.
            print(f"stopped after {options.limit} s; the tests behind that did not run")
            pytest.send_signal(signal.SIGINT)
            pytest.wait(60)
    if not report.exists():
        raise SystemExit(log_file.read_text()[-4000:])
    return list(outcomes(report))


def walk_sdk(cluster, venv):
    """Runs sdk_walk.py. Returns its exit status."""
    env = {**cluster.env, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "NO_PROXY": cluster.listen, "HOME": str(cluster.dir)}
    return subprocess.run([venv / "bin" / "python", HERE / "sdk_walk.py", f"http://{cluster.address}", cluster.user_password,
                           SOURCE / "e2e_tests" / "tests" / "fixtures" / "noop"], env=env, timeout=600).returncode


def walk_examples(cluster, venv, parts):
    """Runs examples_walk.py. Returns its exit status."""
    env = {**cluster.env, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "NO_PROXY": cluster.listen, "HOME": str(cluster.dir),
           "DET_USER": "determined", "DET_PASS": cluster.user_password}
    return subprocess.run([venv / "bin" / "python", HERE / "examples_walk.py", SOURCE / "examples",
                           f"http://{cluster.address}", *parts], env=env, timeout=3600).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"), help="build directory with bin/")
    parser.add_argument("-k", help="pytest's expression of test names")
    parser.add_argument("-m", dest="marker", default="e2e_cpu", help="pytest's expression of marks")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each test")
    parser.add_argument("--limit", type=int, help="seconds for all tests")
    parser.add_argument("--sdk", action="store_true", help="call every public method of the SDK instead of the tests")
    parser.add_argument("--examples", action="store_true", help="run the tutorials and examples instead of the tests")
    parser.add_argument("tests", nargs="*", help="test files, relative to e2e_tests; with --examples: parts of names")
    options = parser.parse_args()
    why = missing()
    if why:
        print(f"skipped: {why}\n0 passed, 0 failed, 1 skipped")
        return 0
    unpack(os.environ["DET_UPSTREAM"])
    venv = environment()
    os.environ["PATH"] = f"{venv / 'bin'}:{os.environ['PATH']}"
    # Templates of the tests name more slots than one agent has; tests of two agents expect an error instead.
    settings = ["--webhooks-allowed-hosts", "localhost"] + (["--launch-error=false"] if "2a" not in options.marker else [])
    # Tests of roles expect that new users have none.
    settings += ["--new-user-role=none"] if "rbac" in options.marker else []
    # Experiments mount /tmp below itself, and an agent refuses mounts that show its own files.
    tempfile.tempdir = str(ROOT / "build")
    for name in ("somepath", "work_dir"):
        pathlib.Path("/tmp", name).mkdir(exist_ok=True)
    # As on Determined's test clusters: tasks see themselves as root and have a token of their user.
    settings += ["--task-user-tokens", "--shell-ssh", "--default-task-user=root"]
    with tempfile.TemporaryDirectory(prefix="det-storage-") as storage, \
            Cluster(options.build, settings + file_settings(storage), storage_paths=(".", "/tmp")) as cluster, \
            image.engine(cluster.dir, f"{venv / 'bin'}:/usr/bin:/bin") as engine:
        # Tasks see the virtual environment and the Python that it is made from, and experiments mount parts of /tmp.
        cluster.bind_mounts += "".join(f",{path}" for path in (WORK, HERE, sys.base_prefix, "/tmp:rw"))
        # Trials of one experiment listen on the same port, as in containers. Gangs need the machine's network.
        network = ("--task-network", "host" if "2a" in options.marker else "cluster", *engine)
        cluster.start_agent(slots=1, options=network)
        if "2a" in options.marker:
            cluster.start_agent("a2", slots=1, options=network)
        if options.sdk:  # the default pool cannot be bound to workspaces
            cluster.start_agent("a2", slots=1, options=(*network, "--pool", "walk"))
        prepare_users(cluster, with_roles="rbac" in options.marker)
        if options.sdk or options.examples:
            return walk_sdk(cluster, venv) if options.sdk else walk_examples(cluster, venv, options.tests)
        rows = run_tests(cluster, venv, options)
    counts = show(rows)
    lost = fallen(rows)
    for name in lost:
        print(f"passed before: {name}")
    failed = counts["failed"] + counts["not offered"] + counts["environment"]
    print(f"{counts['passed']} passed, {failed} failed, {counts['skipped']} skipped")
    return 1 if lost or not counts["passed"] else 0


sys.exit(main())
