#include "agent/storage_jobs.h"

#include <string>
#include <thread>
#include <utility>

#include "agent/master_link/messages.h"

namespace det::agent {

Status StorageJobs::start(const v1::StorageWork& command, std::uint64_t session) {
  if (running_ >= kMaxRunning) {
    return fail(Code::kResourceExhausted,
                std::to_string(running_) + " storage requests still run on this agent; check its storages");
  }
  storage::Work work{.root = {.base = command.root(), .below = command.below()},
                     .remove = {command.remove().begin(), command.remove().end()},
                     .list = command.list()};
  // Detached: a job that hangs must not block the end of the agent either.
  std::thread([work = std::move(work), number = command.number(), session, sink = sink_, perform = perform_] {
    sink({session, answer_of(number, perform(work))});
  }).detach();
  ++running_;
  return {};
}

}  // namespace det::agent
