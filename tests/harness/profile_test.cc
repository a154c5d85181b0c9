// Traces on a user's request: the mailbox of the stream, the recording beside training, and the size limit.
#include "fixture.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <zlib.h>

#include <catch2/catch.hpp>
#include <set>

#include "common/base/queue.h"
#include "harness/src/client/profile_mailbox.h"
#include "harness/src/trainer/profile_on_request.h"

namespace det {
namespace {

using testing::Folder;
using testing::make_state;
using testing::SmallTrial;
using State = ProfileProgress::State;

TEST_CASE("a request is taken once, repeated ids return its progress, other ids wait for its end") {
  ProfileMailbox mailbox;
  CHECK_FALSE(mailbox.take());
  CHECK_FALSE(mailbox.take_outgoing());
  mailbox.receive({.id = "a", .batches = 3});
  CHECK(mailbox.take_outgoing()->state == State::kWaiting);
  mailbox.receive({.id = "b"});
  const auto refused = mailbox.take_outgoing();
  CHECK(refused->id == "b");
  CHECK(refused->state == State::kFailed);
  CHECK(mailbox.take()->batches == 3);
  CHECK_FALSE(mailbox.take());
  mailbox.update({.id = "a", .state = State::kRecording, .batches = 2});
  CHECK(mailbox.take_outgoing()->batches == 2);
  CHECK_FALSE(mailbox.take_outgoing());
  mailbox.receive({.id = "a", .batches = 3});
  CHECK_FALSE(mailbox.take());
  CHECK(mailbox.take_outgoing()->batches == 2);
  mailbox.resend();
  CHECK(mailbox.take_outgoing()->id == "a");
  mailbox.update({.id = "a", .state = State::kDone, .batches = 3});
  mailbox.receive({.id = "b"});
  CHECK(mailbox.take()->id == "b");
}

TEST_CASE("a program without batches refuses requests, also one that waits") {
  ProfileMailbox mailbox;
  mailbox.receive({.id = "a"});
  (void)mailbox.take_outgoing();
  mailbox.refuse("no batches");
  CHECK_FALSE(mailbox.take());
  CHECK(mailbox.take_outgoing()->message == "no batches");
  mailbox.receive({.id = "b"});
  CHECK_FALSE(mailbox.take());
  CHECK(mailbox.take_outgoing()->state == State::kFailed);
  mailbox.refuse("");
  mailbox.receive({.id = "c"});
  CHECK(mailbox.take()->id == "c");
}

/// Requests and their outcome. Outlives the client.
struct Requests {
  ProfileMailbox mailbox;
  Queue<MediaRecord> sent{100};
  Queue<ProfileProgress> reported{1000};
  std::vector<MediaRecord> media;         ///< those of `sent`, after collect()
  std::vector<ProfileProgress> progress;  ///< those of `reported`, after collect()
  std::set<std::string> groups;           ///< of the reported metrics
  std::unique_ptr<Client> client;         ///< after training; replies to media use it
  void collect() {
    for (auto& one : sent.pop_batch(100, Duration(0))) media.push_back(std::move(one));
    for (auto& one : reported.pop_batch(1000, Duration(0))) progress.push_back(std::move(one));
  }
  const ProfileProgress& last() {
    collect();
    return progress.back();
  }
};

/// A client with a mailbox in place of a stream.
class RequestClient final : public Client {
 public:
  explicit RequestClient(Requests& requests) : requests_(requests) {}
  void report_metrics(const std::string& group, std::int64_t, const Json&) override {
    requests_.groups.insert(group);
  }
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const CheckpointRecord&) override {}
  void report_media(const MediaRecord& record) override { (void)requests_.sent.push(MediaRecord(record)); }
  void report_invalid_hp() override {}
  bool should_preempt() const override { return false; }
  void acknowledge_preemption() override {}
  std::optional<ProfileRequest> take_profile_request() override { return requests_.mailbox.take(); }
  void report_profile(const ProfileProgress& progress) override {
    requests_.mailbox.update(progress);
    (void)requests_.reported.push(ProfileProgress(progress));
  }
  void refuse_profiles(const std::string& reason) override { requests_.mailbox.refuse(reason); }
  bool flush(std::chrono::seconds) override { return true; }

