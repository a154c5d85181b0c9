#include "common/archive/tar.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

namespace det::tar {
namespace {

// Maximum size of one extended header; archives written here store only a path in it.
constexpr std::int64_t kMaxExtension = 64 * 1024;

// Offset and length of a header field.
struct Field {
  std::size_t at, length;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kSize{124, 12}, kChecksum{148, 8}, kMagic{257, 6},
    kPrefix{345, 155};
constexpr std::size_t kType = 156;

tl::unexpected<Error> damaged(std::string why) { return fail(Code::kDataLoss, std::move(why)); }

std::string_view text_field(std::string_view block, Field field) {
  const std::string_view text = block.substr(field.at, field.length);
  return text.substr(0, text.find('\0'));
}

/// Parses octal digits (padded with spaces and NULs) or GNU base-256. Returns nothing if malformed or out of
/// range.
std::optional<std::int64_t> number_field(std::string_view block, Field field) {
  std::string_view text = block.substr(field.at, field.length);
  std::int64_t value = 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if ((first & 0x80) != 0) {
    // Other prefixes are negative numbers or values beyond 2^88.
    if (first != 0x80) return std::nullopt;
    for (const char c : text.substr(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (!text.empty() && text[0] >= '0' && text[0] <= '7') {
    value = value << 3 | (text[0] - '0');
    text.remove_prefix(1);
  }
  if (text.find_first_not_of(std::string_view(" \0", 2)) != std::string_view::npos) return std::nullopt;
  return value;
}

/// Sums all bytes of the header; the checksum field itself counts as spaces.
std::int64_t checksum(std::string_view block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.length;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

bool all_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

/// Parses pax records: "LENGTH KEY=VALUE\n".
Status read_pax(std::string_view text, std::map<std::string, std::string>& records) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length <= digits + 2 || length > text.size() || text[digits] != ' ' ||
        text[length - 1] != '\n') {
      return damaged("an extended header is damaged");
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return damaged("an extended header is damaged");
    records[std::string(record.substr(0, equals))] = record.substr(equals + 1);
    text.remove_prefix(length);
  }
  return {};
}

/// Reassembles a stream of arbitrary pieces into blocks and entries.
class Reader {
 public:
  Reader(const Source& source, const Visitor& visitor) : source_(source), visitor_(visitor) {}

  Status run() {
    for (;;) {
      TRY_ASSIGN(const std::string block, take_block());
      if (all_zero(block)) return read_tail();
      TRY(read_entry(block));
    }
  }

 private:
  Result<std::string> take_block() {
    std::string block;
    TRY(take(kBlock, [&](std::string_view piece) {
      block += piece;
      return Status{};
    }));
    return block;
  }

  /// Passes exactly `count` bytes to `sink`, in pieces. Fails if the stream ends first.
  template <typename Sink>
  Status take(std::int64_t count, const Sink& sink) {
    while (count > 0) {
      if (rest_.empty()) {
        TRY_ASSIGN(rest_, source_());
        if (rest_.empty()) return damaged("the archive ends too early");
      }
      const std::string_view piece = rest_.substr(0, static_cast<std::size_t>(count));
      TRY(sink(piece));
      count -= static_cast<std::int64_t>(piece.size());
      rest_.remove_prefix(piece.size());
    }
    return {};
  }

  Status skip_padding(std::int64_t size) {
    return take(static_cast<std::int64_t>(padding(size).size()), [](std::string_view) { return Status{}; });
  }

  /// After the end mark only zeros may follow: tar pads archives to a record of 20 blocks.
  Status read_tail() {
    for (;;) {
      if (!all_zero(rest_)) return damaged("bytes follow the end of the archive");
      TRY_ASSIGN(rest_, source_());
      if (rest_.empty()) return {};
    }
  }

  Status read_entry(std::string_view block) {
    const auto sum = number_field(block, kChecksum), size = number_field(block, kSize),
               mode = number_field(block, kMode);
    // The checksum comes first: bytes that are not tar at all must not be parsed further.
    if (!sum || *sum != checksum(block)) return damaged("this is no tar archive, or it is damaged");
    if (!size)
      return damaged("an entry's size is damaged or beyond all bounds: " +
                     std::string(text_field(block, kName)));
    const char type = block[kType];
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') return read_extension(type, *size);

    Header header;
    header.path = text_field(block, kName);
    if (block.substr(kMagic.at, kMagic.length) == std::string_view("ustar\0", 6)) {
      const std::string_view prefix = text_field(block, kPrefix);
      if (!prefix.empty()) header.path = std::string(prefix) + '/' + header.path;
    }
    header.size = *size;
    header.mode = mode ? static_cast<unsigned>(*mode & 07777) : 0;
    header.type = type == '\0' || type == '7' ? '0' : type;
    TRY(apply_extensions(header));
    // Pre-POSIX tar marks a directory by a trailing slash.
    if (header.type == '0' && header.path.ends_with('/')) header.type = '5';
    TRY(visitor_.entry(header));
    TRY(take(header.size, visitor_.content));
    return skip_padding(header.size);
  }

  Status read_extension(char type, std::int64_t size) {
    if (size > kMaxExtension) return damaged("an extended header is larger than 64 KiB");
    std::string text;
    TRY(take(size, [&](std::string_view piece) {
      text += piece;
      return Status{};
    }));
    TRY(skip_padding(size));
    if (type == 'x') return read_pax(text, local_);
    // 'K' is the target name of a link; links are rejected anyway.
    if (type == 'K') return {};
    if (type == 'L') {
      local_["path"] = text.substr(0, text.find('\0'));
      return {};
    }
    // A global header could rename or resize every later entry, so those keys are refused.
    std::map<std::string, std::string> global;
    TRY(read_pax(text, global));
    for (const char* key : {"path", "size", "linkpath"}) {
      if (global.count(key) != 0)
        return damaged("a global extended header sets the " + std::string(key) + " of all entries");
    }
    return {};
  }

  /// Applies the extended headers before this entry, and clears them: they hold for one entry.
  Status apply_extensions(Header& header) {
    const std::map<std::string, std::string> records = std::exchange(local_, {});
    for (const auto& [key, value] : records) {
      if (key == "path") {
        header.path = value;
      } else if (key == "size") {
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), header.size);
        if (error != std::errc() || end != value.data() + value.size() || header.size < 0) {
          return damaged("an extended header's size is damaged: " + header.path);
        }
      } else if (key.starts_with("GNU.sparse.")) {
        header.type = 'S';
      }
    }
    return {};
  }

  const Source& source_;
  const Visitor& visitor_;
  std::string_view rest_;
  std::map<std::string, std::string> local_;
};

void put_octal(std::string& block, Field field, std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(field.length - 1),
                static_cast<unsigned long long>(value));
  block.replace(field.at, field.length - 1, text, field.length - 1);
}

std::string header_block(std::string_view path, std::int64_t size, unsigned mode, char type) {
  std::string block(kBlock, '\0');
  path = path.substr(0, kName.length);
  block.replace(kName.at, path.size(), path);
  put_octal(block, kMode, mode);
  put_octal(block, {108, 8}, 0);   // owner
  put_octal(block, {116, 8}, 0);   // group
  put_octal(block, {136, 12}, 0);  // time
  put_octal(block, kSize, static_cast<std::uint64_t>(size));
  block[kType] = type;
  block.replace(kMagic.at, 8, std::string_view("ustar\00000", 8));
  // Checksum format: six digits, NUL, space. header_block computes it last, over all other fields.
  put_octal(block, {kChecksum.at, 7}, static_cast<std::uint64_t>(checksum(block)));
  block[kChecksum.at + 7] = ' ';
  return block;
}

/// Returns "LENGTH path=PATH\n"; LENGTH includes its own digits.
std::string pax_path(const std::string& path) {
  const std::string body = " path=" + path + "\n";
  std::size_t length = body.size() + 1;
  while (std::to_string(length).size() + body.size() != length) ++length;
  return std::to_string(length) + body;
}

}  // namespace

Status read(const Source& source, const Visitor& visitor) { return Reader(source, visitor).run(); }

std::string make_header(const std::string& path, std::int64_t size, unsigned mode, bool directory) {
  std::string blocks;
  if (path.size() > kName.length) {
    const std::string record = pax_path(path);
    const auto length = static_cast<std::int64_t>(record.size());
    blocks = header_block("./PaxHeader", length, 0644, 'x') + record + padding(length);
  }
  return blocks + header_block(path, size, mode, directory ? '5' : '0');
}

std::string padding(std::int64_t size) {
  const auto over = static_cast<std::size_t>(size) % kBlock;
  return std::string(over == 0 ? 0 : kBlock - over, '\0');
}

std::string end_mark() { return std::string(2 * kBlock, '\0'); }

}  // namespace det::tar
