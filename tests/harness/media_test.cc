// Reported media: encoding, limits, local files, and the queue to the master.
#include "harness/src/observability/media.h"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <limits>

#include "common/base/files.h"
#include "common/base/queue.h"
#include "common/storage/media_limits.h"
#include "harness/src/client/media_sender.h"

namespace det {
namespace {

const MediaOptions kAtOne{.steps_completed = 1};

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes.at(at + i));
  return value;
}

/// Returns the content of a chunk and checks its CRC-32. `at` moves behind it.
std::string read_chunk(const std::string& png, std::size_t& at, const std::string& type) {
  const std::size_t size = big_endian(png, at);
  CHECK(png.substr(at + 4, 4) == type);
  const std::string content = png.substr(at + 8, size);
  const std::string summed = type + content;
  CHECK(big_endian(png, at + 8 + size) ==
        ::crc32(0, reinterpret_cast<const Bytef*>(summed.data()), static_cast<uInt>(summed.size())));
  at += size + 12;
  return content;
}

TEST_CASE("an image becomes a PNG with the same pixels") {
  const Image image{
      .width = 2, .height = 2, .channels = 3, .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}};
  const std::string png = encode_png(image);
  REQUIRE(png.starts_with("\x89PNG\r\n\x1a\n"));
  std::size_t at = 8;
  const std::string header = read_chunk(png, at, "IHDR");
  CHECK(big_endian(header, 0) == 2);
  CHECK(big_endian(header, 4) == 2);
  CHECK(header.substr(8) == std::string("\x08\x02\x00\x00\x00", 5));
  const std::string packed = read_chunk(png, at, "IDAT");
  CHECK(read_chunk(png, at, "IEND").empty());
  CHECK(at == png.size());
  std::string raw(14, '\0');
  uLongf size = raw.size();
  REQUIRE(::uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()),
                       static_cast<uLong>(packed.size())) == Z_OK);
  CHECK(raw == std::string("\0\1\2\3\4\5\6\0\7\x08\x09\x0a\x0b\xff", 14));
}

TEST_CASE("a grid places images in rows with a gap of two pixels") {
  const Image one{.width = 1, .height = 1, .channels = 1, .pixels = {9}};
  const Image grid = image_grid({one, one, one}, 2);
  CHECK(grid.width == 4);
  CHECK(grid.height == 4);
  CHECK(grid.pixels == std::vector<std::uint8_t>{9, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0});
  CHECK_THROWS_AS(image_grid({}, 2), std::invalid_argument);
  CHECK_THROWS_AS(image_grid({one, {.width = 2, .height = 1, .channels = 1, .pixels = {1, 2}}}, 2),
                  std::invalid_argument);
}

TEST_CASE("a histogram counts finite values in bins of equal width") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto content = [](const std::vector<double>& values, int bins) {
    return Json::parse(histogram_record("h", values, bins, kAtOne).content);
  };
  const Json plain = content({0, 1, 1, 3.9, 4, nan, inf}, 4);
  CHECK(plain["counts"] == Json({1, 2, 0, 2}));
  CHECK(plain["edges"] == Json({0, 1, 2, 3, 4}));
  const Json equal = content({1e6, 1e6}, 3);
  CHECK(equal["counts"] == Json({0, 2, 0}));
  CHECK(equal["edges"][0].get<double>() < equal["edges"][1].get<double>());
  const double large = std::numeric_limits<double>::max();
  CHECK(content({-large, 0, large}, 3)["counts"] == Json({1, 1, 1}));
  CHECK_THROWS_AS(content({nan, -inf}, 4), std::invalid_argument);
  CHECK_THROWS_AS(content({1}, 0), std::invalid_argument);
  CHECK_THROWS_AS(content({1}, kMaxMediaBins + 1), std::invalid_argument);
}

TEST_CASE("media that the master would refuse throw an error with the name") {
  for (const char* name : {"", "../x", "/x", "x/", "a//b", ".x", "a\nb", "\xc3\xa4"}) {
    INFO(name);
    CHECK_THROWS_AS(text_record(name, "x", kAtOne), std::invalid_argument);
  }
  CHECK(text_record("val/lr=0.1 a-b_c.d", "x", kAtOne).name == "val/lr=0.1 a-b_c.d");
  CHECK_THROWS_WITH(text_record("t", std::string(kMaxMediaBytes + 1, 'x'), kAtOne),
                    Catch::Contains("\"t\"") && Catch::Contains("2097153 bytes"));
  CHECK_THROWS_AS(text_record("t", "\x80", kAtOne), std::invalid_argument);
  CHECK_THROWS_AS(text_record("t", "", kAtOne), std::invalid_argument);
  CHECK_THROWS_AS(text_record("t", "x", {.steps_completed = -1}), std::invalid_argument);
  CHECK_THROWS_AS(text_record("t", "x", {.caption = std::string(1001, 'x'), .steps_completed = 1}),
                  std::invalid_argument);
  CHECK_THROWS_WITH(image_record("i", {.width = 2, .height = 2, .channels = 3, .pixels = {1}}, kAtOne),
                    Catch::Contains("\"i\"") && Catch::Contains("12 values, not 1"));
  CHECK_THROWS_AS(table_record("t", {"a", "b"}, Json::parse("[[1]]"), kAtOne), std::invalid_argument);
  CHECK_THROWS_AS(table_record("t", {"a"}, Json::parse("[[{}]]"), kAtOne), std::invalid_argument);
  CHECK_THROWS_AS(file_record("f", "/no/such/file", kAtOne), std::runtime_error);
}

TEST_CASE("without a cluster an entry is a file, and a second report replaces it") {
  const auto directory = TemporaryDirectory::create("media").value();
  const auto client = make_local_client(directory.path() + "/media");
  client->report_media(text_record("val/notes", "first", {.steps_completed = 20}));
  client->report_media(text_record("val/notes", "second", {.steps_completed = 20}));
  client->report_media(
      image_record("digit", {.width = 1, .height = 1, .channels = 1, .pixels = {7}}, kAtOne));
  CHECK(read_file(directory.path() + "/media/val/notes/20.txt").value() == "second");
  CHECK(read_file(directory.path() + "/media/digit/1.png").value().starts_with("\x89PNG"));
}

TEST_CASE("the sender keeps the order, sends the newest of what waits, and retries an outage") {
  Queue<std::string> sent(100);
  Queue<Status> answers(100);
  MediaSender sender([&](const MediaRecord& record) {
    (void)sent.push(std::string(record.content));
    return answers.pop().value();
  });
  const auto text = [](const std::string& name, const std::string& content) {
    return text_record(name, content, kAtOne);
  };
  sender.add(text("a", "a1"));
  CHECK(sent.pop() == "a1");
  sender.add(text("b", "b1"));
  sender.add(text("c", "c1"));
  sender.add(text("b", "b2"));
  CHECK_FALSE(sender.flush(std::chrono::milliseconds(0)));
  REQUIRE(answers.push(fail(Code::kUnavailable, "the master is away")));
  CHECK(sent.pop() == "a1");
  REQUIRE(answers.push(Status()));
  CHECK(sent.pop() == "c1");
  REQUIRE(answers.push(fail(Code::kResourceExhausted, "the quota is used")));
  CHECK(sent.pop() == "b2");
  REQUIRE(answers.push(Status()));
  CHECK(sender.flush(std::chrono::seconds(60)));
}

}  // namespace
}  // namespace det
