"""A cluster with TLS on a reachable address: agents that join with tokens, refused agents and their messages,
and certificates in the det command."""
import os
import pathlib
import shutil
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]
HERE = pathlib.Path(__file__).resolve().parent
FIXTURE = HERE / "fixtures" / "http_harness"
EXAMPLE = HERE.parent.parent / "examples" / "core_api"


def outside_address():
    """An address of this machine that is not loopback; None on a machine without a network."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("203.0.113.1", 9))  # Sends nothing.
        return probe.getsockname()[0]
    except OSError:
        found = [a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
        return next((a for a in found if not a.startswith("127.")), None)
    finally:
        probe.close()


ADDRESS = outside_address()


@unittest.skipUnless(ADDRESS, "this machine has no address but loopback")
class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD, ["--security-tls-agent-lifetime", "60s"], listen=ADDRESS, tls=True)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)

    def token(self, *options):
        path = self.cluster.dir / "join-token"
        path.write_text(self.cluster.det("join-token", "create", *options))
        return path

    def agent_fails(self, name, *options, master=None):
        """Returns the error output of an agent that fails to join."""
        cluster = self.cluster
        done = subprocess.run([cluster.bin / "det-agent", "--master", master or cluster.address, "--data-dir",
                               cluster.dir / f"agent-{name}", "--id", name, "--artificial-slots", "1",
                               "--stop-timeout", "10s", *options],
                              capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def agent_is_refused(self, name, words, *options):
        """An agent that is refused repeatedly must log `words`."""
        cluster = self.cluster
        cluster.launch_agent(name, 1, options)
        try:
            wait_until(f"the refusal of {name}", lambda: words in cluster.log_tail(f"agent-{name}.log", 50), 30)
        finally:
            cluster.stop_agent(name)

    def connected(self, name):
        return any(a["id"] == name and a.get("connected") for a in self.cluster.det_json("agent", "list", "--json"))

    def test_agents_join_a_trial_runs_and_foreign_agents_are_refused(self):
        cluster = self.cluster
        self.assertTrue(cluster.url.startswith(f"https://{ADDRESS}:"))
        first = self.token()
        cluster.start_agent("a1", 1, ["--join-token-file", first])
        self.assertIn("used up", self.agent_fails("a2", "--join-token-file", first))
        cluster.start_agent("a2", 1, ["--join-token-file", self.token("--agent", "a2")])

        self.check_trial()
        self.check_example()
        self.check_refusals()
        self.check_expired_certificate()
        self.check_words_of_the_command()
        # Certificates last a minute here. Both agents renew theirs long before they expire.
        for name in ("a1", "a2"):
            wait_until(f"{name} to renew", lambda: "renewed the agent" in cluster.log_tail(f"agent-{name}.log", 200), 90)
            self.assertTrue(self.connected(name))
        self.check_restart_and_revocation()

    def check_trial(self):
        cluster = self.cluster
        storage = cluster.dir / "checkpoints"
        storage.mkdir()
        id = cluster.create(FIXTURE, "\n".join([
            "name: over TLS", "entrypoint: python3 train.py", "hyperparameters: {steps: 3}",
            "searcher: {name: single, metric: val_loss, max_length: {batches: 100}}", "max_restarts: 0",
            f"checkpoint_storage: {{type: shared_fs, host_path: {storage}}}", ""]), "--follow-first-trial")
        cluster.wait_state(id, "COMPLETED")
        trial = cluster.trial_id(id)
        self.assertEqual([batches for batches, _ in cluster.metrics(trial, "training")], [1, 2, 3])
        self.assertIn("left at 3", cluster.logs(trial))

    def check_example(self):
        """Runs an example program with checkpoints, and `experiment watch`."""
        cluster = self.cluster
        model = cluster.dir / "over_http"
        model.mkdir()
        for name in ("over_http.py", "over_http.yaml"):
            shutil.copy(EXAMPLE / name, model / name)
        out = cluster.det("experiment", "create", "over_http.yaml", ".", "--config", "searcher.max_trials=2", cwd=model)
        id = int(out.split("Created experiment ")[1].split()[0])
        watched = cluster.det("experiment", "watch", id)
        self.assertIn("COMPLETED", watched)
        trials = cluster.experiment(id)["trials"]
        self.assertGreaterEqual(len(trials), 2)
        for trial in trials:
            if trial["latestCheckpointUuid"]:
                self.assertTrue((cluster.dir / "master" / "checkpoints" / trial["latestCheckpointUuid"]).is_dir())
        self.assertTrue(any(trial["latestCheckpointUuid"] for trial in trials))

    def check_refusals(self):
        cluster = self.cluster
        # Without a certificate, from loopback or not.
        self.assertIn("no join token", self.agent_fails("a3", "--security-tls-master-cert", cluster.env["DET_MASTER_CERT_FILE"]))
        # With a certificate that another authority signed for the same name.
        foreign = cluster.dir / "agent-a4" / "tls"
        foreign.mkdir(parents=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                        "-subj", "/CN=a1", "-keyout", foreign / "agent.key", "-out", foreign / "agent.pem"],
                       check=True, capture_output=True)
        shutil.copy(cluster.env["DET_MASTER_CERT_FILE"], foreign / "ca.pem")
        self.agent_is_refused("a4", "another authority issued it")
        # With the certificate of another agent.
        shutil.copytree(cluster.dir / "agent-a1" / "tls", cluster.dir / "agent-a5" / "tls")
        self.agent_is_refused("a5", "this identity belongs to agent a1")
        # With a token for another agent, under a taken name, and without a valid token.
        self.assertIn("is for agent a7", self.agent_fails("a6", "--join-token-file", self.token("--agent", "a7")))
        shutil.rmtree(cluster.dir / "agent-a6")
        taken = cluster.dir / "other-machine"
        done = subprocess.run([cluster.bin / "det-agent", "--master", cluster.address, "--data-dir", taken, "--id", "a1",
                               "--join-token-file", self.token()], capture_output=True, text=True, timeout=60)
        self.assertIn("another machine joined as a1", done.stderr)
        nonsense = cluster.dir / "nonsense"
        nonsense.write_text("det_j_x.y")
        self.assertIn("not a join token", self.agent_fails("a6", "--join-token-file", nonsense))
        # A master with another fingerprint than the token's receives nothing.
        pin = "0" * 64
        nonsense.write_text(self.token().read_text().split(".")[0] + "." + pin)
        self.assertIn("not the master that created this join token", self.agent_fails("a6", "--join-token-file", nonsense))
        # Plain HTTP gets an error message.
        with self.assertRaises(urllib.error.HTTPError) as told:
            urllib.request.urlopen(cluster.url.replace("https", "http") + "/health", timeout=20)
        self.assertIn("speaks TLS only", told.exception.read().decode())
        self.assertIn("accepts only TLS", self.agent_fails("a6", master=f"{ADDRESS}:{cluster.port}"))

    def check_expired_certificate(self):
        """An agent with an expired certificate joins again with a new token, and keeps its key."""
        cluster = self.cluster
        own = cluster.dir / "agent-a8" / "tls"
        own.mkdir(parents=True)
        subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a8",
                        "-keyout", own / "agent.key", "-out", own / "request.pem"], check=True, capture_output=True)
        subprocess.run(["openssl", "x509", "-req", "-in", own / "request.pem", "-signkey", own / "agent.key", "-days", "-1",
                        "-out", own / "agent.pem"], check=True, capture_output=True)
        shutil.copy(cluster.env["DET_MASTER_CERT_FILE"], own / "ca.pem")
        key = (own / "agent.key").read_bytes()
        self.agent_is_refused("a8", "restart the agent", "--join-token-file", cluster.dir / "no-token")
        cluster.start_agent("a8", 1, ["--join-token-file", self.token()])
        self.assertEqual((own / "agent.key").read_bytes(), key)
        cluster.stop_agent("a8")

    def check_words_of_the_command(self):
        cluster = self.cluster
        plain = cluster.run_det("-m", cluster.url.replace("https", "http"), "-u", "admin", "master", "info")
        self.assertEqual(plain.returncode, 3, plain.stderr)
        self.assertIn("speaks TLS only", plain.stderr)
        file = cluster.env.pop("DET_MASTER_CERT_FILE")
        try:
            unasked = cluster.run_det("agent", "list")
            self.assertEqual(unasked.returncode, 3)
            self.assertIn("fingerprint", unasked.stderr)
            self.assertIn("--cert-file", unasked.stderr)
            cluster.det("--cert-file", file, "agent", "list")
            cluster.det("--cert-file", "noverify", "agent", "list")
            foreign = cluster.dir / "agent-a4" / "tls" / "agent.pem"
            wrong = cluster.run_det("--cert-file", foreign, "agent", "list")
            self.assertEqual(wrong.returncode, 3)
            self.assertIn("not the one that is trusted", wrong.stderr)
            self.check_trust_on_first_use()
        finally:
            cluster.env["DET_MASTER_CERT_FILE"] = file

    def check_trust_on_first_use(self):
        """On a terminal the user is prompted once."""
        cluster = self.cluster
        for answer, code in (("n", 3), ("y", 0)):
            done = subprocess.run(["script", "-qec", f"{cluster.bin}/det agent list", "/dev/null"], env=cluster.env,
                                  input=answer + "\n", capture_output=True, text=True, timeout=60)
            self.assertIn("Trust it from now on?", done.stdout)
            self.assertEqual(done.returncode, code, done.stdout)
        cluster.det("agent", "list")
        kept = list((cluster.dir / "config" / "det" / "certs").iterdir())
        self.assertEqual(len(kept), 1)
        kept[0].unlink()

    def check_restart_and_revocation(self):
        cluster = self.cluster
        # The new server certificate is of the same authority: agents reconnect without a token.
        cluster.kill_master()
        cluster.start_master()
        for name in ("a1", "a2"):
            wait_until(f"{name} to come back", lambda: self.connected(name), 60)
        cluster.det("agent", "revoke", "a1")
        wait_until("a1 to be out", lambda: not self.connected("a1"), 10)
        wait_until("its refusal", lambda: "was revoked" in cluster.log_tail("agent-a1.log", 50), 30)
        self.assertTrue(self.connected("a2"))
        actions = [e["action"] for e in cluster.det_json("audit", "list", "--json", "--tail", "1000")]
        for action in ("JoinService/PostJoinToken", "JoinService/Join", "JoinService/RevokeAgent"):
            self.assertIn(action, actions)


class Plain(unittest.TestCase):
    def test_a_master_without_tls_refuses_to_listen_beyond_loopback(self):
        master = pathlib.Path(BUILD) / "bin" / "det-master"
        done = subprocess.run([master, "--data-dir", "/nonexistent", "--listen", "0.0.0.0:0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("security.tls.enabled", done.stderr)


if __name__ == "__main__":
    unittest.main()
