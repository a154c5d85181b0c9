// Storage jobs that hang delay no other job.
#include "agent/storage_jobs.h"

#include <catch2/catch.hpp>
#include <memory>

#include "common/base/event.h"
#include "common/base/queue.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

/// Jobs below "/hung" hang until the storage responds again.
struct HangingStorage {
  ~HangingStorage() { responds->set(); }
  Status start(const std::string& root, std::uint64_t session) {
    v1::StorageWork command;
    command.set_number(1);
    command.set_root(root);
    return jobs.start(command, session);
  }
  StorageAnswer next_answer() {
    const auto batch = answers->pop_batch(1, 20s);
    REQUIRE(batch.size() == 1);
    jobs.ended();
    return batch[0];
  }

  // Shared with jobs that outlive the test.
  std::shared_ptr<det::Event> responds = std::make_shared<det::Event>();
  std::shared_ptr<Queue<StorageAnswer>> answers = std::make_shared<Queue<StorageAnswer>>(100);
  StorageJobs jobs{[answers = answers](StorageAnswer answer) { answers->push(std::move(answer)); },
                   [responds = responds](const storage::Work& work) {
                     if (work.root.base == "/hung") responds->wait_for(60s);
                     return storage::Done{.removed = {work.root.base}};
                   }};
};

}  // namespace

TEST_CASE("a command of a restarted master does not wait for a hung job with the same number", "[agent]") {
  HangingStorage storage;
  REQUIRE(storage.start("/hung", 1));
  REQUIRE(storage.start("/fine", 2));
  const StorageAnswer answer = storage.next_answer();
  CHECK(answer.session == 2);
  CHECK(answer.done.number() == 1);
  REQUIRE(answer.done.removed_size() == 1);
  CHECK(answer.done.removed(0) == "/fine");
  storage.responds->set();
  CHECK(storage.next_answer().session == 1);
}

TEST_CASE("storage jobs beyond the limit are refused until one ends", "[agent]") {
  HangingStorage storage;
  for (int i = 0; i < StorageJobs::kMaxRunning; ++i) REQUIRE(storage.start("/hung", 1));
  const Status refused = storage.start("/fine", 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kResourceExhausted);
  storage.responds->set();
  storage.next_answer();
  CHECK(storage.start("/fine", 1));
}
