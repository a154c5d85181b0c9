// Gradient reducer: autograd hooks, buckets, and their all-reduce during the backward pass.
#include "harness/src/distributed/gradient_reducer.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/process.h"

namespace det {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
/// Alignment of gradients in a bucket, in elements: sufficient for every type and vector instruction.
constexpr std::int64_t kAlign = 16;

/// Memory of a bucket with one view per gradient. After a pass the parameters' grads are these views.
struct BucketBuffer {
  torch::Tensor flat;
  std::vector<torch::Tensor> views;

  /// True when no part of the memory is referenced from outside.
  bool idle() const {
    if (!flat.defined()) return true;
    if (flat.storage().use_count() != views.size() + 1) return false;
    return std::all_of(views.begin(), views.end(),
                       [](const torch::Tensor& view) { return view.use_count() == 1; });
  }
};

/// A unit of reduction: one large gradient, reduced in place, or several small ones, copied into common
/// memory.
struct Bucket {
  bool in_place = false;
  std::vector<std::size_t> parameters;  ///< indices into State::slots
  std::vector<std::int64_t> offsets;    ///< of the gradients in the flat memory, in elements
  std::int64_t flags = 0;               ///< offset of the flags; in the last bucket only
  std::int64_t elements = 0;
  torch::ScalarType type = torch::kFloat;
  std::array<BucketBuffer, 2> buffers;
  int current = 0;
  torch::Tensor target;  ///< in_place: the tensor that is reduced

  std::size_t missing = 0;           ///< parameters that this pass has not reached yet
  bool sent = false, stale = false;  ///< stale: a gradient changed after sending
  std::unique_ptr<Work> work;

  BucketBuffer& buffer() { return buffers[static_cast<std::size_t>(current)]; }
};

/// A parameter with its hook and its place in a bucket.
struct Slot {
  torch::Tensor parameter;
  /// The parameter holds it weakly.
  decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>())) accumulator;
  std::uintptr_t hook = 0;
  std::size_t bucket = kNone, place = 0;
  bool reached = false;  ///< reached by this pass
  bool touched = false;  ///< accumulated since the last reduction
};

std::string shape(const torch::Tensor& tensor) {
  std::string text = "[";
  for (const auto size : tensor.sizes()) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// FNV-1a hash of the properties that must be equal on all ranks.
std::int64_t digest(const std::vector<torch::Tensor>& parameters) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto add = [&](std::int64_t value) {
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ (static_cast<std::uint64_t>(value) >> (8 * byte) & 0xff)) * 1099511628211ull;
  };
  for (const torch::Tensor& parameter : parameters) {
    add(static_cast<std::int64_t>(parameter.scalar_type()));
    add(parameter.dim());
    for (const auto size : parameter.sizes()) add(size);
    add(parameter.requires_grad());
  }
  return static_cast<std::int64_t>(hash);
}

/// Over shared memory the exchange uses the cores that compute: overlap is useful only if some are idle.
bool overlap_pays(const Communicator& communicator) {
  return std::string_view(communicator.name()) != "shm" ||
         communicator.size() * at::get_num_threads() < cpu_count();
}

}  // namespace

struct GradientReducer::State {
  State(std::vector<torch::Tensor> given, Communicator& via, const ReducerOptions& how)
      : communicator(via),
        options(how),
        overlap(how.overlap.value_or(overlap_pays(via))),
        all(std::move(given)) {}

  void compare_ranks();
  void hook_up(const std::shared_ptr<State>& self);
  void unhook();
  void make_buckets();

  void start();
  void on_accumulated(std::size_t index);
  void copy_in(std::size_t index);
  void send_ready();
  void send(Bucket& bucket);
  void fill(Bucket& bucket);
  void write_flags(Bucket& last);
  void finish();
  void read_flags();
  void hand_out(Bucket& bucket);
  void end_pass();

  /// True when the gradient has a value of its own; otherwise it counts as zeros.
  bool counts(const Slot& slot) const { return slot.touched && slot.parameter.grad().defined(); }

  Communicator& communicator;
  const ReducerOptions options;
  const bool overlap;
  std::vector<torch::Tensor> all;  ///< all parameters, including those without requires_grad
  std::vector<bool> wanted;        ///< their requires_grad when the buckets were made
  std::vector<Slot> slots;
  std::vector<Bucket> buckets;  ///< in sending order
  /// Per slot: the gradient counts. Per bucket: it is stale. The sum over ranks after read_flags().
  std::vector<float> flags;
  std::size_t next = 0;  ///< next bucket to send
  bool active = false, any_reached = false;
};

