// Interface of an engine: the jobs that run pilots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "master/core/effect.h"

namespace det::engines {

/// Guard against a master that never releases a pilot: its agents end after this many idle timeouts.
inline constexpr int kIdleTimeouts = 3;

/// A job as its engine lists it.
struct EngineJob {
  std::string id;
  std::string name;                                     ///< of the pilot
  core::PilotPhase phase = core::PilotPhase::kPending;  ///< kPending, kRunning or kEnded
  std::string reason;                                   ///< why it is pending or has ended
  std::optional<WallTime> until;                        ///< expected end; absent while it is pending
  bool operator==(const EngineJob&) const = default;
};

/// An engine. Called by one thread; calls block for a bounded time.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Returns the name for messages.
  virtual std::string name() const = 0;
  /// Lists the jobs, also those that ended recently. A job that was submitted before the call is
  /// listed, or has ended. Errors: kUnavailable, kDataLoss (the reply is no list of jobs).
  virtual Result<std::vector<EngineJob>> list() = 0;
  /// Submits a pilot and returns the id of its job. Errors: kInvalidArgument (the engine refuses it),
  /// kUnavailable (the engine does not reply; the job may exist).
  virtual Result<std::string> submit(const core::SubmitPilot& pilot) = 0;
  /// Cancels jobs. Succeeds when they have ended. Errors: kUnavailable.
  virtual Status cancel(const std::vector<std::string>& ids) = 0;
  /// Returns the number of requests to the engine's scheduler since the last call, so that the caller can
  /// space its rounds. 0 for an engine that needs no spacing.
  virtual int take_requests() { return 0; }
  /// Ends calls in progress early. Any thread.
  virtual void stop() {}
};

}  // namespace det::engines
