#include "common/build/recipe.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"

namespace det::build {

Result<Recipe> read_recipe(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  TRY_ASSIGN(const Json value, parse_json(text));
  try {
    Recipe recipe;
    value.at("sdk_id").get_to(recipe.sdk_id);
    recipe.library = value.value("library", std::string());
    value.at("compiler").get_to(recipe.compiler);
    value.at("cxx_flags").get_to(recipe.cxx_flags);
    value.at("include_dirs").get_to(recipe.include_dirs);
    value.at("link_flags").get_to(recipe.link_flags);
    value.at("wrapper").get_to(recipe.wrapper);
    // <prefix>/share/det/model_build.json: an installation can be moved as a whole.
    const std::string prefix = std::filesystem::path(path).parent_path().parent_path().parent_path().string();
    if (value.contains("precompiled") && !value.at("precompiled").is_null()) {
      const Json& fast = value.at("precompiled");
      recipe.precompiled = Precompiled{fast.at("compiler"), fast.at("cxx_flags"), fast.at("header_flags"),
                                       replace_all(fast.at("header"), "{prefix}", prefix)};
    }
    for (std::vector<std::string>* words : {&recipe.cxx_flags, &recipe.include_dirs, &recipe.link_flags})
      for (std::string& word : *words) word = replace_all(word, "{prefix}", prefix);
    // As an explicit directory, /usr/include would come before the directory of the C++ library. The headers
    // there find the C library by #include_next, which then fails.
    std::erase(recipe.include_dirs, "/usr/include");
    return recipe;
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kDataLoss, path + ": " + error.what());
  }
}

std::string library_note(const std::string& prefix) {
  const auto recipe = read_recipe(prefix + "/share/det/model_build.json");
  return recipe && !recipe->library.empty() ? " (" + recipe->library + ")" : "";
}

std::vector<std::string> compile_command(const Recipe& recipe, const std::string& compiler,
                                         const std::vector<std::string>& cxx_flags) {
  std::vector<std::string> argv{compiler};
  argv.insert(argv.end(), cxx_flags.begin(), cxx_flags.end());
  argv.push_back("-I.");
  // System directories: warnings in them are not the user's.
  for (const std::string& directory : recipe.include_dirs) argv.insert(argv.end(), {"-isystem", directory});
  return argv;
}

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace det::build
