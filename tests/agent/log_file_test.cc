#include "agent/task/log_file.h"

#include <sys/stat.h>

#include "common/base/files.h"
#include "need.h"

using namespace det;
using namespace det::agent;

namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  LineSplitter splitter;
  const auto sink = [&](std::string line) { lines.push_back(std::move(line)); };
  for (const std::string& piece : pieces) splitter.feed(piece, sink);
  splitter.finish(sink);
  return lines;
}
std::vector<std::string> bytewise(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  return pieces;
}
using Lines = std::vector<std::string>;

struct LogDir {
  TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string log = dir.path() + "/log", shipped = dir.path() + "/shipped";
  LogWriter writer(std::int64_t limit = 1 << 20) { return need(LogWriter::open(log, shipped, limit)); }
  Lines texts(const LogPosition& position = {}) {
    Lines texts;
    for (const LogRecord& record : need(read_log(log, position, 1000, 1 << 20)).records)
      texts.push_back(record.text);
    return texts;
  }
};

}  // namespace

TEST_CASE("lines end at a newline, a carriage return or both", "[log]") {
  const std::string text = "a\nb\r\nc\rd\n\ne\r\n\r\n10%\r20%\r\rlast";
  const Lines expected{"a", "b", "c", "d", "", "e", "", "10%", "20%", "last"};
  CHECK(lines_of({text}) == expected);
  CHECK(lines_of(bytewise(text)) == expected);
}

TEST_CASE("invalid UTF-8 is stored unchanged", "[log]") {
  const std::string odd("\0\xff\x1b[31m", 7);
  CHECK(lines_of({odd + "\n"}) == Lines{odd});
}

TEST_CASE("an overlong line is cut and ends with the number of cut bytes", "[log]") {
  const std::string line(1'000'000, 'x');
  for (const auto& lines :
       {lines_of({line + "\nnext\n"}), lines_of({line.substr(0, 7), line.substr(7), "\n", "next"})}) {
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].size() <= kLineBytes);
    CHECK_THAT(lines[0], Catch::EndsWith("x [line cut: " + std::to_string(1'000'000 - kLineBytes + 64) +
                                         " more bytes]"));
    CHECK(lines[1] == "next");
  }
}

TEST_CASE("records read back as written, from any position", "[log]") {
  LogDir at;
  LogWriter writer = at.writer();
  const std::vector<LogRecord> records{{{1}, LogStream::kStdout, "one"},
                                       {{2}, LogStream::kStderr, std::string("\0two", 4)},
                                       {{3}, LogStream::kAgent, ""}};
  for (const LogRecord& record : records) writer.append(record);
  const LogBatch first = need(read_log(at.log, {}, 2, 1 << 20));
  CHECK(first.records == std::vector(records.begin(), records.begin() + 2));
  CHECK(first.after.next_line == 3);
  const LogBatch rest = need(read_log(at.log, first.after, 1000, 1 << 20));
  CHECK(rest.records == std::vector(records.begin() + 2, records.end()));
  CHECK(need(read_log(at.log, rest.after, 1000, 1 << 20)).records.empty());
}

TEST_CASE("an incomplete record is not read", "[log]") {
  LogDir at;
  at.writer().append(LogStream::kStdout, "whole");
  const std::string bytes = need(read_file(at.log));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    need(write_file_atomic(at.log, bytes.substr(0, cut)));
    CHECK(at.texts().empty());
  }
}

TEST_CASE("a damaged log is reported as data loss", "[log]") {
  LogDir at;
  need(write_file_atomic(at.log, std::string(100, '\xee')));
  CHECK(read_log(at.log, {}, 10, 1000).error().code == Code::kDataLoss);
}

TEST_CASE("an absent log reads as empty", "[log]") {
  LogDir at;
  CHECK(at.texts().empty());
}

TEST_CASE("lines beyond the size bound are dropped and counted; shipping frees space", "[log]") {
  LogDir at;
  LogWriter writer = at.writer(1000);
  for (int i = 0; i < 20; ++i) writer.append(LogStream::kStdout, std::string(87, 'x'));  // 100 bytes each
  CHECK(at.texts().size() == 10);
  const LogBatch batch = need(read_log(at.log, {}, 1000, 1 << 20));
  need(write_position(at.shipped, batch.after));
  CHECK(read_position(at.shipped) == batch.after);
  writer.append(LogStream::kStdout, "after");
  writer.flush_dropped();
  const Lines rest = at.texts(batch.after);
  REQUIRE(rest.size() == 2);
  CHECK_THAT(rest[0] + rest[1], Catch::Contains("WARNING: 10 lines were dropped here"));
  CHECK_THAT(rest[0] + rest[1], Catch::Contains("after"));
}

TEST_CASE("the count of dropped lines is logged at the end even when no space was freed", "[log]") {
  LogDir at;
  LogWriter writer = at.writer(200);
  for (int i = 0; i < 5; ++i) writer.append(LogStream::kStdout, std::string(87, 'x'));
  writer.flush_dropped();
  CHECK_THAT(at.texts().back(), Catch::Contains("3 lines were dropped here"));
}

TEST_CASE("shipped records can be punched out of the file without moving the rest", "[log]") {
  LogDir at;
  LogWriter writer = at.writer(64 << 20);
  for (int i = 0; i < 400; ++i) writer.append(LogStream::kStdout, std::string(50'000, 'x'));
  LogPosition position;
  for (int i = 0; i < 40; ++i) position = need(read_log(at.log, position, 10, 1 << 20)).after;
  writer.append(LogStream::kStdout, "kept");
  punch_log(at.log, position.offset);
  CHECK(at.texts(position) == Lines{"kept"});
}

TEST_CASE("an absent or damaged position file means the start of the log", "[log]") {
  LogDir at;
  CHECK(read_position(at.shipped) == LogPosition{});
  need(write_file_atomic(at.shipped, "abc"));
  CHECK(read_position(at.shipped) == LogPosition{});
}
