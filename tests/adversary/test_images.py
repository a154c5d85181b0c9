"""Tasks in container images: podman has and pulls the images, the agent runs tasks in their files. Skipped without
podman and root."""
import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from attacker import Attacker
from cluster import Cluster, processes, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
PIPE = FIXTURES.parent.parent / "e2e" / "fixtures" / "websocket_pipe.py"
PROGRAMS = ("sh", "python3", "cat", "cp", "env", "id", "ls", "setsid", "sleep", "sha256sum", "touch")
MIN_PROBES = 80


def path_of(program):
    """The program of the system; a machine may have another one first in PATH."""
    return shutil.which(program, path="/usr/bin:/bin")


def libraries(program):
    """Files that the dynamic loader maps for a program, with the loader."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    words = [word for line in done.stdout.splitlines() for word in line.split() if word.startswith("/")]
    return {word for word in words if os.path.exists(word)}


def copy_to(root, path):
    """Copies a file with its directories; links in the path are resolved, so that /lib64 is a directory."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(os.path.realpath(path), target)


def make_root(root):
    """The files of an image: a shell, Python and what they load, and a link that leads to the machine's passwords."""
    files = set()
    for name in PROGRAMS:
        files |= {path_of(name)} | libraries(path_of(name))
    library = pathlib.Path(os.path.realpath(path_of("python3"))).name
    source = pathlib.Path("/usr/lib") / library
    shutil.copytree(source, root / "usr/lib" / library, symlinks=True,
                    ignore=shutil.ignore_patterns("test", "*-packages", "__pycache__", "config-*"))
    for module in (source / "lib-dynload").glob("*.so"):
        files |= libraries(module)
    for path in files:
        copy_to(root, path)
    for path in ("etc", "opt", "home/image", "usr/share/dev"):
        (root / path).mkdir(parents=True, exist_ok=True)
    if not (root / "bin").exists():
        (root / "bin").symlink_to("usr/bin")
    (root / "etc/image").write_text("made by the test\n")
    (root / "usr/share/dev/file").write_text("")
    (root / "opt/passwords").symlink_to("/../../../../etc/shadow")
    (root / "scratch").symlink_to("/etc")


class Registry(http.server.BaseHTTPRequestHandler):
    """The reading half of a registry, for the directory that `podman push dir:` has written."""

    def __init__(self, directory, asked, *more):
        self.directory, self.asked = directory, asked
        super().__init__(*more)

    def do_GET(self):
        self.asked.append(self.path)
        name = self.path.rsplit("/", 1)[1]
        path = self.directory / ("manifest.json" if "/manifests/" in self.path else name.removeprefix("sha256:"))
        body = b"{}" if self.path == "/v2/" else path.read_bytes() if name and path.is_file() else None
        self.send_response(404 if body is None else 200)
        if "/manifests/" in self.path and body:
            self.send_header("Content-Type", json.loads(body).get("mediaType", "application/vnd.oci.image.manifest.v1+json"))
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body or b"")

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Podman:
    """A podman of the test's own, with its socket. Nothing of the machine's podman is used."""

    def __init__(self, directory, insecure):
        """`insecure`: host of a registry without TLS."""
        self.dir = directory
        self.socket = directory / "podman.sock"
        self.words = ["podman", "--root", directory / "store", "--runroot", directory / "run", "--storage-driver", "vfs",
                      "--cgroup-manager", "cgroupfs"]
        registries = directory / "registries.conf"
        registries.write_text(f"[[registry]]\nlocation = \"{insecure}\"\ninsecure = true\n")
        self.env = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(registries)}
        self.server = None

    def start(self):
        self.server = subprocess.Popen([*self.words, "system", "service", "--time=0", f"unix://{self.socket}"], env=self.env,
                                       stdout=subprocess.DEVNULL, stderr=open(self.dir / "podman.log", "ab"))
        wait_until("podman", self.socket.exists)

    def call(self, *arguments):
        return subprocess.run([*self.words, *arguments], env=self.env, check=True, capture_output=True, text=True).stdout

    def load(self, root, name):
        with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
            subprocess.run([*self.words, "import", "-c", "ENV FROM_IMAGE=yes", "-c", "ENV PATH=/usr/local/bin:/usr/bin:/bin",
                            "-", name], env=self.env, stdin=tar.stdout, check=True, capture_output=True)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait(30)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("podman"), "needs podman (deploy/deps.sh engines) and root")
