// ZeRO stage 1 (Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC
// 2020, section 5): each rank keeps the state of the optimizer for one part of the parameters, steps that
// part, and receives the other parts from the other ranks.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/src/distributed/communicator.h"
#include "harness/src/optim/optimizer_fields.h"

namespace det {

/// The part of a parameter that this rank steps: `count` elements from `begin`, in the order of the
/// parameter's memory. `part` is a view of them, and the key of their state in the optimizer.
struct ZeroPiece {
  torch::Tensor parameter, part;
  std::int64_t begin = 0, count = 0;
};

/// The elements of `tensor`, which has the shape of `parameter`, in the order of the parameter's memory: a
/// view where the strides are equal, else a copy.
torch::Tensor in_memory_order(const torch::Tensor& tensor, const torch::Tensor& parameter);

/// Replaces the tensors of a whole parameter's state by the elements of one piece. A visitor of fields().
struct DivideField {
  const ZeroPiece& piece;
  template <typename T>
  void operator()(const char*, const T&) const {}
  void operator()(const char*, torch::Tensor& value) const {
    if (!value.defined()) return;
    value = in_memory_order(value, piece.parameter).narrow(0, piece.begin, piece.count).clone();
  }
};

/// Throws std::invalid_argument unless the optimizer's step is known to treat each element by itself: SGD,
/// Adam, AdamW, RMSprop, Adagrad, and Adadelta, Adamax, NAdam, RAdam, ASGD and Rprop of det::optim.
void check_can_be_partitioned(torch::optim::Optimizer& optimizer);

/// The parameters of one optimizer, divided over the ranks. Used by the training thread.
class ZeroPartition {
 public:
  /// Moves the parameters into common memory, one tensor for each type and device, of which each rank has an
  /// equal part, and divides existing state. Values and strides of dense parameters stay. The references must
  /// outlive this object.
  ZeroPartition(torch::optim::Optimizer& optimizer, Communicator& communicator, int rank);

  /// Runs `step` on this rank's pieces, then gathers the parameters of all ranks. Between calls the optimizer
  /// has its own parameters. Their gradients must be equal on all ranks. A parameter that was given other
  /// memory since the last call returns to the common memory with its new values. Collective. Throws what
  /// `step` and the communicator throw, and std::invalid_argument when a parameter has another type, device
  /// or shape.
  void step(const std::function<void()>& step);

  /// This rank's piece of a parameter; null when it has none.
  const ZeroPiece* piece_of(const torch::Tensor& parameter) const;

 private:
  /// Parameters of one type and device.
  struct Lane {
    std::vector<torch::Tensor> parameters;
    std::vector<torch::Tensor> places;  ///< of the parameters in `all`
    torch::Tensor all, own;             ///< memory of all ranks, and the part of this one
  };

  void add_lanes();
  void fill(Lane& lane);
  void divide_state();
  void bring_back();

  torch::optim::Optimizer& optimizer_;
  Communicator& communicator_;
  const int rank_;
  std::vector<Lane> lanes_;
  std::vector<ZeroPiece> pieces_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_;  ///< of pieces_, by parameter
  std::vector<std::vector<torch::Tensor>> parts_;                  ///< by parameter group
};

}  // namespace det
