"""deploy/quickstart.sh with built programs: obstacles are named, and the next run works."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["DET_E2E_BUILD"])
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "quickstart.sh"


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="det-quickstart-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.state = self.home / "state"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.addCleanup(self.run_script, "--stop")

    def run_script(self, *options, expect=0):
        done = subprocess.run([SCRIPT, "--state", self.state, *options], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stdout)
        return done.stdout

    def start(self, *options, expect=0):
        return self.run_script("--prefix", str(BUILD), "--no-train", *options, expect=expect)

    def test_a_login_file_of_determined_is_unchanged(self):
        foreign = self.home / ".config" / "determined" / "auth.json"
        foreign.parent.mkdir(parents=True)
        text = '{"version": "2", "masters": {"http://127.0.0.1:8080": {"active_user": "determined"}}}'
        foreign.write_text(text)
        self.start()
        self.assertEqual(foreign.read_text(), text)
        self.assertTrue((self.home / ".config" / "det" / "auth.json").exists())

    def test_a_taken_port_is_named_and_used_once_it_is_free(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            out = self.start("--port", str(port), expect=1)
            self.assertIn(f"port {port} is taken", out)
            self.assertIn("choose one with --port N", out)
        self.assertIn(f"http://127.0.0.1:{port}", self.start("--port", str(port)))

    def test_an_unwritable_home_is_named_and_another_state_directory_works(self):
        state, self.state = self.state, "/proc/determinant"
        self.environment["HOME"] = "/proc"
        out = self.start(expect=1)
        self.assertIn("cannot write to /proc/determinant", out)
        self.assertIn("--state DIR", out)
        self.state = state
        self.assertIn(f"XDG_CONFIG_HOME={state}/config", self.start())

    def test_the_state_of_a_killed_run_does_not_stop_the_next(self):
        self.start()
        for name in ("det-agent", "det-master"):
            os.kill(int((self.state / f"{name}.pid").read_text()), signal.SIGKILL)
        self.assertIn("agent: connected", self.start())

    def test_the_time_left_is_estimated_from_the_usual_duration_until_the_pace_is_known(self):
        # Seconds and parts of 1000 of a build from nothing that took 410 s; the first steps are the longest.
        for elapsed, parts in ((20, 28), (40, 28), (60, 50), (80, 107), (120, 322), (180, 402), (240, 615), (300, 760)):
            left = int(self.estimate(elapsed, parts, 360))
            self.assertAlmostEqual(elapsed + left, 410, delta=60, msg=f"after {elapsed} s")
        self.assertEqual(self.estimate(10, 500, 0), "10")
        self.assertEqual(self.estimate(10, 250, 0), "30")

    def estimate(self, elapsed, parts, usual):
        script = f". {SCRIPT.parent}/progress.sh; seconds_left {elapsed} {parts} {usual}"
        return subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout.strip()

    def test_a_line_has_at_most_110_columns(self):
        for line in self.start().splitlines():
            self.assertLessEqual(len(line.replace(str(self.home), "~").replace(str(BUILD), "build")), 110, line)

    def test_the_command_line_that_is_shown_next_is_valid(self):
        shown = self.start().split("my-trial", 2)[2].replace("\\\n", "")
        shown = next(line for line in shown.splitlines() if "det experiment create" in line)
        trial = SCRIPT.parents[1] / "examples" / "mnist"
        # Without a master: options are checked before the first call.
        out = subprocess.run([str(BUILD / "bin" / "det"), "-m", "http://127.0.0.1:1", *shown.split()[1:]], cwd=trial,
                             env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertNotIn("unknown", out.stdout)
        self.assertIn("127.0.0.1:1", out.stdout)

    def test_programs_without_a_web_ui_start_and_report_it(self):
        prefix = self.home / "a prefix"
        prefix.mkdir()
        (prefix / "bin").symlink_to(BUILD / "bin")
        out = self.run_script("--prefix", str(prefix), "--no-train")
        self.assertIn("web UI: not in", out)
        self.assertIn("agent: connected", out)
        self.assertNotIn("web UI:      http", out)
        shown = next(line for line in out.splitlines() if "export PATH" in line)
        found = subprocess.run(["bash", "-c", shown + "; command -v det"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(found.strip(), str(prefix / "bin" / "det"))

    def test_missing_data_are_named_before_anything_is_built(self):
        data = self.home / "data"
        data.mkdir()
        (data / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b")
        out = self.run_script("--data", str(data), expect=1)
        self.assertIn(f"{data} lacks train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte", out)
        self.assertNotIn("building", out)
        self.assertIn("--data: no directory", self.run_script("--data", str(self.home / "none"), expect=1))

    def test_a_directory_without_programs_is_named(self):
        self.assertIn("has no det-master", self.run_script("--prefix", str(self.home), expect=1))


if __name__ == "__main__":
    unittest.main()
