#include "common/base/log_history.h"

#include <atomic>

#include "common/base/queue.h"

namespace det::log {
namespace {

constexpr std::size_t kMaxLine = 4 << 10;  // bytes of one line

/// The ring; null before keep_history. Never freed, since threads may log until the process exits.
std::atomic<Newest<Line>*>& kept() {
  static std::atomic<Newest<Line>*> lines{nullptr};
  return lines;
}

}  // namespace

void keep_history(std::size_t lines) { kept() = new Newest<Line>(lines); }

std::uint64_t newest_line() {
  const Newest<Line>* lines = kept();
  return lines ? lines->last() : 0;
}

std::vector<Line> history(std::uint64_t after, std::size_t most) {
  const Newest<Line>* all = kept();
  if (!all) return {};
  std::pair<std::uint64_t, std::vector<Line>> found = all->after(after, most);
  // The ring numbers its items consecutively, so the ids follow from the first one.
  for (Line& line : found.second) line.id = found.first++;
  return std::move(found.second);
}

void remember(WallTime time, LogLevel level, std::string_view message, Fields fields) {
  Newest<Line>* const lines = kept();
  if (!lines) return;
  std::string text = format_text(message, fields);
  if (text.size() > kMaxLine) text = text.substr(0, kMaxLine) + " [cut]";
  lines->add({.time = time, .level = level, .text = std::move(text)});
}

}  // namespace det::log
