// The network, unchanged by porting: two convolutions and two fully connected layers for 28 x 28 images.
#pragma once

#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout)
      : conv1(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).stride(2)))),
        conv2(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).stride(2)))),
        dropout(register_module("dropout", torch::nn::Dropout(dropout))),
        fc1(register_module("fc1", torch::nn::Linear(16 * 6 * 6, 32))),
        fc2(register_module("fc2", torch::nn::Linear(32, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x));
    x = torch::relu(conv2(x));
    x = torch::relu(fc1(dropout(x.flatten(1))));
    return fc2(x);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout dropout;
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(Net);
