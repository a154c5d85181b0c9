// Owns the little of ZIP that PyTorch's files use: stored entries, 64-byte aligned, zip64 when large,
// checksums behind the content (as PyTorch writes them), so that a file can go out front to back while they
// are still being computed. Standard library only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace det {

/// Where everything of an archive lies, from the names and sizes of its entries alone. The file is then made
/// in memory as one image: write_frame() puts in all that is no content, the owner puts the contents at
/// offset(i), ZipSealer adds the checksums.
class ZipPlan {
 public:
  /// Entries in the order of the file; names are unique.
  void add(std::string name, std::uint64_t size);
  /// After the last entry.
  void finish();
  /// Bytes of the file.
  std::uint64_t size() const { return size_; }
  std::uint64_t offset(std::size_t entry) const { return entries_[entry].content; }
  void write_frame(char* image) const;

 private:
  friend class ZipSealer;
  struct Entry {
    std::string name;
    std::uint64_t size, header, content;
    std::uint64_t descriptor_crc = 0, directory_crc = 0;  ///< offsets of the two copies of its checksum
  };
  std::string directory();
  std::vector<Entry> entries_;
  std::vector<std::pair<std::uint64_t, std::string>> frame_;
  std::uint64_t size_ = 0;
};

/// Puts the checksums into an image whose contents are in place. `plan` and `image` outlive it.
class ZipSealer {
 public:
  ZipSealer(const ZipPlan& plan, char* image) : plan_(plan), image_(image) {}
  /// image[0, end) is final after this. `end` never goes back.
  void seal(std::uint64_t end);

 private:
  const ZipPlan& plan_;
  char* image_;
  std::size_t entry_ = 0;
  std::uint64_t done_ = 0;  ///< bytes of the entry that are in crc_
  std::uint32_t crc_ = 0;
};

/// Writes a small archive: entries one after the other, the file at finish(). Throws std::runtime_error
/// naming it.
class ZipWriter {
 public:
  explicit ZipWriter(std::string path) : path_(std::move(path)) {}
  void add(std::string name, std::string_view bytes);
  void finish();

 private:
  std::string path_;
  ZipPlan plan_;
  std::vector<std::string> contents_;
};

/// A file mapped into memory whose stored entries are views into it. Throws std::runtime_error naming the
/// file when it is no such ZIP: cut, compressed entries, offsets out of the file, a wrong CRC. The mapping is
/// private and may be written to; nothing of that reaches the file.
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
