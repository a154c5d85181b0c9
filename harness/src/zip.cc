// Owns the little of ZIP that PyTorch's files use. (Format: PKWARE APPNOTE 6.3.)
#include "zip.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/files.h"

namespace det {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint32_t kFull32 = 0xffffffff;
constexpr std::size_t kAlignment = 64, kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocatorSize = 20,
                      kEnd64Size = 56;

template <typename T>
void append(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::uint32_t low32(std::uint64_t value) {
  return value >= kFull32 ? kFull32 : static_cast<std::uint32_t>(value);
}

/// Little-endian numbers at checked offsets.
struct Cursor {
  std::string_view bytes;
  const std::string& path;

  template <typename T>
  T at(std::uint64_t offset) const {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
      throw std::runtime_error(path + ": not a PyTorch file, or cut short");
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
    }
    return static_cast<T>(value);
  }
  std::string_view view(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes.size() || bytes.size() - offset < size) {
      throw std::runtime_error(path + ": not a PyTorch file, or cut short");
    }
    return bytes.substr(offset, size);
  }
};

}  // namespace

ZipWriter::ZipWriter(const std::string& path) : path_(path) {
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file_) throw std::runtime_error(path + ": " + std::strerror(errno));
}

void ZipWriter::put(std::string_view bytes) {
  if (const Status written = write_all(file_.get(), bytes); !written) {
    throw std::runtime_error(path_ + ": " + written.error().message);
  }
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  const Entry entry{name, crc_of(bytes), bytes.size(), position_};
  const bool large = entry.size >= kFull32;
  std::string extra;
  if (large) {
    append<std::uint16_t>(extra, 1), append<std::uint16_t>(extra, 16);
    append(extra, entry.size), append(extra, entry.size);
  }
  // Padding as PyTorch writes it: an extra field "FB".
  const std::uint64_t unpadded = position_ + kLocalSize + name.size() + extra.size() + 4;
  const auto padding = static_cast<std::uint16_t>((kAlignment - unpadded % kAlignment) % kAlignment);
  append<std::uint16_t>(extra, 0x4246), append<std::uint16_t>(extra, padding);
  extra.append(padding, 'Z');

  std::string header;
  append(header, kLocal);
  append<std::uint16_t>(header, large ? 45 : 20);
  header.append(8, '\0');  // flags, stored, time and date
  append(header, entry.crc), append(header, low32(entry.size)), append(header, low32(entry.size));
  append(header, static_cast<std::uint16_t>(name.size())), append(header, static_cast<std::uint16_t>(extra.size()));
  put(header + name + extra);
  put(bytes);
  entries_.push_back(entry);
}

void ZipWriter::finish() {
  const std::uint64_t start = position_;
  std::string out;
  for (const Entry& entry : entries_) {
    std::string extra;
    if (entry.size >= kFull32) append(extra, entry.size), append(extra, entry.size);
    if (entry.offset >= kFull32) append(extra, entry.offset);
    std::string tagged;
    if (!extra.empty()) append<std::uint16_t>(tagged, 1), append(tagged, static_cast<std::uint16_t>(extra.size()));
    tagged += extra;
    append(out, kCentral);
    append<std::uint16_t>(out, 45), append<std::uint16_t>(out, extra.empty() ? 20 : 45);
    out.append(8, '\0');
    append(out, entry.crc), append(out, low32(entry.size)), append(out, low32(entry.size));
    append(out, static_cast<std::uint16_t>(entry.name.size()));
    append(out, static_cast<std::uint16_t>(tagged.size()));
    out.append(10, '\0');  // comment, disk, attributes
    append(out, low32(entry.offset));
    out += entry.name + tagged;
  }
  const std::uint64_t size = out.size(), count = entries_.size();
  if (start + size >= kFull32 || count >= 0xffff) {
    append(out, kEnd64), append<std::uint64_t>(out, kEnd64Size - 12);
    append<std::uint16_t>(out, 45), append<std::uint16_t>(out, 45), append<std::uint64_t>(out, 0);
    append(out, count), append(out, count), append(out, size), append(out, start);
    append(out, kLocator64), append<std::uint32_t>(out, 0), append(out, start + size), append<std::uint32_t>(out, 1);
  }
  const auto few = static_cast<std::uint16_t>(count >= 0xffff ? 0xffff : count);
  append(out, kEnd), append<std::uint32_t>(out, 0), append(out, few), append(out, few);
  append(out, low32(size)), append(out, low32(start)), append<std::uint16_t>(out, 0);
  put(out);
}

