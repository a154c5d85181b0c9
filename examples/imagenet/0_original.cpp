// The starting point of the tutorial: a training script with its own loops, ResNet on the binary files of
// CIFAR-10.
#include <det/models.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <map>

struct Args {
  std::string data = "data", arch = "resnet18", save = "model_best.pt";
  int64_t epochs = 90, batch_size = 256, print_freq = 10, seed = 1, max_batches = -1;
  double lr = 0.1, momentum = 0.9, weight_decay = 1e-4;
};

Args parse_args(int argc, char** argv) {
  Args args;
  const std::map<std::string, std::string*> words{
      {"--data", &args.data}, {"--arch", &args.arch}, {"--save", &args.save}};
  const std::map<std::string, int64_t*> numbers{{"--epochs", &args.epochs},
                                                {"--batch-size", &args.batch_size},
                                                {"--print-freq", &args.print_freq},
                                                {"--seed", &args.seed},
                                                {"--max-batches", &args.max_batches}};
  const std::map<std::string, double*> fractions{
      {"--lr", &args.lr}, {"--momentum", &args.momentum}, {"--weight-decay", &args.weight_decay}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (words.count(name))
      *words.at(name) = argv[i + 1];
    else if (numbers.count(name))
      *numbers.at(name) = std::atoll(argv[i + 1]);
    else if (fractions.count(name))
      *fractions.at(name) = std::atof(argv[i + 1]);
    else
      throw std::invalid_argument("unknown option " + name);
  }
  return args;
}

/// Each record is 1 byte of label and 3 × 32 × 32 bytes of image.
class Cifar10 : public torch::data::datasets::Dataset<Cifar10> {
 public:
  Cifar10(const std::string& directory, const std::vector<std::string>& names) {
    std::vector<torch::Tensor> parts;
    for (const std::string& name : names) {
      std::ifstream file(directory + "/" + name, std::ios::binary | std::ios::ate);
      if (!file) throw std::runtime_error("cannot open " + directory + "/" + name);
      torch::Tensor part = torch::empty({file.tellg() / 3073, 3073}, torch::kByte);
      file.seekg(0).read(static_cast<char*>(part.data_ptr()), part.numel());
      parts.push_back(part);
    }
    records_ = torch::cat(parts);
  }
  torch::data::Example<> get(size_t index) override {
    const torch::Tensor record = records_[static_cast<int64_t>(index)];
    return {record.slice(0, 1).reshape({3, 32, 32}).to(torch::kFloat) / 255, record[0].to(torch::kLong)};
  }
  torch::optional<size_t> size() const override { return records_.size(0); }

 private:
  torch::Tensor records_;
};

double accuracy(const torch::Tensor& output, const torch::Tensor& target, int64_t k) {
  const torch::Tensor best = std::get<1>(output.topk(k, /*dim=*/1));
  return best.eq(target.unsqueeze(1)).any(1).to(torch::kFloat).mean().item<double>();
}

template <typename Loader>
void train(const Args& args, int64_t epoch, det::models::Classifier& model, torch::optim::SGD& optimizer,
           Loader& loader, torch::Device device) {
  model->train();
  int64_t batch_idx = 0;
  for (auto& batch : *loader) {
    torch::Tensor images = batch.data.to(device), target = batch.target.to(device);
    torch::Tensor output = model(images);
    torch::Tensor loss = torch::cross_entropy_loss(output, target);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (++batch_idx % args.print_freq == 0) {
      std::cout << "epoch " << epoch << " batch " << batch_idx << " loss " << loss.item<double>() << " top1 "
                << accuracy(output, target, 1) << " top5 " << accuracy(output, target, 5) << std::endl;
    }
    if (batch_idx == args.max_batches) return;
  }
}

template <typename Loader>
double validate(det::models::Classifier& model, Loader& loader, torch::Device device) {
  torch::NoGradGuard no_grad;
  model->eval();
  double top1 = 0, records = 0;
  for (auto& batch : *loader) {
    torch::Tensor images = batch.data.to(device), target = batch.target.to(device);
    top1 += accuracy(model(images), target, 1) * static_cast<double>(images.size(0));
    records += static_cast<double>(images.size(0));
  }
  std::cout << "validation top1 " << top1 / records << std::endl;
  return top1 / records;
}

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  torch::manual_seed(args.seed);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  det::models::Classifier model = det::models::make(args.arch, {.classes = 10});
  model->to(device);
  torch::optim::SGD optimizer(
      model->parameters(),
      torch::optim::SGDOptions(args.lr).momentum(args.momentum).weight_decay(args.weight_decay));
  const auto prepared = [&](const std::vector<std::string>& names) {
    return Cifar10(args.data, names)
        .map(torch::data::transforms::Normalize<>(0.5, 0.5))
        .map(torch::data::transforms::Stack<>());
  };
  auto train_loader =
      torch::data::make_data_loader(prepared({"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                              "data_batch_4.bin", "data_batch_5.bin"}),
                                    args.batch_size);
  auto val_loader = torch::data::make_data_loader(prepared({"test_batch.bin"}), args.batch_size);

  double best = -1;
  for (int64_t epoch = 0; epoch < args.epochs; ++epoch) {
    for (auto& group : optimizer.param_groups()) {
      static_cast<torch::optim::SGDOptions&>(group.options()).lr(args.lr * std::pow(0.1, epoch / 30));
    }
    train(args, epoch, model, optimizer, train_loader, device);
    const double top1 = validate(model, val_loader, device);
    if (top1 > best) torch::save(model, args.save);
    best = std::max(best, top1);
  }
}
