// Owns the file that holds an allocation's output on its way to the master: bytes become lines, lines become
// records with time and stream, records are numbered from 1 by their order. One writer at a time appends
// whole records; one reader follows. What is shipped is punched out of the file, so that the disk holds only
// what is not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace det::agent {

inline constexpr std::size_t kLineBytes = 64 * 1024;

enum class LogStream : std::uint8_t { kStdout = 1, kStderr = 2, kAgent = 3 };

struct LogRecord {
  WallTime time;
  LogStream stream = LogStream::kStdout;
  std::string text;  ///< without its line end, at most kLineBytes, any bytes
  bool operator==(const LogRecord&) const = default;
};

/// Cuts a stream of bytes into lines at "\n", "\r\n" and "\r" (progress bars; a bare "\r" makes no empty
/// line). A line beyond kLineBytes keeps its beginning and says how much was cut.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string)>;
  void feed(std::string_view bytes, const Sink& sink);
  /// The end of the stream: what is left is a line.
  void finish(const Sink& sink);

 private:
  void emit(const Sink& sink);
  std::string line_;
  std::int64_t cut_ = 0;   ///< bytes of the line beyond what is kept
  bool carriage_ = false;  ///< the line before ended with '\r': a '\n' now belongs to it
};

/// Where the reader stands. Kept in the file `shipped`, beside the log.
struct LogPosition {
  std::int64_t offset = 0;     ///< of the first record not shipped yet
  std::int64_t next_line = 1;  ///< its number
  bool operator==(const LogPosition&) const = default;
};
/// The start when the file is absent or damaged: lines are then shipped again, which is harmless.
LogPosition read_position(const std::string& path);
/// Not synced to the disk: an older position is harmless too.
Status write_position(const std::string& path, const LogPosition& position);

class LogWriter {
 public:
  /// Appends to `path` (made with mode 0600). `shipped` is the reader's position file; at most
  /// `unshipped_bytes` lie in the log beyond it.
  static Result<LogWriter> open(const std::string& path, const std::string& shipped,
                                std::int64_t unshipped_bytes);
  /// Appends, or counts as dropped when there is no room or the disk refuses.
  void append(const LogRecord& record);
  void append(LogStream stream, std::string text) { append({wall_now(), stream, std::move(text)}); }
  /// Says in the log, if lines were dropped, how many. append does it by itself when room returns.
  void flush_dropped();

 private:
  LogWriter(UniqueFd fd, std::string shipped, std::int64_t limit, std::int64_t size)
      : fd_(std::move(fd)), shipped_(std::move(shipped)), limit_(limit), size_(size) {}
  bool write(const LogRecord& record, std::int64_t limit);
  UniqueFd fd_;
  std::string shipped_;
  std::int64_t limit_ = 0, size_ = 0, seen_shipped_ = 0, dropped_ = 0;
};

struct LogBatch {
  std::vector<LogRecord> records;
  LogPosition after;  ///< the position behind them
};
/// Whole records from `position` on, at most `lines` and about `bytes`; none when there is nothing new or the
/// file is absent. kDataLoss when the file is damaged there.
Result<LogBatch> read_log(const std::string& path, const LogPosition& position, std::size_t lines,
                          std::int64_t bytes);
/// Gives the disk back what lies before `offset`. Does nothing where the file system cannot.
void punch_log(const std::string& path, std::int64_t offset);

}  // namespace det::agent
