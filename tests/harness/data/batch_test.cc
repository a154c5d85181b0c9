#include "det/batch.h"

#include <torch/types.h>

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>

namespace det {
namespace {

Batch nest(std::int64_t value, std::int64_t length = 2) {
  return Batch::List{
      torch::full({length}, value, torch::kLong),
      Batch::Dict{{"label", torch::tensor(value)}, {"box", Batch(torch::zeros({4}), torch::ones({1}))}}};
}

TEST_CASE("a pair unpacks into data and target") {
  const Batch pair(torch::zeros({3, 2}), torch::ones({3}));
  const auto [images, labels] = pair.unpack<2>();
  CHECK(images.sizes() == torch::IntArrayRef({3, 2}));
  CHECK(labels.equal(pair.target()));
  CHECK(images.equal(pair.data()));
  CHECK(pair.size() == 3);
  CHECK(Batch(torch::zeros({5})).data().size(0) == 5);
  CHECK(Batch().size() == 0);
  CHECK(Batch(torch::tensor(1)).size() == 0);
}

TEST_CASE("accessing a batch as the wrong kind names its actual kind") {
  const Batch pair(torch::zeros({3, 2}), torch::ones({3}));
  CHECK_THROWS_WITH(pair.unpack<3>(), Catch::Contains("a list of 3") && Catch::Contains("it is a list of 2"));
  CHECK_THROWS_WITH(pair[2], Catch::Contains("a list with an item 2"));
  CHECK_THROWS_WITH(pair["mask"], Catch::Contains("it is a list of 2"));
  CHECK_THROWS_WITH(nest(1)[1]["boxes"],
                    Catch::Contains("\"boxes\"") && Catch::Contains("\"label\", \"box\""));
  CHECK_THROWS_WITH(Batch(torch::zeros({1})).list(), Catch::Contains("it is a tensor"));
  CHECK_THROWS_AS(pair.tensor(), std::invalid_argument);
}

TEST_CASE("records with equal structure are stacked") {
  const Batch batch = default_collate({nest(1), nest(2), nest(3)});
  CHECK(batch.size() == 3);
  CHECK(batch[0].tensor().equal(torch::tensor({1, 1, 2, 2, 3, 3}).view({3, 2})));
  CHECK(batch[1]["label"].tensor().equal(torch::tensor({1, 2, 3})));
  CHECK(batch[1]["box"][0].tensor().sizes() == torch::IntArrayRef({3, 4}));
  CHECK_FALSE(default_collate({Batch(), Batch()}).tensor().defined());
}

TEST_CASE("records that differ are reported by path, with both shapes") {
  CHECK_THROWS_WITH(
      default_collate({nest(1), nest(2, 3)}),
      "records cannot be stacked: [0] is [2] of Long in record 0 of the batch and [3] of Long in "
      "record 1");
  const Batch other = Batch::List{torch::zeros({2}, torch::kLong),
                                  Batch::Dict{{"label", torch::tensor(1.5)}, {"box", Batch()}}};
  CHECK_THROWS_WITH(
      default_collate({nest(1), nest(1), other}),
      Catch::Contains("[1][\"label\"] is [] of Long") && Catch::Contains("[] of Float in record 2"));
  CHECK_THROWS_WITH(
      default_collate({nest(1), torch::zeros({2})}),
      Catch::Contains("stacked: is a list of 2 in record 0") && Catch::Contains("[2] of Float"));
  CHECK_THROWS_WITH(
      default_collate({Batch::Dict{{"a", torch::zeros({1})}}, Batch::Dict{{"b", torch::zeros({1})}}}),
      Catch::Contains("a dict of \"a\"") && Catch::Contains("a dict of \"b\""));
  CHECK_THROWS_AS(default_collate({}), std::invalid_argument);
}

TEST_CASE("map transforms every defined tensor and keeps the structure") {
  const Batch batch = Batch::List{torch::ones({2}), Batch(), Batch::Dict{{"x", torch::ones({2})}}};
  const Batch doubled = batch.map([](const torch::Tensor& tensor) { return tensor * 2; });
  CHECK(doubled[0].tensor().sum().item<double>() == 4);
  CHECK_FALSE(doubled[1].tensor().defined());
  CHECK(doubled[2]["x"].tensor().sum().item<double>() == 4);
  CHECK(to_device(batch, torch::kCPU)[0].tensor().is_same(batch[0].tensor()));
}

}  // namespace
}  // namespace det