 private:
  Requests& requests_;
};

std::string unzip(const std::string& bytes) {
  std::string text(64 << 20, '\0');
  z_stream stream{};
  REQUIRE(::inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  REQUIRE(::inflate(&stream, Z_FINISH) == Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return text;
}

std::vector<Json> spans_of(const std::string& bytes) {
  std::vector<Json> spans;
  const Json trace = parse_json(unzip(bytes), {.bytes = 64 << 20}).value();
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") spans.push_back(event);
  return spans;
}

/// Trains 10 batches; requests a trace of `batches` when batch `at` has been trained.
class RequestingTrial : public SmallTrial {
 public:
  RequestingTrial(TrialContext& context, testing::Record& record, Requests& requests, std::int64_t at,
                  std::int64_t batches)
      : SmallTrial(context, record), requests_(requests), at_(at), batches_(batches) {}
  Metrics train_batch(Batch& batch, int64_t epoch, int64_t number) override {
    if (number == at_) requests_.mailbox.receive({.id = "r1", .batches = batches_});
    return SmallTrial::train_batch(batch, epoch, number);
  }

 private:
  Requests& requests_;
  std::int64_t at_, batches_;
};

void train(Requests& requests, std::int64_t at, std::int64_t batches, bool profiling = false) {
  Folder storage;
  testing::Record record;
  auto state = make_state(record, storage);
  state->run.client = std::make_unique<RequestClient>(requests);
  TrialContext context(std::move(state));
  RequestingTrial trial(context, record, requests, at, batches);
  (void)Trainer(trial, context)
      .fit({.max_length = Batches(10), .reporting_period = Batches(2), .profiling_enabled = profiling});
  requests.client = std::move(context.state().run.client);
}

TEST_CASE("the batches after a request are recorded with their phases") {
  const bool profiling = GENERATE(false, true);
  Requests requests;
  train(requests, 3, 4, profiling);
  requests.collect();
  REQUIRE(requests.media.size() == 1);
  const MediaRecord& file = requests.media.front();
  CHECK(file.name == "profile/r1");
  CHECK(file.file_name == "batches-4-7.pt.trace.json.gz");
  CHECK(file.steps_completed == 8);
  std::set<std::string> names;
  for (const Json& span : spans_of(file.content)) names.insert(span["name"].get<std::string>());
  const std::vector<std::string> expected{"batch 4",  "batch 7",   "data",          "forward",
                                          "backward", "optimizer", "AddmmBackward0"};
  for (const std::string& name : expected) CHECK(names.contains(name));
  CHECK_FALSE(names.contains("batch 3"));
  CHECK_FALSE(names.contains("batch 8"));
  CHECK(requests.groups.contains("timing") == profiling);
}

TEST_CASE("a request ends with the reply to its file, and requests after training are refused") {
  Requests requests;
  train(requests, 3, 4);
  requests.collect();
  REQUIRE(requests.media.size() == 1);
  REQUIRE_FALSE(requests.progress.empty());
  for (const auto& one : requests.progress)
    CHECK(one.state == (&one == &requests.progress.back() ? State::kStoring : State::kRecording));
  REQUIRE(requests.media.front().done);
  requests.media.front().done({});
  CHECK(requests.last().state == State::kDone);
  CHECK(requests.last().batches == 4);
  CHECK(requests.last().message.empty());
  requests.media.front().done(fail(Code::kResourceExhausted, "the quota is used"));
  CHECK(requests.last().state == State::kFailed);
  CHECK(requests.last().message == "the quota is used");
  requests.mailbox.receive({.id = "r2"});
  CHECK_FALSE(requests.mailbox.take());
}

TEST_CASE("a trace that training cuts short holds the batches that there were, and says so") {
  Requests requests;
  train(requests, 7, 100);
  requests.collect();
  REQUIRE(requests.media.size() == 1);
  CHECK(requests.media.front().file_name == "batches-8-9.pt.trace.json.gz");
  requests.media.front().done({});
  CHECK(requests.last().batches == 2);
  CHECK(requests.last().message == "training has ended");
}

TEST_CASE("a requested trace and the profiler of the program do not end each other") {
  const auto directory = TemporaryDirectory::create().value();
  Requests requests;
  RequestClient client(requests);
  Instruments instruments;
  ProfileOnRequest request(client, instruments);
  {
    TraceProfiler own({.active = 1}, directory.path());
    requests.mailbox.receive({.id = "a", .batches = 1});
    request.begin_batch(0);
    request.end_batch();
    CHECK(requests.last().state == State::kFailed);
  }
  requests.mailbox.receive({.id = "b", .batches = 2});
  request.begin_batch(1);
  TraceProfiler own({.active = 1}, directory.path());
  own.step();
  request.end_batch();
  request.begin_batch(2);
  request.end_batch();
  request.finish();
  requests.collect();
  CHECK(requests.media.size() == 1);
  CHECK(instruments.phases == nullptr);
}

TEST_CASE("a trace that exceeds the limit loses its last batches") {
  Trace trace;
  std::uint64_t random = 1;
  for (std::int64_t step = 0; step < 50; ++step) {
    for (std::int64_t i = 0; i < 100; ++i) {
      random = random * 6364136223846793005 + 1442695040888963407;
      trace.events.push_back(
          {.name = "aten::" + std::to_string(random), .begin = step * 1000 + i, .end = step * 1000 + i + 1});
    }
    trace.events.push_back({.name = "batch " + std::to_string(step),
                            .kind = TraceEvent::Kind::kStep,
                            .begin = step * 1000,
                            .end = step * 1000 + 999});
  }
  const PackedTrace whole = pack_trace(trace, 0, 100 << 20);
  CHECK(whole.batches == 50);
  const PackedTrace half = pack_trace(trace, 0, whole.bytes.size() / 2);
  CHECK(half.batches < 26);
  CHECK(half.batches > 15);
  CHECK(half.bytes.size() <= whole.bytes.size() / 2);
  CHECK(static_cast<std::int64_t>(spans_of(half.bytes).size()) == half.batches * 101);
  CHECK(pack_trace(trace, 0, 100).batches == 0);
}

}  // namespace
}  // namespace det
