// Rules that take the slot of a GPU out of service.
#include <catch2/catch.hpp>

#include "agent/gpu/faults.h"

using namespace det::agent;
using det::GpuReading, det::Slowdown;

TEST_CASE("errors of programs are no faults of a GPU, errors of hardware and driver are", "[gpu]") {
  for (const std::uint64_t xid : {13, 31, 43, 45, 63, 68, 69, 94, 109}) {
    CAPTURE(xid);
    CHECK_FALSE(fault_of_xid(xid));
  }
  CHECK(fault_of_xid(79) == "GPU error Xid 79 (fallen off the bus); see dmesg");
  for (const std::uint64_t xid : {48, 62, 64, 74, 92, 95, 119, 120}) {
    CAPTURE(xid);
    CHECK(fault_of_xid(xid));
  }
  // An unknown number: a check decides.
  CHECK(fault_of_xid(999) == "GPU error Xid 999; see dmesg");
}

TEST_CASE("memory errors before the first reading are no fault, later ones are", "[gpu]") {
  GpuRules rules;
  CHECK(rules.judge({.ecc_errors = 5}).fault.empty());
  CHECK(rules.judge({.ecc_errors = 5}).fault.empty());
  CHECK(rules.judge({.ecc_errors = 6}).fault == kMemoryError);
  CHECK(rules.judge({.ecc_errors = 6}).fault.empty());
  // A reset clears the counter.
  CHECK(rules.judge({.ecc_errors = 0}).fault.empty());
  CHECK(rules.judge({}).fault.empty());
  CHECK(rules.judge({.ecc_errors = 1}).fault == kMemoryError);
}

TEST_CASE("a lost GPU, a pending and a failed row remapping are conditions", "[gpu]") {
  GpuRules rules;
  CHECK(rules.judge({}).condition.empty());
  CHECK_THAT(rules.judge({.lost = true}).condition, Catch::Contains("cannot reach the GPU"));
  CHECK_THAT(rules.judge({.remap_pending = true}).condition, Catch::Contains("needs a reset"));
  CHECK_THAT(rules.judge({.remap_pending = true, .remap_failed = true}).condition,
             Catch::Contains("replace it"));
  CHECK(rules.judge({}).condition.empty());
}

TEST_CASE("a GPU that the hardware slows down for several readings is out of service", "[gpu]") {
  GpuRules rules;
  const GpuReading slow{.slowdown = Slowdown::kHardware | Slowdown::kHardwareThermal};
  for (int i = 1; i < GpuRules::kMaxSlowReadings; ++i) CHECK(rules.judge(slow).condition.empty());
  CHECK(rules.judge(slow).condition ==
        "the hardware slows the GPU down (hardware, hardware thermal); check cooling and power");
  CHECK(rules.judge({}).condition.empty());
  CHECK(rules.judge(slow).condition.empty());
  // The limit of its power, and that of its temperature in software, are normal operation.
  GpuRules normal;
  for (int i = 0; i < 10; ++i)
    CHECK(normal.judge({.slowdown = Slowdown::kPowerCap | Slowdown::kSoftwareThermal}).condition.empty());
  CHECK(slowdown_text(Slowdown::kPowerCap | Slowdown::kSoftwareThermal) == "power cap, thermal");
  CHECK(slowdown_text(0x1).empty());  // idle
}
