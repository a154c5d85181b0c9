#include "communicator.h"

#include <atomic>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/queue.h"
#include "base/wait.h"
#include "transport.h"

namespace det {
namespace {

constexpr std::size_t kMostInFlight = 4096;
constexpr std::size_t kMaxBytesOnWait = 64 << 10;
constexpr auto kLeavePatience = std::chrono::seconds(2);

/// Shared by the one who waits and the thread.
struct Outcome {
  std::atomic<bool> done = false;
  std::exception_ptr error;  ///< read after `done`

  void finish(std::exception_ptr with) {
    error = std::move(with);
    done = true;
    done.notify_all();
  }
};

struct Task {
  std::function<void(Transport&)> run;
  std::shared_ptr<Outcome> outcome;
};

/// What the thread needs, kept alive by it when it cannot be joined.
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
    if (start == Start::kOnWait && under_way_ == 0) {
      postponed_ = std::move(task);
    } else {
      ++under_way_;
      tasks_.push(std::move(task));
    }
  }

  /// Gives what was postponed to the thread.
  void start_postponed() {
    if (!postponed_.run) return;
    ++under_way_;
    tasks_.push(std::exchange(postponed_, {}));
  }

  /// Runs here what was postponed, if it is this.
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
      if (!failure_) task.run(*transport);
    } catch (...) {
      failure_ = std::current_exception();
    }
    task.run = nullptr;  // lets go of the tensors
    task.outcome->finish(failure_);
  }

  Queue<Task> tasks_{kMostInFlight};
  std::atomic<int> under_way_ =
      0;                        ///< given to the thread and not through; at 0 the transport is the caller's
  Task postponed_;              ///< the caller's alone
  std::exception_ptr failure_;  ///< whose the transport is
};

class QueuedWork final : public Work {
 public:
  QueuedWork(std::shared_ptr<Engine> engine, std::shared_ptr<Outcome> outcome)
      : engine_(std::move(engine)), outcome_(std::move(outcome)) {}
  ~QueuedWork() override {
    if (!outcome_->done) engine_->start_postponed();  // the other ranks count on it
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
  ThreadCommunicator(std::unique_ptr<Transport> transport, int size)
      : size_(size),
        engine_(std::make_shared<Engine>(std::move(transport))),
        thread_([engine = engine_] { engine->run(); }) {}

  ~ThreadCommunicator() override {
    engine_->start_postponed();
    engine_->close();
    // Only after a failure of this process is something still under way, which others may never take part in.
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
        tensor, [tensor, how](Transport& transport) mutable { transport.all_reduce(tensor, how); }, start);
  }
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) override {
    return submit(output,
                  [output, input](Transport& transport) mutable { transport.all_gather(output, input); });
  }
  std::unique_ptr<Work> broadcast(torch::Tensor tensor) override {
    return submit(tensor, [tensor](Transport& transport) mutable { transport.broadcast(tensor); });
  }

 private:
  /// What is small is sooner done than given to the thread.
  std::unique_ptr<Work> submit(const torch::Tensor& moved, std::function<void(Transport&)> run,
                               Start start = Start::kNow) {
    auto outcome = std::make_shared<Outcome>();
    engine_->submit({std::move(run), outcome}, moved.nbytes() <= kMaxBytesOnWait ? Start::kOnWait : start);
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
      return run_beside(make_shm_transport(distributed), distributed.size());
    } catch (const std::runtime_error& error) {  // on all ranks alike
      log::warn("gradients go over Gloo, which is slower", {{"why", error.what()}});
    }
  }
  return run_beside(make_gloo_transport(distributed), distributed.size());
}

}  // namespace

std::unique_ptr<Communicator> run_beside(std::unique_ptr<Transport> transport, int size) {
  return std::make_unique<ThreadCommunicator>(std::move(transport), size);
}

std::unique_ptr<Communicator> make_communicator(DistributedContext& distributed, const torch::Device& device,
                                                const std::string& backend) {
  if (backend != "" && backend != "shm" && backend != "gloo" && backend != "nccl") {
    throw std::invalid_argument("the backend \"" + backend + "\" is none of shm, gloo, nccl");
  }
  if (distributed.size() == 1) return nullptr;
  if (backend == "nccl" || (backend.empty() && device.is_cuda())) {
    if (!device.is_cuda()) {
      throw std::invalid_argument("the backend nccl needs a CUDA device; on the CPU leave the backend open");
    }
    return make_nccl_communicator(distributed, device);
  }
  if (device.is_cuda()) {
    throw std::invalid_argument("the backend " + backend + " is for the CPU; on a CUDA device use nccl");
  }
  return make_cpu_communicator(distributed, backend);
}

}  // namespace det
