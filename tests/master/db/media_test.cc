// Media in the database: replacement, quota, and contents that are no longer used.
#include "master/db/queries/media.h"

#include <catch2/catch.hpp>

#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

/// A database with trial 1 of experiment 1.
struct MediaLab {
  Database database;
  db::Pool pool{database.connect()};
  MediaLab() {
    RunningStore store(open_store(database));
    store.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial()}});
  }
  /// Stores an entry. Returns the calls for the storage.
  std::string put(const std::string& name, std::int64_t steps, const std::string& digest,
                  std::int64_t size = 10, const db::MediaUsage& quota = {100, 1000}) {
    std::string calls;
    const Status done = db::put_media(pool,
                                      {.trial = TrialId(1),
                                       .name = name,
                                       .steps_completed = steps,
                                       .kind = "TEXT",
                                       .caption = "",
                                       .digest = digest,
                                       .size = size,
                                       .file_name = "text.txt",
                                       .reported = {}},
                                      quota,
                                      {[&]() -> Status { return calls += "+" + digest, Status(); },
                                       [&](const std::string& old) { calls += " -" + old; }});
    if (!done) CHECK(done.error().code == Code::kResourceExhausted);
    return done ? calls : "refused";
  }
};

TEST_CASE("an entry replaces the one with its trial, name and step") {
  MediaLab lab;
  CHECK(lab.put("a", 10, "d1") == "+d1");
  CHECK(lab.put("a", 20, "d1") == "+d1");
  CHECK(lab.put("a", 10, "d1") == "+d1");  // the same again
  CHECK(lab.put("a", 10, "d2") == "+d2");  // step 20 still uses d1
  CHECK(lab.put("a", 20, "d2") == "+d2 -d1");
  const auto page = db::list_media(lab.pool, {TrialId(1), TrialId(2)}, {});
  REQUIRE(page);
  REQUIRE(page->rows.size() == 2);
  CHECK(page->rows[0].steps_completed == 10);
  CHECK(page->rows[1].digest == "d2");
  CHECK(db::find_media(lab.pool, TrialId(1), "d2")->steps_completed == 20);
  CHECK(db::find_media(lab.pool, TrialId(1), "d1").error().code == Code::kNotFound);
  CHECK(db::find_media(lab.pool, TrialId(2), "d2").error().code == Code::kNotFound);
  const auto contents = db::find_contents(lab.pool, {TrialId(1), TrialId(1)}, {"d2", "d2"});
  REQUIRE(contents);
  REQUIRE(contents->size() == 2);
  CHECK(contents->front().experiment == ExperimentId(1));
  CHECK(contents->front().size == 10);
  CHECK(db::find_contents(lab.pool, {TrialId(2)}, {"d2"}).error().code == Code::kNotFound);
  CHECK(db::find_contents(lab.pool, {TrialId(1), TrialId(1)}, {"d2", "d1"}).error().code == Code::kNotFound);
}

TEST_CASE("a trial keeps its quota of entries and bytes, which a replacement does not count twice") {
  MediaLab lab;
  CHECK(lab.put("a", 10, "d1", 100, {2, 150}) == "+d1");
  CHECK(lab.put("b", 10, "d2", 60, {2, 150}) == "refused");
  CHECK(lab.put("a", 10, "d3", 150, {2, 150}) == "+d3 -d1");
  CHECK(lab.put("a", 10, "d4", 1, {2, 150}) == "+d4 -d3");
  CHECK(lab.put("b", 10, "d5", 1, {2, 150}) == "+d5");
  CHECK(lab.put("c", 10, "d6", 1, {2, 150}) == "refused");
  CHECK(lab.put("b", 10, "d6", 1, {2, 150}) == "+d6 -d5");
  CHECK(db::has_media(lab.pool, ExperimentId(1)).value());
  CHECK_FALSE(db::has_media(lab.pool, ExperimentId(2)).value());
  CHECK(db::experiment_of_trial(lab.pool, TrialId(1)).value() == ExperimentId(1));
}

}  // namespace
}  // namespace det::test
