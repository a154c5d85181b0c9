// A language model of bytes. Set data.file in const.yaml to your text.
#include <det/det.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t width)
      : embedding(register_module("embedding", torch::nn::Embedding(256, width))),
        gru(register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(width, width).batch_first(true)))),
        head(register_module("head", torch::nn::Linear(width, 256))) {}

  // Bytes [B, T] to logits [B, T, 256] of the byte that follows each of them.
  torch::Tensor forward(const torch::Tensor& bytes) { return head(std::get<0>(gru(embedding(bytes)))); }

  torch::nn::Embedding embedding;
  torch::nn::GRU gru;
  torch::nn::Linear head;
};
TORCH_MODULE(Net);

torch::Tensor read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) throw std::runtime_error("data.file: " + path + " is empty or cannot be read");
  return torch::from_blob(text.data(), {int64_t(text.size())}, torch::kByte).to(torch::kLong);
}

// Windows of `length` bytes, and the same windows one byte later.
det::TensorDataset windows(const torch::Tensor& bytes, int64_t length) {
  torch::Tensor all = bytes.unfold(0, length + 1, /*step=*/4);
  return det::TensorDataset(all.narrow(1, 0, length), all.narrow(1, 1, length));
}

class MyTrial : public det::Trial {
 public:
  explicit MyTrial(det::TrialContext& context)
      : context_(context),
        bytes_(read_bytes(context.get_data_config().at("file").get<std::string>())),
        model_(context.wrap_model(Net(context.get_hparam<int>("width")))),
        optimizer_(context.wrap_optimizer(
            torch::optim::AdamW(model_->parameters(), context.get_hparam<double>("learning_rate")))) {}

  // The last tenth of the text is for validation.
  det::DataLoader build_training_data_loader() override {
    return {windows(bytes_.narrow(0, 0, bytes_.size(0) * 9 / 10), context_.get_hparam<int>("length")),
            {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override {
    int64_t begin = bytes_.size(0) * 9 / 10;
    return {windows(bytes_.narrow(0, begin, bytes_.size(0) - begin), context_.get_hparam<int>("length")),
            {.batch_size = 64}};
  }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = loss_of_bytes(batch);
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"validation_loss", loss_of_bytes(batch)}};
  }

 private:
  torch::Tensor loss_of_bytes(det::Batch& batch) {
    return torch::cross_entropy_loss(model_(batch.data()).flatten(0, 1), batch.target().flatten());
  }

  det::TrialContext& context_;
  torch::Tensor bytes_;
  Net model_;
  torch::optim::AdamW& optimizer_;
};
