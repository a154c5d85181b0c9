// Collectives over NCCL between devices. They run on their own queue, ordered against the caller's work. A
// thread ends them when a rank is gone or NCCL reports an error.
#include <c10/core/DeviceGuard.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "common/base/wait.h"
#include "harness/src/base/collective_log.h"
#include "harness/src/distributed/nccl_library.h"
#include "harness/src/distributed/transport.h"

namespace det {
namespace {

using nccl::Library;

/// An error of NCCL is often the death of a rank, which is named if it becomes known within this time.
constexpr auto kPresencePatience = std::chrono::seconds(2);
/// Time for the last collectives to complete at the end.
constexpr auto kDrainPatience = std::chrono::seconds(2);

int type_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat:
      return nccl::kFloat;
    case torch::kDouble:
      return nccl::kDouble;
    case torch::kBFloat16:
      return nccl::kBFloat16;
    case torch::kHalf:
      return nccl::kHalf;
    case torch::kLong:
      return nccl::kInt64;
    default:
      throw std::invalid_argument(std::string("nccl: no collectives of ") +
                                  c10::toString(tensor.scalar_type()));
  }
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(DistributedContext& distributed, const torch::Device& device,
                   std::unique_ptr<SideQueue> queue)
      : distributed_(distributed), device_(device), queue_(std::move(queue)) {
    nccl::UniqueId id{};
    if (distributed.is_chief()) nccl::check(Library::get().get_unique_id(&id));
    const std::string bytes = distributed.broadcast_bytes({id.internal, sizeof id.internal});
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    const c10::DeviceGuard guard(device);
    nccl::check(Library::get().init_rank(&comm_, distributed.size(), id, distributed.rank()));
    watcher_ = std::thread([this] { watch(); });
  }

  ~NcclCommunicator() override {
    const bool complete = drain();
    closing_ = true;
    watcher_.join();
    if (failed_) return;
    complete ? Library::get().destroy(comm_) : Library::get().abort(comm_);
  }

