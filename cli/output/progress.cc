#include "cli/output/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "cli/output/terminal.h"

namespace det::cli {

std::string bar_text(const std::string& label, double done, int width) {
  // Progress comes from the cluster and may be NaN or out of range.
  done = std::isfinite(done) ? std::clamp(done, 0.0, 1.0) : 0.0;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%5.1f%%", done * 100);
  // 11 columns: " [", "] " and a percentage of 6 characters, and one column that stays free.
  const int room = std::min(40, width - static_cast<int>(label.size()) - 11);
  if (room < 5) return percent;
  const int full = static_cast<int>(std::lround(done * room));
  std::string bar(static_cast<std::size_t>(full), '=');
  if (full > 0 && full < room) bar.back() = '>';
  bar.resize(static_cast<std::size_t>(room), ' ');
  return label + " [" + bar + "] " + percent;
}

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), active_(is_terminal(STDERR_FILENO)) {}

void ProgressBar::show(double done) {
  if (!active_) return;
  draw(bar_text(label_, done, terminal_width(STDERR_FILENO)));
}

void ProgressBar::note(const std::string& text) {
  if (active_) draw(label_ + ": " + text);
}

void ProgressBar::draw(const std::string& text) {
  if (text == drawn_) return;
  drawn_ = text;
  // Carriage return, then clear to the end of the line.
  std::cerr << "\r\033[K" << text << std::flush;
}

void ProgressBar::hide() {
  if (drawn_.empty()) return;
  drawn_.clear();
  std::cerr << "\r\033[K" << std::flush;
}

StatusLine::StatusLine() : StatusLine(std::cerr, is_terminal(STDERR_FILENO), mono_now()) {}

StatusLine::StatusLine(std::ostream& out, bool terminal, MonoTime begin)
    : out_(out), terminal_(terminal), printed_(begin) {}

void StatusLine::show(const std::string& text, MonoTime now) {
  if (terminal_) {
    const int width = std::max(terminal_width(STDERR_FILENO) - 1, 1);
    const std::string line = text.substr(0, static_cast<std::size_t>(width));
    if (line == drawn_) return;
    drawn_ = line;
    out_ << "\r\033[K" << line << std::flush;
  } else if (now - printed_ >= kStatusInterval) {
    printed_ = now;
    out_ << text << std::endl;
  }
}

void StatusLine::hide() {
  if (drawn_.empty()) return;
  drawn_.clear();
  out_ << "\r\033[K" << std::flush;
}

}  // namespace det::cli
