// Uses a small recipe that does not need LibTorch.
#include "common/build/model_build.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/build/compiler.h"
#include "common/build/precompiled.h"
#include "need.h"

using namespace det;
using namespace std::chrono_literals;

namespace {

/// A model directory and a build cache. Compiles with the compiler in PATH.
struct Bench {
  Bench() {
    need(make_directories(source));
    need(make_directories(models));
    write("model_def.cpp", "#include \"model.h\"\nstruct Net { int answer() { return kAnswer; } };\n");
    write("model.h", "constexpr int kAnswer = 42;\n");
  }
  void write(const std::string& name, const std::string& text) {
    need(write_file_atomic(source + "/" + name, text));
  }
  build::BuildRequest request(std::vector<std::string> flags = {"-O0", "-fPIC"}) const {
    return {.recipe =
                {.sdk_id = "sdk 1",
                 .compiler = "c++",
                 .cxx_flags = std::move(flags),
                 .link_flags = {"-shared"},
                 .wrapper =
                     "#include \"{module}.cpp\"\nextern \"C\" int answer() { return {class}().answer(); }\n"},
            .trial = {"model_def", "Net"},
            .source_dir = source,
            .models_dir = models,
            .timeout = 60s};
  }
  build::BuildOutcome build() { return need(build::build_model(request(), {})); }

  TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string source = dir.path() + "/source", models = dir.path() + "/models";
};

int answer_of(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) FAIL(::dlerror());
  const int answer = reinterpret_cast<int (*)()>(::dlsym(handle, "answer"))();
  ::dlclose(handle);
  return answer;
}

}  // namespace

TEST_CASE("a trial is built once and then found in the cache", "[build]") {
  Bench bench;
  const build::BuildOutcome first = bench.build();
  CHECK_FALSE(first.cached);
  CHECK(answer_of(first.library) == 42);
  const build::BuildOutcome second = bench.build();
  CHECK(second.cached);
  CHECK(second.library == first.library);
}

TEST_CASE("a built model that was changed in the cache is built again", "[build]") {
  Bench bench;
  const build::BuildOutcome first = bench.build();
  bench.write("model.h", "constexpr int kAnswer = 43;\n");
  const build::BuildOutcome other = bench.build();
  std::filesystem::remove(first.library);
  std::filesystem::copy_file(other.library, first.library);
  bench.write("model.h", "constexpr int kAnswer = 42;\n");
  const build::BuildOutcome again = bench.build();
  CHECK_FALSE(again.cached);
  CHECK(again.library == first.library);
  CHECK(answer_of(again.library) == 42);
  CHECK(bench.build().cached);
}

TEST_CASE("a compiler that leaves a link instead of a model fails the build", "[build]") {
  Bench bench;
  const std::string victim = bench.dir.path() + "/victim";
  need(write_file_atomic(victim, "text"));
  build::BuildRequest request = bench.request();
  request.enclose = [&](const std::vector<std::string>&, const std::string& work, const std::string&) {
    return Result<std::vector<std::string>>({"ln", "-s", victim, work + "/model.so"});
  };
  const auto built = build::build_model(request, {});
  REQUIRE_FALSE(built);
  CHECK_THAT(built.error().message, Catch::Contains("model.so"));
  CHECK(need(read_file(victim)) == "text");
  CHECK(std::filesystem::status(victim).permissions() != std::filesystem::perms(0555));
}

TEST_CASE("the cache key depends on the build's inputs, not on the configuration", "[build]") {
  Bench bench;
  const std::string key = need(build::build_key(bench.request()));
  bench.write("const.yaml", "a: 1\n");
  CHECK(need(build::build_key(bench.request())) == key);
  CHECK(need(build::build_key(bench.request({"-O1", "-fPIC"}))) != key);
  build::BuildRequest other = bench.request();
  other.recipe.sdk_id = "sdk 2";
  CHECK(need(build::build_key(other)) != key);
  other = bench.request();
  other.trial.trial_class = "Other";
  CHECK(need(build::build_key(other)) != key);
  bench.write("model.h", "constexpr int kAnswer = 43;\n");
  CHECK(need(build::build_key(bench.request())) != key);
  CHECK(answer_of(bench.build().library) == 43);
}

