// Started by ddp_test as the ranks of a trial. Prints a line per check: "ok NAME DIGEST", with a digest that
// must be equal on all ranks, or "FAIL NAME why".
#include <c10/core/ScalarType.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <numeric>

#include "common/base/shared_library.h"
#include "common/crypto/digest.h"
#include "harness/src/distributed/communicator.h"
#include "harness/src/distributed/gradient_reducer.h"
#include "harness/src/distributed/transport.h"
#include "tests/standins/host_queue.h"

namespace det {
namespace {

using torch::Tensor;

std::string digest(const std::vector<Tensor>& tensors) {
  Sha256 sha;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      sha.update("undefined");
      continue;
    }
    const Tensor plain = tensor.detach().contiguous();
    sha.update({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  }
  return sha.hex().substr(0, 16);
}

/// Random numbers seeded by size and rank, so that every rank can compute the values of the others.
Tensor numbers(std::int64_t count, torch::ScalarType type, int rank) {
  torch::manual_seed(static_cast<std::uint64_t>(1000 * count + rank));
  if (type == torch::kLong) return torch::randint(-1000, 1000, {count}, type);
  return torch::randn({count}, type == torch::kDouble ? torch::kDouble : torch::kFloat).to(type);
}

/// NCCL is a stand-in on the memory of the CPU.
std::unique_ptr<Communicator> connect(DistributedContext& distributed, const std::string& backend) {
  if (backend != "nccl") return make_communicator(distributed, torch::kCPU, backend);
  // Loaded before, a library is found by its name.
  if (auto loaded = SharedLibrary::open(FAKE_NCCL); !loaded) throw std::runtime_error(loaded.error().message);
  return make_nccl_communicator(distributed, torch::kCPU, std::make_unique<testing::HostQueue>());
}

struct Suite {
  DistributedContext& distributed;
  std::string backend;
  std::unique_ptr<Communicator> communicator = connect(distributed, backend);
  int rank = distributed.rank(), size = distributed.size();

  void say(const std::string& name, bool right, const std::vector<Tensor>& results,
           const std::string& why = "") {
    std::printf("%s %s %s%s\n", right ? "ok" : "FAIL", name.c_str(), digest(results).c_str(),
                right ? "" : why.c_str());
  }
};

// ---- collectives ----

void all_reduce(Suite& suite) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf, torch::kLong}) {
    for (const std::int64_t count : {1, 7, 4096, 4097, 70001, 700003}) {
      Tensor sum = numbers(count, type, suite.rank);
      suite.communicator->all_reduce(sum)->wait();
      const bool small = type == torch::kBFloat16 || type == torch::kHalf;
      Tensor expected = numbers(count, type, 0).to(small ? torch::kFloat : type);
      for (int rank = 1; rank < suite.size; ++rank) expected = expected + numbers(count, type, rank);
      expected = expected.to(type);
      const std::string name =
          std::string("all_reduce of ") + c10::toString(type) + " " + std::to_string(count);
      // Shared memory sums in rank order with one rounding, so the result is exact.
      const bool right = suite.backend == "shm" || type == torch::kLong
                             ? torch::equal(sum, expected)
                             : torch::allclose(sum.to(torch::kDouble), expected.to(torch::kDouble),
                                               small ? 1e-2 : 1e-5, 1e-5);
      suite.say(name, right, {sum});
    }
  }
}

void all_mean(Suite& suite) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const std::int64_t count : {100, 300001}) {
      Tensor mean = numbers(count, type, suite.rank);
      suite.communicator->all_reduce(mean, Reduction::kMean)->wait();
      Tensor expected = numbers(count, type, 0).to(torch::kFloat);
      for (int rank = 1; rank < suite.size; ++rank) expected = expected + numbers(count, type, rank);
      expected = (expected * (1.0 / suite.size)).to(type);
      const bool right = suite.backend == "shm"
                             ? torch::equal(mean, expected)
                             : torch::allclose(mean, expected, type == torch::kFloat ? 1e-5 : 1e-2, 1e-5);
      suite.say("mean of " + std::to_string(count), right, {mean});
    }
  }
}

