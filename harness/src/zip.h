// Owns the little of ZIP that PyTorch's files use: stored entries, 64-byte aligned, zip64 when large.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace det {

/// Writes entries one after the other to a new file. Throws std::runtime_error naming the file.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path);
  void add(const std::string& name, std::string_view bytes);
  /// Writes the directory; nothing may follow.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc;
    std::uint64_t size, offset;
  };
  void put(std::string_view bytes);
  std::string path_;
  UniqueFd file_;
  std::uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

/// A file mapped into memory whose stored entries are views into it. Throws std::runtime_error naming the file when it
/// is no such ZIP: cut, compressed entries, offsets out of the file, a wrong CRC.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;

  /// Names in the order of their bytes; views live as long as this object.
  const std::map<std::string, std::string_view>& entries() const { return entries_; }

 private:
  void read_directory();
  /// Returns the size of the directory's entry at `at`.
  std::uint64_t read_entry(std::uint64_t at);
  std::string path_;
  std::string_view bytes_;
  std::map<std::string, std::string_view> entries_;
};

}  // namespace det
