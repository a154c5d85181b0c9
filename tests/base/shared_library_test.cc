// A library that may be missing is found while the program runs, or the error names what is not there.
#include "base/shared_library.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace det {
namespace {

TEST_CASE("functions of a library that is there are found") {
  auto library = SharedLibrary::open("libm.so.6");
  REQUIRE(library);
  double (*hypotenuse)(double, double) = nullptr;
  library->find(hypotenuse, "hypot");
  CHECK(library->complete());
  REQUIRE(hypotenuse != nullptr);
  CHECK(hypotenuse(3, 4) == 5);
}

TEST_CASE("what a library has not is named, all of it") {
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

TEST_CASE("a library that is not there is an error with its name") {
  const auto library = SharedLibrary::open("libno-such-library.so");
  REQUIRE(!library);
  CHECK(library.error().code == Code::kNotFound);
  CHECK_THAT(library.error().message, Catch::Contains("libno-such-library.so"));
}

}  // namespace
}  // namespace det