void all_gather(Suite& suite) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kLong}) {
    for (const std::int64_t count : {1, 100, 200001}) {
      Tensor output = torch::zeros({suite.size * count}, type);
      suite.communicator->all_gather(output, numbers(count, type, suite.rank))->wait();
      std::vector<Tensor> all;
      for (int rank = 0; rank < suite.size; ++rank) all.push_back(numbers(count, type, rank));
      suite.say("all_gather " + std::to_string(count), torch::equal(output, torch::cat(all)), {output});
    }
  }
}

void broadcast(Suite& suite) {
  for (const std::int64_t count : {1, 300007}) {
    Tensor tensor = numbers(count, torch::kFloat, suite.rank);
    suite.communicator->broadcast(tensor)->wait();
    suite.say("broadcast " + std::to_string(count), torch::equal(tensor, numbers(count, torch::kFloat, 0)),
              {tensor});
  }
}

void many_in_flight(Suite& suite) {
  std::vector<Tensor> tensors;
  std::vector<std::unique_ptr<Work>> works;
  for (int i = 0; i < 60; ++i) {
    tensors.push_back(torch::full({i % 3 == 0 ? 200000 : 10 + i}, suite.rank + i, torch::kFloat));
    works.push_back(i % 7 == 6 ? suite.communicator->broadcast(tensors.back())
                               : suite.communicator->all_reduce(tensors.back()));
  }
  bool right = true;
  for (int i = 60; i-- > 0;) {  // reverse order
    works[static_cast<std::size_t>(i)]->wait();
    const int sum = i % 7 == 6 ? i : suite.size * i + suite.size * (suite.size - 1) / 2;
    right = right && torch::equal(tensors[static_cast<std::size_t>(i)],
                                  torch::full_like(tensors[static_cast<std::size_t>(i)], sum));
  }
  suite.say("many in flight", right, tensors);
}

// ---- gradients ----

/// A small network with convolution and linear layers. Parts of it can be left out of a pass.
struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed = 7) {
    torch::manual_seed(seed);
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3)));
    wide = register_module("wide", torch::nn::Linear(4 * 6 * 6, 3000));
    narrow = register_module("narrow", torch::nn::Linear(3000, 5));
    spare = register_module("spare", torch::nn::Linear(5, 5));
  }
  Tensor loss(int rank, int batch, bool with_spare = true) {
    torch::manual_seed(static_cast<std::uint64_t>(rank * 100 + batch));
    const Tensor input = torch::randn({3, 1, 8, 8});
    Tensor out = narrow(torch::relu(wide(conv(input).flatten(1))));
    if (with_spare) out = spare(out);
    return out.square().mean();
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear wide{nullptr}, narrow{nullptr}, spare{nullptr};
};

const ReducerOptions kSmallBuckets{.bucket_bytes = 40000, .first_bucket_bytes = 100};

void clear(torch::nn::Module& model) {
  for (Tensor& parameter : model.parameters()) parameter.mutable_grad().reset();
}

std::vector<Tensor> grads(const torch::nn::Module& model) {
  std::vector<Tensor> all;
  for (const Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
  return all;
}

/// The mean over ranks of the gradients of `loss(model, rank)`, computed by one process.
std::vector<Tensor> mean_of(int size, const std::function<void(Net&, int)>& backward) {
  std::vector<Tensor> sums;
  for (int rank = 0; rank < size; ++rank) {
    Net model;
    backward(model, rank);
    std::size_t i = 0;
    for (const Tensor& parameter : model.parameters()) {
      if (rank == 0) sums.emplace_back();
      Tensor& sum = sums[i++];
      if (parameter.grad().defined()) sum = sum.defined() ? sum + parameter.grad() : parameter.grad().clone();
    }
  }
  for (Tensor& sum : sums) {
    if (sum.defined()) sum = sum / size;
  }
  return sums;
}

bool close(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined()) return false;
    if (a[i].defined() && !torch::allclose(a[i], b[i], 1e-4, 1e-6)) return false;
  }
  return a.size() == b.size();
}

