// Files: mapped read-only, read whole, and written so that a reader sees the old file or the new
// one, never a half. Errors name the path: kNotFound, kFailedPrecondition (permission, wrong kind
// of file), kResourceExhausted (disk or quota full, file too large), kDataLoss (the medium failed).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/base/units.h"

namespace tessera {

// A regular file's bytes, for as long as the object lives. The pages are shared with the system's
// cache: mapping costs no memory, and a file that someone shortens meanwhile must not be read
// beyond its new end.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // Lets go of the memory behind whole pages of `range`, if a MappedFile holds it; nothing happens
  // if not. The bytes stay what they are: reading them again takes them from the file.
  static void release(std::span<const std::byte> range);

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// The whole file, or pipe, if it has at most `limit` bytes; kOutOfRange if it has more.
Result<std::string> read_file(const std::string& path, Bytes limit = Bytes(int64_t{1} << 30));

// A file in the making. Nothing is to be seen at `path` before commit(), which also makes the
// content durable; without it nothing remains, also when the process is killed (file systems
// without O_TMPFILE keep a "path.tmp-*" then). A path that names a device or pipe is written to
// directly; a symbolic link is followed.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  // Replaces what was at the path. The writer is of no use afterwards.
  Status commit();

 private:
  FileWriter() = default;
  void discard();

  int fd_ = -1;
  std::string path_;       // final name, links followed
  std::string temporary_;  // name of the file being written; empty if it has none
  bool direct_ = false;    // a device or pipe: no renaming
};

// FileWriter in one call.
Status write_file(const std::string& path, std::span<const std::byte> bytes);
Status write_file(const std::string& path, std::string_view text);

}  // namespace tessera
