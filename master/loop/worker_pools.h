// The worker pools of the master, one for each kind of work. Work of one kind never waits for another.
#pragma once

#include "master/loop/workers.h"

namespace det::loop {

/// Threads and queues of calls. A call is refused with UNAVAILABLE when the queue of its pool is full, or
/// when it has waited in the queue for longer than 30 s.
struct WorkerPools {
  /// Short changes (pause, kill, settings), and the sign-on of agents, processes and uploads.
  Workers steer{4, 8192};
  /// Queries.
  Workers read{6, 1024};
  /// Reports of processes and logs of agents.
  Workers ingest{4, 4096};
  /// Changes of many experiments at once.
  Workers bulk{2, 256};
  /// Submissions and code archives.
  Workers submit{4, 256};
  /// Calls that wait for another host: media, tests of webhooks, the diagnosis.
  Workers outward{4, 256};
  /// Deletions of experiments and checkpoints, which wait for storages, many in one call.
  Workers removal{2, 256};
  /// Replies that are paced by their client: downloads and metric streams. Each holds a thread while the
  /// client reads; PacedStream bounds their number per caller and the time of a write.
  Workers stream{24, 256};

  /// One thread that owns the rounds of all-gathers.
  Workers gather{1, 4096};

  /// Runs what is queued and joins all threads. Call it when the server has stopped.
  void stop() {
    for (Workers* pool : {&steer, &read, &ingest, &bulk, &submit, &outward, &removal, &stream, &gather})
      pool->stop();
  }
};

/// Threads of the pools without `stream`. Each uses at most one connection of the database at a time.
inline constexpr int kQueryingWorkers = 4 + 6 + 4 + 2 + 4 + 4 + 2;

}  // namespace det::loop