  const char* name() const override { return "nccl"; }
  int size() const override { return distributed_.size(); }
  std::unique_ptr<Work> all_reduce(torch::Tensor tensor, Reduction how, Start) override {
    if (how == Reduction::kMean && tensor.scalar_type() == torch::kLong)
      throw std::invalid_argument("no mean of int64");
    return enqueue(Operation::kAllReduce, tensor, {tensor}, [&](nccl::Stream stream) {
      return Library::get().all_reduce(tensor.data_ptr(), tensor.data_ptr(),
                                       static_cast<std::size_t>(tensor.numel()), type_of(tensor),
                                       how == Reduction::kMean ? nccl::kAverage : nccl::kSum, comm_, stream);
    });
  }
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) override {
    // Data is copied, not added, so every type is sent as bytes.
    return enqueue(Operation::kAllGather, output, {output, input}, [&](nccl::Stream stream) {
      return Library::get().all_gather(input.data_ptr(), output.data_ptr(), input.nbytes(), nccl::kUint8,
                                       comm_, stream);
    });
  }
  std::unique_ptr<Work> broadcast(torch::Tensor tensor) override {
    return enqueue(Operation::kBroadcast, tensor, {tensor}, [&](nccl::Stream stream) {
      return Library::get().broadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), nccl::kUint8, 0,
                                      comm_, stream);
    });
  }

 private:
  using Operation = collective::Operation;

  /// A collective that the device has not finished, as far as is known.
  struct Pending {
    CollectiveLog::Call call;
    std::shared_ptr<SideQueue::Mark> end;
  };

  /// A collective that has been enqueued.
  class Ordered final : public Work {
   public:
    Ordered(NcclCommunicator& owner, std::shared_ptr<SideQueue::Mark> end)
        : owner_(owner), end_(std::move(end)) {}
    void wait() override {
      owner_.throw_if_failed();
      end_->block();
      owner_.throw_if_failed();
    }

   private:
    NcclCommunicator& owner_;
    std::shared_ptr<SideQueue::Mark> end_;
  };

  /// Waits for the last collectives: other ranks may need this rank's part of them. Returns false when they
  /// do not complete soon, after which destroy() would block, or when the device has failed.
  bool drain() noexcept {
    try {
      const auto last = queue_->mark();
      return wait_until([&] { return failed_ || last->done(); }, kDrainPatience);
    } catch (const c10::Error&) {
      return false;
    }
  }

  /// Body of the thread. A kernel that waits for a dead rank ends only when its communicator is aborted.
  void watch() {
    nccl::Result error = nccl::kSuccess;
    const auto ended = [&] {
      record_ends();
      if (closing_ || !distributed_.first_gone().empty()) return true;
      return Library::get().async_error(comm_, &error) == nccl::kSuccess && error != nccl::kSuccess &&
             error != nccl::kInProgress;
    };
    while (!wait_until(ended, std::chrono::hours(24))) {
    }
    if (closing_) return;
    if (error != nccl::kSuccess) {
      wait_until([&] { return closing_ || !distributed_.first_gone().empty(); }, kPresencePatience);
    }
    const std::string gone = distributed_.first_gone();
    failure_ = "nccl: " + (gone.empty() ? Library::get().error_string(error) : gone);
    failed_ = true;
    Library::get().abort(comm_);
  }

  void throw_if_failed() const {
    if (const std::string gone = distributed_.first_gone(); !gone.empty())
      throw std::runtime_error("nccl: " + gone);
    if (failed_) throw std::runtime_error(failure_);
  }

  /// Enqueues a collective, ordered after the caller's work so far.
  template <typename Call>
  std::unique_ptr<Work> enqueue(Operation operation, const torch::Tensor& moved,
                                const std::vector<torch::Tensor>& tensors, const Call& call) {
    throw_if_failed();
    const c10::DeviceGuard guard(device_);
    queue_->enter(tensors);
    nccl::check(call(queue_->handle()));
    std::shared_ptr<SideQueue::Mark> end = queue_->mark();
    if (CollectiveLog* const log = CollectiveLog::of_process()) {
      const auto begun = log->begin(collective::Channel::kTensors, operation, moved.nbytes());
      const std::uint64_t pushed = pushed_.load(std::memory_order_relaxed);
      if (pushed - popped_.load(std::memory_order_acquire) == pending_.size()) {
        CollectiveLog::end(begun, true);  // too many to follow
      } else {
        pending_[pushed % pending_.size()] = {begun, end};
        pushed_.store(pushed + 1, std::memory_order_release);
      }
    }
    return std::make_unique<Ordered>(*this, std::move(end));
  }

  /// Records the collectives that the device has finished, which end in order. Called by the watcher.
  void record_ends() {
    try {
      for (std::uint64_t at = popped_; at != pushed_.load(std::memory_order_acquire); popped_ = ++at) {
        Pending& first = pending_[at % pending_.size()];
        if (!first.end->done()) return;
        CollectiveLog::end(first.call, true);
        first = {};
      }
    } catch (const c10::Error&) {
      // The device has failed, which the training thread reports.
    }
  }

  DistributedContext& distributed_;
  const torch::Device device_;
  const std::unique_ptr<SideQueue> queue_;
  nccl::Comm comm_ = nullptr;
  std::atomic<bool> closing_ = false;
  std::string failure_;  ///< valid once `failed_` is true
  /// The communicator is aborted instead of destroyed.
  std::atomic<bool> failed_ = false;
  /// A ring from the training thread (pushed_) to the watcher (popped_).
  std::vector<Pending> pending_ = std::vector<Pending>(collective::kCapacity);
  std::atomic<std::uint64_t> pushed_{0}, popped_{0};
  std::thread watcher_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(DistributedContext& distributed,
                                                     const torch::Device& device,
                                                     std::unique_ptr<SideQueue> queue) {
  return std::make_unique<NcclCommunicator>(distributed, device, std::move(queue));
}

}  // namespace det
