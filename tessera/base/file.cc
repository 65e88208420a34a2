#include "tessera/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace tessera {
namespace {

Code code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Code::kResourceExhausted;
    case EIO:
      return Code::kDataLoss;
    default:
      return Code::kFailedPrecondition;
  }
}

tl::unexpected<Error> system_failure(const char* doing, const std::string& path,
                                     int number = errno) {
  return error(code_of(number), "cannot {} '{}': {}", doing, path,
               std::generic_category().message(number));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}.tmp-{}-{}", path, ::getpid(), count.fetch_add(1));
}

// Where a chain of links leads, also if there is no file yet. A circle of links ends as its own
// open error.
std::string follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path at = path;
  std::error_code ignored;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(at, ignored); ++i)
    at = at.parent_path() / std::filesystem::read_symlink(at, ignored);
  return at.string();
}

// The mappings of this process: madvise() must know memory of files from any other, whose content
// it would drop.
struct Mappings {
  std::mutex mutex;
  std::vector<std::span<const std::byte>> all;
};
Mappings& mappings() {
  static Mappings instance;
  return instance;
}

std::string name_of_descriptor(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  const std::lock_guard lock(mappings().mutex);
  std::erase_if(mappings().all, [&](auto mapped) { return mapped.data() == bytes_.data(); });
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::byte> range) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + range.size()) / page * page;
  if (begin >= end) return;
  const std::lock_guard lock(mappings().mutex);
  for (const std::span<const std::byte> mapped : mappings().all) {
    const auto first = reinterpret_cast<uintptr_t>(mapped.data());
    if (address >= first && address + range.size() <= first + mapped.size())
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_failure("open", path);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return system_failure("inspect", path);
  if (S_ISDIR(status.st_mode)) return system_failure("read", path, EISDIR);
  if (!S_ISREG(status.st_mode))
    return error(Code::kFailedPrecondition, "cannot map '{}': not a regular file", path);
  if (status.st_size == 0) return MappedFile();
  const auto size = static_cast<size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return system_failure("map", path);
  const std::lock_guard lock(mappings().mutex);
  mappings().all.emplace_back(static_cast<const std::byte*>(data), size);
  return MappedFile(std::span(static_cast<const std::byte*>(data), size));
}

Result<std::string> read_file(const std::string& path, Bytes limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_failure("open", path);
  std::string text;
  size_t filled = 0;
  for (;;) {
    text.resize(std::max(size_t{1} << 16, filled * 2));
    const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", path);
    filled += static_cast<size_t>(got);
    if (filled > static_cast<uint64_t>(std::max<int64_t>(limit.value, 0)))
      return error(Code::kOutOfRange, "'{}' has more than {}", path, to_string(limit));
    if (got == 0) break;
  }
  text.resize(filled);
  return text;
}

FileWriter::FileWriter(FileWriter&& other) noexcept { *this = std::move(other); }

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(direct_, other.direct_);
  return *this;
}

FileWriter::~FileWriter() { discard(); }

void FileWriter::discard() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  FileWriter writer;
  writer.path_ = follow_links(path);
  struct stat status;
  const bool exists = ::stat(writer.path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return system_failure("write", path, EISDIR);
  writer.direct_ = exists && !S_ISREG(status.st_mode);
  if (writer.direct_) {
    writer.fd_ = ::open(writer.path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    writer.fd_ = ::open(folder_of(writer.path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  }
  if (writer.fd_ < 0 && !writer.direct_) {
    const std::string name = temporary_name(writer.path_);
    writer.fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer.fd_ >= 0) writer.temporary_ = name;
  }
  if (writer.fd_ < 0) return system_failure("write", path);
  if (exists && !writer.direct_ && ::fchmod(writer.fd_, status.st_mode & 07777) != 0)
    return system_failure("set the mode of", path);
  return writer;
}

Status FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return system_failure("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return {};
}

Status FileWriter::commit() {
  if (direct_) {
    discard();
    return {};
  }
  if (::fsync(fd_) != 0) return system_failure("write", path_);
  if (temporary_.empty()) {
    const std::string name = temporary_name(path_);
    if (::linkat(AT_FDCWD, name_of_descriptor(fd_).c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) != 0)
      return system_failure("write", path_);
    temporary_ = name;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return system_failure("write", path_);
  temporary_.clear();
  discard();
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
  return {};
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  TRY_ASSIGN(FileWriter writer, FileWriter::create(path));
  TRY(writer.write(bytes));
  return writer.commit();
}

Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace tessera