TEST_CASE("a compile error names the user's file and line, and is cached", "[build]") {
  Bench bench;
  bench.write("model_def.cpp", "struct Net {\n  int answer() { return nothing_here; }\n};\n");
  const build::BuildOutcome first = bench.build();
  CHECK(first.library.empty());
  CHECK_FALSE(first.cached);
  CHECK_THAT("\n" + first.output, Catch::Contains("\nmodel_def.cpp:2:"));
  CHECK_THAT(first.output, Catch::Contains("nothing_here"));
  const build::BuildOutcome second = bench.build();
  CHECK(second.cached);
  CHECK(second.library.empty());
  CHECK(second.output == first.output);
}

TEST_CASE("compiler messages arrive line by line, also from the cache, and name no standard input",
          "[build]") {
  Bench bench;
  bench.write("model_def.cpp", "struct Net {\n  int answer() { return nothing_here; }\n};\n");
  for (const bool cached : {false, true}) {
    build::BuildRequest request = bench.request();
    std::vector<std::string> lines;
    request.on_line = [&](const std::string& line) { lines.push_back(line); };
    const build::BuildOutcome outcome = need(build::build_model(request, {}));
    CHECK(outcome.cached == cached);
    CHECK(join(lines, "\n") + "\n" == outcome.output);
    CHECK_THAT(outcome.output, !Catch::Contains("<stdin>"));
  }
}

TEST_CASE("an entrypoint with an unknown class names the trial classes of the directory", "[build]") {
  Bench bench;
  bench.write("model_def.cpp",
              "namespace det { struct Trial {}; }\nclass DigitTrial final\n    : public det::Trial {};\n");
  build::BuildRequest request = bench.request();
  request.trial.trial_class = "DigitsTrial";
  const build::BuildOutcome outcome = need(build::build_model(request, {}));
  CHECK_THAT(outcome.output,
             Catch::StartsWith("model_def.cpp: error: no class DigitsTrial; its trial classes: DigitTrial"));
  // A class that exists is not reported as unknown, whatever else is wrong with it.
  request.trial.trial_class = "DigitTrial";
  CHECK_THAT(need(build::build_model(request, {})).output, !Catch::Contains("no class"));
}

namespace {

/// A recipe with a precompiled header that defines kPrecompiled, on which the trial's source depends.
build::BuildRequest with_header(const Bench& bench) {
  need(write_file_atomic(bench.dir.path() + "/header.h", "constexpr int kPrecompiled = 7;\n"));
  build::BuildRequest request = bench.request();
  request.recipe.precompiled =
      build::Precompiled{.compiler = "clang++",
                         .cxx_flags = {"-O0", "-fPIC", "-fpch-validate-input-files-content"},
                         .header_flags = {"-fpch-instantiate-templates"},
                         .header = bench.dir.path() + "/header.h"};
  return request;
}

/// Makes the header and returns its path.
std::string header_of(const build::BuildRequest& request) {
  need(build::make_precompiled_header(request.recipe, request.models_dir, mono_now() + 60s, {}));
  return need(build::find_precompiled_header(request.recipe, request.models_dir)).value();
}

}  // namespace

TEST_CASE("a trial is compiled with the precompiled header, which is made once", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write("model_def.cpp", "struct Net { int answer() { return kPrecompiled; } };\n");
  std::vector<std::string> lines;
  request.on_line = [&](const std::string& line) { lines.push_back(line); };
  const std::string header = header_of(request);
  const auto made = std::filesystem::last_write_time(header);
  const build::BuildOutcome outcome = need(build::build_model(request, {}));
  CHECK(answer_of(outcome.library) == 7);
  CHECK_FALSE(outcome.without_header);
  CHECK(lines.empty());
  CHECK(std::filesystem::last_write_time(header_of(request)) == made);
}

