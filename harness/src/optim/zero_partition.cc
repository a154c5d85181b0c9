// Division of an optimizer's parameters and state over the ranks.
#include "harness/src/optim/zero_partition.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Type.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "harness/src/base/torch_compat.h"

namespace det {
namespace {

/// Parameters begin at multiples of this many elements, which suits every vector instruction.
constexpr std::int64_t kZeroAlign = 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

/// The memory of a dense parameter as one row.
torch::Tensor row_of(const torch::Tensor& dense) {
  return dense.as_strided({dense.numel()}, {1}, dense.storage_offset());
}

/// Strides that a parameter has in common memory: its own when it is dense, else contiguous ones.
std::vector<std::int64_t> dense_strides(const torch::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) return parameter.strides().vec();
  return at::empty(parameter.sizes(), parameter.options().device(at::kMeta)).strides().vec();
}

/// Replaces the parameters of all groups by others for the lifetime of this object.
class OtherParameters {
 public:
  OtherParameters(torch::optim::Optimizer& optimizer, std::vector<std::vector<torch::Tensor>>& others)
      : optimizer_(optimizer), others_(others) {
    swap();
  }
  ~OtherParameters() { swap(); }
  OtherParameters(const OtherParameters&) = delete;

 private:
  void swap() {
    auto& groups = optimizer_.param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g].params().swap(others_[g]);
  }
  torch::optim::Optimizer& optimizer_;
  std::vector<std::vector<torch::Tensor>>& others_;
};

}  // namespace

torch::Tensor in_memory_order(const torch::Tensor& tensor, const torch::Tensor& parameter) {
  if (tensor.strides() == parameter.strides()) return row_of(tensor);
  torch::Tensor copy = at::empty_strided(parameter.sizes(), parameter.strides(), tensor.options());
  return row_of(copy.copy_(tensor));
}

void check_can_be_partitioned(torch::optim::Optimizer& optimizer) {
  const std::type_info& type = typeid(optimizer);
  namespace lib = torch::optim;
  for (const std::type_info* known :
       {&typeid(lib::SGD), &typeid(lib::Adam), &typeid(lib::AdamW), &typeid(lib::RMSprop),
        &typeid(lib::Adagrad), &typeid(optim::Adadelta), &typeid(optim::Adamax), &typeid(optim::NAdam),
        &typeid(optim::RAdam), &typeid(optim::ASGD), &typeid(optim::Rprop)}) {
    if (*known == type) return;
  }
  const bool whole = type == typeid(lib::LBFGS) || type == typeid(optim::SparseAdam) ||
                     type == typeid(optim::Adafactor) || type == typeid(optim::Muon);
  throw std::invalid_argument(
      "optimizations.zero: 1 divides the parameters between any two elements, and the "
      "step of " +
      c10::demangle(type.name()) +
      (whole ? " reads more than one element at a time" : " is not known to treat each element by itself") +
      "; choose another optimizer, such as AdamW, or set zero: 0");
}

ZeroPartition::ZeroPartition(torch::optim::Optimizer& optimizer, Communicator& communicator, int rank)
    : optimizer_(optimizer), communicator_(communicator), rank_(rank) {
  check_can_be_partitioned(optimizer);
  at::NoGradGuard no_grad;
  add_lanes();
  for (Lane& lane : lanes_) fill(lane);
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    index_.emplace(pieces_[i].parameter.unsafeGetTensorImpl(), i);
  for (const auto& group : optimizer_.param_groups()) {
    auto& parts = parts_.emplace_back();
    for (const torch::Tensor& parameter : group.params())
      if (const ZeroPiece* piece = piece_of(parameter)) parts.push_back(piece->part);
  }
  divide_state();
}

/// Sorts the parameters into lanes, in the order of the optimizer, which is equal on all ranks.
void ZeroPartition::add_lanes() {
  for (const auto& group : optimizer_.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (parameter.is_sparse() || !parameter.is_leaf())
        throw std::invalid_argument("optimizations.zero: a parameter of shape " +
                                    compat::shape_text(parameter) + " is no dense leaf");
      const auto fits = [&](const Lane& lane) {
        return lane.parameters.front().scalar_type() == parameter.scalar_type() &&
               lane.parameters.front().device() == parameter.device();
      };
      auto lane = std::find_if(lanes_.begin(), lanes_.end(), fits);
      if (lane == lanes_.end()) lane = lanes_.emplace(lanes_.end());
      lane->parameters.push_back(parameter);
    }
  }
}

