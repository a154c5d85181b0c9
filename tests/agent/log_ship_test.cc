#include "agent/master_link/log_ship.h"

#include "agent/master_link/link.h"
#include "common/base/files.h"
#include "common/base/wait.h"
#include "fake_master.h"
#include "need.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

const AllocationId kId("1.a.1");

v1::LogLine line(const std::string& text, LogStream stream = LogStream::kStdout) {
  return to_line({{1'500'000}, stream, text});
}

struct Shipping {
  FakeMaster master;
  TemporaryDirectory dir = need(TemporaryDirectory::create());
  TaskDir task{dir.path()};
  LogWriter writer = need(LogWriter::open(task.log(), task.shipped(), 1 << 20));
  Queue<AllocationId> shipped{10};
  std::map<std::int64_t, std::string> stored;  ///< by line number

  std::unique_ptr<LogShip> ship() {
    auto made = std::make_unique<LogShip>(*open_channel(master.address()), "a1",
                                          [this](AllocationId id) { shipped.push(std::move(id)); });
    made->follow(kId, task);
    return made;
  }
  bool wait_stored(std::size_t count) {
    return wait_until(
        [&] {
          for (const auto& request : master.logs.pop_batch(100, 0ms)) {
            for (int i = 0; i < request.lines_size(); ++i)
              stored[request.first_line() + i] = request.lines(i).text();
          }
          return stored.size() >= count;
        },
        20s);
  }
};

}  // namespace

TEST_CASE("rank and level at a line's start become fields", "[logs]") {
  CHECK(line("plain").text() == "plain");
  CHECK(line("plain").level().empty());
  CHECK(line("[rank=0] x").rank() == 0);
  CHECK(line("plain").time().seconds() == 1);
  CHECK(line("plain").time().nanos() == 500'000'000);
  const v1::LogLine both = line("[rank=3] WARNING: careful", LogStream::kStderr);
  CHECK(both.rank() == 3);
  CHECK(both.level() == "WARNING");
  CHECK(both.text() == "careful");
  CHECK(both.stdtype() == "stderr");
  CHECK(both.source() == "task");
  CHECK(line("x", LogStream::kAgent).source() == "agent");
  CHECK(line("FATAL: x").level() == "CRITICAL");
}

TEST_CASE("text that merely resembles a rank or level stays text", "[logs]") {
  for (const char* text : {"[rank=] x", "[rank=1x] x", "[rank=-1] x", "[rank=1", "[rank=99999999999] x",
                           "INFORMATION: x", "info: x", "the ERROR: x", ": x", ""}) {
    CAPTURE(text);
    CHECK(line(text).text() == text);
    CHECK(line(text).rank() == -1);
    CHECK(line(text).level().empty());
  }
}

TEST_CASE("lines arrive numbered from 1, and completion is signaled after the last one", "[logs]") {
  Shipping at;
  const auto ship = at.ship();
  for (int i = 1; i <= 2500; ++i) at.writer.append(LogStream::kStdout, "line " + std::to_string(i));
  REQUIRE(at.wait_stored(2500));
  CHECK(at.stored[1] == "line 1");
  CHECK(at.stored[2500] == "line 2500");
  CHECK(at.shipped.size() == 0);
  ship->finish(kId);
  CHECK(at.shipped.pop() == kId);
}

TEST_CASE("a batch with a lost reply is sent again with the same numbers", "[logs]") {
  Shipping at;
  at.master.refuse_logs = 2;
  const auto ship = at.ship();
  at.writer.append(LogStream::kStdout, "one");
  at.writer.append(LogStream::kStdout, "two");
  ship->finish(kId);
  CHECK(at.shipped.pop() == kId);
  REQUIRE(at.wait_stored(2));
  CHECK(at.stored == std::map<std::int64_t, std::string>{{1, "one"}, {2, "two"}});
}

TEST_CASE("a new shipper continues at the position of the previous one", "[logs]") {
  Shipping at;
  at.writer.append(LogStream::kStdout, "one");
  {
    const auto ship = at.ship();
    ship->finish(kId);
    REQUIRE(at.shipped.pop());
  }
  REQUIRE(at.wait_stored(1));
  at.stored.clear();
  at.writer.append(LogStream::kStdout, "two");
  const auto ship = at.ship();
  REQUIRE(at.wait_stored(1));
  CHECK(at.stored == std::map<std::int64_t, std::string>{{2, "two"}});
}

TEST_CASE("a shipper without a master stops at once", "[logs]") {
  Shipping at;
  at.master.stop();
  at.writer.append(LogStream::kStdout, "one");
  const MonoTime begun = mono_now();
  at.ship().reset();
  CHECK(mono_now() - begun < 5s);
  CHECK(read_position(at.task.shipped()) == LogPosition{});
}