TEST_CASE("a sandbox of the compiler gets the precompiled header that it reads", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write("model_def.cpp", "struct Net { int answer() { return kPrecompiled; } };\n");
  const std::string header = header_of(request);
  std::vector<std::string> headers;
  request.enclose = [&](const std::vector<std::string>& argv, const std::string& work,
                        const std::string& read) -> Result<std::vector<std::string>> {
    CHECK(path_exists(work + "/wrapper.cpp"));
    headers.push_back(read);
    return argv;
  };
  CHECK(answer_of(need(build::build_model(request, {})).library) == 7);
  CHECK(headers == std::vector<std::string>{header});
}

TEST_CASE("a trial does not wait for a precompiled header that does not exist", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write("model_def.cpp", "struct Net { int answer() { return kPrecompiled; } };\n");
  CHECK(need(build::find_precompiled_header(request.recipe, request.models_dir)) == std::nullopt);
  std::vector<std::string> lines;
  request.on_line = [&](const std::string& line) { lines.push_back(line); };
  const build::BuildOutcome outcome = need(build::build_model(request, {}));
  CHECK(answer_of(outcome.library) == 7);
  CHECK(outcome.without_header);
  CHECK_THAT(join(lines, "\n"), Catch::StartsWith("note: compiling with the headers of LibTorch"));
  CHECK(need(build::find_precompiled_header(request.recipe, request.models_dir)) == std::nullopt);
  // Defects of the source are found as with the precompiled header.
  bench.write("model_def.cpp", "struct Net { int answer() { return nothing_here; } };\n");
  CHECK_THAT(need(build::build_model(request, {})).output,
             Catch::Contains("use of undeclared identifier 'nothing_here'"));
}

TEST_CASE("a precompiled header is made by one process at a time", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  const std::string entry = std::filesystem::path(header_of(request)).parent_path();
  need(remove_tree(entry));
  const auto make = [&] {
    need(build::make_precompiled_header(request.recipe, request.models_dir, mono_now() + 60s, {}));
    return path_exists(entry);
  };
  {
    const FileLock made_by_another = need(FileLock::try_lock(entry + ".lock"));
    CHECK_FALSE(make());
  }
  CHECK(make());
}

TEST_CASE("a damaged precompiled header is removed, and the trial compiled without it", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write("model_def.cpp", "struct Net { int answer() { return kPrecompiled; } };\n");
  need(write_file_atomic(header_of(request), "no header"));
  const build::BuildOutcome outcome = need(build::build_model(request, {}));
  CHECK(answer_of(outcome.library) == 7);
  CHECK(outcome.without_header);
  CHECK(need(build::find_precompiled_header(request.recipe, request.models_dir)) == std::nullopt);
}

TEST_CASE("text of a trial is no complaint about the precompiled header", "[build]") {
  CHECK(
      build::rejects_header("fatal error: file 'torch.h' has been modified since the precompiled header "
                            "'header.pch' was built: size changed (was 26, now 31)\n1 error generated.\n"));
  CHECK(build::rejects_header("error: input is not a PCH file: 'header.pch'\n2 errors generated.\n"));
  CHECK_FALSE(build::rejects_header("model_def.cpp:1:2: error: PCH file\n#error PCH file\n ^\n"));
  // A line of the source, as the compiler shows it, and a message with a line break.
  CHECK_FALSE(
      build::rejects_header("model_def.cpp:3:8: error: use of undeclared identifier 'g'\n"
                            "error: g(\"PCH file\");\n       ^\n"));
  CHECK_FALSE(
      build::rejects_header("In file included from entrypoint:1:\nmodel_def.cpp:12:53: warning: 'q' "
                            "is deprecated: x\nerror: PCH file [-Wdeprecated-declarations]\n"));
}

