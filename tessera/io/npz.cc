#include "tessera/io/npz.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

#include <zlib.h>

namespace tessera::io {
namespace {

// Signatures and sizes of the records: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14
// to 4.3.16 and 4.5.3.
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                 kLocator64Size = 20;
constexpr uint16_t kExtra64 = 1, kEncrypted = 1, kStored = 0, kDeflated = 8;
constexpr uint64_t kMaxRatio = 1032;  // zlib's technical notes: the most that deflate can do

struct Entry {
  std::string_view name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

template <class T>
std::optional<T> read(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::optional<std::string_view> part(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) return std::nullopt;
  return bytes.substr(at, size);
}

auto damaged(std::string_view what) {
  return error(Code::kDataLoss, "the .npz archive is damaged: {}", what);
}

struct Directory {
  uint64_t offset = 0, count = 0;
};

Result<Directory> find_directory(std::string_view bytes) {
  if (bytes.size() < kEndSize) return damaged("it is too short");
  // A comment of up to 65535 bytes may follow the record.
  const size_t lowest = bytes.size() - std::min(bytes.size(), kEndSize + 0xffff);
  for (size_t at = bytes.size() - kEndSize + 1; at-- > lowest;) {
    if (*read<uint32_t>(bytes, at) != kEnd) continue;
    Directory d{*read<uint32_t>(bytes, at + 16), *read<uint16_t>(bytes, at + 10)};
    if (at >= kLocator64Size && *read<uint32_t>(bytes, at - kLocator64Size) == kLocator64) {
      const uint64_t end = *read<uint64_t>(bytes, at - kLocator64Size + 8);
      const auto record = part(bytes, end, kEnd64Size);
      if (!record || *read<uint32_t>(*record, 0) != kEnd64)
        return damaged("the end of its directory is missing");
      d = {*read<uint64_t>(*record, 48), *read<uint64_t>(*record, 32)};
    }
    return d;
  }
  return damaged("the end of its directory is missing");
}

// Sizes of 0xffffffff are in the extra field, in the order size, packed, offset.
Status read_extra64(std::string_view extra, Entry& entry) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint16_t id = *read<uint16_t>(extra, at), length = *read<uint16_t>(extra, at + 2);
    at += 4;
    if (id == kExtra64) {
      uint64_t from = at;
      for (uint64_t* value : {&entry.size, &entry.packed, &entry.offset}) {
        if (*value != std::numeric_limits<uint32_t>::max()) continue;
        const auto wide = read<uint64_t>(extra, from);
        if (!wide) return damaged("a size is missing");
        *value = *wide;
        from += 8;
      }
      return {};
    }
    at += length;
  }
  return {};
}

Result<std::string_view> packed_bytes_of(std::string_view bytes, const Entry& entry) {
  const auto local = part(bytes, entry.offset, kLocalSize);
  if (!local || *read<uint32_t>(*local, 0) != kLocal)
    return damaged(fmt::format("member '{}' has no header", entry.name));
  const uint64_t start =
      entry.offset + kLocalSize + *read<uint16_t>(*local, 26) + *read<uint16_t>(*local, 28);
  const auto data = part(bytes, start, entry.packed);
  if (!data) return damaged(fmt::format("member '{}' is cut short", entry.name));
  return *data;
}

Result<std::shared_ptr<std::string>> inflate_raw(std::string_view packed, const Entry& entry) {
  if (entry.size / kMaxRatio > packed.size())
    return damaged(fmt::format("member '{}' promises {} bytes out of {}", entry.name, entry.size,
                               packed.size()));
  auto out = std::make_shared<std::string>();
  try {
    out->resize(entry.size);
  } catch (const std::bad_alloc&) {
    return error(Code::kResourceExhausted, "no memory for the {} bytes of .npz member '{}'",
                 entry.size, entry.name);
  }
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return error(Code::kResourceExhausted, "no memory to unpack a .npz archive");
  constexpr uint64_t kStep = uint64_t{1} << 30;  // zlib counts in 32 bits
  uint64_t read_bytes = 0, written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read_bytes));
    stream.avail_in = static_cast<uInt>(std::min(packed.size() - read_bytes, kStep));
    stream.next_out = reinterpret_cast<Bytef*>(out->data() + written);
    stream.avail_out = static_cast<uInt>(std::min(entry.size - written, kStep));
    const uInt in = stream.avail_in, room = stream.avail_out;
    state = ::inflate(&stream, Z_NO_FLUSH);
    read_bytes += in - stream.avail_in;
    written += room - stream.avail_out;
    if (state == Z_OK && in == stream.avail_in && room == stream.avail_out) break;
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END || written != entry.size)
    return damaged(fmt::format("member '{}' does not unpack to {} bytes", entry.name, entry.size));
  return out;
}

bool checksum_fits(std::string_view data, uint32_t expected) {
  return ::crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()) == expected;
}

Result<NpzMember> read_member(std::string_view bytes, const std::shared_ptr<const void>& keep,
                              const Entry& entry) {
  if (entry.flags & kEncrypted)
    return error(Code::kUnimplemented, ".npz member '{}' is encrypted", entry.name);
  TRY_ASSIGN(std::string_view packed, packed_bytes_of(bytes, entry));
  NpzMember member{std::string(entry.name.substr(0, entry.name.size() - 4)), packed, keep};
  if (entry.method == kDeflated) {
    TRY_ASSIGN(std::shared_ptr<std::string> data, inflate_raw(packed, entry));
    member.data = *data;
    member.keep = std::move(data);
  } else if (entry.method != kStored) {
    return error(Code::kUnimplemented,
                 ".npz member '{}' has compression {}, need stored (0) or deflated (8)", entry.name,
                 entry.method);
  }
  if (!checksum_fits(member.data, entry.crc))
    return damaged(fmt::format("the checksum of member '{}' differs", entry.name));
  return member;
}

}  // namespace

Result<std::vector<NpzMember>> parse_npz(std::string_view bytes,
                                         const std::shared_ptr<const void>& keep) {
  TRY_ASSIGN(Directory directory, find_directory(bytes));
  std::vector<NpzMember> members;
  uint64_t at = directory.offset, unpacked = 0;
  for (uint64_t n = 0; n < directory.count; ++n) {
    const auto record = part(bytes, at, kCentralSize);
    if (!record || *read<uint32_t>(*record, 0) != kCentral)
      return damaged("its directory is cut short");
    const uint64_t name_size = *read<uint16_t>(*record, 28),
                   extra_size = *read<uint16_t>(*record, 30),
                   comment_size = *read<uint16_t>(*record, 32);
    const auto name = part(bytes, at + kCentralSize, name_size);
    const auto extra = part(bytes, at + kCentralSize + name_size, extra_size);
    if (!name || !extra) return damaged("its directory is cut short");
    at += kCentralSize + name_size + extra_size + comment_size;
    if (!name->ends_with(".npy")) continue;
    Entry entry{*name,
                *read<uint16_t>(*record, 8),
                *read<uint16_t>(*record, 10),
                *read<uint32_t>(*record, 16),
                *read<uint32_t>(*record, 20),
                *read<uint32_t>(*record, 24),
                *read<uint32_t>(*record, 42)};
    TRY(read_extra64(*extra, entry));
    // Members may share bytes: the bound is on their sum.
    if ((unpacked += std::min(entry.size, entry.packed * kMaxRatio)) / kMaxRatio > bytes.size())
      return damaged("its members promise more than it can hold");
    TRY_ASSIGN(NpzMember member, read_member(bytes, keep, entry));
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace tessera::io