namespace {

/// Autograd hook that runs after a gradient has been accumulated.
class Hook final : public torch::autograd::FunctionPostHook {
 public:
  explicit Hook(std::function<void()> run) : run_(std::move(run)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    run_();
    return outputs;
  }

 private:
  std::function<void()> run_;
};

}  // namespace

/// Throws unless all ranks have equivalent parameters. Collective.
void GradientReducer::State::compare_ranks() {
  const torch::Device device = all.empty() ? torch::Device(torch::kCPU) : all.front().device();
  const auto options_of = torch::dtype(torch::kLong).device(device);
  const int ranks = communicator.size();
  const torch::Tensor mine = at::full({1}, digest(all), options_of);
  torch::Tensor theirs = at::empty({ranks}, options_of);
  communicator.all_gather(theirs, mine)->wait();
  theirs = theirs.to(torch::kCPU);
  for (int rank = 1; rank < ranks; ++rank) {
    if (theirs[rank].item<std::int64_t>() == theirs[0].item<std::int64_t>()) continue;
    throw std::invalid_argument(
        "the model's parameters on rank " + std::to_string(rank) +
        " differ from rank 0's in number, shape, type or requires_grad: every rank must build "
        "the same model");
  }
}

void GradientReducer::State::hook_up(const std::shared_ptr<State>& self) {
  wanted.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const torch::Tensor& parameter = all[i];
    wanted.push_back(parameter.requires_grad());
    if (!parameter.requires_grad()) continue;
    if (!parameter.is_leaf() || !parameter.is_floating_point() || parameter.is_sparse()) {
      throw std::invalid_argument(
          "parameter " + std::to_string(i) + " (shape " + shape(parameter) +
          ") cannot be averaged over ranks: it must be a dense leaf of a floating-point type");
    }
    Slot slot;
    slot.parameter = parameter;
    slot.accumulator = torch::autograd::impl::grad_accumulator(parameter);
    // The hook's reference is weak because the accumulator may outlive this reducer.
    slot.hook = slot.accumulator->add_post_hook(
        std::make_unique<Hook>([weak = std::weak_ptr<State>(self), index = slots.size()] {
          if (const auto state = weak.lock()) state->on_accumulated(index);
        }));
    slots.push_back(std::move(slot));
  }
}

void GradientReducer::State::unhook() {
  for (Slot& slot : slots) slot.accumulator->del_post_hook(slot.hook);
  slots.clear();
}

/// Assigns parameters to buckets: one open bucket per type, in reverse order of parameters. The last bucket
/// is never in place because it carries the flags; it may hold nothing else.
void GradientReducer::State::make_buckets() {
  buckets.clear();
  std::map<torch::ScalarType, Bucket> open;
  for (std::size_t i = slots.size(); i-- > 0;) {
    const torch::Tensor& parameter = slots[i].parameter;
    const auto element = static_cast<std::int64_t>(parameter.element_size());
    if (parameter.numel() * element >= options.in_place_bytes && parameter.is_non_overlapping_and_dense()) {
      Bucket& alone = buckets.emplace_back();
      alone.in_place = true;
      alone.parameters.push_back(i);
      continue;
    }
    Bucket& bucket = open[parameter.scalar_type()];
    bucket.type = parameter.scalar_type();
    bucket.parameters.push_back(i);
    bucket.offsets.push_back(bucket.elements);
    bucket.elements += (parameter.numel() + kAlign - 1) / kAlign * kAlign;
    // A small first bucket starts the exchange early in the backward pass.
    const std::int64_t limit = buckets.empty() ? options.first_bucket_bytes : options.bucket_bytes;
    if (bucket.elements * element < limit) continue;
    buckets.push_back(std::move(bucket));
    bucket = Bucket();
  }
  for (auto& [type, bucket] : open) {
    if (!bucket.parameters.empty()) buckets.push_back(std::move(bucket));
  }
  if (buckets.empty() || buckets.back().in_place) buckets.emplace_back();
  for (std::size_t number = 0; number < buckets.size(); ++number) {
    for (std::size_t place = 0; place < buckets[number].parameters.size(); ++place) {
      slots[buckets[number].parameters[place]].bucket = number;
      slots[buckets[number].parameters[place]].place = place;
    }
  }
  flags.assign(slots.size() + buckets.size(), 0);
  buckets.back().flags = buckets.back().elements;
  buckets.back().elements += static_cast<std::int64_t>(flags.size());
}

