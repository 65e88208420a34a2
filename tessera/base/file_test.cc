#include "tessera/base/file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tessera_file_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const char* name) const { return (root_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }
  fs::path root_;
};

TEST_F(File, WrittenBytesAreReadAndMapped) {
  std::string text(200000, 'x');
  text[70000] = '\0';
  ASSERT_TRUE(write_file(at("a"), text));
  EXPECT_EQ(*read_file(at("a")), text);
  Result<MappedFile> mapped = MappedFile::open(at("a"));
  ASSERT_TRUE(mapped);
  const MappedFile moved = std::move(*mapped);
  ASSERT_EQ(moved.bytes().size(), text.size());
  EXPECT_EQ(std::memcmp(moved.bytes().data(), text.data(), text.size()), 0);
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST_F(File, ReleasedPagesKeepTheirContent) {
  const std::string text(1 << 20, 'x');
  ASSERT_TRUE(write_file(at("a"), text));
  const MappedFile mapped = *MappedFile::open(at("a"));
  const auto bytes = mapped.bytes();
  const auto resident = [&] {
    std::ifstream file("/proc/self/smaps");
    const std::string head = fmt::format("{:x}-", reinterpret_cast<uintptr_t>(bytes.data()));
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(head))
        while (std::getline(file, line))
          if (line.starts_with("Rss:")) return std::stol(line.substr(4));
    return -1L;
  };
  EXPECT_EQ(std::memcmp(bytes.data(), text.data(), text.size()), 0);
  EXPECT_EQ(resident(), 1024);  // KiB
  MappedFile::release(bytes.subspan(100, bytes.size() - 200));
  EXPECT_EQ(resident(), 8);  // the pages at both ends are not whole
  EXPECT_EQ(std::memcmp(bytes.data(), text.data(), text.size()), 0);
  // Memory that is not a file's stays.
  std::vector<std::byte> other(1 << 16, std::byte{7});
  MappedFile::release(other);
  EXPECT_EQ(other[40000], std::byte{7});
}

TEST_F(File, EmptyFiles) {
  ASSERT_TRUE(write_file(at("empty"), ""));
  EXPECT_EQ(*read_file(at("empty")), "");
  EXPECT_TRUE(MappedFile::open(at("empty"))->bytes().empty());
}

TEST_F(File, ErrorsNameThePathAndTheReason) {
  const Result<MappedFile> missing = MappedFile::open(at("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
  EXPECT_EQ(MappedFile::open(root_.string()).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(MappedFile::open("/dev/null").error().code, Code::kFailedPrecondition);
  EXPECT_EQ(read_file(root_.string()).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(write_file(at("no/such/folder"), "x").error().code, Code::kNotFound);
  EXPECT_EQ(write_file(root_.string(), "x").error().code, Code::kFailedPrecondition);
}

TEST_F(File, ReadingStopsAtTheLimit) {
  ASSERT_TRUE(write_file(at("a"), std::string(1000, 'x')));
  EXPECT_TRUE(read_file(at("a"), Bytes(1000)));
  EXPECT_EQ(read_file(at("a"), Bytes(999)).error().code, Code::kOutOfRange);
  EXPECT_EQ(read_file("/dev/zero", Bytes(1 << 20)).error().code, Code::kOutOfRange);
}

TEST_F(File, NothingIsSeenBeforeCommitAndNothingStaysWithoutIt) {
  ASSERT_TRUE(write_file(at("a"), "old"));
  {
    Result<FileWriter> writer = FileWriter::create(at("a"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write("new"));
    EXPECT_EQ(content(at("a")), "old");
  }
  EXPECT_EQ(content(at("a")), "old");
  EXPECT_EQ(files(), 1u);
  ASSERT_TRUE(write_file(at("a"), "new"));
  EXPECT_EQ(content(at("a")), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(File, ModeOfAReplacedFileIsKept) {
  ASSERT_TRUE(write_file(at("a"), "old"));
  ASSERT_EQ(chmod(at("a").c_str(), 0640), 0);
  ASSERT_TRUE(write_file(at("a"), "new"));
  struct stat status;
  ASSERT_EQ(stat(at("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(File, LinksAreFollowed) {
  fs::create_symlink("target", at("link"));
  ASSERT_TRUE(write_file(at("link"), "one"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(content(at("target")), "one");
  ASSERT_TRUE(write_file(at("link"), "two"));
  EXPECT_EQ(content(at("target")), "two");
}

TEST_F(File, DevicesAreWrittenToAndNotReplaced) {
  ASSERT_TRUE(write_file("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(File, FullDiskIsSaidToBeFull) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const Status full = write_file("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kResourceExhausted);
}

// A process that is killed while it writes leaves no half file.
TEST_F(File, KilledWriterLeavesNoHalfFile) {
  const pid_t child = fork();
  if (child == 0) {
    Result<FileWriter> writer = FileWriter::create(at("a"));
    if (writer) (void)writer->write("half");
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(fs::exists(at("a")));
}

}  // namespace
}  // namespace tessera
