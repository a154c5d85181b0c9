// Owns keeping gRPC's threads for callbacks awake. (Target det_wire.)
#pragma once

#include <thread>

#include "base/queue.h"

namespace det {

/// While one of these lives, what arrives for a callback of gRPC in this process is handled at once. By itself gRPC (1.51,
/// CallbackAlternativeCQ in src/cpp/common/completion_queue_cc.cc) lets a thread that had nothing to do for a second nap for a
/// tenth of one, and while all of them nap messages wait. So one gets something to do twice a second: a call that fails
/// where it begins, without any network.
class Awake {
 public:
  Awake();
  ~Awake();
  Awake(const Awake&) = delete;

 private:
  Queue<int> end_{1};  ///< nothing is ever in it
  std::thread thread_;
};

}  // namespace det