/// Selects a buffer of which no gradient is in use; allocates one if necessary.
void renew(Bucket& bucket, const std::vector<Slot>& slots) {
  if (bucket.in_place) return;
  bucket.current = bucket.buffers[0].idle() ? 0 : 1;
  if (bucket.buffer().flat.defined() && bucket.buffer().idle()) return;
  BucketBuffer fresh;
  // The gaps are zeroed as well: sums of arbitrary bits can be slow (denormals, NaN).
  fresh.flat = at::zeros({bucket.elements}, torch::dtype(bucket.type).device(slots[0].parameter.device()));
  for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
    const torch::Tensor& parameter = slots[bucket.parameters[place]].parameter;
    const bool dense = parameter.is_non_overlapping_and_dense();
    fresh.views.push_back(
        dense ? fresh.flat.as_strided(parameter.sizes(), parameter.strides(), bucket.offsets[place])
              : fresh.flat.narrow(0, bucket.offsets[place], parameter.numel()).view(parameter.sizes()));
  }
  bucket.buffer() = std::move(fresh);
}

void GradientReducer::State::start() {
  if (active) throw std::logic_error("GradientReducer::start() was called twice without finish()");
  at::NoGradGuard no_grad;
  for (Bucket& bucket : buckets) {
    if (!slots.empty()) renew(bucket, slots);
    bucket.missing = bucket.parameters.size();
    bucket.sent = bucket.stale = false;
  }
  for (Slot& slot : slots) slot.reached = false;
  next = 0;
  any_reached = false;
  active = true;
}

void GradientReducer::State::on_accumulated(std::size_t index) {
  Slot& slot = slots[index];
  slot.touched = true;
  // A pass that is not reduced only marks its parameters (gradient accumulation).
  if (!active) return;
  any_reached = true;
  Bucket& bucket = buckets[slot.bucket];
  if (slot.reached && (bucket.in_place || slot.parameter.is_cuda())) {
    throw std::logic_error(
        "a second backward pass between start() and finish() reached a parameter of shape " +
        shape(slot.parameter) +
        " again, which may be on its way by then; call finish() after each, or add the losses");
  }
  if (bucket.sent) {
    bucket.stale = true;  // finish() sends it again
    return;
  }
  if (overlap && !bucket.in_place) copy_in(index);
  if (!std::exchange(slot.reached, true)) --bucket.missing;
  if (overlap) send_ready();
}

/// Returns the gradient. Throws when it is sparse or has another type than the parameter.
const torch::Tensor& checked_gradient(const Slot& slot) {
  const torch::Tensor& gradient = slot.parameter.grad();
  if (!gradient.is_sparse() && gradient.scalar_type() == slot.parameter.scalar_type()) return gradient;
  throw std::runtime_error(
      "the gradient of a parameter of shape " + shape(slot.parameter) +
      " is sparse or of another type than the parameter: it cannot be averaged over ranks");
}

void GradientReducer::State::copy_in(std::size_t index) {
  at::NoGradGuard no_grad;
  Slot& slot = slots[index];
  const torch::Tensor& gradient = checked_gradient(slot);
  torch::Tensor& view = buckets[slot.bucket].buffer().views[slot.place];
  // Equivalent to copy_() without the microsecond of its dispatch, which dominates in small models.
  if (view.is_cpu() && gradient.strides() == view.strides() && view.is_non_overlapping_and_dense()) {
    std::memcpy(view.data_ptr(), gradient.data_ptr(), gradient.nbytes());
  } else {
    view.copy_(gradient);
  }
}

/// Sends complete buckets in order, except the last one, which waits for finish().
void GradientReducer::State::send_ready() {
  while (next + 1 < buckets.size() && buckets[next].missing == 0) send(buckets[next]);
}

/// The gradient itself if its memory is not shared, otherwise a copy; zeros if there is none.
torch::Tensor target_of(const Slot& slot, bool counts) {
  const torch::Tensor& parameter = slot.parameter;
  if (counts) {
    const torch::Tensor& gradient = checked_gradient(slot);
    if (gradient.strides() == parameter.strides() && !gradient.requires_grad() && gradient.use_count() == 1 &&
        gradient.storage().use_count() == 1) {
      return gradient;
    }
  }
  torch::Tensor target =
      at::empty_strided(parameter.sizes(), parameter.strides(), parameter.options().requires_grad(false));
  return counts ? target.copy_(parameter.grad()) : target.zero_();
}

/// Copies the gradients that were not copied as they arrived, and zeroes missing ones.
void GradientReducer::State::fill(Bucket& bucket) {
  for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
    const std::size_t index = bucket.parameters[place];
    if (!counts(slots[index])) {
      bucket.buffer().views[place].zero_();
    } else if (!overlap || !slots[index].reached || bucket.stale) {
      copy_in(index);
    }
  }
}

