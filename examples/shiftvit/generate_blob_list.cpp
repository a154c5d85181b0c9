// Lists the images of a data set once, so that training need not: a line has an image's path, a tab, the number of its
// class. Classes are the folders under PREFIX, sorted. Needs curl for buckets.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

std::string quoted(const std::string& word) {
  std::string safe = "'";
  for (const char c : word) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start curl");
  std::string output;
  char buffer[65536];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, got);
  if (::pclose(pipe) != 0) throw std::runtime_error("curl could not list the bucket (its message is above)");
  return output;
}

std::string unescaped(std::string text) {
  for (const auto& [entity, character] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"},
                                          {"&#39;", "'"}, {"&amp;", "&"}}) {
    for (std::size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at) {
      text.replace(at, std::string(entity).size(), character);
    }
  }
  return text;
}

/// What stands between <tag> and </tag>, each time.
std::vector<std::string> elements(const std::string& xml, const std::string& tag) {
  std::vector<std::string> found;
  const std::string open = "<" + tag + ">", close = "</" + tag + ">";
  for (std::size_t at = 0; (at = xml.find(open, at)) != std::string::npos;) {
    const std::size_t begin = at + open.size();
    at = xml.find(close, begin);
    if (at == std::string::npos) throw std::runtime_error("the listing of the bucket is cut short");
    found.push_back(unescaped(xml.substr(begin, at - begin)));
  }
  return found;
}

/// Keys of a bucket that begin with `prefix`, by S3's ListObjectsV2, which Google's and others' buckets speak too. Signed
/// when AWS_ACCESS_KEY_ID is set.
std::vector<std::string> list_bucket(const std::string& bucket, const std::string& prefix) {
  std::string curl = "curl -sS --fail --retry 3 -G --data-urlencode " + quoted("prefix=" + prefix) + " -d list-type=2";
  if (std::getenv("AWS_ACCESS_KEY_ID") != nullptr) {  // by a pipe: arguments can be seen by every user
    const char* region = std::getenv("AWS_REGION");
    curl = "printf 'user = \"%s:%s\"\\n' \"$AWS_ACCESS_KEY_ID\" \"$AWS_SECRET_ACCESS_KEY\" | " + curl +
           " -K - --aws-sigv4 " + quoted(std::string("aws:amz:") + (region ? region : "us-east-1") + ":s3");
  }
  std::vector<std::string> keys;
  std::string token;
  do {
    const std::string next = token.empty() ? "" : " --data-urlencode " + quoted("continuation-token=" + token);
    const std::string page = output_of(curl + next + " " + quoted(bucket));
    for (std::string& key : elements(page, "Key")) keys.push_back(std::move(key));
    const auto tokens = elements(page, "NextContinuationToken");
    token = tokens.empty() ? "" : tokens[0];
  } while (!token.empty());
  return keys;
}

std::vector<std::string> list_directory(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory + "/" + prefix)) {
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(directory));
  }
  return files;
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: generate_blob_list SOURCE PREFIX > PREFIX.txt\n"
                 "  SOURCE  a directory, or a bucket: https://storage.googleapis.com/NAME, https://HOST/NAME\n"
                 "  PREFIX  the folder in it, such as train\n";
    return 2;
  }
  const std::string source = argv[1], prefix = std::string(argv[2]) + "/";
  auto paths = source.starts_with("http") ? list_bucket(source, prefix) : list_directory(source, prefix);
  std::erase_if(paths, [&](const std::string& path) {  // prefix/class/…/file
    return !path.starts_with(prefix) || path.ends_with("/") || path.find('/', prefix.size()) == std::string::npos;
  });
  if (paths.empty()) throw std::runtime_error("there is no PREFIX/CLASS/FILE in " + source + " under " + prefix);
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