class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="det-images-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, True)
        (cls.dir / "root").mkdir()
        make_root(cls.dir / "root")
        cls.asked = []  # Paths of the registry.
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Registry, cls.dir / "pushed", cls.asked))
        cls.addClassCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.registry = f"127.0.0.1:{server.server_port}"
        cls.podman = Podman(cls.dir, cls.registry)
        cls.podman.load(cls.dir / "root", "own:1")
        cls.podman.call("push", "own:1", f"dir:{cls.dir}/pushed")
        cls.addClassCleanup(cls.podman.stop)
        cls.podman.start()

    def start(self, *options, engine=True, environment=None, master=()):
        cluster = Cluster(BUILD, master)
        cluster.bind_mounts = ""
        cluster.__enter__()
        self.addCleanup(cluster.close)
        cluster.dir.chmod(0o755)
        if engine:
            options = ("--sandbox", "required", "--container-engine", f"unix://{self.podman.socket}", *options)
        cluster.start_agent(slots=0 if environment else 2, options=options, environment=environment)
        return cluster

    def run_in(self, cluster, image, *command, context=()):
        return cluster.run_det("command", "run", "--config", f"environment.image={image}", *context, *command)

    def test_a_task_has_the_files_and_variables_of_its_image_and_reaches_the_master(self):
        cluster = self.start()
        script = ("cat /etc/image; echo from=$FROM_IMAGE home=$HOME; ls /usr/bin | sha256sum; test -e /etc/debian_version "
                  "|| echo no machine; touch /usr/x /etc/x 2>/dev/null || echo read-only; touch here && id -u; "
                  "cat /opt/passwords 2>/dev/null || echo no passwords; ls /usr/share/dev; "
                  "python3 -c \"import os, urllib.request as r; print(len(r.urlopen(os.environ['DET_MASTER'] + "
                  "'/api/v1/master').read()) > 10)\"")
        done = self.run_in(cluster, "own:1", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for text in ("made by the test", "from=yes home=/", "no machine", "read-only", "19000", "no passwords", "\nfile",
                     "True"):
            self.assertIn(text, done.stdout.replace("| ", "\n"))
        # The copy is used again. The engine has no container of ours.
        self.assertEqual(self.run_in(cluster, "own:1", "cat", "/etc/image").returncode, 0)
        self.assertEqual(len([path for path in (cluster.dir / "agent-a1/images").iterdir() if path.is_dir()]), 1)
        self.assertEqual(self.podman.call("ps", "--all", "--quiet"), "")

    def test_shells_and_ssh_have_the_files_of_the_image(self):
        cluster = self.start(master=("--shell-ssh",))
        shell = cluster.det("shell", "start", "-d", "--config", "environment.image=own:1", "--config",
                            "resources.slots=0").strip()
        shown = wait_until("the shell's task", lambda: (one := cluster.run_det("shell", "open", shell, "cat", "/etc/image"))
                           .returncode == 0 and one.stdout)
        self.assertEqual(shown, "made by the test\n")
        status, body = cluster.get(f"/api/v1/shells/{shell}", Attacker.admin(cluster).token)
        self.assertEqual(status, 200)
        key = cluster.dir / "key"
        key.write_text(json.loads(body)["shell"]["privateKey"])
        key.chmod(0o600)
        proxy = f"{sys.executable} {PIPE} 127.0.0.1 {cluster.port} /proxy/%h/"
        script = "cat /etc/image; echo from=$FROM_IMAGE; cat /proc/[0-9]*/comm; test -e /etc/debian_version || echo no machine"
        done = subprocess.run(["ssh", "-F", "none", "-o", f"ProxyCommand={proxy}", "-o", "StrictHostKeyChecking=no", "-o",
                               "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i", key, "-tt", f"root@{shell}",
                               script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for text in ("made by the test", "from=yes", "no machine", "det-task-ssh"):
            self.assertIn(text, done.stdout)

    def test_no_probe_succeeds_in_an_image(self):
        cluster = self.start()
        (cluster.dir / "secret").write_text("secret\n")
        done = self.run_in(cluster, "own:1", "sh", "-c", "cat /etc/image && exec python3 probes.py \"$@\"", "probes",
                           cluster.dir, cluster.agents["a1"].pid, context=("-c", FIXTURES))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        id = done.stdout.split("(id: ", 1)[1].split(")")[0]
        lines = [json.loads(line)["log"] for line in
                 cluster.det("cmd", "logs", id, "--json", "--source", "task").splitlines()]
        results = json.loads(next(line for line in lines if line.startswith("{")))
        self.assertEqual([name for name, refusal in results.items() if refusal is None], [])
        self.assertGreaterEqual(len(results), MIN_PROBES)
        print(f"{len(results)} probes: 0 succeed in an image")

    def test_a_restarted_agent_removes_the_container_of_a_copy_that_it_did_not_end(self):
        cluster = self.start()
        cluster.kill_agent()
        left = self.podman.call("create", "--label", f"determinant={cluster.dir}/agent-a1/images", "own:1", "/none").strip()
        other = self.podman.call("create", "--label", "determinant=/of/another/agent", "own:1", "/none").strip()
        self.addCleanup(self.podman.call, "rm", other)
        cluster.start_agent(slots=2, options=("--container-engine", self.podman.socket))
        found = self.podman.call("ps", "--all", "--quiet", "--no-trunc").split()
        self.assertNotIn(left, found)
        self.assertIn(other, found)

    def test_a_task_in_an_image_is_ended_with_its_supervisor(self):
        cluster = self.start()
        mark = f"i{os.getpid()}"
        cluster.det("command", "run", "-d", "--config", "environment.image=own:1", "sh", "-c",
                    f"cat /etc/image && cp /usr/bin/sleep /tmp/{mark} && (setsid env -i /tmp/{mark} 600 & sleep 600)")
        daemons = lambda: [pid for pid, (name, _) in processes().items() if name == mark]  # noqa: E731
        wait_until("the daemon", daemons)
        for pid, (name, env) in processes().items():
            if name == "det-supervisor" and str(cluster.dir) in env:
                os.kill(pid, signal.SIGKILL)
        wait_until("the end of the daemon", lambda: not daemons(), timeout=15)
        self.assertEqual(self.podman.call("ps", "--all", "--quiet"), "")

    def test_a_trial_in_any_language_runs_in_an_image_with_limits_and_a_network_of_its_own(self):
        cluster = self.start("--task-network", "cluster")
        code = cluster.dir / "code"
        code.mkdir()
        (code / "train.py").write_text(
            "import json, os, urllib.request as r\n"
            "assert os.path.exists('/etc/image')\n"
            "path = '/api/v1/trials/%s/progress' % os.environ['DET_TRIAL_ID']\n"
            "head = {'Authorization': 'Bearer ' + os.environ['DET_SESSION_TOKEN'], 'Content-Type': 'application/json'}\n"
            "head = {'Grpc-Metadata-x-allocation-token': 'Bearer ' + os.environ['DET_SESSION_TOKEN'], **head}\n"
            "del head['Authorization']\n"
            "body = json.dumps({'progress': 0.5, 'isRaw': False}).encode()\n"
            "print(r.urlopen(r.Request(os.environ['DET_MASTER'] + path, body, head)).status)\n")
        id = cluster.create(code, "name: image\nentrypoint: [python3, train.py]\nmax_restarts: 0\n"
                                  "environment: {image: own:1}\nresources: {slots_per_trial: 2}\n"
                                  "searcher: {name: single, metric: loss, max_length: {batches: 1}}\n")
        cluster.wait_state(id, "COMPLETED")
        self.assertIn("200", cluster.logs(cluster.trial_id(id)))

    def test_an_image_has_the_libraries_of_the_gpu_driver_where_the_task_has_gpus(self):
        driver = self.dir / "driver"
        driver.mkdir()
        nvml = pathlib.Path(BUILD) / "tests/fake_nvml/libnvidia-ml.so.1"
        shutil.copy(nvml, driver / "libnvidia-ml.so.1")
        (driver / "libcuda.so.550.1").write_text("the driver's\n")
        (driver / "libcuda.so.1").symlink_to("libcuda.so.550.1")
        cluster = self.start(environment={"LD_LIBRARY_PATH": str(driver), "DET_FAKE_NVML_DEVICES": "1"})
        script = "ls /run/nvidia; cat /run/nvidia/libcuda.so.1; echo path=$LD_LIBRARY_PATH"
        done = self.run_in(cluster, "own:1", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for text in ("libcuda.so.1\n", "libnvidia-ml.so.1\n", "the driver's\n", "path=/run/nvidia"):
            self.assertIn(text, done.stdout)
        done = self.run_in(cluster, "own:1", "sh", "-c", "test ! -e /run/nvidia && echo path=$LD_LIBRARY_PATH.",
                           context=("--config", "resources.slots=0"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("path=.", done.stdout)

    def refusal(self, cluster, image):
        """The log of an experiment with an image that is refused, at its first run."""
        (cluster.dir / "empty").mkdir(exist_ok=True)
        id = cluster.create(cluster.dir / "empty", f"name: refused\nentrypoint: [\"true\"]\nmax_restarts: 5\n"
                                                   f"environment: {{image: {image}}}\n"
                                                   "searcher: {name: single, metric: loss, max_length: {batches: 1}}\n")
        cluster.wait_state(id, "ERROR")
        trial = cluster.trial_id(id)
        self.assertEqual(cluster.trial(trial)["restarts"], 0)
        return cluster.logs(trial)

    def test_an_agent_without_an_engine_refuses_images_and_names_the_setting(self):
        self.assertIn("container_engine is not set", self.refusal(self.start(engine=False), "own:1"))

    def test_an_image_is_pulled_only_from_registries_that_the_administrator_named(self):
        image = f"{self.registry}/team/own:1"
        cluster = self.start("--image-registries", f"{self.registry}/others")
        self.assertIn("may not be pulled (image_registries", self.refusal(cluster, image))
        self.assertIn("is no name of an image", self.refusal(cluster, "../own"))
        self.assertEqual(self.asked, [])
        cluster.stop_agent()
        cluster.start_agent(slots=2, options=["--container-engine", self.podman.socket, "--image-registries", f"{self.registry}/team"])
        done = self.run_in(cluster, image, "cat", "/etc/image")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("made by the test", done.stdout)
        self.assertIn("/v2/team/own/manifests/1", self.asked)


if __name__ == "__main__":
    unittest.main()
