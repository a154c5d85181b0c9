// Continues a text: `gpt_generate CHECKPOINT "The license " 200`. The checkpoint determines the model's size.
#include <iostream>

#include "model_def.cpp"

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: gpt_generate CHECKPOINT TEXT BYTES" << std::endl;
    return 2;
  }
  torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  auto trial = det::load_trial_from_checkpoint_path<GptTrial>(argv[1]);
  Gpt& model = trial->model();
  model->eval();
  std::string text = argv[2];
  if (text.empty()) text = "\n";
  for (int left = std::stoi(argv[3]); left > 0; --left) {
    const std::string seen = text.substr(text.size() - std::min<std::size_t>(text.size(), model->context));
    torch::Tensor bytes = torch::empty({1, static_cast<int64_t>(seen.size())}, torch::kLong);
    for (std::size_t i = 0; i < seen.size(); ++i) bytes[0][i] = static_cast<uint8_t>(seen[i]);
    const torch::Tensor scores = model(bytes.to(trial.context->device())).select(1, -1).to(torch::kFloat);
    const double temperature = 0.8;
    text += static_cast<char>(torch::multinomial((scores / temperature).softmax(-1), 1).item<int64_t>());
  }
  std::cout << text << std::endl;
} catch (const std::exception& error) {
  std::cerr << "gpt_generate: " << error.what() << std::endl;
  return 1;
}
