#include "agent/task/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/files.h"

namespace det::agent {
namespace {

// A record: 4 bytes length of the text, 1 byte stream, 8 bytes microseconds since 1970, then the text. Native
// byte order: the file never leaves the machine.
constexpr std::size_t kHeader = 13;
constexpr std::size_t kMarkerRoom = 64;
constexpr std::int64_t kNoticeBytes = 4096;  // room beyond the limit for "N lines dropped"

std::string encode(const LogRecord& record) {
  std::string bytes(kHeader, '\0');
  const auto length = static_cast<std::uint32_t>(record.text.size());
  std::memcpy(bytes.data(), &length, 4);
  bytes[4] = static_cast<char>(record.stream);
  std::memcpy(bytes.data() + 5, &record.time.micros, 8);
  return bytes + record.text;
}

/// Decodes the record at the start of `bytes` and returns its size, or 0 if it is incomplete. Errors:
/// kDataLoss.
Result<std::size_t> decode(std::string_view bytes, LogRecord& record) {
  if (bytes.size() < kHeader) return 0;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data(), 4);
  const auto stream = static_cast<std::uint8_t>(bytes[4]);
  if (length > kLineBytes || stream < 1 || stream > 3)
    return fail(Code::kDataLoss, "the log file is damaged");
  if (bytes.size() < kHeader + length) return 0;
  record.stream = static_cast<LogStream>(stream);
  std::memcpy(&record.time.micros, bytes.data() + 5, 8);
  record.text.assign(bytes.substr(kHeader, length));
  return kHeader + length;
}

}  // namespace

void LineSplitter::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    // Reserves room for the marker of a cut line.
    const std::size_t room = kLineBytes - kMarkerRoom - std::min(line_.size(), kLineBytes - kMarkerRoom);
    line_ += piece.substr(0, room);
    cut_ += static_cast<std::int64_t>(piece.size() - std::min(room, piece.size()));
    if (!piece.empty()) carriage_ = false;
    if (end == std::string_view::npos) return;
    if (bytes[end] == '\n') {
      if (!carriage_) emit(sink);
      carriage_ = false;
      // A '\r' on an empty line only returns the cursor.
    } else if (!line_.empty()) {
      emit(sink);
      carriage_ = true;
    }
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish(const Sink& sink) {
  if (!line_.empty()) emit(sink);
  carriage_ = false;
}

void LineSplitter::emit(const Sink& sink) {
  if (cut_ > 0) line_ += " [line cut: " + std::to_string(cut_) + " more bytes]";
  cut_ = 0;
  sink(std::move(line_));
  line_.clear();
}

LogPosition read_position(const std::string& path) {
  LogPosition position;
  const auto bytes = read_file(path);
  if (!bytes || bytes->size() != sizeof position) return {};
  std::memcpy(&position, bytes->data(), sizeof position);
  return position.offset >= 0 && position.next_line >= 1 ? position : LogPosition{};
}

Status write_position(const std::string& path, const LogPosition& position) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  // 16 bytes in one call: readers see the old or the new position.
  if (!fd || ::pwrite(fd.get(), &position, sizeof position, 0) != sizeof position) return fail_errno(path);
  return {};
}

Result<LogWriter> LogWriter::open(const std::string& path, const std::string& shipped,
                                  std::int64_t unshipped_bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return fail_errno(path);
  return LogWriter(std::move(fd), shipped, unshipped_bytes, status.st_size);
}

void LogWriter::append(const LogRecord& record) {
  // Half the limit as hysteresis: otherwise one line in, one line out would log a notice each.
  if (dropped_ > 0 && size_ - seen_shipped_ < limit_ / 2) flush_dropped();
  if (!write(record, limit_)) ++dropped_;
}

void LogWriter::flush_dropped() {
  if (dropped_ == 0) return;
  const LogRecord word{
      wall_now(), LogStream::kAgent,
      "WARNING: " + std::to_string(dropped_) +
          " lines were dropped here: the task writes faster than the log is sent to the master"};
  if (write(word, limit_ + kNoticeBytes)) dropped_ = 0;
}

bool LogWriter::write(const LogRecord& record, std::int64_t limit) {
  const std::string bytes = encode(record);
  const auto more = static_cast<std::int64_t>(bytes.size());
  // The reader's position is read only when the stale one leaves no room.
  if (size_ - seen_shipped_ + more > limit) {
    seen_shipped_ = read_position(shipped_).offset;
    if (size_ - seen_shipped_ + more > limit) return false;
  }
  if (write_all(fd_.get(), bytes)) {
    size_ += more;
    return true;
  }
  // A partial record would hide all later ones. If it cannot be removed, nothing more is written.
  if (::ftruncate(fd_.get(), size_) != 0) limit_ = 0;
  return false;
}

Result<LogBatch> read_log(const std::string& path, const LogPosition& position, std::size_t lines,
                          std::int64_t bytes) {
  LogBatch batch{{}, position};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return batch;
    return fail_errno(path);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(path);
  if (status.st_size <= position.offset) return batch;
  // One more record than the limit, so that a large record is read whole.
  const std::int64_t most = bytes + static_cast<std::int64_t>(kHeader + kLineBytes);
  std::string buffer(static_cast<std::size_t>(std::min(most, status.st_size - position.offset)), '\0');
  ssize_t got;
  do {
    got = ::pread(fd.get(), buffer.data(), buffer.size(), position.offset);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail_errno(path);
  std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
  std::int64_t taken = 0;
  while (batch.records.size() < lines && taken < bytes) {
    LogRecord record;
    TRY_ASSIGN(const std::size_t size, decode(rest, record));
    if (size == 0) break;
    rest.remove_prefix(size);
    taken += static_cast<std::int64_t>(size);
    batch.records.push_back(std::move(record));
  }
  batch.after = {position.offset + taken,
                 position.next_line + static_cast<std::int64_t>(batch.records.size())};
  return batch;
}

void punch_log(const std::string& path, std::int64_t offset) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  // KEEP_SIZE: offsets of the remaining records must not change.
  if (fd) (void)::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, offset);
}

}  // namespace det::agent
