// Whether the training thread works for recorded steps (`optimizations.cuda_graph`).
#pragma once

#include <stdexcept>
#include <string>

namespace det {

/// State of a thread. While there is one, functions that decide on the CPU by values of a device do it on the
/// device instead, so that a recorded step and one that was not recorded give the same bits.
struct GraphMode {
  /// Kernels are recorded now and have no results yet.
  bool recording = false;
  static inline thread_local GraphMode* current = nullptr;  ///< null outside of such training

  static bool on_device() { return current != nullptr; }
  static bool is_recording() { return current != nullptr && current->recording; }
};

/// A step does something that a recording would not repeat. The message is a reason, without a subject.
class Unrecordable final : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

/// Throws Unrecordable while a step is recorded. `what` is a function that acts on the CPU.
inline void refuse_in_recording(const std::string& what) {
  if (GraphMode::is_recording())
    throw Unrecordable("train_batch calls " + what + ", which a GPU cannot repeat");
}

}  // namespace det
