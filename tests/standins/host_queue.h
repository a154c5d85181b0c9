// A SideQueue of the CPU: one thread runs its work in order. The stand-in of NCCL enqueues through the
// handle.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "common/base/queue.h"
#include "harness/src/distributed/side_queue.h"
#include "tests/standins/host_stream.h"

namespace det::testing {

class HostQueue final : public SideQueue {
 public:
  HostQueue()
      : thread_([this] {
          while (auto work = work_.pop()) (*work)();
        }) {
    stream_.owner = this;
    stream_.enqueue = [](HostStream* stream, void (*run)(void*), void* context) {
      static_cast<HostQueue*>(stream->owner)->work_.push([run, context] { run(context); });
    };
  }
  ~HostQueue() override {
    work_.close();
    thread_.join();
  }

  void* handle() const override { return &stream_; }
  /// The caller's work on the CPU is complete when its calls return.
  void enter(const std::vector<torch::Tensor>& tensors) override { entered_ = tensors; }
  std::unique_ptr<Mark> mark() override {
    auto done = std::make_shared<std::atomic<bool>>(false);
    work_.push([done, tensors = std::move(entered_)] {
      *done = true;
      done->notify_all();
    });
    return std::make_unique<HostMark>(std::move(done));
  }

 private:
  class HostMark final : public Mark {
   public:
    explicit HostMark(std::shared_ptr<std::atomic<bool>> done) : done_(std::move(done)) {}
    void block() override { done_->wait(false); }
    bool done() const override { return *done_; }

   private:
    std::shared_ptr<std::atomic<bool>> done_;
  };

  Queue<std::function<void()>> work_{4096};
  std::vector<torch::Tensor> entered_;
  mutable HostStream stream_{};
  std::thread thread_;
};

}  // namespace det::testing