void reduces_to_the_mean(Suite& suite) {
  for (const bool overlap : {true, false}) {
    for (const std::int64_t bytes : {std::int64_t{100}, std::int64_t{40000}, std::int64_t{25} << 20}) {
      Net model;
      GradientReducer reducer(model.parameters(), *suite.communicator,
                              {.bucket_bytes = bytes, .first_bucket_bytes = bytes, .overlap = overlap});
      for (int batch = 0; batch < 3; ++batch) {
        clear(model);
        reducer.start();
        model.loss(suite.rank, batch).backward();
        reducer.finish();
        const auto expected =
            mean_of(suite.size, [&](Net& net, int rank) { net.loss(rank, batch).backward(); });
        // The digest shows that overlap and bucket size do not change a bit of sums over shared memory.
        suite.say("mean " + std::to_string(batch), close(grads(model), expected), grads(model));
      }
    }
  }
}

void unused_parameters(Suite& suite) {
  Net model;
  GradientReducer reducer(model.parameters(), *suite.communicator, kSmallBuckets);
  reducer.start();
  model.loss(suite.rank, 0, suite.rank != 1).backward();
  reducer.finish();
  auto expected = mean_of(suite.size, [](Net& net, int rank) { net.loss(rank, 0, rank != 1).backward(); });
  suite.say("unused on one rank", close(grads(model), expected), grads(model));

  const Tensor before = torch::full({5, 5}, 3.0f);
  model.spare->weight.mutable_grad() = before.clone();
  model.spare->bias.mutable_grad().reset();
  for (Tensor parameter : {model.narrow->weight, model.narrow->bias, model.wide->weight, model.wide->bias,
                           model.conv->weight, model.conv->bias}) {
    parameter.mutable_grad().reset();
  }
  reducer.start();
  model.loss(suite.rank, 1, false).backward();
  reducer.finish();
  expected = mean_of(suite.size, [](Net& net, int rank) { net.loss(rank, 1, false).backward(); });
  expected[6] = before;  // the old gradient stays
  suite.say("unused on all ranks", close(grads(model), expected), grads(model));
}

void passes_without_reduction_are_added(Suite& suite) {
  Net model;
  GradientReducer reducer(model.parameters(), *suite.communicator, kSmallBuckets);
  model.loss(suite.rank, 0).backward();  // an aggregation pass without reduction
  reducer.start();
  model.loss(suite.rank, 1, false).backward();  // omits parameters of the first pass
  reducer.finish();
  const auto expected = mean_of(suite.size, [](Net& net, int rank) {
    net.loss(rank, 0).backward();
    net.loss(rank, 1, false).backward();
  });
  suite.say("aggregation", close(grads(model), expected), grads(model));
}

void two_backward_passes_in_one(Suite& suite) {
  for (const bool overlap : {true, false}) {
    Net model;
    ReducerOptions options = kSmallBuckets;
    options.in_place_bytes = 1 << 30;
    options.overlap = overlap;
    GradientReducer reducer(model.parameters(), *suite.communicator, options);
    reducer.start();
    model.loss(suite.rank, 0).backward();
    if (suite.rank == 0) model.loss(0, 1).backward();  // only rank 0 changes a gradient after sending it
    reducer.finish();
    const auto expected = mean_of(suite.size, [](Net& net, int rank) {
      net.loss(rank, 0).backward();
      if (rank == 0) net.loss(0, 1).backward();
    });
    suite.say("two passes in one reduction", close(grads(model), expected), grads(model));
  }
}

void two_backward_passes_in_place(Suite& suite) {
  Net model;
  GradientReducer reducer(model.parameters(), *suite.communicator, kSmallBuckets);
  reducer.start();
  model.loss(suite.rank, 0).backward();
  std::string message = "accepted";
  try {
    model.loss(suite.rank, 1).backward();
  } catch (const std::logic_error& error) {
    message = error.what();
  }
  reducer.abandon();
  suite.say("two passes over a large gradient",
            message.find("reached a parameter of shape [3000, 144] again") != std::string::npos, {}, message);
  clear(model);
  reducer.start();
  model.loss(suite.rank, 2).backward();
  reducer.finish();
  const auto expected = mean_of(suite.size, [](Net& net, int rank) { net.loss(rank, 2).backward(); });
  suite.say("a pass after an abandoned one", close(grads(model), expected), grads(model));
}

