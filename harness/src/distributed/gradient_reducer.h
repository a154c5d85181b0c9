// GradientReducer: averages the gradients of a model over the ranks while the backward pass runs.
//
// Parameters are grouped into buckets in reverse order, in which their gradients become ready (Li et al.,
// PyTorch Distributed, VLDB 2020, section 3.2). A bucket is reduced when all its gradients are ready and all
// earlier buckets have been sent, so every rank sends the same collectives in the same order. The last bucket
// is sent by finish(): it also carries flags for the parameters that this rank touched, and for the buckets
// it sent too early.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "harness/src/distributed/communicator.h"

namespace det {

/// Bucket sizes and overlap.
struct ReducerOptions {
  /// Size of a bucket, in bytes.
  std::int64_t bucket_bytes = 25 << 20;
  /// Size of the first bucket, which determines how early the exchange starts.
  std::int64_t first_bucket_bytes = 1 << 20;
  /// Gradients of at least this size are reduced in place, without a bucket.
  std::int64_t in_place_bytes = 1 << 20;
  /// Send buckets during the backward pass, not after it; absent: when that is faster. Over shared memory the
  /// exchange uses the cores that compute, so without idle cores it would only alternate with the backward
  /// pass.
  std::optional<bool> overlap;
};

/// Averages the gradients of one model. Used by one thread at a time. Several reducers with parameters in the
/// same backward pass need separate communicators, unless the passes of all ranks reach the same parameters:
/// the order of collectives is defined within a reducer only.
class GradientReducer {
 public:
  /// Installs hooks on the parameters' gradient accumulation. Outside start() … finish() the hooks only mark
  /// parameters as touched. Parameters without requires_grad are ignored until they get it (on all ranks
  /// alike). Collective. Throws std::invalid_argument naming a parameter that cannot be reduced, or the rank
  /// with different parameters.
  GradientReducer(std::vector<torch::Tensor> parameters, Communicator& communicator,
                  const ReducerOptions& options = {});
  ~GradientReducer();

  /// Starts reduction of the next backward pass. Several passes are allowed until finish(), but a second pass
  /// that reaches a large gradient (in_place_bytes) or, on CUDA, any gradient again throws std::logic_error,
  /// because it may already be in transit.
  void start();
  /// Completes the reduction; call it after the backward pass. Blocks for all collectives. Afterwards the
  /// grad of every parameter touched on some rank since the last finish() is the mean over ranks, bitwise
  /// identical on all ranks; an undefined grad counts as zeros. Parameters that no rank touched keep their
  /// grad. Does nothing when the pass reached no parameter of this model, which must be the same on all
  /// ranks.
  ///
  /// A small grad becomes a view of its bucket. When grads are reset to undefined between steps, each is
  /// copied once. The memory of a bucket is reused when no grad refers to it.
  void finish();
  /// True when a backward pass since start() reached a parameter of this model.
  bool is_reached() const;
  /// Ends start() without a reduction, after a pass that failed on every rank. Gradients keep the values of
  /// the pass.
  void abandon();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace det
