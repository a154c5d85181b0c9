// Dealer: assignment of a loader's batches to processes.
#include "harness/src/data/dealer.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace det {

Dealer::Dealer(AnyBatchSampler batches, const DealSpec& spec)
    : batches_(std::move(batches)), spec_(spec), epoch_batches_(batches_->count()) {
  if (spec.count < 1 || spec.first < 0 || spec.first + spec.count > spec.world) {
    throw std::invalid_argument("shards " + std::to_string(spec.first) + " to " +
                                std::to_string(spec.first + spec.count - 1) + " of " +
                                std::to_string(spec.world));
  }
}

std::int64_t Dealer::steps() const {
  // In training all shards have as many steps as the longest; in validation a shard ends with its last batch.
  const std::int64_t most = spec_.training ? epoch_batches_ : epoch_batches_ - spec_.first;
  return std::max<std::int64_t>(0, (most + spec_.world - 1) / spec_.world);
}

std::optional<Dealer::Deal> Dealer::deal(std::int64_t position) const {
  std::int64_t step = position / spec_.count, epoch = 0;
  if (spec_.training) {
    epoch = step / steps();
    step %= steps();
  }
  const std::int64_t number = step * spec_.world + spec_.first + position % spec_.count;
  if (!spec_.training && number >= epoch_batches_) return std::nullopt;
  // Beyond the last batch the first ones of the epoch fill the gap.
  return Deal{epoch, number, batches_->at(epoch, number % epoch_batches_)};
}

}  // namespace det
