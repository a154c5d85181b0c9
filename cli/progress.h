// Owns the progress bar: one line at the bottom of a terminal, on stderr; nothing at all elsewhere.
#pragma once

#include <string>

namespace det::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  /// Takes the bar away.
  ~ProgressBar() { hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `done` of 0..1.
  void show(double done);
  /// A line instead of a bar, for what nobody knows the end of.
  void note(const std::string& text);
  /// Before other lines are printed; the next show() draws it again.
  void hide();
  bool active() const { return active_; }

 private:
  void draw(const std::string& text);
  const std::string label_;
  const bool active_;
  std::string drawn_;
};

/// `Uploading [=====>    ]  52.0%`; pure. At most `width` columns.
std::string bar_text(const std::string& label, double done, int width);

}  // namespace det::cli
