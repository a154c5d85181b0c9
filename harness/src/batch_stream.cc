// Owns handing out batches in order.
#include "batch_stream.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace det {
namespace {

// A hand-over between threads costs some tens of microseconds: cheaper batches are read where they are used.
constexpr int kTimedBatches = 4;
constexpr std::chrono::microseconds kWorthAThread{500};

}  // namespace

BatchStream::BatchStream(std::shared_ptr<const Dataset> dataset, const SamplerSpec& spec, std::int64_t position)
    : dataset_(std::move(dataset)), sampler_(spec), position_(position) {}

BatchStream::~BatchStream() {
  if (ahead_ != nullptr) ahead_->close();
  if (reader_.joinable()) reader_.join();
}

Batch BatchStream::read(std::int64_t position) {
  const std::int64_t steps = sampler_.steps();
  const std::vector<std::int64_t> indices = sampler_.indices(position / steps, position % steps);
  Batch batch = dataset_->get_batch(indices);
  const bool counted = batch.data.defined() && batch.data.dim() > 0;
  if (!counted || batch.size() != static_cast<std::int64_t>(indices.size())) {
    throw std::runtime_error("Dataset::get_batch gave " + (counted ? std::to_string(batch.size()) : "no") +
                             " records where " + std::to_string(indices.size()) + " were asked for");
  }
  return batch;
}

Batch BatchStream::next() {
  const std::int64_t position = position_++;
  if (ahead_ != nullptr) {
    std::optional<Item> item = ahead_->pop();
    if (!item) throw std::runtime_error("the thread that reads data has ended");
    if (auto* error = std::get_if<std::exception_ptr>(&*item)) std::rethrow_exception(*error);
    return std::get<Batch>(std::move(*item));
  }
  const MonoTime start = mono_now();
  Batch batch = read(position);
  // The first batch is not typical: files are opened, the epoch is shuffled.
  if (timed_++ > 0 && timed_ <= kTimedBatches) spent_ += mono_now() - start;
  if (timed_ == kTimedBatches && spent_ > kWorthAThread * (kTimedBatches - 1)) start_reading_ahead();
  return batch;
}

void BatchStream::start_reading_ahead() {
  ahead_ = std::make_unique<Queue<Item>>(1);
  reader_ = std::thread([this, position = position_]() mutable {
    at::NoGradGuard no_grad;
    for (bool wanted = true; wanted;) {
      try {
        wanted = ahead_->push(read(position++));
      } catch (...) {
        (void)ahead_->push(std::current_exception());
        return;
      }
    }
  });
}

}  // namespace det
