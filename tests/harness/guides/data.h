// Sources of data. Regions of the API guide's chapter on data.
#pragma once

#include <det/det.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "skeleton.h"

class DownloadingTrial : public MyTrial {
 public:
  explicit DownloadingTrial(det::TrialContext& context) : MyTrial(context) {
    const det::Json& data = context.get_data_config();
    path_ = data.at("dir").get<std::string>() + "/train.bin";
    const auto mirrors = data.at("mirrors").get<std::vector<std::string>>();
    if (!det::download(path_, mirrors, data.at("sha256").get<std::string>())) {
      throw std::runtime_error("no mirror has " + path_);
    }
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Stands for user code that creates or downloads files and must not run twice in the same place.
inline void prepare_data(const std::string& file) { std::ofstream(file) << "prepared"; }

class PerRankTrial : public MyTrial {
 public:
  explicit PerRankTrial(det::TrialContext& context)
      : MyTrial(context),
        file_(context.get_data_config().at("dir").get<std::string>() + "/rank-" +
              std::to_string(context.distributed().rank())) {
    prepare_data(file_);
  }

  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

class PerMachineTrial : public MyTrial {
 public:
  explicit PerMachineTrial(det::TrialContext& context)
      : MyTrial(context), file_(context.get_data_config().at("dir").get<std::string>() + "/all-ranks") {
    if (context.distributed().local_rank() == 0) prepare_data(file_);
    context.distributed().barrier();
  }

  const std::string& file() const { return file_; }

 private:
  std::string file_;
};

class FolderTrial : public det::Trial {
 public:
  explicit FolderTrial(det::TrialContext& context)
      : context_(context),
        root_(context.get_data_config().at("root").get<std::string>()),
        model_(context.wrap_model(torch::nn::Linear(3 * 24 * 24, 2))),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(model_->parameters(), 0.001))) {}

  det::DataLoader build_training_data_loader() override {
    namespace T = det::transforms;
    det::ImageFolder images(
        root_ + "/train", T::compose({T::random_resized_crop(24), T::random_horizontal_flip(), T::to_tensor(),
                                      T::normalize({0.5, 0.5, 0.5}, {0.5, 0.5, 0.5})}));
    return {std::move(images),
            {.batch_size = context_.get_per_slot_batch_size(),
             .shuffle = true,
             .num_workers = context_.get_hparam<int64_t>("workers")}};
  }

  det::DataLoader build_validation_data_loader() override {
    namespace T = det::transforms;
    det::ImageFolder images(root_ + "/val", T::compose({T::resize(28), T::center_crop(24), T::to_tensor(),
                                                        T::normalize({0.5, 0.5, 0.5}, {0.5, 0.5, 0.5})}));
    return {std::move(images), {.batch_size = 4}};
  }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    auto [images, labels] = batch.unpack<2>();
    torch::Tensor loss = torch::nn::functional::cross_entropy(model_(images.flatten(1)), labels);
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    auto [images, labels] = batch.unpack<2>();
    torch::Tensor correct = model_(images.flatten(1)).argmax(1) == labels;
    return {{"accuracy", correct.to(torch::kFloat).mean()}};
  }

 private:
  det::TrialContext& context_;
  std::string root_;
  torch::nn::Linear model_;
  torch::optim::SGD& optimizer_;
};

class Sentences : public det::SampleDataset {
 public:
  int64_t size() const override { return 40; }

  det::Batch get(int64_t index) const override {
    torch::Tensor words = torch::arange(index, index + 4).remainder(10);
    torch::Tensor is_even = torch::tensor(index % 2), weight = torch::tensor(1.0F);
    return det::Batch::Dict{{"words", words}, {"targets", det::Batch::List{is_even, weight}}};
  }
};

class DictTrial : public det::Trial {
 public:
  explicit DictTrial(det::TrialContext& context)
      : context_(context),
        embedding_(context.wrap_model(torch::nn::Embedding(10, 2))),
        optimizer_(context.wrap_optimizer(torch::optim::Adam(embedding_->parameters(), 0.05))) {}

  det::DataLoader build_training_data_loader() override {
    return {Sentences(), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }
  det::DataLoader build_validation_data_loader() override { return {Sentences(), {.batch_size = 16}}; }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = loss_of_batch(batch);
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }
  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"validation_loss", loss_of_batch(batch)}};
  }

 private:
  torch::Tensor loss_of_batch(const det::Batch& batch) {
    torch::Tensor first_word = batch["words"].tensor().select(/*dim=*/1, /*index=*/0);
    auto [is_even, weight] = batch["targets"].unpack<2>();
    torch::Tensor loss = torch::nn::functional::cross_entropy(
        embedding_(first_word), is_even,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    return (loss * weight).mean();
  }

  det::TrialContext& context_;
  torch::nn::Embedding embedding_;
  torch::optim::Adam& optimizer_;
};

struct Place {
  int64_t num_workers = 1, rank = 0;
};

inline det::AnyBatchSampler make_batch_sampler(det::AnySampler sampler, bool training, uint64_t shuffle_seed,
                                               const Place& place, int64_t batch_size, int64_t skip) {
  if (training) {
    // Shuffle first, then repeat: an endless order cannot be shuffled.
    sampler = det::ReproducibleShuffleSampler(sampler, shuffle_seed);
    sampler = det::RepeatSampler(sampler);
  }
  // Always shard, and never before repeating.
  sampler = det::DistributedSampler(sampler, place.num_workers, place.rank);
  // Batch before skipping: the trainer counts batches, not records.
  det::AnyBatchSampler batches = det::BatchSampler(sampler, batch_size, /*drop_last=*/false);
  // Skip last, so that it happens once and not in every epoch.
  if (training) batches = det::SkipBatchSampler(batches, skip);
  return batches;
}

class OwnOrderTrial : public MyTrial {
 public:
  explicit OwnOrderTrial(det::TrialContext& context) : MyTrial(context) {
    context.disable_dataset_reproducibility_checks();
  }

  det::DataLoader build_training_data_loader() override {
    auto dataset = std::make_shared<det::TensorDataset>(made_up_data());
    const Place place{context_.distributed().size(), context_.distributed().rank()};
    const auto seed = static_cast<uint64_t>(context_.get_trial_seed());
    return det::SampledBatches(
        dataset, make_batch_sampler(det::SequentialSampler(dataset->size()), /*training=*/true, seed, place,
                                    context_.get_per_slot_batch_size(), context_.get_initial_batch()));
  }
};

class Readings : public det::BatchSource {
 public:
  Readings(const Place& place, int64_t skip) : place_(place), next_(skip) {}

  std::optional<det::Batch> next() override {
    const int64_t number = next_++ * place_.num_workers + place_.rank;
    torch::Tensor data = torch::arange(number, number + 32, torch::kFloat).sin().reshape({8, 4});
    torch::Tensor labels = data.sum(1).gt(0).to(torch::kLong);
    return det::Batch(data, labels);
  }

 private:
  Place place_;
  int64_t next_;
};

class StreamTrial : public MyTrial {
 public:
  explicit StreamTrial(det::TrialContext& context) : MyTrial(context) {
    context.disable_dataset_reproducibility_checks();
  }

  det::DataLoader build_training_data_loader() override {
    const Place place{context_.distributed().size(), context_.distributed().rank()};
    return Readings(place, context_.get_initial_batch());
  }
};
