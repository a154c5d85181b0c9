#include "harness/src/checkpoint/zip.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "harness/src/checkpoint/checksum.h"

namespace det {
namespace {

/// Signatures of the records (PKWARE APPNOTE 6.3).
constexpr std::uint32_t kLocal = 0x04034b50, kDescriptor = 0x08074b50, kCentral = 0x02014b50,
                        kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
/// A 32-bit field with this value is stored in a zip64 field instead.
constexpr std::uint32_t kFull32 = 0xffffffff;
/// Start of files in PyTorch's format before zip archives: the pickle of a magic number.
constexpr std::string_view kLegacyMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::uint16_t kFlags = 0x0808;  // a data descriptor follows the content; names are UTF-8
constexpr std::size_t kAlignment = 64, kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocatorSize = 20,
                      kEnd64Size = 56;

template <typename T>
void append(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

/// The value of a 32-bit field: kFull32 when the number needs zip64.
std::uint32_t low32(std::uint64_t value) {
  return value >= kFull32 ? kFull32 : static_cast<std::uint32_t>(value);
}

/// Reads little-endian numbers at checked offsets. Throws std::runtime_error beyond the end.
struct Cursor {
  std::string_view bytes;
  const std::string& path;

  template <typename T>
  T at(std::uint64_t offset) const {
    const std::string_view raw = view(offset, sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
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

void put32(char* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

void ZipPlan::add(std::string name, std::uint64_t size) {
  const bool large = size >= kFull32;
  std::string extra;
  if (large) {
    append<std::uint16_t>(extra, 1), append<std::uint16_t>(extra, 16);
    append(extra, std::uint64_t{0}), append(extra, std::uint64_t{0});
  }
  // Aligns the content like PyTorch: padding in an extra field "FB".
  const std::uint64_t unpadded = size_ + kLocalSize + name.size() + extra.size() + 4;
  const auto padding = static_cast<std::uint16_t>((kAlignment - unpadded % kAlignment) % kAlignment);
  append<std::uint16_t>(extra, 0x4246), append<std::uint16_t>(extra, padding);
  extra.append(padding, 'Z');

  std::string header;
  append(header, kLocal), append<std::uint16_t>(header, large ? 45 : 20), append(header, kFlags);
  header.append(6, '\0');  // stored, time and date
  append(header, std::uint32_t{0}), append(header, large ? kFull32 : 0u),
      append(header, large ? kFull32 : 0u);
  append(header, static_cast<std::uint16_t>(name.size())),
      append(header, static_cast<std::uint16_t>(extra.size()));
  header += name + extra;

  Entry entry{std::move(name), size, size_, size_ + header.size()};
  frame_.emplace_back(size_, std::move(header));
  std::string descriptor;
  append(descriptor, kDescriptor), append(descriptor, std::uint32_t{0});
  if (large) append(descriptor, size), append(descriptor, size);
  if (!large) append(descriptor, low32(size)), append(descriptor, low32(size));
  // The checksums are written later, by ZipSealer, at the offsets recorded here and in directory().
  entry.descriptor_crc = entry.content + size + 4;
  size_ = entry.content + size + descriptor.size();
  frame_.emplace_back(entry.content + size, std::move(descriptor));
  entries_.push_back(std::move(entry));
}

std::string ZipPlan::directory() {
  std::string out;
  for (Entry& entry : entries_) {
    std::string wide;
    if (entry.size >= kFull32) append(wide, entry.size), append(wide, entry.size);
    if (entry.header >= kFull32) append(wide, entry.header);
    std::string extra;
    if (!wide.empty())
      append<std::uint16_t>(extra, 1), append(extra, static_cast<std::uint16_t>(wide.size()));
    extra += wide;
    append(out, kCentral);
    append<std::uint16_t>(out, 45), append<std::uint16_t>(out, wide.empty() ? 20 : 45), append(out, kFlags);
    out.append(6, '\0');  // stored, time and date
    entry.directory_crc = size_ + out.size();
    append(out, std::uint32_t{0}), append(out, low32(entry.size)), append(out, low32(entry.size));
    append(out, static_cast<std::uint16_t>(entry.name.size()));
    append(out, static_cast<std::uint16_t>(extra.size()));
    out.append(10, '\0');  // comment, disk, attributes
    append(out, low32(entry.header));
    out += entry.name + extra;
  }
  return out;
}

void ZipPlan::finish() {
  std::string out = directory();
  const std::uint64_t start = size_, size = out.size(), count = entries_.size();
  // Archives of 4 GiB or 65,535 entries need the zip64 end record and its locator.
  if (start + size >= kFull32 || count >= 0xffff) {
    append(out, kEnd64), append<std::uint64_t>(out, kEnd64Size - 12);
    append<std::uint16_t>(out, 45), append<std::uint16_t>(out, 45), append<std::uint64_t>(out, 0);
    append(out, count), append(out, count), append(out, size), append(out, start);
    append(out, kLocator64), append<std::uint32_t>(out, 0), append(out, start + size),
        append<std::uint32_t>(out, 1);
  }
  const auto few = static_cast<std::uint16_t>(count >= 0xffff ? 0xffff : count);
  append(out, kEnd), append<std::uint32_t>(out, 0), append(out, few), append(out, few);
  append(out, low32(size)), append(out, low32(start)), append<std::uint16_t>(out, 0);
  size_ += out.size();
  frame_.emplace_back(start, std::move(out));
}

void ZipPlan::write_frame(char* image) const {
  for (const auto& [at, bytes] : frame_) bytes.copy(image + at, bytes.size());
}

void ZipSealer::seal(std::uint64_t end) {
  while (entry_ < plan_.entries_.size()) {
    const ZipPlan::Entry& entry = plan_.entries_[entry_];
    const std::uint64_t from = entry.content + done_, to = std::min(end, entry.content + entry.size);
    if (from < to) {
      crc_ = crc32_of({image_ + from, static_cast<std::size_t>(to - from)}, crc_);
      done_ += to - from;
    }
    // The entry continues beyond `end`; the next call resumes here.
    if (done_ < entry.size || end < entry.content + entry.size) return;
    put32(image_ + entry.descriptor_crc, crc_);
    put32(image_ + entry.directory_crc, crc_);
    ++entry_, done_ = 0, crc_ = 0;
  }
}

void ZipWriter::add(std::string name, std::string_view bytes) {
  plan_.add(std::move(name), bytes.size());
  contents_.emplace_back(bytes);
}

void ZipWriter::finish() {
  plan_.finish();
  std::string image(plan_.size(), '\0');
  plan_.write_frame(image.data());
  for (std::size_t i = 0; i < contents_.size(); ++i) {
    std::memcpy(image.data() + plan_.offset(i), contents_[i].data(), contents_[i].size());
  }
  ZipSealer(plan_, image.data()).seal(plan_.size());
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const Status written = file ? write_all(file.get(), image) : Status(fail_errno(path_));
  if (!written) throw std::runtime_error(path_ + ": " + written.error().message);
}

ZipReader::ZipReader(const std::string& path) : path_(path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    throw std::runtime_error(path + ": " + std::strerror(errno));
  if (status.st_size < static_cast<off_t>(kEndSize)) throw std::runtime_error(path + ": not a PyTorch file");
  // Writable but private, as tensors are views of the mapping.
  void* memory = ::mmap(nullptr, status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
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
  if (bytes_.starts_with(kLegacyMagic)) {
    throw std::runtime_error(path_ +
                             ": saved in the format of PyTorch before 1.6; load it with Python and "
                             "torch.save it again");
  }
  if (in.at<std::uint32_t>(end) != kEnd)
    throw std::runtime_error(path_ + ": not a PyTorch file, or cut short");
  std::uint64_t count = in.at<std::uint16_t>(end + 10), at = in.at<std::uint32_t>(end + 16);
  // The archive has no comment, so the end record is at the very end, preceded by an optional zip64 locator.
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
    // The zip64 field contains only the values that overflowed, in this fixed order.
    for (std::uint64_t* wide : {&size, &packed, &offset}) {
      if (*wide == kFull32) *wide = extra.at<std::uint64_t>(value), value += 8;
    }
  }
  if (in.at<std::uint16_t>(at + 10) != 0 || packed != size) {
    throw std::runtime_error(path_ + ": " + name + " is compressed; PyTorch stores its files as they are");
  }
  if (in.at<std::uint32_t>(offset) != kLocal) throw std::runtime_error(path_ + ": " + name + " is damaged");
  const std::uint64_t skip =
      kLocalSize + in.at<std::uint16_t>(offset + 26) + in.at<std::uint16_t>(offset + 28);
  const std::string_view content = in.view(offset + skip, size);
  if (crc32_of(content) != crc) throw std::runtime_error(path_ + ": " + name + " is damaged (CRC)");
  if (!entries_.emplace(name, content).second)
    throw std::runtime_error(path_ + ": " + name + " is there twice");
  return kCentralSize + name_size + extra_size + comment_size;
}

}  // namespace det
