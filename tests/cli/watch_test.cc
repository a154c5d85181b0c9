// Watching an experiment: the event parser, sparklines, and the output without a terminal.
#include <catch2/catch.hpp>

#include "cli/output/event_stream.h"
#include "cli/output/sparkline.h"
#include "fake_master.h"

namespace det::cli::test {

TEST_CASE("a series is drawn in eighths between its least and greatest value") {
  CHECK(sparkline({}, 10).empty());
  CHECK(sparkline({1, 2, 3, 4, 5, 6, 7, 8}, 8) == "▁▂▃▄▅▆▇█");
  CHECK(sparkline({8, 1}, 8) == "█▁");
  CHECK(sparkline({5, 5, 5}, 8) == "▅▅▅");
  CHECK(sparkline({1, 1, 8, 8}, 2) == "▁█");
  CHECK(sparkline({1, NAN, 8, INFINITY}, 4) == "▁ █ ");
  CHECK(sparkline({1, 2, 3}, 0).empty());
}

TEST_CASE("events are parsed from chunks of any size") {
  const std::string text =
      "retry: 2000\n\nid: 1\nevent: trial\ndata: {\"experimentId\":3,\"trialId\":5}\n\n: heartbeat\n\nid: "
      "2\nevent: "
      "reset\ndata: {}\n\nid: 3\nevent: tri";
  for (std::size_t step : {std::size_t{1}, std::size_t{7}, text.size()}) {
    EventParser parser;
    std::vector<ChangeEvent> all;
    for (std::size_t at = 0; at < text.size(); at += step) {
      const auto events = parser.take(std::string_view(text).substr(at, step));
      all.insert(all.end(), events.begin(), events.end());
    }
    REQUIRE(all.size() == 2);
    CHECK(all[0].kind == "trial");
    CHECK(all[0].experiment == 3);
    CHECK(all[1].kind == "reset");
    // An incomplete event does not change the last id.
    CHECK(parser.last_id() == "2");
  }
}

TEST_CASE("without a terminal, watch prints a line per change and exits with the experiment's outcome") {
  FakeMaster master;
  v1::Experiment& experiment = master.world.experiments[3];
  experiment.set_id(3);
  experiment.set_name("mnist");
  experiment.set_state(v1::STATE_COMPLETED);
  experiment.set_num_trials(1);
  experiment.mutable_progress()->set_value(1);
  master.world.trials.emplace_back().set_id(30);
  const auto done = master.det({"experiment", "watch", "3"});
  CHECK(done.out == "Experiment 3 mnist: COMPLETED, 1 trial, 100%\n");
  CHECK(done.status.code == 0);
  experiment.set_state(v1::STATE_ERROR);
  CHECK(master.det({"e", "watch", "3"}).status.code == 1);
  CHECK(master.det({"e", "watch", "4"}).status.code == 1);
}

}  // namespace det::cli::test
