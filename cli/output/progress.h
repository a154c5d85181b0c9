// Progress bar on the last line of a terminal, on stderr. Prints nothing when stderr is not a terminal.
#pragma once

#include <string>

namespace det::cli {

/// One line that is redrawn in place. Single-threaded.
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

/// Formats `Uploading [=====>    ]  52.0%` in at most `width` columns; the percentage alone when there is no
/// space for a bar. Pure.
std::string bar_text(const std::string& label, double done, int width);

}  // namespace det::cli
