"""A process on the master's machine that wants to be an agent of a master without TLS: as an agent it would receive
the code, secrets and tokens of other users, and could report their experiments as completed."""
import os
import shutil
import stat
import subprocess
import unittest

from cluster import Cluster, wait_until

BUILD = os.environ["DET_E2E_BUILD"]


class LocalAgent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD).__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("honest")

    def rogue(self, name, *options):
        """Starts det-agent with a data directory of its own."""
        log = self.cluster.dir / f"rogue-{name}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [self.cluster.bin / "det-agent", "--master", self.cluster.address, "--data-dir",
                 self.cluster.dir / f"rogue-{name}", "--id", name, "--artificial-slots", "64", *options],
                stdout=out, stderr=out, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, log

    def agents(self):
        return [agent["id"] for agent in self.cluster.det_json("agent", "list", "--json")]

    def refused(self, name, text, *options):
        """The agent says `text`, and the master has no such agent."""
        process, log = self.rogue(name, *options)
        wait_until(f"the refusal of {name}", lambda: text in log.read_text() or name in self.agents(), 30)
        self.assertIn(text, log.read_text())
        self.assertNotIn(name, self.agents())
        return process

    def forge(self, name, token):
        """Creates the data directory of an agent that claims to have joined."""
        directory = self.cluster.dir / f"rogue-{name}" / "tls"
        directory.mkdir(parents=True)
        (directory / "agent.token").write_text(token)

    def test_a_process_without_a_join_token_is_no_agent(self):
        self.assertNotEqual(self.refused("none", "no join token").wait(30), 0)

    def test_an_invented_join_token_admits_no_agent(self):
        guess = self.cluster.dir / "guess"
        guess.write_text("det_j_" + "A" * 43)
        process = self.refused("guessed", "the join token is unknown", "--join-token-file", guess)
        self.assertNotEqual(process.wait(30), 0)

    def test_an_invented_identity_is_no_agent(self):
        self.forge("forged", "A" * 43)
        self.refused("forged", "is not known here")

    def test_the_identity_of_one_agent_does_not_serve_another(self):
        shutil.copytree(self.cluster.dir / "agent-honest" / "tls", self.cluster.dir / "rogue-twin" / "tls")
        self.refused("twin", "this identity belongs to agent honest")

    def test_only_the_masters_user_reads_the_join_token(self):
        for path in ("master/agent-join-token", "agent-honest/tls/agent.token"):
            mode = os.stat(self.cluster.dir / path).st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600, path)

    def test_a_revoked_agent_does_not_return(self):
        self.cluster.start_agent("leaver")
        self.cluster.det("agent", "revoke", "leaver")
        wait_until("the link to end", lambda: not any(
            agent["id"] == "leaver" and agent.get("connected") for agent in self.cluster.det_json("agent", "list", "--json")))
        self.cluster.stop_agent("leaver")
        self.cluster.launch_agent("leaver", 1)
        log = self.cluster.dir / "agent-leaver.log"
        wait_until("the refusal", lambda: "was revoked" in log.read_text(), 30)
