"""Usage accounting as an admin reads it: a command's slot time is in the sums and in the list."""
import csv
import datetime
import io
import json
import os
import unittest

from cluster import Cluster

BUILD = os.environ["DET_E2E_BUILD"]


class Usage(unittest.TestCase):
    def test_the_slots_of_a_command_are_accounted_to_its_user(self):
        with Cluster(BUILD) as cluster:
            cluster.start_agent(slots=2)
            cluster.det("command", "run", "--config", "resources.slots=2", "sleep", "2")
            cluster.det("command", "run", "--config", "resources.slots=0", "sleep", "2")
            today = datetime.datetime.now(datetime.timezone.utc).date()
            first, last = today - datetime.timedelta(days=1), today + datetime.timedelta(days=1)
            raw = json.loads(cluster.det("resources", "raw", first, last, "--json"))
            self.assertEqual([(one["kind"], one["slots"], one["username"]) for one in raw], [("command", 2, "admin")])
            self.assertGreater(raw[0]["seconds"], 1.9)
            rows = list(csv.DictReader(io.StringIO(cluster.det("res", "agg", first, last))))
            total = sum(float(row["seconds"]) for row in rows if row["aggregation_type"] == "total")
            self.assertAlmostEqual(total, 2 * raw[0]["seconds"], delta=0.01)
            for kind, key in (("username", "admin"), ("resource_pool", "default")):
                self.assertAlmostEqual(sum(float(row["seconds"]) for row in rows if (
                    row["aggregation_type"], row["aggregation_key"]) == (kind, key)), total, delta=0.01)
            self.assertEqual(len(cluster.det("resources", "raw", first, last).splitlines()), 2)
            cluster.det("resources", "aggregated", "2026-13-01", last, expect=2)
            there = list(csv.DictReader(io.StringIO(cluster.det("resources", "capacity", first, last))))
            self.assertEqual([(one["resource_pool"], one["slots"], one["end_time"]) for one in there], [("default", "2", "")])
            held = json.loads(cluster.det("resources", "capacity", first, last, "--json"))
            self.assertGreater(held[0]["seconds"], raw[0]["seconds"])
            cluster.det("resources", "capacity", "yesterday", last, expect=2)


if __name__ == "__main__":
    unittest.main()
