#include "harness/src/distributed/virtual_shards.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "common/base/random.h"

namespace det {
namespace {

bool power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/// into += from; an undefined tensor counts as zero. Moves tensors out of `from`.
void add_into(TreeSum::Tensors& into, TreeSum::Tensors& from) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (!from[i].defined()) continue;
    if (into[i].defined()) {
      into[i].add_(from[i]);
    } else {
      into[i] = std::move(from[i]);
    }
  }
}

/// True when the tensor has the strides of `like`, or is contiguous where `like` has gaps.
bool is_laid_out(const torch::Tensor& tensor, const torch::Tensor& like) {
  return like.is_non_overlapping_and_dense() ? tensor.strides() == like.strides() : tensor.is_contiguous();
}

/// A copy of the tensor for which is_laid_out() is true.
torch::Tensor laid_out(const torch::Tensor& tensor, const torch::Tensor& like) {
  torch::Tensor copy = like.is_non_overlapping_and_dense()
                           ? torch::empty_strided(like.sizes(), like.strides(), tensor.options())
                           : torch::empty(like.sizes(), tensor.options());
  return copy.copy_(tensor);
}

/// True when all options of the optimizer have a learning rate; those of a trial's own class may have none.
bool has_learning_rates(torch::optim::Optimizer& optimizer) {
  try {
    for (const auto& group : optimizer.param_groups()) (void)group.options().get_lr();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

void TreeSum::add(Tensors leaf) {
  at::NoGradGuard no_grad;
  // Works like a binary counter: two partial sums of equal size merge into one of the next level.
  std::int64_t leaves = 1;
  while (!partial_.empty() && partial_.back().first == leaves) {
    Tensors left = std::move(partial_.back().second);
    partial_.pop_back();
    add_into(left, leaf);
    leaf = std::move(left);
    leaves *= 2;
  }
  partial_.emplace_back(leaves, std::move(leaf));
}

TreeSum::Tensors TreeSum::take() {
  if (partial_.size() != 1) throw std::logic_error("a tree of gradients is not complete");
  Tensors sum = std::move(partial_.front().second);
  partial_.clear();
  return sum;
}

ShardPlan ShardPlan::make(std::int64_t shards, std::int64_t rank, std::int64_t size) {
  if (!power_of_two(shards) || !power_of_two(size) || shards % size != 0) {
    throw std::invalid_argument(
        "reproducibility: exact cuts every batch into " + std::to_string(shards) +
        " virtual shards; the number of slots must be a power of two up to that, not " +
        std::to_string(size) + " (see reproducibility.virtual_shards)");
  }
  const std::int64_t count = shards / size;
  return {.shards = shards, .first = rank * count, .count = count};
}

TreeSum::Tensors sum_over_ranks(TreeSum::Tensors mine, const std::vector<torch::Tensor>& like,
                                Communicator* communicator, std::int64_t size) {
  at::NoGradGuard no_grad;
  if (size == 1) {
    for (std::size_t i = 0; i < like.size(); ++i) {
      if (mine[i].defined() && !is_laid_out(mine[i], like[i])) mine[i] = laid_out(mine[i], like[i]);
    }
    return mine;
  }
  // One all-gather of bytes: a flag per tensor (defined or not), then the tensors, each 16-byte aligned.
  const auto aligned = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = aligned(static_cast<std::int64_t>(like.size()));
  for (const torch::Tensor& tensor : like) {
    offsets.push_back(bytes);
    bytes += aligned(static_cast<std::int64_t>(tensor.nbytes()));
  }
  const auto options = torch::TensorOptions().dtype(torch::kInt64).device(like.at(0).device());
  torch::Tensor input = torch::zeros({bytes / 8}, options);
  const auto part = [&](const torch::Tensor& buffer, std::size_t i) {
    const std::int64_t first = offsets[i] / 8,
                       length = aligned(static_cast<std::int64_t>(like[i].nbytes())) / 8;
    return buffer.narrow(0, first, length)
        .view(like[i].scalar_type())
        .narrow(0, 0, like[i].numel())
        .view(like[i].sizes());
  };
  torch::Tensor flags = torch::zeros({aligned(static_cast<std::int64_t>(like.size()))}, torch::kByte);
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!mine[i].defined()) continue;
    flags.data_ptr<std::uint8_t>()[i] = 1;
    part(input, i).copy_(mine[i]);
  }
  input.narrow(0, 0, offsets.at(0) / 8).copy_(flags.view(torch::kInt64));
  torch::Tensor output = torch::empty({size * input.numel()}, options);
  communicator->all_gather(output, input)->wait();
  TreeSum tree;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const torch::Tensor from = output.narrow(0, rank * input.numel(), input.numel());
    const torch::Tensor reached = from.narrow(0, 0, offsets.at(0) / 8).cpu().view(torch::kByte);
    TreeSum::Tensors leaf(like.size());
    for (std::size_t i = 0; i < like.size(); ++i) {
      if (reached.data_ptr<std::uint8_t>()[i] != 0) leaf[i] = part(from, i);
    }
    tree.add(std::move(leaf));
  }
  TreeSum::Tensors sum = tree.take();
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (sum[i].defined()) sum[i] = laid_out(sum[i], like[i]);  // a view would keep the gathered buffer alive
  }
  return sum;
}