void gradients_that_are_kept(Suite& suite) {
  Net model;
  GradientReducer reducer(model.parameters(), *suite.communicator, kSmallBuckets);
  std::vector<Tensor> held, copies;
  bool right = true;
  for (int batch = 0; batch < 4; ++batch) {  // never cleared: each pass adds to the mean so far
    reducer.start();
    model.loss(suite.rank, batch).backward();
    reducer.finish();
    const auto expected = mean_of(suite.size, [&](Net& net, int rank) {
      for (int each = 0; each <= batch; ++each) net.loss(rank, each).backward();
    });
    right = right && close(grads(model), expected);
  }
  suite.say("gradients that are not cleared", right, grads(model));

  for (int batch = 0; batch < 4; ++batch) {
    clear(model);
    reducer.start();
    model.loss(suite.rank, batch).backward();
    reducer.finish();
    held.push_back(model.wide->weight.grad());
    copies.push_back(held.back().clone());
  }
  right = true;
  for (std::size_t i = 0; i < held.size(); ++i) right = right && torch::equal(held[i], copies[i]);
  suite.say("gradients that someone holds are not overwritten", right, held);
}

/// The generator's pass reaches both networks. Each network has its own reducer and communicator, and the
/// ranks reach different parameters.
void two_models(Suite& suite) {
  auto second = connect(suite.distributed, suite.backend);
  Net generator(1), judge(2);
  GradientReducer of_generator(generator.parameters(), *suite.communicator, kSmallBuckets);
  GradientReducer of_judge(judge.parameters(), *second, kSmallBuckets);
  for (int batch = 0; batch < 3; ++batch) {
    clear(judge);
    of_generator.start();
    of_judge.start();
    judge.loss(suite.rank, batch).backward();
    of_generator.finish();  // no gradients: does nothing
    of_judge.finish();
    clear(generator);
    of_generator.start();
    of_judge.start();
    (generator.loss(suite.rank, batch, suite.rank != 1) + judge.loss(suite.rank, batch + 7, suite.rank != 0))
        .backward();
    of_generator.finish();
    of_judge.finish();
  }
  auto all = grads(generator);
  for (const Tensor& grad : grads(judge)) all.push_back(grad);
  suite.say("two models in one pass", true, all);
}

/// A gradient with shared memory is averaged in a copy.
void gradients_that_share_memory(Suite& suite) {
  const Tensor a = torch::zeros({600000}).requires_grad_(), b = torch::zeros({600, 1000}).requires_grad_();
  GradientReducer reducer({a, b}, *suite.communicator);
  reducer.start();
  ((a.view({600, 1000}) + b) * torch::full({600, 1000}, suite.rank + 1.0f)).sum().backward();
  reducer.finish();
  const float mean = static_cast<float>(suite.size + 1) / 2;
  const bool right =
      torch::equal(a.grad(), torch::full_like(a, mean)) && torch::equal(b.grad(), torch::full_like(b, mean));
  suite.say("gradients that share memory", right, {a.grad(), b.grad()});
}

