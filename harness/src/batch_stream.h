// Owns handing out batches in order from a position, reading ahead on a thread where that pays.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "base/queue.h"
#include "det/data.h"
#include "sampler.h"

namespace det {

/// Batch `p` is step p % steps of epoch p / steps. What comes out depends on the dataset, the spec and the position
/// alone, never on whether a thread reads ahead.
class BatchStream {
 public:
  BatchStream(std::shared_ptr<const Dataset> dataset, const SamplerSpec& spec, std::int64_t position);
  ~BatchStream();

  std::int64_t steps_per_epoch() const { return sampler_.steps(); }
  /// The batch at the position, which moves on. Throws what the dataset throws, and std::runtime_error when the dataset
  /// gives another number of records than asked.
  Batch next();

 private:
  using Item = std::variant<Batch, std::exception_ptr>;
  Batch read(std::int64_t position);
  void start_reading_ahead();

  std::shared_ptr<const Dataset> dataset_;
  Sampler sampler_;
  std::int64_t position_;
  int timed_ = 0;  // batches read on the caller's thread
  Duration spent_{0};
  std::unique_ptr<Queue<Item>> ahead_;  // while a thread reads ahead, it alone uses sampler_
  std::thread reader_;
};

}  // namespace det
