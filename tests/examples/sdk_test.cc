// Builds the examples against the installed SDK only, in each supported way: det::core, det::det, and the
// recipe by which an agent compiles model_def.cpp. The folder is kept between runs to make rebuilds
// incremental.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "run.h"
#include "test_paths.h"

namespace det::testing {
namespace {

const std::string kPlace = build_path("/sdk-test");
const std::string kPrefix = kPlace + "/prefix";

/// Installs det with `cmake --install`.
void install() {
  std::filesystem::create_directories(kPlace);
  const Run run =
      run_in(kPlace, {"cmake", "--install", build_path(), "--component", "sdk", "--prefix", kPrefix});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
}

/// Configures and builds an example as its README describes, with the SDK's programs in PATH.
std::string build(const std::string& example, const std::string& target) {
  const std::string folder = kPlace + "/" + example;
  std::vector<std::string> configure{"cmake",
                                     "-S",
                                     kExamples + "/" + example,
                                     "-B",
                                     folder,
                                     "-G",
                                     "Ninja",
                                     "-DCMAKE_BUILD_TYPE=Release",
                                     "-DCMAKE_PREFIX_PATH=" + kPrefix};
  if (run_in(kPlace, {"sh", "-c", "command -v ccache"}).code == 0)
    configure.push_back("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache");
  const Run configured = run_in(kPlace, configure);
  INFO(configured.out << configured.err);
  REQUIRE(configured.code == 0);
  const Run built = run_in(kPlace, {"cmake", "--build", folder, "--target", target, "-j1"}, 600);
  INFO(built.out << built.err);
  REQUIRE(built.code == 0);
  const Run libraries = run_in(kPlace, {"ldd", folder + "/" + target});
  CHECK(libraries.out.find(kPrefix + "/lib") != std::string::npos);
  CHECK(libraries.out.find(build_path("/lib")) == std::string::npos);
  return folder + "/" + target;
}

TEST_CASE("the Core API example builds against det::core of the installed SDK and runs") {
  install();
  Workplace place;
  const Run run = run_in(place.path(), {build("core_api", "2_metrics")});
  CHECK(run.code == 0);
  CHECK(numbers_after(run.out, "validation_loss ").size() == 5);
}

TEST_CASE("a trial builds against det::det of the installed SDK and starts") {
  install();
  Workplace place;
  place.add_edited("mnist_managed", "const.yaml",
                   {{"# data:\n#   dir: /path/to/mnist ", "data:\n  dir: absent "}});
  const Run run = run_in(place.path(), {build("mnist_managed", "mnist_managed_train")});
  CHECK(run.code == 1);
  CHECK((run.out + run.err).find("absent/train-images-idx3-ubyte") != std::string::npos);
}

TEST_CASE("model_def.cpp compiles with the agents' recipe of the installed SDK") {
  install();
  const auto recipe = nlohmann::json::parse(std::regex_replace(
      read_file(kPrefix + "/share/det/model_build.json").value(), std::regex("\\{prefix\\}"), kPrefix));
  std::string wrapper = recipe.at("wrapper");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"{module}", "model_def"}, {"{class}", "MNistTrial"}}) {
    wrapper = edited(wrapper, {{from, to}});
  }
  REQUIRE(write_file_atomic(kPlace + "/trial.cc", wrapper).has_value());
  std::vector<std::string> compile{
      recipe.at("compiler").get<std::string>(), "-c", kPlace + "/trial.cc", "-o", kPlace + "/trial.o",
      "-I" + kExamples + "/mnist_managed"};
  if (run_in(kPlace, {"sh", "-c", "command -v ccache"}).code == 0) compile.insert(compile.begin(), "ccache");
  for (const std::string flag : recipe.at("cxx_flags")) compile.push_back(flag);
  for (const std::string dir : recipe.at("include_dirs")) compile.insert(compile.end(), {"-isystem", dir});
  const Run compiled = run_in(kPlace, compile, 600);
  INFO(compiled.err);
  REQUIRE(compiled.code == 0);
  std::vector<std::string> link{recipe.at("compiler").get<std::string>(), kPlace + "/trial.o", "-o",
                                kPlace + "/trial.so"};
  for (const std::string flag : recipe.at("link_flags")) link.push_back(flag);
  const Run linked = run_in(kPlace, link);
  INFO(linked.err);
  REQUIRE(linked.code == 0);
  CHECK(run_in(kPlace, {"ldd", "-r", kPlace + "/trial.so"}).out.find("undefined symbol") ==
        std::string::npos);
  // A visible class could take the vtable of a class of the same name from another library (libpoppler has a
  // class Stream).
  const std::string visible = run_in(kPlace, {"nm", "-DC", "--defined-only", kPlace + "/trial.so"}).out;
  CHECK(visible.find("det_make_trial") != std::string::npos);
  CHECK(visible.find("MNistTrial") == std::string::npos);
}

}  // namespace
}  // namespace det::testing