void types_and_layouts(Suite& suite) {
  torch::manual_seed(3);
  const Tensor a = torch::randn({6, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const Tensor b = torch::randn({700}).to(torch::kBFloat16).requires_grad_();
  const Tensor c = torch::randn({33}, torch::kDouble).requires_grad_();
  const Tensor frozen = torch::randn({10});
  GradientReducer reducer({a, b, frozen, c}, *suite.communicator, kSmallBuckets);
  const auto pass = [&] {
    reducer.start();
    Tensor loss = (a * (suite.rank + 1)).sum() + (b * (suite.rank + 1)).sum().to(torch::kFloat) +
                  (c * (suite.rank + 1)).sum();
    if (frozen.requires_grad()) loss = loss + (frozen * (suite.rank + 1)).sum();
    loss.backward();
    reducer.finish();
  };
  pass();
  const double mean = (suite.size + 1) / 2.0;
  const auto all_are = [&](const Tensor& tensor, double value) {
    return tensor.grad().defined() && torch::equal(tensor.grad(), torch::full_like(tensor.grad(), value));
  };
  bool right = all_are(a, mean) && all_are(b, mean) && all_are(c, mean) && !frozen.grad().defined() &&
               a.grad().is_contiguous(at::MemoryFormat::ChannelsLast) &&
               b.grad().scalar_type() == torch::kBFloat16;
  suite.say("types and layouts", right, {a.grad(), b.grad(), c.grad()});
  frozen.requires_grad_();
  for (const Tensor& each : {a, b, c}) each.mutable_grad().reset();
  pass();
  suite.say("a thawed parameter", all_are(frozen, mean) && all_are(a, mean), {frozen.grad()});
}

void different_models_are_refused(Suite& suite) {
  const Tensor parameter = torch::zeros({suite.rank == 1 ? 3 : 4}).requires_grad_();
  std::string message = "accepted";
  try {
    GradientReducer reducer({parameter}, *suite.communicator);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  suite.say("different models", message.find("on rank 1 differ from rank 0's") != std::string::npos, {},
            message);
}

/// Mismatched collectives fail on the ranks that detect them instead of returning wrong sums.
void mismatch(Suite& suite) {
  Tensor tensor = torch::ones({suite.rank == 0 ? 8 : 16});
  std::string message = "accepted";
  try {
    suite.communicator->all_reduce(tensor)->wait();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  suite.say(
      "mismatch",
      message.find("while rank " + std::to_string(suite.rank) + " is in all_reduce of") != std::string::npos,
      {}, message);
  suite.distributed.barrier();
}

int die(Suite& suite, int victim) {
  Net model;
  GradientReducer reducer(model.parameters(), *suite.communicator, kSmallBuckets);
  for (int batch = 0;; ++batch) {
    clear(model);
    reducer.start();
    model.loss(suite.rank, batch).backward();
    if (batch == 3 && suite.rank == victim) std::raise(SIGKILL);
    reducer.finish();
  }
}

/// Ten collectives after another, for answers that a script plans.
int count(Suite& suite) {
  for (int i = 0; i < 10; ++i) {
    Tensor tensor = torch::full({1000}, 1.0f);
    suite.communicator->all_reduce(tensor)->wait();
    suite.say("sum " + std::to_string(i), torch::equal(tensor, torch::full({1000}, 1.0f * suite.size)),
              {tensor});
  }
  return 0;
}

/// The same on the victim of a hang, which ends itself in place of the agent's supervisor. A collective of
/// more than 3 s hangs.
int count_until_hang(Suite& suite) {
  std::signal(SIGALRM, [](int) { std::raise(SIGKILL); });
  for (int i = 0; i < 10; ++i) {
    ::alarm(3);
    Tensor tensor = torch::ones({1000});
    suite.communicator->all_reduce(tensor)->wait();
  }
  return 0;
}

int train(const std::string& backend, const std::string& mode, int victim) {
  torch::set_num_threads(1);
  DistributedContext distributed(rank_info_from_environment(), 60);
  Suite suite{distributed, backend};
  if (mode == "die") return die(suite, victim);
  // Raised by a write to the connection of a dead rank, unless the ring learned of its end before.
  if (mode == "pipe") return std::raise(SIGPIPE);
  if (mode == "count") return count(suite);
  if (mode == "killed") return suite.rank == victim ? count_until_hang(suite) : count(suite);
  if (mode == "mismatch") return mismatch(suite), 0;
  for (const auto check : {all_reduce, all_mean, all_gather, broadcast, many_in_flight, reduces_to_the_mean,
                           unused_parameters, passes_without_reduction_are_added, two_backward_passes_in_one,
                           two_backward_passes_in_place, gradients_that_are_kept, two_models,
                           gradients_that_share_memory, types_and_layouts, different_models_are_refused}) {
    check(suite);
  }
  return 0;
}

}  // namespace
}  // namespace det

/// ddp_rank BACKEND [MODE [VICTIM]]
int main(int argc, char** argv) {
  try {
    return det::train(argv[1], argc > 2 ? argv[2] : "", argc > 3 ? std::atoi(argv[3]) : -1);
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
