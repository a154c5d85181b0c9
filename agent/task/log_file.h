// Log file of an allocation, the buffer between the task's output and the master. Bytes become lines, lines
// become records with time and stream; records are numbered from 1. One writer at a time appends whole
// records, one reader follows. Shipped records are punched out of the file, so only unshipped ones take disk
// space.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"

namespace det::agent {

/// Maximum length of a line; the rest is cut.
inline constexpr std::size_t kLineBytes = 64 * 1024;

/// Source of a record. kAgent: messages of agent and supervisor.
enum class LogStream : std::uint8_t { kStdout = 1, kStderr = 2, kAgent = 3 };

/// One line of output.
struct LogRecord {
  WallTime time;
  LogStream stream = LogStream::kStdout;
  /// Without line end, at most kLineBytes, arbitrary bytes.
  std::string text;
  bool operator==(const LogRecord&) const = default;
};

/// Splits bytes into lines at "\n", "\r\n" and "\r" (progress bars; a lone "\r" makes no empty line). A line
/// beyond kLineBytes keeps its beginning and a note of how much was cut.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string)>;
  /// Calls `sink` for every complete line.
  void feed(std::string_view bytes, const Sink& sink);
  /// Ends the stream: the remaining bytes are a line.
  void finish(const Sink& sink);

 private:
  void emit(const Sink& sink);
  std::string line_;
  std::int64_t cut_ = 0;  ///< bytes cut from the current line
  /// The last line ended with '\r', so a '\n' belongs to it.
  bool carriage_ = false;
};

/// Position of the reader, stored in the file `shipped` beside the log.
struct LogPosition {
  std::int64_t offset = 0;     ///< of the first record not shipped
  std::int64_t next_line = 1;  ///< number of that record
  bool operator==(const LogPosition&) const = default;
};
/// Reads the position. Returns the start if the file is absent or damaged: lines are then shipped again,
/// which is harmless.
LogPosition read_position(const std::string& path);
/// Writes the position in one call, without fsync: a stale position is harmless.
Status write_position(const std::string& path, const LogPosition& position);

/// Appends records to a log. Used by one thread.
class LogWriter {
 public:
  /// Opens `path` for appending, created with mode 0600. `shipped`: position file of the reader. At most
  /// `unshipped_bytes` may lie in the log beyond that position.
  static Result<LogWriter> open(const std::string& path, const std::string& shipped,
                                std::int64_t unshipped_bytes);
  /// Appends a record. Counts it as dropped if the limit is reached or the disk fails. Never blocks on the
  /// reader.
  void append(const LogRecord& record);
  void append(LogStream stream, std::string text) { append({wall_now(), stream, std::move(text)}); }
  /// Logs the number of dropped lines, if any. append() calls it when there is room again.
  void flush_dropped();

 private:
  LogWriter(UniqueFd fd, std::string shipped, std::int64_t limit, std::int64_t size)
      : fd_(std::move(fd)), shipped_(std::move(shipped)), limit_(limit), size_(size) {}
  bool write(const LogRecord& record, std::int64_t limit);
  UniqueFd fd_;
  std::string shipped_;
  std::int64_t limit_ = 0, size_ = 0, seen_shipped_ = 0, dropped_ = 0;
};

/// Result of read_log().
struct LogBatch {
  std::vector<LogRecord> records;
  LogPosition after;  ///< position behind the records
};
/// Reads whole records from `position`, at most `lines` and about `bytes`. Returns no records if there is
/// nothing new or the file is absent. Errors: kDataLoss if the file is damaged at that position.
Result<LogBatch> read_log(const std::string& path, const LogPosition& position, std::size_t lines,
                          std::int64_t bytes);
/// Frees the disk space before `offset`. No effect if the file system does not support it.
void punch_log(const std::string& path, std::int64_t offset);

}  // namespace det::agent
