#include "harness/src/checkpoint/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "common/base/files.h"
#include "det/checkpoint.h"

namespace det {
namespace {

struct SafetensorsFile {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string path = directory.path() + "/m.safetensors";
  void write(const std::string& header, std::size_t data) const {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
    std::ofstream(path, std::ios::binary) << bytes << header << std::string(data, '\1');
  }
};

TEST_CASE("tensors survive safetensors bit for bit") {
  const SafetensorsFile file;
  pickle::Dict dict;
  dict.add("a.weight", at::randn({3, 4}).t());
  dict.add("b", at::arange(5, torch::kLong));
  dict.add("flag", at::arange(2).to(torch::kBool));
  dict.add("half", at::randn({3}).to(torch::kBFloat16));
  dict.add("none", at::randn({0, 2}));
  dict.add("one", at::randn({}));
  safetensors::save(dict, file.path);
  const pickle::Dict loaded = safetensors::load(file.path);
  REQUIRE(loaded.items.size() == dict.items.size());
  for (const auto& [name, value] : dict.items) {
    INFO(name);
    const auto* other = loaded.find(name);
    REQUIRE(other != nullptr);
    const auto &a = *value.as<torch::Tensor>(), &b = *other->as<torch::Tensor>();
    CHECK((a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b)));
  }
}

TEST_CASE("a module's weights survive safetensors") {
  const SafetensorsFile file;
  torch::nn::Linear from(3, 2), to(3, 2), other(4, 2);
  save_safetensors(*from, file.path);
  load_safetensors(file.path, *to);
  CHECK(at::equal(from->weight, to->weight));
  CHECK_THROWS_WITH(
      load_safetensors(file.path, *other),
      Catch::StartsWith(file.path) && Catch::Contains("weight is [2, 3], the model's is [2, 4]"));
}

TEST_CASE("a safetensors file made by hand is read") {
  const SafetensorsFile file;
  file.write(R"({"x":{"dtype":"I16","shape":[2],"data_offsets":[1,5]},)"
             R"("y":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}  )",
             5);
  const pickle::Dict loaded = safetensors::load(file.path);
  CHECK(loaded.find("x")->as<torch::Tensor>()->equal(at::arange(2).mul(0).add(257).to(torch::kShort)));
}

TEST_CASE("a safetensors file with wrong offsets or names is refused by name") {
  const SafetensorsFile file;
  const auto [header, data, expected] = GENERATE(table<std::string, int, std::string>({
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       4, "y overlaps"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5, "x leaves a gap"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 9, "holds 9 bytes of data, its tensors 4"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3, "holds 3 bytes of data, its tensors 4"},
      {R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})", 4, "x: its shape needs 16 bytes"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4, "x: its shape needs 4 bytes"},
      {R"({"x":{"dtype":"Q3","shape":[4],"data_offsets":[0,4]}})", 4, "x: elements of type Q3"},
      {R"({"x":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", 4, "x: a size or an offset is no number"},
      {R"({"x":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4,
       "x: its shape is too large"},
      {R"({"x":{"dtype":"U8","shape":[4]}})", 4, "x: expected dtype, shape and data_offsets"},
      {R"({"x":1})", 0, "x: expected dtype, shape and data_offsets"},
      {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"x":1})", 4, "header: "},
      {R"([])", 0, "is no safetensors file"},
  }));
  file.write(header, data);
  CHECK_THROWS_WITH(safetensors::load(file.path), Catch::StartsWith(file.path) && Catch::Contains(expected));
}

TEST_CASE("a safetensors header beyond the limits is refused") {
  const SafetensorsFile file;
  std::ofstream(file.path) << std::string(8, '\x7f') << "{}";
  CHECK_THROWS_WITH(safetensors::load(file.path), Catch::Contains("header over 100 MB"));
  std::ofstream(file.path) << std::string("\x10\0\0\0\0\0\0\0{}", 10);
  CHECK_THROWS_WITH(safetensors::load(file.path), Catch::Contains("cut short"));
  std::ofstream(file.path) << "{}";
  CHECK_THROWS_WITH(safetensors::load(file.path), Catch::Contains("too short"));
  CHECK_THROWS_WITH(safetensors::load(file.path + "x"), Catch::Contains("No such file"));
}

}  // namespace
}  // namespace det
