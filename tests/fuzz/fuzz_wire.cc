// libFuzzer's entry for the wire target: bin/fuzz_wire -max_total_time=60 CORPUS_DIR
#include <cstddef>
#include <cstdint>

#include "wire_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  det::fuzz::wire({reinterpret_cast<const char*>(data), size});
  return 0;
}
