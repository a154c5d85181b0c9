#include "common/base/shared_library.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace det {
namespace {

TEST_CASE("functions of an existing library are found") {
  auto library = SharedLibrary::open("libm.so.6");
  REQUIRE(library);
  double (*hypotenuse)(double, double) = nullptr;
  library->find(hypotenuse, "hypot");
  CHECK(library->complete());
  REQUIRE(hypotenuse != nullptr);
  CHECK(hypotenuse(3, 4) == 5);
}

TEST_CASE("all missing functions of a library are named") {
  auto library = SharedLibrary::open("libm.so.6");
  REQUIRE(library);
  double (*found)(double) = nullptr;
  void (*missing)() = [] {};
  void (*other)() = nullptr;
  library->find(missing, "square_the_circle").find(found, "sqrt").find(other, "divide_by_zero");
  CHECK(missing == nullptr);
  CHECK(found != nullptr);
  const Status complete = library->complete();
  REQUIRE(!complete);
  CHECK(complete.error().message == "libm.so.6 has no square_the_circle, divide_by_zero");
}

TEST_CASE("a missing library is an error with its name") {
  const auto library = SharedLibrary::open("libno-such-library.so");
  REQUIRE(!library);
  CHECK(library.error().code == Code::kNotFound);
  CHECK_THAT(library.error().message, Catch::Contains("libno-such-library.so"));
}

}  // namespace
}  // namespace det
