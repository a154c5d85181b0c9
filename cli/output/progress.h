// Progress on stderr: a bar, and a status line that also works without a terminal.
#pragma once

#include <iosfwd>
#include <string>

#include "common/base/clock.h"

namespace det::cli {

/// One line that is redrawn in place. Prints nothing when stderr is not a terminal. Single-threaded.
class ProgressBar {
 public:
  /// Draws nothing before the first show() or note(). `label` precedes the bar.
  explicit ProgressBar(std::string label);
  /// Erases the line.
  ~ProgressBar() { hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws the bar; `done` is a fraction in [0, 1].
  void show(double done);
  /// Draws a text instead of the bar, for work of unknown length.
  void note(const std::string& text);
  /// Erases the line so that other lines can be printed. The next show() redraws it.
  void hide();
  /// True when stderr is a terminal.
  bool active() const { return active_; }

 private:
  void draw(const std::string& text);
  const std::string label_;
  const bool active_;
  std::string drawn_;
};

/// Interval between the lines of a status without a terminal.
inline constexpr Duration kStatusInterval = std::chrono::seconds(10);

/// A status that changes often: redrawn in place on a terminal, else a line every kStatusInterval. The first
/// line follows kStatusInterval after the construction, so that short work prints none. Single-threaded.
class StatusLine {
 public:
  /// Writes to stderr.
  StatusLine();
  /// Writes to `out`, which must outlive this object, as if `begin` were the time of the construction.
  StatusLine(std::ostream& out, bool terminal, MonoTime begin);
  /// Erases the line on a terminal.
  ~StatusLine() { hide(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Shows the status at the time `now`. On a terminal it is cut to the width of the terminal.
  void show(const std::string& text, MonoTime now);
  /// Erases the line so that other lines can be printed. The next show() redraws it.
  void hide();

 private:
  std::ostream& out_;
  const bool terminal_;
  MonoTime printed_;
  std::string drawn_;
};

/// Formats `Uploading [=====>    ]  52.0%` in at most `width` columns; the percentage alone when there is no
/// space for a bar. Pure.
std::string bar_text(const std::string& label, double done, int width);

}  // namespace det::cli