TEST_CASE("the version of a compiler is read again when its file has changed", "[build]") {
  Bench bench;
  const std::string compiler = bench.dir.path() + "/compiler";
  const auto install = [&](const std::string& version) {
    need(write_file_atomic(compiler, "#!/bin/sh\necho " + version + "\n", 0755));
  };
  CHECK(need(build::compiler_version(compiler)) == std::nullopt);
  install("one");
  CHECK(need(build::compiler_version(compiler)) == "one\n");
  install("two");
  CHECK(need(build::compiler_version(compiler)) == "two\n");
}

TEST_CASE("a precompiled header follows a change of the files that it includes", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write("model_def.cpp", "struct Net { int answer() { return kPrecompiled; } };\n");
  (void)header_of(request);
  need(write_file_atomic(bench.dir.path() + "/header.h", "constexpr int kPrecompiled = 1234;\n"));
  CHECK(answer_of(need(build::build_model(request, {})).library) == 1234);
}

TEST_CASE("a precompiled header serves only files that are as old as those it was made of", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  const std::string once = bench.dir.path() + "/once.h";
  need(write_file_atomic(once, "#pragma once\nstruct Once { int value = 3; };\n"));
  need(write_file_atomic(bench.dir.path() + "/header.h",
                         "#include \"once.h\"\nconstexpr int kPrecompiled = 7;\n"));
  const auto trial = [&](const std::string& more) {
    bench.write("model_def.cpp", "#include \"" + once +
                                     "\"\nstruct Net { int answer() { return kPrecompiled + " +
                                     "Once().value" + more + "; } };\n");
    return answer_of(need(build::build_model(request, {})).library);
  };
  (void)header_of(request);
  CHECK(trial("") == 10);
  // Another checkout or installation of the same headers. Clang recognizes `#pragma once` by size and time.
  std::filesystem::last_write_time(once, std::filesystem::last_write_time(once) + 1h);
  CHECK(trial(" + 1") == 11);
}

TEST_CASE("an absent or unfit compiler of the precompiled header leaves the build to the other one",
          "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  request.recipe.precompiled->compiler = "/no/such/clang";
  CHECK(header_of(request).empty());
  CHECK(answer_of(need(build::build_model(request, {})).library) == 42);
  request = with_header(bench);
  request.recipe.precompiled->cxx_flags.push_back("-DkPrecompiled=]");
  CHECK(header_of(request).empty());
  CHECK(answer_of(need(build::build_model(request, {})).library) == 42);
}

TEST_CASE("a source that only the recipe's compiler accepts is compiled by it", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write(
      "model_def.cpp",
      "#ifdef __clang__\nstatic_assert(false);\n#endif\nstruct Net { int answer() { return 5; } };\n");
  std::vector<std::string> lines;
  request.on_line = [&](const std::string& line) { lines.push_back(line); };
  CHECK(answer_of(need(build::build_model(request, {})).library) == 5);
  CHECK_THAT(join(lines, "\n"), Catch::Contains("note: clang++ does not accept this source"));
}

TEST_CASE("a source that the only installed compiler rejects is compiled once, with a word about g++",
          "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  request.recipe.compiler = "clang++";
  bench.write("model_def.cpp", "static_assert(false);\nstruct Net { int answer() { return 5; } };\n");
  std::vector<std::string> lines;
  request.on_line = [&](const std::string& line) { lines.push_back(line); };
  CHECK(need(build::build_model(request, {})).library.empty());
  const std::string messages = join(lines, "\n");
  CHECK_THAT(messages, Catch::Contains("note: g++ may accept this source") &&
                           !Catch::Contains("does not accept this source"));
  CHECK(std::ranges::count_if(lines,
                              [](const std::string& line) { return line.find("error:") != line.npos; }) == 1);
}

TEST_CASE("an undeclared name fails a build without asking the second compiler", "[build]") {
  Bench bench;
  build::BuildRequest request = with_header(bench);
  bench.write("model_def.cpp", "struct Net {\n  int answer() { return nothing_here; }\n};\n");
  const build::BuildOutcome outcome = need(build::build_model(request, {}));
  CHECK(outcome.library.empty());
  CHECK_THAT(outcome.output, Catch::Contains("use of undeclared identifier 'nothing_here'"));
  CHECK(need(build::build_model(request, {})).cached);
}

