// Two convolutions and two fully connected layers. Input [B, 1, 28, 28], output log-probabilities [B, 10].
#pragma once

#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t n_filters1, int64_t n_filters2, double dropout1, double dropout2)
      : conv1(register_module("conv1", torch::nn::Conv2d(1, n_filters1, 3))),
        conv2(register_module("conv2", torch::nn::Conv2d(n_filters1, n_filters2, 3))),
        dropout1(register_module("dropout1", torch::nn::Dropout(dropout1))),
        fc1(register_module("fc1", torch::nn::Linear(12 * 12 * n_filters2, 128))),
        dropout2(register_module("dropout2", torch::nn::Dropout(dropout2))),
        fc2(register_module("fc2", torch::nn::Linear(128, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x));
    x = dropout1(torch::relu(torch::max_pool2d(conv2(x), 2)));
    x = torch::relu(fc1(x.flatten(1)));
    return torch::log_softmax(fc2(dropout2(x)), /*dim=*/1);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout dropout1;
  torch::nn::Linear fc1;
  torch::nn::Dropout dropout2;
  torch::nn::Linear fc2;
};
TORCH_MODULE(Net);
