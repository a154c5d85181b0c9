// Where NaN begins: the first operator that makes it from inputs without NaN.
#pragma once

#include <memory>
#include <string>

namespace det {

/// Observes the operators of this thread until it is destroyed. Reads the outputs of each operator, which
/// makes them several times as slow: for a batch that has failed. One object per thread at a time.
class NanOrigin {
 public:
  NanOrigin();
  ~NanOrigin();
  NanOrigin(const NanOrigin&) = delete;
  /// "aten::log makes it in loss (model_def.cpp:41)", with the innermost line of the program, as far as
  /// known;
  /// "" when no operator has made NaN. Runs addr2line, for at most 10 s.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
