// A hand-written training script with LibTorch alone: the starting point of the porting guide.
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "model.h"

struct Args {
  std::string data = "data", save = "model.pt";
  int64_t batch_size = 32, test_batch_size = 500, epochs = 5, lr_step = 1, log_interval = 100, seed = 1;
  double lr = 0.05, momentum = 0.9, weight_decay = 1e-4, dropout = 0.25, gamma = 0.7;
  bool shuffle = true;
};

Args parse_args(int argc, char** argv) {
  Args args;
  const std::map<std::string, int64_t*> numbers{{"--batch-size", &args.batch_size},
                                                {"--epochs", &args.epochs},
                                                {"--lr-step", &args.lr_step},
                                                {"--log-interval", &args.log_interval},
                                                {"--seed", &args.seed}};
  const std::map<std::string, double*> fractions{{"--lr", &args.lr},
                                                 {"--momentum", &args.momentum},
                                                 {"--weight-decay", &args.weight_decay},
                                                 {"--dropout", &args.dropout},
                                                 {"--gamma", &args.gamma}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--no-shuffle") {
      args.shuffle = false;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
    const char* value = argv[++i];
    if (name == "--data") {
      args.data = value;
    } else if (name == "--save") {
      args.save = value;
    } else if (numbers.count(name) > 0) {
      *numbers.at(name) = std::atoll(value);
    } else if (fractions.count(name) > 0) {
      *fractions.at(name) = std::atof(value);
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  return args;
}

/// An IDX file of bytes: 0, 0, 8, the number of dimensions, their sizes (big-endian), the bytes.
torch::Tensor read_idx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  const auto read_number = [&file] {
    unsigned char bytes[4];
    file.read(reinterpret_cast<char*>(bytes), 4);
    return int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | int64_t{bytes[3]};
  };
  std::vector<int64_t> shape(read_number() & 0xff);
  for (int64_t& size : shape) size = read_number();
  torch::Tensor data = torch::empty(shape, torch::kByte);
  file.read(static_cast<char*>(data.data_ptr()), data.numel());
  if (!file) throw std::runtime_error(path + " is too short");
  return data;
}

class Images : public torch::data::datasets::Dataset<Images> {
 public:
  explicit Images(const std::string& prefix)
      : images_(read_idx(prefix + "-images-idx3-ubyte")), labels_(read_idx(prefix + "-labels-idx1-ubyte")) {}

  torch::data::Example<> get(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {images_[row].unsqueeze(0).to(torch::kFloat) / 255, labels_[row].to(torch::kLong)};
  }
  torch::optional<size_t> size() const override { return images_.size(0); }

 private:
  torch::Tensor images_, labels_;
};

template <typename Sampler>
auto make_loader(const std::string& prefix, int64_t batch_size) {
  return torch::data::make_data_loader<Sampler>(Images(prefix)
                                                    .map(torch::data::transforms::Normalize<>(0.5, 0.5))
                                                    .map(torch::data::transforms::Stack<>()),
                                                batch_size);
}

template <typename Loader>
void train(const Args& args, int64_t epoch, Net& model, torch::optim::SGD& optimizer, Loader& loader,
           torch::Device device) {
  model->train();
  int64_t batch_idx = 0;
  double running_loss = 0;
  for (auto& batch : *loader) {
    torch::Tensor images = batch.data.to(device);
    torch::Tensor labels = batch.target.to(device);
    optimizer.zero_grad();
    torch::Tensor output = model(images);
    torch::Tensor loss = torch::nn::functional::cross_entropy(output, labels);
    loss.backward();
    optimizer.step();
    running_loss += loss.item<double>();
    if (++batch_idx % args.log_interval == 0) {
      std::cout << "epoch " << epoch << " batch " << batch_idx << " loss " << running_loss / args.log_interval
                << std::endl;
      running_loss = 0;
    }
  }
}

template <typename Loader>
double validate(Net& model, Loader& loader, torch::Device device) {
  torch::NoGradGuard no_grad;
  model->eval();
  double total_loss = 0;
  int64_t correct = 0, records = 0;
  for (auto& batch : *loader) {
    torch::Tensor images = batch.data.to(device);
    torch::Tensor labels = batch.target.to(device);
    torch::Tensor output = model(images);
    total_loss +=
        torch::nn::functional::cross_entropy(output, labels).template item<double>() * images.size(0);
    correct += (output.argmax(1) == labels).sum().template item<int64_t>();
    records += images.size(0);
  }
  std::cout << "validation loss " << total_loss / records << " accuracy " << double(correct) / records
            << std::endl;
  return double(correct) / records;
}

template <typename Sampler>
void fit(const Args& args) {
  torch::manual_seed(args.seed);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);

  Net model(args.dropout);
  model->to(device);
  torch::optim::SGD optimizer(
      model->parameters(),
      torch::optim::SGDOptions(args.lr).momentum(args.momentum).weight_decay(args.weight_decay));

  auto train_loader = make_loader<Sampler>(args.data + "/train", args.batch_size);
  auto test_loader =
      make_loader<torch::data::samplers::SequentialSampler>(args.data + "/t10k", args.test_batch_size);

  double best = 0;
  for (int64_t epoch = 1; epoch <= args.epochs; ++epoch) {
    train(args, epoch, model, optimizer, train_loader, device);
    const double accuracy = validate(model, test_loader, device);
    if (epoch % args.lr_step == 0) {
      for (auto& group : optimizer.param_groups()) {
        auto& options = static_cast<torch::optim::SGDOptions&>(group.options());
        options.lr(options.lr() * args.gamma);
      }
    }
    if (accuracy > best) {
      best = accuracy;
      torch::save(model, args.save);
    }
  }
}

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (args.shuffle) {
    fit<torch::data::samplers::RandomSampler>(args);
  } else {
    fit<torch::data::samplers::SequentialSampler>(args);
  }
  return 0;
}
