#include "agent/disk_state.h"

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/units.h"

namespace det::agent {

bool DiskState::look(MonoTime now) {
  if (now < next_) return false;
  next_ = now + kInterval;
  const auto free = free_space(directory_);
  if (!free) return false;
  const bool was_full = !problem_.empty();
  const bool full = was_full ? *free < kEnough : *free < kFull;
  if (full == was_full) return false;
  if (full) {
    // Without the free bytes: the text is the same until the state changes.
    problem_ = "the disk of " + directory_ + " is full; free at least " + format_bytes(kEnough) +
               " there, the agent goes on by itself";
    log::error("the disk is full; the agent takes no new work",
               {{"directory", directory_}, {"free_bytes", *free}});
  } else {
    problem_.clear();
    log::info("the disk has space again", {{"directory", directory_}, {"free_bytes", *free}});
  }
  return true;
}

}  // namespace det::agent
