// libFuzzer's entry for the yaml target: bin/fuzz_yaml -max_total_time=60 CORPUS_DIR
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  det::fuzz::yaml({reinterpret_cast<const char*>(data), size});
  return 0;
}