torch::Tensor weight_of(double records, const torch::Device& device) {
  return torch::full({1}, records, torch::TensorOptions().dtype(torch::kDouble).device(device));
}

void seed_shard(const torch::Device&, std::int64_t trial_seed, std::int64_t batch, std::int64_t shard) {
  Random of_batch{static_cast<std::uint64_t>(trial_seed), static_cast<std::uint64_t>(batch)};
  torch::manual_seed(Random{of_batch.next(), static_cast<std::uint64_t>(shard)}.next());
}

void refuse_uneven_steps() {
  throw std::logic_error(
      "step_optimizer: under reproducibility: exact train_batch is called for each virtual shard of a batch, "
      "and all of these "
      "calls step an optimizer once, or none does");
}

ShardedSchedules::ShardedSchedules(std::vector<LRScheduler*> schedules,
                                   const std::vector<torch::optim::Optimizer*>& optimizers)
    : schedules_(std::move(schedules)) {
  for (torch::optim::Optimizer* optimizer : optimizers) {
    if (has_learning_rates(*optimizer)) optimizers_.push_back(optimizer);
  }
}

void ShardedSchedules::start_step() {
  before_.clear(), rates_.clear(), group_rates_.clear();
  for (torch::optim::Optimizer* optimizer : optimizers_) {
    std::vector<double>& rates = group_rates_.emplace_back();
    for (const auto& group : optimizer->param_groups()) rates.push_back(group.options().get_lr());
  }
  for (LRScheduler* schedule : schedules_) {
    before_.push_back(schedule->state_dict());
    rates_.push_back(schedule->current_lr());
  }
}

void ShardedSchedules::rewind() {
  for (std::size_t i = 0; i < optimizers_.size(); ++i) {
    auto& groups = optimizers_[i]->param_groups();
    for (std::size_t j = 0; j < std::min(groups.size(), group_rates_[i].size()); ++j) {
      auto& options = groups[j].options();
      if (options.get_lr() != group_rates_[i][j]) options.set_lr(group_rates_[i][j]);
    }
  }
  for (std::size_t i = 0; i < schedules_.size(); ++i) {
    schedules_[i]->load_state_dict(before_[i]);
    schedules_[i]->set_lr(rates_[i]);
    schedules_[i]->set_others();
  }
}

ShardedBuffers::ShardedBuffers(const std::vector<std::shared_ptr<torch::nn::Module>>& models) {
  for (const auto& model : models) {
    for (const torch::Tensor& buffer : model->buffers()) {
      if (buffer.defined()) (buffer.is_floating_point() ? buffers_ : others_).push_back(buffer);
    }
  }
}

void ShardedBuffers::start_step() {
  before_.clear(), others_before_.clear(), first_others_.clear();
  for (const torch::Tensor& buffer : buffers_) before_.push_back(buffer.clone());
  for (const torch::Tensor& buffer : others_) others_before_.push_back(buffer.clone());
}

void ShardedBuffers::end_shard(double weight) {
  at::NoGradGuard no_grad;
  TreeSum::Tensors leaf;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    leaf.push_back(buffers_[i].mul(weight));
    buffers_[i].copy_(before_[i]);
  }
  if (!buffers_.empty()) {
    leaf.push_back(weight_of(weight, buffers_[0].device()));
    sum_.add(std::move(leaf));
  }
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (first_others_.size() < others_.size()) first_others_.push_back(others_[i].clone());
    others_[i].copy_(others_before_[i]);
  }
}

void ShardedBuffers::end_step(Communicator* communicator, std::int64_t size) {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    // Counters such as num_batches_tracked cannot be averaged; all ranks take those of shard 0.
    others_[i].copy_(first_others_[i]);
    if (size > 1) communicator->broadcast(others_[i])->wait();
  }
  if (buffers_.empty()) return;
  std::vector<torch::Tensor> like = buffers_;
  like.push_back(weight_of(0, buffers_[0].device()));
  const TreeSum::Tensors sum = sum_over_ranks(sum_.take(), like, communicator, size);
  const double total = sum.back().item<double>();
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(sum[i].div(total));
}

}  // namespace det
