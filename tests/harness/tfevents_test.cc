// TensorBoard event files, checked byte by byte with an independent reader.
#include "harness/src/observability/tfevents.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>

#include "common/base/files.h"
#include "common/base/process.h"
#include "det/tensorboard.h"

namespace det {
namespace {

/// Reads an event file in Python, checks both checksums of every record bit by bit, and prints a line per
/// event.
constexpr char kReader[] = R"(
import struct, sys

def crc(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82f63b78 if value & 1 else 0)
    value ^= 0xffffffff
    return ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff

def fields(data):
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift; shift += 7
            if byte < 128: return value
    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0: value = varint()
        elif kind == 1: value = struct.unpack('<d', data[at:at + 8])[0]; at += 8
        elif kind == 5: value = struct.unpack('<f', data[at:at + 4])[0]; at += 4
        elif kind == 2: size = varint(); value = data[at:at + size]; at += size; assert len(value) == size
        else: sys.exit('wire type %d' % kind)
        yield key >> 3, value

data = open(sys.argv[1], 'rb').read()
at = 0
while at < len(data):
    head = data[at:at + 8]
    size, = struct.unpack('<Q', head)
    assert struct.unpack('<I', data[at + 8:at + 12])[0] == crc(head), 'checksum of the length'
    content = data[at + 12:at + 12 + size]
    assert struct.unpack('<I', data[at + 12 + size:at + 16 + size])[0] == crc(content), 'checksum of the content'
    at += 16 + size
    event = dict(fields(content))
    assert 1.6e9 < event[1] < 4e9, 'wall time'
    if 3 in event:
        print('version', event[3].decode())
    for number, value in fields(event.get(5, b'')):
        assert number == 1
        value = dict(fields(value))
        step = event[2] - (1 << 64 if event[2] >> 63 else 0)
        print(value[1].decode(), step, repr(value[2]))
)";

std::string read_events(const std::string& path) {
  const auto result = run_process({.argv = {"/usr/bin/python3", "-c", kReader, path}}).value();
  INFO(result.err);
  REQUIRE(result.ok());
  return result.out;
}

TEST_CASE("CRC-32C gives the values of RFC 3720, appendix B.4") {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<char>(i));
  for (int i = 31; i >= 0; --i) falling.push_back(static_cast<char>(i));
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(crc32c(rising) == 0x46dd794eu);
  CHECK(crc32c(falling) == 0x113fdb5cu);
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c("") == 0);
}

TEST_CASE("a file begins with its version, and every scalar is read back") {
  const auto directory = TemporaryDirectory::create().value();
  auto writer = TensorBoardWriter::create(directory.path() + "/deep/er").value();
  REQUIRE(writer.add_scalar("Determined/loss", 0.5, 100));
  REQUIRE(writer.add_scalar("Determined/val_größe", -1e30, 1LL << 40));
  REQUIRE(writer.add_scalar("", std::nan(""), 0));
  REQUIRE(writer.add_scalar("inf", std::numeric_limits<double>::infinity(), -1));
  REQUIRE(writer.flush());
  CHECK(read_events(writer.path()) ==
        "version brain.Event:2\nDetermined/loss 100 0.5\nDetermined/val_größe 1099511627776 "
        "-1.0000000150474662e+30\n 0 nan\ninf -1 inf\n");
}

TEST_CASE("many scalars reach the file without a flush, and the rest when the writer is destroyed") {
  const auto directory = TemporaryDirectory::create().value();
  std::string path;
  {
    auto writer = TensorBoardWriter::create(directory.path()).value();
    path = writer.path();
    for (int i = 0; i < 2000; ++i) REQUIRE(writer.add_scalar("loss", i, i));
    CHECK(read_file(path).value().size() > 60'000);
  }
  const std::string events = read_events(path);
  CHECK(std::count(events.begin(), events.end(), '\n') == 2001);
  CHECK_THAT(events, Catch::EndsWith("loss 1999 1999.0\n"));
}

/// Files of at most `bytes` bytes, in place of a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() { (void)::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("a file that cannot be written costs the scalars, not the training") {
  const auto directory = TemporaryDirectory::create().value();
  TensorBoard nowhere("/dev/null/tensorboard"), full(directory.path());
  full.add_scalar("loss", 1, 1);
  full.flush();
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) path = entry.path();
  {
    const FileLimit limit(100);  // reached within the second point
    for (TensorBoard* board : {&nowhere, &full}) {
      for (int i = 0; i < 5000; ++i) board->add_scalar("loss", i, i);
      board->flush();
    }
  }
  const std::string before = read_file(path).value();
  full.add_scalar("loss", 2, 2);
  full.flush();
  CHECK(read_file(path).value() == before);  // no record after a torn one
}

TEST_CASE("two writers of one process never share a file") {
  const auto directory = TemporaryDirectory::create().value();
  const auto a = TensorBoardWriter::create(directory.path()).value();
  const auto b = TensorBoardWriter::create(directory.path()).value();
  CHECK(a.path() != b.path());
  CHECK_THAT(a.path(), Catch::Contains("/events.out.tfevents."));
}

TEST_CASE("processes with one process id in different namespaces never share a file") {
  if (::geteuid() != 0) return;
  const auto directory = TemporaryDirectory::create().value();
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const pid_t first = ::unshare(CLONE_NEWPID) == 0 ? ::fork() : -1;
      if (first == 0) ::_exit(TensorBoardWriter::create(directory.path()) ? 0 : 1);
      int status = 1;
      ::_exit(first > 0 && ::waitpid(first, &status, 0) == first && status == 0 ? 0 : 1);
    }
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const auto files = std::filesystem::directory_iterator(directory.path());
  CHECK(std::distance(begin(files), end(files)) == 2);
}

TEST_CASE("a directory that cannot be created is named") {
  const auto writer = TensorBoardWriter::create("/proc/nothing/here");
  REQUIRE_FALSE(writer);
  CHECK_THAT(writer.error().message, Catch::Contains("/proc/nothing"));
}

}  // namespace
}  // namespace det
