// Reading and writing of state_dict.pth.
#include "harness/src/checkpoint/pickle.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "harness/src/checkpoint/zip.h"

namespace det {
namespace {

using pickle::Dict;
using pickle::List;
using pickle::Value;

struct File {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string path = directory.path() + "/state.pth";

  Value round_trip(const Value& value) const {
    pickle::save(value, path);
    return pickle::load(path);
  }
  /// Writes a file in PyTorch's container format around any pickle program.
  void write_pickle(const std::string& program) const {
    ZipWriter zip(path);
    zip.add("archive/data.pkl", program);
    zip.add("archive/version", "3\n");
    zip.finish();
  }
  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

Value sample() {
  Dict dict;
  dict.add("number", Value(std::int64_t{-7}));
  dict.add("large", Value(std::numeric_limits<std::int64_t>::min()));
  dict.add("real", Value(0.1));
  dict.add("text", Value(std::string("gr\xc3\xbc\xc3\x9f")));
  dict.add("list", Value(List{Value(true), Value(), Value(List{})}));
  dict.add("tensor", Value(at::arange(6, torch::kFloat).reshape({2, 3})));
  dict.add("scalar", Value(at::arange(1, torch::kLong).squeeze()));
  return dict;
}

void check_equal(const Value& a, const Value& b) {
  REQUIRE(a.data.index() == b.data.index());
  if (const auto* tensor = a.as<torch::Tensor>()) {
    const auto& other = *b.as<torch::Tensor>();
    CHECK((tensor->scalar_type() == other.scalar_type() && tensor->sizes() == other.sizes() &&
           at::equal(*tensor, other)));
  } else if (const auto* list = a.as<List>()) {
    REQUIRE(list->size() == b.as<List>()->size());
    for (std::size_t i = 0; i < list->size(); ++i) check_equal((*list)[i], (*b.as<List>())[i]);
  } else if (const auto* dict = a.as<Dict>()) {
    REQUIRE(dict->items.size() == b.as<Dict>()->items.size());
    for (std::size_t i = 0; i < dict->items.size(); ++i) {
      CHECK(dict->items[i].first == b.as<Dict>()->items[i].first);
      check_equal(dict->items[i].second, b.as<Dict>()->items[i].second);
    }
  } else {
    CHECK(pickle::from_value(a, "a").dump() == pickle::from_value(b, "b").dump());
  }
}

TEST_CASE("plain data and tensors survive a round trip") {
  const File file;
  check_equal(file.round_trip(sample()), sample());
}

TEST_CASE("tensors of every element type survive a round trip bit for bit") {
  const File file;
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16,
                                       torch::kLong, torch::kInt, torch::kShort, torch::kChar, torch::kByte,
                                       torch::kBool, torch::kComplexFloat, torch::kComplexDouble}) {
    INFO(type);
    const torch::Tensor tensor = at::arange(-2, 5, torch::kFloat).to(type);
    check_equal(file.round_trip(tensor), tensor);
  }
}

TEST_CASE("a dense tensor keeps its strides") {
  const File file;
  const torch::Tensor image = at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const Value loaded = file.round_trip(image);
  check_equal(loaded, image);
  CHECK(loaded.as<torch::Tensor>()->strides() == image.strides());
  const torch::Tensor column = at::randn({4, 6}).slice(1, 1, 6, 2);
  const Value gathered = file.round_trip(column);
  check_equal(gathered, column);
  CHECK(gathered.as<torch::Tensor>()->is_contiguous());
  for (const torch::Tensor& empty : {at::ones({0}), at::ones({3, 0, 2})})
    check_equal(file.round_trip(empty), empty);
}

TEST_CASE("writing to a loaded tensor does not change the file") {
  const File file;
  file.round_trip(at::ones({4})).as<torch::Tensor>()->fill_(9);
  check_equal(pickle::load(file.path), at::ones({4}));
}

TEST_CASE("JSON survives a round trip through a pickle with types and bits") {
  const File file;
  const auto json = nlohmann::ordered_json::parse(
      R"({"int": 3, "float": 3.0, "third": 0.3333333333333333, "none": null, "on": true, "list": [1, {"b": []}]})");
  CHECK(pickle::from_value(file.round_trip(pickle::to_value(json)), "x") == json);
}

TEST_CASE("any changed byte is refused with the file's name or has no effect") {
  const File file;
  pickle::save(sample(), file.path);
  const std::string whole = read_file(file.path).value();
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    file.write(damaged);
    try {
      check_equal(pickle::load(file.path), sample());
    } catch (const std::runtime_error& error) {
      CHECK_THAT(error.what(), Catch::StartsWith(file.path));
      ++refused;
    }
  }
  CHECK(refused > static_cast<int>(whole.size()) / 4);  // the rest is padding and unused fields
}

TEST_CASE("a file truncated at any length is refused with its name") {
  const File file;
  pickle::save(sample(), file.path);
  const std::string whole = read_file(file.path).value();
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    file.write(whole.substr(0, length));
    CHECK_THROWS_WITH(pickle::load(file.path), Catch::StartsWith(file.path));
  }
}

TEST_CASE("a file in the format of PyTorch before 1.6 is refused with what to do") {
  const File file;
  file.write("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + std::string(100, 'x'));
  CHECK_THROWS_WITH(pickle::load(file.path),
                    Catch::StartsWith(file.path) &&
                        Catch::Contains("PyTorch before 1.6; load it with Python and torch.save it again"));
}

TEST_CASE("a pickle that calls a function is refused without the call") {
  const File file;
  const std::string witness = file.directory.path() + "/witness";
  file.write_pickle(
      "\x80\x02"
      "cposix\nsystem\nX" +
      std::string(1, static_cast<char>(witness.size() + 6)) + std::string(3, '\0') + "touch " + witness +
      "\x85R.");
  CHECK_THROWS_WITH(pickle::load(file.path),
                    Catch::Contains("wants to call posix.system, which is not plain data"));
  CHECK_FALSE(path_exists(witness));
}

TEST_CASE("other constructs are refused by name") {
  const File file;
  const auto [program, expected] = GENERATE(table<std::string, std::string>({
      {"\x80\x02}(K\x01K\x02X\x01\x00\x00\x00"
       "1K\x03u.",
       "damaged"},  // replaced below: NUL bytes would end a literal
      {"\x80\x02"
       "cbuiltins\neval\n.",
       "not plain data"},
      {"\x80\x02i__main__\nX\n.", "opcode"},
      {"\x80\x02h\x05.", "unknown memo"},
      {"\x80\x02(", "ends too early"},
      {"\x80\x02"
       "ctorch._utils\n_rebuild_tensor_v2\n)R.",
       "wants to call"},
      {"\x80\x02K\x01"
       "b.",
       "damaged"},
  }));
  std::string bytes = program;
  std::string message = expected;
  if (expected == "damaged" && program.find('}') != std::string::npos) {
    bytes = std::string(
        "\x80\x02}(K\x01K\x02X\x01\0\0\0"
        "1K\x03u.",
        18);  // {1: 2, "1": 3}
    message = "the key \"1\" twice";
  }
  file.write_pickle(bytes);
  CHECK_THROWS_WITH(pickle::load(file.path), Catch::StartsWith(file.path) && Catch::Contains(message));
}

TEST_CASE("numeric keys become text") {
  const File file;
  file.write_pickle("\x80\x02}(K\x07K\x02K\x08Nu.");
  const Value value = pickle::load(file.path);
  CHECK(value.as<Dict>()->find("7") != nullptr);
  CHECK(value.as<Dict>()->find("8") != nullptr);
}

}  // namespace
}  // namespace det