ZipReader::ZipReader(const std::string& path) : path_(path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  if (status.st_size < static_cast<off_t>(kEndSize)) throw std::runtime_error(path + ": not a PyTorch file");
  void* memory = ::mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) throw std::runtime_error(path + ": " + std::strerror(errno));
  bytes_ = {static_cast<const char*>(memory), static_cast<std::size_t>(status.st_size)};
  try {
    read_directory();
  } catch (...) {
    ::munmap(memory, bytes_.size());
    throw;
  }
}

ZipReader::~ZipReader() { ::munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }

void ZipReader::read_directory() {
  const Cursor in{bytes_, path_};
  const std::uint64_t end = bytes_.size() - kEndSize;
  if (in.at<std::uint32_t>(end) != kEnd) throw std::runtime_error(path_ + ": not a PyTorch file, or cut short");
  std::uint64_t count = in.at<std::uint16_t>(end + 10), at = in.at<std::uint32_t>(end + 16);
  if (end >= kLocatorSize && in.at<std::uint32_t>(end - kLocatorSize) == kLocator64) {
    const auto end64 = in.at<std::uint64_t>(end - kLocatorSize + 8);
    count = in.at<std::uint64_t>(end64 + 32);
    at = in.at<std::uint64_t>(end64 + 48);
  }
  while (count-- > 0) at += read_entry(at);
}

std::uint64_t ZipReader::read_entry(std::uint64_t at) {
  const Cursor in{bytes_, path_};
  if (in.at<std::uint32_t>(at) != kCentral) throw std::runtime_error(path_ + ": damaged directory");
  const auto crc = in.at<std::uint32_t>(at + 16);
  std::uint64_t packed = in.at<std::uint32_t>(at + 20), size = in.at<std::uint32_t>(at + 24),
                offset = in.at<std::uint32_t>(at + 42);
  const auto name_size = in.at<std::uint16_t>(at + 28), extra_size = in.at<std::uint16_t>(at + 30);
  const auto comment_size = in.at<std::uint16_t>(at + 32);
  const std::string name(in.view(at + kCentralSize, name_size));
  const Cursor extra{in.view(at + kCentralSize + name_size, extra_size), path_};
  for (std::uint64_t field = 0; field + 4 <= extra_size; field += 4 + extra.at<std::uint16_t>(field + 2)) {
    if (extra.at<std::uint16_t>(field) != 1) continue;
    std::uint64_t value = field + 4;
    for (std::uint64_t* wide : {&size, &packed, &offset}) {
      if (*wide == kFull32) *wide = extra.at<std::uint64_t>(value), value += 8;
    }
  }
  if (in.at<std::uint16_t>(at + 10) != 0 || packed != size) {
    throw std::runtime_error(path_ + ": " + name + " is compressed; PyTorch stores its files as they are");
  }
  if (in.at<std::uint32_t>(offset) != kLocal) throw std::runtime_error(path_ + ": " + name + " is damaged");
  const std::uint64_t skip = kLocalSize + in.at<std::uint16_t>(offset + 26) + in.at<std::uint16_t>(offset + 28);
  const std::string_view content = in.view(offset + skip, size);
  if (crc_of(content) != crc) throw std::runtime_error(path_ + ": " + name + " is damaged (CRC)");
  if (!entries_.emplace(name, content).second) throw std::runtime_error(path_ + ": " + name + " is there twice");
  return kCentralSize + name_size + extra_size + comment_size;
}

}  // namespace det
