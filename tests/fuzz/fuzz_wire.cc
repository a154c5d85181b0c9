// libFuzzer's entry for the wire target: bin/fuzz_wire -max_total_time=60 CORPUS_DIR. An empty CORPUS_DIR is
// filled with the generated seeds first.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "wire_targets.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path last = (*argv)[*argc - 1];
  if (*argc < 2 || !std::filesystem::is_directory(last) || !std::filesystem::is_empty(last)) return 0;
  for (const auto& [name, bytes] : det::fuzz::wire_seeds())
    std::ofstream(last / name, std::ios::binary) << bytes;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  det::fuzz::wire({reinterpret_cast<const char*>(data), size});
  return 0;
}
