// Checks of harness reports, errors on the wire, and the checkpoint archive.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "common/archive/archive.h"
#include "common/base/files.h"
#include "det/status.pb.h"
#include "det/v1/common.pb.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/checkpoint.h"
#include "master/api/experiments/metric_names.h"
#include "master/api/status.h"
#include "master/api/streams/agent_link.h"
#include "master/api/streams/harness_session.h"
#include "master/api/submit/create.h"

namespace det::api {
namespace {

v1::MetricsReport report(const std::string& metrics, const std::string& group = "training") {
  v1::MetricsReport out;
  out.set_group(group);
  out.set_steps_completed(1);
  out.set_metrics(metrics);
  return out;
}

TEST_CASE("a usual report is accepted") {
  CHECK(check_metrics(report(R"({"loss":0.5,"grad norm":"NaN","nested":{"a":[1,2]}})")));
  CHECK(check_metrics(report("{}", "validation")));
}

TEST_CASE("reports that cannot be stored or displayed are refused") {
  CHECK_FALSE(check_metrics(report("[1]")));
  CHECK_FALSE(check_metrics(report("{")));
  CHECK_FALSE(check_metrics(report(R"({"":1})")));
  CHECK_FALSE(check_metrics(report("{\"a\\nb\":1}")));
  CHECK_FALSE(check_metrics(report("{\"" + std::string(257, 'x') + "\":1}")));
  CHECK_FALSE(check_metrics(report(R"({"a":1})", "")));
  CHECK_FALSE(check_metrics(report(R"({"a":1})", "a.b")));
  CHECK_FALSE(check_metrics(report(R"({"a":)" + std::string(9, '[') + std::string(9, ']') + "}")));
  std::string many = "{";
  for (int i = 0; i <= 1000; ++i) many += (i ? ",\"m" : "\"m") + std::to_string(i) + "\":1";
  CHECK_FALSE(check_metrics(report(many + "}")));
  auto negative = report("{}");
  negative.set_steps_completed(-1);
  CHECK_FALSE(check_metrics(negative));
}

TEST_CASE("the searcher's metric is a number, NaN or absent") {
  CHECK(metric_value(R"({"loss":0.5})", "loss") == 0.5);
  CHECK(std::isnan(*metric_value(R"({"loss":"NaN"})", "loss")));
  CHECK_FALSE(metric_value(R"({"loss":0.5})", "accuracy"));
  CHECK_FALSE(metric_value(R"({"loss":"high"})", "loss"));
}

TEST_CASE("the task id of an allocation is its id without the run") {
  CHECK(task_of(AllocationId("7.abc.12")) == TaskId("7.abc"));
}

TEST_CASE("a refused document carries its problems and fits into gRPC's metadata") {
  std::vector<Problem> problems;
  for (int i = 0; i < 200; ++i) {
    problems.push_back({"E-CFG-RANGE", "searcher.max_trials", std::string(100, 'm'), "const.yaml", i, 1});
  }
  const grpc::Status status = to_grpc(fail(problems).value());
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().size() + status.error_details().size() < 7000);
  google::rpc::Status details;
  REQUIRE(details.ParseFromString(status.error_details()));
  v1::Problems carried;
  REQUIRE(details.details(0).UnpackTo(&carried));
  CHECK(carried.problems_size() > 10);
  CHECK(carried.problems(3).line() == 3);
  CHECK(carried.problems(0).path() == "searcher.max_trials");
}

TEST_CASE("random names have three words") {
  const std::string name = random_name();
  CHECK(name.starts_with("Experiment ("));
  CHECK(std::count(name.begin(), name.end(), '-') == 2);
}

TEST_CASE("checkpoint files are packed, and links outside the checkpoint are not followed") {
  auto directory = TemporaryDirectory::create();
  REQUIRE(directory);
  const CheckpointId id("00000000-0000-4000-8000-000000000001");
  const std::string root = directory->path() + "/" + id.value;
  REQUIRE(make_directories(root + "/sub"));
  REQUIRE(write_file_atomic(directory->path() + "/secret", "secret"));
  REQUIRE(write_file_atomic(root + "/model.pt", std::string(3 << 20, 'w')));
  REQUIRE(write_file_atomic(root + "/sub/state", "state"));
  std::filesystem::create_symlink(directory->path() + "/secret", root + "/link");
  const storage::StoragePolicy policy{
      .own = {}, .data_dir = {}, .directories = {directory->path()}, .buckets = {}, .named = {}};
  const auto config_of = [](const std::string& path) {
    return dump_json({{"checkpoint_storage", {{"type", "directory"}, {"container_path", path}}}});
  };
  const auto checkpoint = StoredCheckpoint::open(policy, config_of(directory->path()), id);
  INFO((checkpoint ? "" : checkpoint.error().message));
  REQUIRE(checkpoint);

  std::string bytes;
  std::size_t largest = 0;
  REQUIRE(pack(*checkpoint, {{"model.pt", 3 << 20}, {"sub/state", 5}}, [&](std::string piece) {
    largest = std::max(largest, piece.size());
    bytes += piece;
    return true;
  }));
  CHECK(largest <= (1u << 20));
  const auto entries = read_archive(bytes, {.ratio = 100'000});
  INFO((entries ? "" : entries.error().message));
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  CHECK((*entries)[0].content == std::string(3 << 20, 'w'));
  CHECK((*entries)[1].path == "sub/state");

  const auto ignore = [](std::string) { return true; };
  for (const char* name : {"link", "../secret", "/etc/passwd", "absent", "sub"})
    CHECK_FALSE(pack(*checkpoint, {{name, 6}}, ignore));
  CHECK_FALSE(pack(*checkpoint, {{"model.pt", 1}}, [](std::string) { return false; }));
  // No call gets as far as the directory where the id, the storage or the directory is wrong.
  CHECK_FALSE(StoredCheckpoint::open(policy, config_of(directory->path()), CheckpointId("1")));
  CHECK_FALSE(StoredCheckpoint::open(policy, config_of("/etc"), id));
  CHECK_FALSE(StoredCheckpoint::open(policy, config_of(directory->path() + "/none"), id));
}

TEST_CASE("a trial has a bounded number of metrics") {
  MetricNames names;
  const auto add = [&](int trial, const std::string& group, int first, int count) {
    std::vector<MetricKey> keys;
    for (int i = first; i < first + count; ++i) keys.push_back(metric_key(group, "m" + std::to_string(i)));
    return names.add(TrialId(trial), keys);
  };
  CHECK(add(1, "training", 0, 1000));
  CHECK(add(1, "training", 0, 1000));
  CHECK(add(1, "validation", 0, 990));
  // Another trial has its own count.
  CHECK(add(2, "training", 0, 1000));
  const Status beyond = add(1, "training", 1000, 500);
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == Code::kInvalidArgument);
  CHECK(beyond.error().message.starts_with("trial 1 may have 2000 metrics"));
  // What a refused report held does not count.
  CHECK(add(1, "training", 0, 1000));
  CHECK(add(1, "validation", 985, 10));
}

TEST_CASE(
    "an owner without room for metric series gets no new ones, except of a trial of an earlier master") {
  MetricNames names;
  const Status full = fail(Code::kResourceExhausted, "quota of user ann");
  const auto keys = [](int count) {
    std::vector<MetricKey> found;
    for (int i = 0; i < count; ++i) found.push_back(metric_key("training", "m" + std::to_string(i)));
    return found;
  };
  REQUIRE(names.add(TrialId(1), keys(2)));
  CHECK(names.add(TrialId(1), keys(2), full));
  const Status more = names.add(TrialId(1), keys(3), full);
  REQUIRE_FALSE(more);
  CHECK(more.error().message == "quota of user ann");
  // Trial 2 began after the start of the master, trial 3 before it.
  CHECK_FALSE(names.add(TrialId(2), keys(2), full, true));
  CHECK(names.add(TrialId(3), keys(2), full, false));
  CHECK_FALSE(names.add(TrialId(3), keys(3), full, false));
  CHECK(names.add(TrialId(3), keys(3)));
}

TEST_CASE("the summary of a trial takes time in proportion to its metrics") {
  // The former conversion compared each name with all others: 200,000 names took minutes.
  std::vector<db::MetricSummary> rows;
  for (int i = 0; i < 200'000; ++i)
    rows.push_back(
        {.group = "training", .name = "m" + std::to_string(i), .count = 2, .sum = 3, .last = i * 1.0});
  google::protobuf::Struct out;
  const MonoTime begun = mono_now();
  to_proto(rows, &out);
  CHECK(mono_now() - begun < std::chrono::seconds(20));
  const auto& metrics = out.fields().at("avg_metrics").struct_value().fields();
  CHECK(metrics.size() == 200'000);
  const auto& one = metrics.at("m7").struct_value().fields();
  CHECK(one.at("mean").number_value() == 1.5);
  CHECK(one.at("last").number_value() == 7);
  CHECK(one.at("type").string_value() == "number");
}

TEST_CASE("the files of a checkpoint have up to 1 PiB, alone and together") {
  v1::CheckpointReport saved;
  saved.set_uuid("00000000-0000-4000-8000-000000000001");
  auto& files = *saved.mutable_resources();
  const auto read = [&] { return read_checkpoint_report(saved, TrialId(1), 1, {}, "cluster"); };
  files["a"] = kMaxCheckpointBytes;
  CHECK(read());
  for (const std::int64_t wrong : {std::int64_t{-1}, kMaxCheckpointBytes + 1, INT64_MAX}) {
    files["a"] = wrong;
    const auto refused = read();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kInvalidArgument);
    CHECK_THAT(refused.error().message, Catch::Contains("the size of a must be 0 to 2^50 bytes"));
  }
  files["a"] = kMaxCheckpointBytes;
  files["b"] = 1;
  CHECK_THAT(read().error().message, Catch::Contains("add up to more than 2^50 bytes"));
}

}  // namespace
TEST_CASE("a checkpoint cannot have the id of the cluster, a directory of its storage") {
  const std::string cluster = "00000000-0000-4000-8000-0000000000aa";
  v1::CheckpointReport report;
  report.set_uuid(cluster);
  const auto read = read_checkpoint_report(report, TrialId(1), 1, {}, cluster);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Code::kInvalidArgument);
  CHECK(read_checkpoint_report(report, TrialId(1), 1, {}, "00000000-0000-4000-8000-0000000000ab"));
}

}  // namespace det::api
