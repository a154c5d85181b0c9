#include "agent/classify_exit.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "common/base/exit_codes.h"
#include "common/base/text.h"
#include "common/base/units.h"

namespace det::agent {
namespace {

// Messages of LibTorch, the C++ library, Python and the C library.
constexpr std::array<std::string_view, 6> kNoMemory{"out of memory",         "std::bad_alloc",
                                                    "can't allocate memory", "MemoryError",
                                                    "OutOfMemoryError",      "Cannot allocate memory"};

bool reports_no_memory(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return std::any_of(kNoMemory.begin(), kNoMemory.end(),
                       [&](std::string_view word) { return line.find(word) != std::string::npos; });
  });
}

/// A line "error: …" of the training library, with or without the rank in front.
bool is_error_line(const std::string& line) {
  const bool ranked = line.starts_with("[rank=") && line.find("] ") != std::string::npos;
  return line.compare(ranked ? line.find("] ") + 2 : 0, 7, "error: ") == 0;
}

/// Replaces invalid UTF-8 and control characters, so that any table or terminal can show the line.
std::string readable(const std::string& line) {
  std::string text = make_utf8(line);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

}  // namespace

Exit classify_exit(const TaskExit& exit) {
  const int code = exit.status.shell_code();
  const std::string how = exit.message.empty() ? to_string(exit.status) : exit.message;
  if (exit.status.ok() && exit.message.empty() && !exit.hung_for) return {Exit::Kind::kSucceeded, 0, how};
  Exit result{Exit::Kind::kFailed, code, how};
  // In order of certainty: the supervisor's finding, the kernel's count, the words of the task.
  if (exit.hung_for) {
    result.kind = Exit::Kind::kHung;
    result.message = "the task hung: no batch, no report and no output for " +
                     human_duration(*exit.hung_for) + " (hang_timeout): ";
    const std::string found = exit.hang.empty() ? "" : readable(exit.hang.front());
    result.message += (found.empty() ? "" : found + ": ") + how;
    for (std::size_t i = 1; i < exit.hang.size(); ++i) result.message += "\n" + readable(exit.hang[i]);
  } else if (exit.memory_limit) {
    result.kind = Exit::Kind::kOutOfMemory;
    result.message = "out of memory (the limit is " + format_bytes(*exit.memory_limit) + "): " + how;
  } else if (code == kExitStorageFull) {
    // Only the exit code counts. Any program may print "No space left on device", and this kind of exit does
    // not consume a restart.
    result.kind = Exit::Kind::kStorageFull;
    result.message = "storage full: " + how;
  } else if (reports_no_memory(exit.last_lines)) {
    result.kind = Exit::Kind::kOutOfMemory;
    result.message = "out of memory: " + how;
  }
  // The line that names the error comes first, whatever was printed after it.
  std::vector<std::string> lines = exit.last_lines;
  std::stable_partition(lines.begin(), lines.end(), is_error_line);
  for (const std::string& line : lines) result.message += "\n" + readable(line);
  return result;
}

}  // namespace det::agent
