// The error of a checkpoint that cannot be saved for lack of space. The process then ends with
// kExitStorageFull.
#pragma once

#include <stdexcept>
#include <string>

#include "common/base/result.h"

namespace det {

/// No space is left in the storage of checkpoints, or its quota is used up.
class StorageFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws the error of saving a checkpoint: StorageFull for kResourceExhausted, else std::runtime_error.
/// `what` is put in front of the message.
inline void saved_or_throw(const Status& status, const std::string& what) {
  if (status) return;
  const std::string message = what + ": " + status.error().message;
  if (status.error().code == Code::kResourceExhausted) throw StorageFull(message);
  throw std::runtime_error(message);
}

}  // namespace det
