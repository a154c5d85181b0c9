// Owns keeping gRPC's threads for callbacks alive and awake. (Target det_wire.)
#pragma once

#include <thread>

#include "base/queue.h"

namespace det {

/// From now on they live as long as the process. By itself gRPC (1.51) ends them with the last channel that
/// had a callback; when a callback was the last to hold that channel, one of them waits for its own end, goes
/// on, and reads what is freed. For whoever makes calls with callbacks; Awake does it too.
void keep_callback_threads();

/// While one of these lives, what arrives for a callback of gRPC in this process is handled at once. By
/// itself gRPC (1.51, CallbackAlternativeCQ in src/cpp/common/completion_queue_cc.cc) lets a thread that had
/// nothing to do for a second nap for a tenth of one, and while all of them nap messages wait. So one gets
/// something to do twice a second: a call that fails where it begins, without any network.
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
