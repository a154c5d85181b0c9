// Owns averaging the gradients of one model over the ranks while its backward pass still runs.
//
// Parameters are put into buckets in the reverse of their order (as they become ready: Li et al., VLDB 2020,
// §3.2); a bucket is reduced when all its gradients are there and all buckets before it have been sent, so
// every rank sends the same collectives in the same order. The last bucket waits for finish(): behind its
// gradients it says which parameters this rank has touched and which buckets it sent too early.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "communicator.h"

namespace det {

struct ReducerOptions {
  std::int64_t bucket_bytes = 25 << 20;
  std::int64_t first_bucket_bytes = 1 << 20;
  std::int64_t in_place_bytes =
      1 << 20;  ///< a gradient of this size is reduced where it lies, without a bucket
  /// Buckets are sent during the backward pass, not after it; absent: when that is faster. Over shared memory
  /// the exchange is work of the cores that compute: unless some are spare, it would only take turns with the
  /// backward pass.
  std::optional<bool> overlap;
};

/// Used by one thread at a time. Reducers whose parameters are reached by the same backward pass need a
/// communicator each, unless all ranks' passes reach the same parameters: what they send is ordered within a
/// reducer only.
class GradientReducer {
 public:
  /// Hooks into the parameters' gradient accumulation; the hooks do nothing but mark parameters as touched
  /// outside start() … finish(). Parameters without requires_grad are left alone until they get it (on all
  /// ranks alike). Throws std::invalid_argument naming a parameter that no bucket can hold, or the rank whose
  /// parameters are different.
  GradientReducer(std::vector<torch::Tensor> parameters, Communicator& communicator,
                  const ReducerOptions& options = {});
  ~GradientReducer();

  /// The next backward pass is to be reduced. There may be more than one until finish(), but a second one
  /// that reaches a large gradient (in_place_bytes), or on CUDA any, throws std::logic_error: it may be on
  /// its way.
  void start();
  /// The backward pass is over: waits for everything. grad of every parameter that some rank's passes have
  /// touched since the last finish() is then the mean over ranks of what was in grad before, the same bits on
  /// each; a grad that is undefined counts as zeros. A parameter that no rank touched keeps its grad as it
  /// is. Does nothing when the pass since start() reached no parameter of this model (on all ranks alike:
  /// ranks run the same program).
  ///
  /// A small grad becomes a view into its bucket; with grad.reset() (zero_grad that sets to none) between
  /// steps nothing is copied but each of them once. Memory of a bucket is used again when nobody holds a grad
  /// in it.
  void finish();
  /// Ends what start() began without reducing: the pass failed on every rank. Gradients are as the pass left
  /// them.
  void abandon();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace det