TEST_CASE("a missing header is reported and not cached", "[build]") {
  Bench bench;
  bench.write("model_def.cpp", "#include \"absent.h\"\n");
  const build::BuildOutcome outcome = bench.build();
  CHECK(outcome.library.empty());
  CHECK_THAT(outcome.output, Catch::Contains("model_def.cpp:1:"));
  CHECK_FALSE(bench.build().cached);
}

TEST_CASE("concurrent builds of one model compile once", "[build]") {
  Bench bench;
  std::vector<Result<build::BuildOutcome>> outcomes(4, fail(Code::kUnknown, ""));
  {
    std::vector<std::jthread> threads;
    for (auto& outcome : outcomes)
      threads.emplace_back([&] { outcome = build::build_model(bench.request(), {}); });
  }
  int compiled = 0;
  for (auto& outcome : outcomes) {
    const build::BuildOutcome built = need(std::move(outcome));
    compiled += built.cached ? 0 : 1;
    CHECK(answer_of(built.library) == 42);
  }
  CHECK(compiled == 1);
  for (const auto& entry : std::filesystem::directory_iterator(bench.models)) {
    CHECK_FALSE(entry.path().filename().string().starts_with("building-"));
  }
}

TEST_CASE("a hanging compiler is killed at the timeout, an absent one is named", "[build]") {
  Bench bench;
  need(write_file_atomic(bench.dir.path() + "/slow", "#!/bin/sh\n[ \"$1\" = --version ] || exec sleep 1000\n",
                         0755));
  build::BuildRequest slow = bench.request();
  slow.recipe.compiler = bench.dir.path() + "/slow";
  slow.timeout = 200ms;
  CHECK(build::build_model(slow, {}).error().code == Code::kDeadlineExceeded);
  std::stop_source stop;
  stop.request_stop();
  slow.timeout = 60s;
  CHECK(build::build_model(slow, stop.get_token()).error().code == Code::kCancelled);
  slow.recipe.compiler = "/no/such/compiler";
  CHECK_THAT(build::build_model(slow, {}).error().message, Catch::Contains("/no/such/compiler"));
}

TEST_CASE("an entrypoint module:Class is a trial, every other one is a command", "[build]") {
  const auto plain = build::parse_trial_name("model_def:MNistTrial");
  REQUIRE(plain);
  CHECK(plain->module == "model_def");
  CHECK(plain->trial_class == "MNistTrial");
  const auto nested = build::parse_trial_name("pkg.model:ns.Trial");
  REQUIRE(nested);
  CHECK(nested->module == "pkg/model");
  CHECK(nested->trial_class == "ns::Trial");
  for (const char* command :
       {"./train", "python3 -m x:y z", "a:b:c", ":Class", "model:", "model def:Class", ""}) {
    CAPTURE(command);
    CHECK_FALSE(build::parse_trial_name(command));
  }
}

TEST_CASE("a recipe expands its prefix and omits the compiler's own include directories", "[build]") {
  auto dir = need(TemporaryDirectory::create());
  const std::string prefix = dir.path() + "/moved";
  need(make_directories(prefix + "/share/det"));
  const std::string path = prefix + "/share/det/model_build.json";
  need(write_file_atomic(path, R"({"sdk_id": "s", "compiler": "c++", "cxx_flags": ["-O2"], "wrapper": "",
    "include_dirs": ["{prefix}/include", "/usr/include", "/usr/include/torch"], "link_flags": ["-L{prefix}/lib"]})"));
  const build::Recipe recipe = need(build::read_recipe(path));
  CHECK(recipe.include_dirs == std::vector<std::string>{prefix + "/include", "/usr/include/torch"});
  CHECK(recipe.link_flags == std::vector<std::string>{"-L" + prefix + "/lib"});
}