void GradientReducer::State::write_flags(Bucket& last) {
  for (std::size_t i = 0; i < slots.size(); ++i) flags[i] = counts(slots[i]) ? 1.0f : 0.0f;
  for (std::size_t i = 0; i < buckets.size(); ++i) flags[slots.size() + i] = buckets[i].stale ? 1.0f : 0.0f;
  const auto count = static_cast<std::int64_t>(flags.size());
  torch::Tensor& flat = last.buffer().flat;
  if (flat.is_cpu() && flat.scalar_type() == torch::kFloat) {
    std::copy(flags.begin(), flags.end(), flat.data_ptr<float>() + last.flags);
  } else {
    flat.narrow(0, last.flags, count).copy_(at::from_blob(flags.data(), {count}, torch::kFloat));
  }
}

void GradientReducer::State::send(Bucket& bucket) {
  at::NoGradGuard no_grad;
  torch::Tensor flat;
  if (bucket.in_place) {
    const Slot& slot = slots[bucket.parameters[0]];
    bucket.target = target_of(slot, counts(slot));
    flat = bucket.target.as_strided({bucket.target.numel()}, {1});
  } else {
    fill(bucket);
    if (&bucket == &buckets.back()) write_flags(bucket);
    flat = bucket.buffer().flat;
  }
  bucket.work = communicator.all_reduce(flat, Reduction::kMean, overlap ? Start::kNow : Start::kOnWait);
  if (!overlap) bucket.work->wait();
  bucket.sent = true;
  ++next;
}

void GradientReducer::State::finish() {
  if (!active) throw std::logic_error("GradientReducer::finish() was called without start()");
  if (!any_reached) return end_pass();
  at::NoGradGuard no_grad;
  // Every rank sends every bucket in the same order, including those its pass did not reach.
  while (next < buckets.size()) send(buckets[next]);
  for (Bucket& bucket : buckets) bucket.work->wait();
  read_flags();
  // A second backward pass changed gradients that some rank had sent already.
  for (std::size_t i = 0; i + 1 < buckets.size(); ++i) {
    if (flags[slots.size() + i] == 0) continue;
    buckets[i].stale = true;
    send(buckets[i]);
    buckets[i].work->wait();
  }
  for (Bucket& bucket : buckets) hand_out(bucket);
  end_pass();
}

/// Sets the flags to their sums over all ranks. On CUDA they are not read when the result is known, because
/// reading waits for the device.
void GradientReducer::State::read_flags() {
  Bucket& last = buckets.back();
  const torch::Tensor& flat = last.buffer().flat;
  const bool all_reached =
      std::all_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.reached; });
  if (all_reached && flat.is_cuda()) return;  // on CUDA no bucket is stale
  const auto count = static_cast<std::int64_t>(flags.size());
  const torch::Tensor read = flat.narrow(0, last.flags, count).to(torch::kCPU, torch::kFloat);
  std::copy_n(read.data_ptr<float>(), flags.size(), flags.begin());
}

void GradientReducer::State::hand_out(Bucket& bucket) {
  for (std::size_t place = 0; place < bucket.parameters.size(); ++place) {
    Slot& slot = slots[bucket.parameters[place]];
    slot.touched = false;
    if (flags[bucket.parameters[place]] > 0) {
      slot.parameter.mutable_grad() = bucket.in_place ? bucket.target : bucket.buffer().views[place];
    }
  }
}

void GradientReducer::State::end_pass() {
  active = false;
  for (Bucket& bucket : buckets) {
    bucket.work.reset();
    bucket.target.reset();
  }
}

GradientReducer::GradientReducer(std::vector<torch::Tensor> parameters, Communicator& communicator,
                                 const ReducerOptions& options)
    : state_(std::make_shared<State>(std::move(parameters), communicator, options)) {
  state_->compare_ranks();
  state_->hook_up(state_);
  state_->make_buckets();
}

GradientReducer::~GradientReducer() { state_->unhook(); }

void GradientReducer::start() {
  bool same = true;
  for (std::size_t i = 0; i < state_->all.size() && same; ++i) {
    same = state_->all[i].requires_grad() == state_->wanted[i];
  }
  if (!same) {  // parameters were frozen or unfrozen
    state_->compare_ranks();
    state_->unhook();
    state_->hook_up(state_);
    state_->make_buckets();
  }
  state_->start();
}

void GradientReducer::finish() { state_->finish(); }
bool GradientReducer::is_reached() const { return state_->any_reached; }

void GradientReducer::abandon() {
  for (Bucket& bucket : state_->buckets) {
    // Collectives in progress still use the buffers.
    if (bucket.work) bucket.work->wait();
  }
  state_->end_pass();
}

}  // namespace det