/// Moves the parameters of a lane into common memory, and lists this rank's pieces of them.
void ZeroPartition::fill(Lane& lane) {
  std::int64_t total = 0;
  for (const torch::Tensor& parameter : lane.parameters) total += rounded_up(parameter.numel(), kZeroAlign);
  const std::int64_t ranks = communicator_.size();
  const std::int64_t each = rounded_up((total + ranks - 1) / ranks, kZeroAlign);
  const std::int64_t first = each * rank_, last = first + each;
  lane.all = at::zeros({each * ranks}, lane.parameters.front().options().requires_grad(false));
  lane.own = lane.all.narrow(0, first, each);
  std::int64_t offset = 0;
  for (torch::Tensor& parameter : lane.parameters) {
    const std::int64_t count = parameter.numel();
    torch::Tensor moved = lane.all.as_strided(parameter.sizes(), dense_strides(parameter), offset);
    moved.copy_(parameter);
    parameter.set_data(moved);
    lane.places.push_back(moved);
    const std::int64_t begin = std::max(first, offset), end = std::min(last, offset + count);
    if (begin < end)
      pieces_.push_back({parameter, lane.all.narrow(0, begin, end - begin), begin - offset, end - begin});
    offset += rounded_up(count, kZeroAlign);
  }
}

/// Divides state that exists already, such as that which Adagrad's constructor makes.
void ZeroPartition::divide_state() {
  auto& kept = optimizer_.state();
  if (kept.empty()) return;
  with_kind(optimizer_, [&]<typename Options, typename State>() {
    std::vector<std::pair<const ZeroPiece*, std::unique_ptr<State>>> divided;
    for (const ZeroPiece& piece : pieces_) {
      const auto whole = kept.find(compat::state_key(optimizer_, piece.parameter));
      if (whole == kept.end()) continue;
      auto state = std::make_unique<State>(static_cast<State&>(*whole->second));
      fields(*state, DivideField{piece});
      divided.emplace_back(&piece, std::move(state));
    }
    kept.clear();
    for (auto& [piece, state] : divided) kept[compat::state_key(optimizer_, piece->part)] = std::move(state);
  });
}

/// Moves parameters that a callback gave other memory (set_data, as an exchange of weights does) back into
/// the common memory.
void ZeroPartition::bring_back() {
  for (Lane& lane : lanes_) {
    for (std::size_t i = 0; i < lane.parameters.size(); ++i) {
      torch::Tensor &parameter = lane.parameters[i], &place = lane.places[i];
      if (parameter.data_ptr() == place.data_ptr() && parameter.strides() == place.strides()) continue;
      if (parameter.scalar_type() != place.scalar_type() || parameter.device() != place.device() ||
          parameter.sizes() != place.sizes()) {
        throw std::invalid_argument("optimizations.zero: a parameter of shape " + compat::shape_text(place) +
                                    " has got another type, device or shape");
      }
      place.copy_(parameter);
      parameter.set_data(place);
    }
  }
}

void ZeroPartition::step(const std::function<void()>& step) {
  at::NoGradGuard no_grad;
  bring_back();
  for (ZeroPiece& piece : pieces_) {
    const torch::Tensor& gradient = piece.parameter.grad();
    if (!gradient.defined()) continue;
    piece.part.mutable_grad() =
        in_memory_order(gradient, piece.parameter).narrow(0, piece.begin, piece.count);
  }
  {
    const OtherParameters parts(optimizer_, parts_);
    step();
  }
  // Views would keep the memory of the gradients in use.
  for (ZeroPiece& piece : pieces_) piece.part.mutable_grad().reset();
  for (Lane& lane : lanes_) communicator_.all_gather(lane.all, lane.own)->wait();
}

const ZeroPiece* ZeroPartition::piece_of(const torch::Tensor& parameter) const {
  const auto found = index_.find(parameter.unsafeGetTensorImpl());
  return found == index_.end() ? nullptr : &pieces_[found->second];
}

}  // namespace det
