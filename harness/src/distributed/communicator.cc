#include "harness/src/distributed/communicator.h"

#include <atomic>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/queue.h"
#include "common/base/wait.h"
#include "harness/src/base/collective_log.h"
#include "harness/src/distributed/transport.h"

namespace det {
namespace {

/// Collectives that may be queued, the size up to which a collective runs on the waiting thread, and the time
/// for the communication thread to end after a failure.
constexpr std::size_t kMaxInFlight = 4096;
constexpr std::size_t kMaxBytesOnWait = 64 << 10;
constexpr auto kLeavePatience = std::chrono::seconds(2);

/// Result of a collective, shared by the waiting thread and the communication thread.
struct Outcome {
  std::atomic<bool> done = false;
  std::exception_ptr error;  ///< valid once `done` is true

  void finish(std::exception_ptr with) {
    error = std::move(with);
    done = true;
    done.notify_all();
  }
};

struct Task {
  collective::Operation operation = collective::Operation::kNone;
  std::uint64_t bytes = 0;
  std::function<void(Transport&)> run;
  std::shared_ptr<Outcome> outcome;
};

/// State of the communication thread, which keeps it alive when the thread cannot be joined.
class Engine {
 public:
  explicit Engine(std::unique_ptr<Transport> t) : transport(std::move(t)) {}

  void run() {
    while (auto task = tasks_.pop()) {
      run(*task);
      --under_way_;
    }
    ended = true;
  }

  void submit(Task task, Start start) {
    start_postponed();
    // With an empty queue the communication thread is idle, so the transport may be used by the caller.
    if (start == Start::kOnWait && under_way_ == 0) {
      postponed_ = std::move(task);
    } else {
      ++under_way_;
      tasks_.push(std::move(task));
    }
  }

  /// Passes the postponed collective to the communication thread.
  void start_postponed() {
    if (!postponed_.run) return;
    ++under_way_;
    tasks_.push(std::exchange(postponed_, {}));
  }

  /// Runs the postponed collective on the calling thread, if it is the given one.
  void run_postponed(const std::shared_ptr<Outcome>& outcome) {
    if (postponed_.outcome != outcome) return;
    Task task = std::exchange(postponed_, {});
    run(task);
  }

  void close() { tasks_.close(); }

  const std::unique_ptr<Transport> transport;
  std::atomic<bool> ended = false;

