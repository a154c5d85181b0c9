// The C++ side of the comparison with Python (reference.py).
//   probe MODEL IN OUT     runs a model of the examples. IN: safetensors with model.*, images and labels.
//                          OUT: gradients as model.*, the scores as images.
//   probe sizes            prints the number of parameters of each of ShiftViT's published sizes.
//   probe cifar10 IN OUT   converts image folders (IN/train, IN/test) to CIFAR-10's binary files, shuffled.
#include <det/det.h>

#include <fstream>
#include <iostream>

#include "examples/shiftvit/model.h"

namespace {

struct Case : torch::nn::Module {
  Case(torch::nn::Sequential model, torch::Tensor images, int64_t labels)
      : model(register_module("model", model)),
        images(register_buffer("images", std::move(images))),
        labels(register_buffer("labels", torch::zeros({labels}, torch::kLong))) {}
  torch::nn::Sequential model;
  torch::Tensor images, labels;
};

Case make_case(const std::string& name) {
  if (name == "shiftvit") {
    const ShiftViTOptions options{
        .classes = 5, .patch_size = 2, .embed_dim = 24, .depths = {2, 1, 2}, .layer_scale = 0.5};
    return {torch::nn::Sequential(ShiftViT(options)), torch::zeros({3, 3, 20, 28}), 3};
  }
  throw std::invalid_argument("no model " + name);
}

int compare(const std::string& name, const std::string& in, const std::string& out) {
  Case case_ = make_case(name);
  det::load_safetensors(in, case_);
  const torch::Tensor scores = case_.model->forward(case_.images);
  torch::cross_entropy_loss(scores, case_.labels).backward();
  torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : case_.parameters()) parameter.copy_(parameter.grad());
  case_.images.set_data(scores.detach());
  det::save_safetensors(case_, out);
  return 0;
}

void write_records(const det::ImageFolder& images, int64_t begin, int64_t end, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (int64_t i = begin; i < end; ++i) {
    const auto& [image, label] = images.files().at(static_cast<std::size_t>(i * 7919 % images.size()));
    const torch::Tensor pixels = det::read_image(image).contiguous();
    file.put(static_cast<char>(label)).write(static_cast<const char*>(pixels.data_ptr()), pixels.numel());
  }
}

int convert(const std::string& in, const std::string& out) {
  const det::ImageFolder train(in + "/train"), test(in + "/test");
  const int64_t part = train.size() / 5;
  for (int64_t i = 0; i < 5; ++i) {
    write_records(train, i * part, (i + 1) * part, out + "/data_batch_" + std::to_string(i + 1) + ".bin");
  }
  write_records(test, 0, test.size(), out + "/test_batch.bin");
  return 0;
}

int sizes() {
  const std::vector<std::pair<std::string, ShiftViTOptions>> published{
      {"T/light", {.depths = {2, 2, 6, 2}, .mlp_ratio = 4}},
      {"T", {.depths = {6, 8, 18, 6}}},
      {"S/light", {.depths = {2, 2, 18, 2}, .mlp_ratio = 4}},
      {"S", {.depths = {10, 18, 36, 10}}},
      {"B/light", {.embed_dim = 128, .depths = {2, 2, 18, 2}, .mlp_ratio = 4}},
      {"B", {.embed_dim = 128, .depths = {10, 18, 36, 10}}}};
  for (const auto& [name, options] : published) {
    int64_t count = 0;
    for (const torch::Tensor& parameter : ShiftViT(options)->parameters()) count += parameter.numel();
    std::cout << name << " " << count << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "sizes") return sizes();
  if (argc == 4 && std::string(argv[1]) == "cifar10") return convert(argv[2], argv[3]);
  return argc == 4 ? compare(argv[1], argv[2], argv[3]) : 2;
}
