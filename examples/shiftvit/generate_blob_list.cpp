// Lists the images of a dataset, so that training does not have to. Each line has an image's path, a tab, and
// the class number. Classes are the folders below PREFIX, in sorted order.
#include <det/bucket.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

std::vector<std::string> list_directory(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/" + prefix)) {
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(directory));
  }
  return files;
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr
        << "usage: generate_blob_list SOURCE PREFIX > PREFIX.txt\n"
           "  SOURCE  a directory, or a bucket: https://storage.googleapis.com/NAME, https://HOST/NAME\n"
           "  PREFIX  the folder in it, such as train\n";
    return 2;
  }
  const std::string source = argv[1], prefix = std::string(argv[2]) + "/";
  auto paths = source.starts_with("http") ? det::Bucket(source).list(prefix) : list_directory(source, prefix);
  std::erase_if(paths, [&](const std::string& path) {  // prefix/class/…/file
    return !path.starts_with(prefix) || path.ends_with("/") ||
           path.find('/', prefix.size()) == std::string::npos;
  });
  if (paths.empty())
    throw std::runtime_error("there is no PREFIX/CLASS/FILE in " + source + " under " + prefix);
  std::sort(paths.begin(), paths.end());
  std::map<std::string, int> classes;
  const auto class_of = [&](const std::string& path) {
    return path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
  };
  for (const std::string& path : paths) classes.emplace(class_of(path), 0);
  for (int number = 0; auto& [name, label] : classes) label = number++;
  for (const std::string& path : paths) std::cout << path << '\t' << classes.at(class_of(path)) << '\n';
  std::cerr << paths.size() << " images in " << classes.size() << " classes" << std::endl;
} catch (const std::exception& error) {
  std::cerr << "generate_blob_list: " << error.what() << std::endl;
  return 1;
}
