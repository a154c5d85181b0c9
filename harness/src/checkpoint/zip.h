// The subset of ZIP that PyTorch's files use: stored entries, 64-byte aligned, zip64 for large ones.
// Checksums follow the content in data descriptors, so that a file can be written front to back while they
// are computed. No LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace det {

/// The layout of an archive, computed from the names and sizes of its entries. The file is assembled in
/// memory: write_frame() writes headers and directory, the caller copies each content to offset(i), and
/// ZipSealer adds the checksums.
class ZipPlan {
 public:
  /// Adds an entry. Entries keep this order; names must be unique.
  void add(std::string name, std::uint64_t size);
  /// Completes the layout after the last entry.
  void finish();
  /// Bytes of the file. Valid after finish().
  std::uint64_t size() const { return size_; }
  /// The offset of the content of entry `entry`, counted from 0 in the order of add().
  std::uint64_t offset(std::size_t entry) const { return entries_[entry].content; }
  /// Writes everything but contents and checksums into `image`, a buffer of size() bytes.
  void write_frame(char* image) const;

 private:
  friend class ZipSealer;
  struct Entry {
    std::string name;
    std::uint64_t size, header, content;
    std::uint64_t descriptor_crc = 0, directory_crc = 0;  ///< offsets of the two copies of the checksum
  };
  std::string directory();
  std::vector<Entry> entries_;
  std::vector<std::pair<std::uint64_t, std::string>> frame_;
  std::uint64_t size_ = 0;
};

/// Computes the checksums of an image with all contents in place and writes them into it.
/// `plan` and `image` must outlive it.
class ZipSealer {
 public:
  ZipSealer(const ZipPlan& plan, char* image) : plan_(plan), image_(image) {}
  /// Makes image[0, end) final. `end` must not decrease.
  void seal(std::uint64_t end);

 private:
  const ZipPlan& plan_;
  char* image_;
  std::size_t entry_ = 0;
  std::uint64_t done_ = 0;  ///< bytes of the current entry included in crc_
  std::uint32_t crc_ = 0;
};

/// Writes a small archive. The file is written by finish(). Throws std::runtime_error naming the file.
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

/// Maps an archive of stored entries into memory. The mapping is private: writes do not reach the file.
/// Checks the CRC of every entry. Throws std::runtime_error naming the file when it is truncated, has
/// compressed entries, offsets outside the file or a wrong CRC.
class ZipReader {
 public:
  explicit ZipReader(const std::string& path);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;

  /// Entries by name, sorted. The views are valid during the lifetime of this object.
  const std::map<std::string, std::string_view>& entries() const { return entries_; }

 private:
  void read_directory();
  /// Reads the directory entry at offset `at` and returns its size.
  std::uint64_t read_entry(std::uint64_t at);
  std::string path_;
  std::string_view bytes_;
  std::map<std::string, std::string_view> entries_;
};

}  // namespace det
