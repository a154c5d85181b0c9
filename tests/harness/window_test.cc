#include <torch/torch.h>

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "harness/src/observability/batch_metrics.h"
#include "harness/src/observability/window.h"

namespace det {
namespace {

DistributedContext alone;

Metrics metrics(double value) { return {{"loss", value}}; }

TEST_CASE("a window averages over records, not over batches") {
  MetricWindow window("train_batch");
  window.add(metrics(1), 64);
  window.add({{"loss", torch::tensor(5.0)}}, 16);
  CHECK(window.averages(alone)["loss"].get<double>() == Approx((1.0 * 64 + 5.0 * 16) / 80));
}

TEST_CASE("a window that is saved and restored ends in the same bits") {
  MetricWindow one("train_batch"), two("train_batch"), three("train_batch");
  for (int i = 0; i < 10; ++i) {
    const double value = std::sin(i) / 3;
    one.add(metrics(value), 7);
    (i < 6 ? two : three).add(metrics(value), 7);
    if (i == 5) three.append(parse_json(dump_json(two.save())).value());
  }
  CHECK(one.averages(alone) == three.averages(alone));
}

TEST_CASE("NaN is reported unchanged") {
  MetricWindow window("train_batch");
  window.add({{"loss", torch::tensor(std::nanf(""))}}, 1);
  CHECK(window.averages(alone)["loss"] == "NaN");
}

TEST_CASE("batches of several ranks are reduced in the order of their numbers") {
  BatchMetrics one("evaluate_batch"), other("evaluate_batch");
  for (const int number : {4, 0, 2}) one.add(number, metrics(0.1 * number), 3);
  for (const int number : {0, 2, 4}) other.add(number, metrics(0.1 * number), 3);
  CHECK(one.reduce(alone, {}) == other.reduce(alone, {}));
  CHECK(one.reduce(alone, Reducer::kMax)["loss"] == 0.1 * 4);
}

TEST_CASE("mismatched metrics are named") {
  BatchMetrics first("evaluate_batch");
  first.add(0, {{"a", 1}, {"b", 2}}, 1);
  CHECK_THROWS_WITH(first.add(1, {{"a", 1}}, 1), Catch::Contains("\"b\" is missing from batch 1"));
  BatchMetrics second("evaluate_batch");
  second.add(0, {{"a", 1}}, 1);
  CHECK_THROWS_WITH(second.add(1, {{"a", 1}, {"c", 1}}, 1), Catch::Contains("\"c\" is new in batch 1"));
  MetricWindow third("train_batch");
  CHECK_THROWS_WITH(third.add({{"loss", torch::zeros({64})}}, 64),
                    Catch::Contains("\"loss\" must be one number") && Catch::Contains("[64]"));
  CHECK_THROWS_WITH(third.add({{"x", 1}, {"x", 2}}, 1), Catch::Contains("given twice"));
}

}  // namespace
}  // namespace det