 private:
  void run(Task& task) {
    try {
      // After the first failure the ranks may be at different collectives, so all later ones fail, too.
      if (!failure_) {
        const CollectiveScope scope(collective::Channel::kTensors, task.operation, task.bytes);
        task.run(*transport);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
    task.run = nullptr;  // releases the tensors
    task.outcome->finish(failure_);
  }

  Queue<Task> tasks_{kMaxInFlight};
  /// Tasks of the communication thread that are not finished. At 0 the caller may use the transport.
  std::atomic<int> under_way_ = 0;
  Task postponed_;              ///< used by the caller only
  std::exception_ptr failure_;  ///< used by the thread that has the transport
};

class QueuedWork final : public Work {
 public:
  QueuedWork(std::shared_ptr<Engine> engine, std::shared_ptr<Outcome> outcome)
      : engine_(std::move(engine)), outcome_(std::move(outcome)) {}
  ~QueuedWork() override {
    // The other ranks take part in this collective and would wait for it.
    if (!outcome_->done) engine_->start_postponed();
  }
  void wait() override {
    if (!outcome_->done) engine_->run_postponed(outcome_);
    outcome_->done.wait(false);
    if (outcome_->error) std::rethrow_exception(outcome_->error);
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Outcome> outcome_;
};

class ThreadCommunicator final : public Communicator {
 public:
  using Operation = collective::Operation;
  ThreadCommunicator(std::unique_ptr<Transport> transport, int size)
      : size_(size),
        engine_(std::make_shared<Engine>(std::move(transport))),
        thread_([engine = engine_] { engine->run(); }) {}

  ~ThreadCommunicator() override {
    engine_->start_postponed();
    engine_->close();
    // Only after a failure of this process can a collective be unfinished here; the other ranks may never
    // join it.
    if (!wait_until([this] { return engine_->ended.load(); }, std::chrono::milliseconds(100))) {
      engine_->transport->cancel();
      wait_until([this] { return engine_->ended.load(); }, kLeavePatience);
    }
    if (engine_->ended) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

  const char* name() const override { return engine_->transport->name(); }
  int size() const override { return size_; }
  std::unique_ptr<Work> all_reduce(torch::Tensor tensor, Reduction how, Start start) override {
    if (how == Reduction::kMean && tensor.scalar_type() == torch::kLong)
      throw std::invalid_argument("no mean of int64");
    return submit(
        Operation::kAllReduce, tensor,
        [tensor, how](Transport& transport) mutable { transport.all_reduce(tensor, how); }, start);
  }
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) override {
    return submit(Operation::kAllGather, output,
                  [output, input](Transport& transport) mutable { transport.all_gather(output, input); });
  }
  std::unique_ptr<Work> broadcast(torch::Tensor tensor) override {
    return submit(Operation::kBroadcast, tensor,
                  [tensor](Transport& transport) mutable { transport.broadcast(tensor); });
  }

 private:
  /// Small collectives run on the waiting thread: passing them to another thread would take longer.
  std::unique_ptr<Work> submit(Operation operation, const torch::Tensor& moved,
                               std::function<void(Transport&)> run, Start start = Start::kNow) {
    auto outcome = std::make_shared<Outcome>();
    engine_->submit({operation, moved.nbytes(), std::move(run), outcome},
                    moved.nbytes() <= kMaxBytesOnWait ? Start::kOnWait : start);
    return std::make_unique<QueuedWork>(engine_, std::move(outcome));
  }

  const int size_;

  std::shared_ptr<Engine> engine_;
  std::thread thread_;
};

std::unique_ptr<Communicator> make_cpu_communicator(DistributedContext& distributed,
                                                    const std::string& backend) {
  const bool one_machine = distributed.local_size() == distributed.size();
  if (backend == "shm" && !one_machine) {
    throw std::runtime_error("the backend shm needs all ranks on one machine; there are " +
                             std::to_string(distributed.cross_size()) + ": use gloo");
  }
  if (backend == "shm") return run_beside(make_shm_transport(distributed), distributed.size());
  if (backend.empty() && one_machine) {
    try {
      // All ranks fail in the same way, so all fall back to Gloo.
      return run_beside(make_shm_transport(distributed), distributed.size());
    } catch (const std::runtime_error& error) {
      log::warn("gradients go over Gloo, which is slower", {{"why", error.what()}});
    }
  }
  return run_beside(make_gloo_transport(distributed), distributed.size());
}

}  // namespace

std::unique_ptr<Communicator> run_beside(std::unique_ptr<Transport> transport, int size) {
  return std::make_unique<ThreadCommunicator>(std::move(transport), size);
}

void share_tensor(Communicator& communicator, torch::Tensor tensor) {
  if (tensor.is_non_overlapping_and_dense()) return communicator.broadcast(tensor)->wait();
  const torch::Tensor copy = tensor.contiguous();
  communicator.broadcast(copy)->wait();
  // An expanded tensor cannot be written; as a rule it is equal on all ranks.
  if (!tensor.equal(copy)) tensor.copy_(copy);
}

std::unique_ptr<Communicator> make_communicator(DistributedContext& distributed, const torch::Device& device,
                                                const std::string& backend) {
  if (!backend.empty() && backend != "shm" && backend != "gloo" && backend != "nccl") {
    throw std::invalid_argument("the backend \"" + backend + "\" is none of shm, gloo, nccl");
  }
  if (distributed.size() == 1) return nullptr;
  if (backend == "nccl" || (backend.empty() && device.is_cuda())) {
    if (!device.is_cuda()) {
      throw std::invalid_argument("the backend nccl needs a CUDA device; on the CPU leave the backend open");
    }
    return make_nccl_communicator(distributed, device, make_cuda_queue(device));
  }
  if (device.is_cuda()) {
    throw std::invalid_argument("the backend " + backend + " is for the CPU; on a CUDA device use nccl");
  }
  return make_cpu_communicator(distributed, backend);
}

}  // namespace det
