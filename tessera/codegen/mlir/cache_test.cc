#include "tessera/codegen/mlir/cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "tessera/base/file.h"

namespace tessera::codegen::mlir {
namespace {

namespace fs = std::filesystem;

using Bytes_ = std::vector<std::byte>;

Bytes_ bytes(size_t size, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Bytes_ b(size);
  for (std::byte& x : b) x = static_cast<std::byte>(random());
  return b;
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() {
    std::string name = (fs::temp_directory_path() / "tessera-cache-XXXXXX").string();
    folder_ = mkdtemp(name.data()) ? name : ".";
  }
  ~CacheTest() override { fs::remove_all(folder_); }
  Cache cache(int64_t limit = Cache::kLimit.value) const {
    return Cache(folder_ + "/code", Bytes(limit));
  }
  int64_t size() const {
    int64_t total = 0;
    for (const auto& e : fs::directory_iterator(folder_ + "/code"))
      total += static_cast<int64_t>(e.file_size());
    return total;
  }
  std::string folder_;
};

TEST_F(CacheTest, FindsWhatWasPutIn) {
  const Cache c = cache();
  EXPECT_FALSE(c.find("a"));
  EXPECT_TRUE(c.empty());
  ASSERT_TRUE(c.put("a", bytes(1000, 1)));
  EXPECT_FALSE(c.empty());
  ASSERT_TRUE(c.put("b", {}));
  EXPECT_EQ(cache().find("a"), bytes(1000, 1));
  EXPECT_EQ(c.find("b"), Bytes_{});
  EXPECT_FALSE(c.find("ab"));
  ASSERT_TRUE(c.put("a", bytes(10, 2)));
  EXPECT_EQ(c.find("a"), bytes(10, 2));
}

TEST_F(CacheTest, KeepsNothingWithoutAFolder) {
  const Cache c("");
  EXPECT_TRUE(c.put("a", bytes(10, 1)));
  EXPECT_FALSE(c.find("a"));
  EXPECT_TRUE(c.empty());
}

TEST_F(CacheTest, DropsEntriesThatAreNotWhole) {
  const Cache c = cache();
  const std::string path = c.path_of("key");
  ASSERT_TRUE(c.put("key", bytes(300, 1)));
  const std::string good = *read_file(path);
  const auto lost = [&](const std::string& file) {
    EXPECT_TRUE(write_file(path, file));
    return !c.find("key") && !fs::exists(path);
  };
  for (size_t at = 0; at < good.size(); at += 5) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    ASSERT_TRUE(lost(bad)) << at;
  }
  for (size_t size = 0; size < good.size(); size += 31)
    ASSERT_TRUE(lost(good.substr(0, size))) << size;
  EXPECT_TRUE(lost(good + "x"));
  // Another key's entry in its place.
  ASSERT_TRUE(c.put("other", bytes(300, 1)));
  EXPECT_TRUE(lost(*read_file(c.path_of("other"))));
  ASSERT_TRUE(write_file(path, good));
  EXPECT_EQ(c.find("key"), bytes(300, 1));
}

TEST_F(CacheTest, StaysBelowItsLimitAndDropsTheOldest) {
  const Cache c = cache(100'000);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(c.put("k" + std::to_string(i), bytes(9'000, i)));
    EXPECT_LE(size(), 100'000);
    const auto age = std::chrono::hours(100 - i);
    fs::last_write_time(c.path_of("k" + std::to_string(i)), fs::file_time_type::clock::now() - age);
    if (i == 20) {
      EXPECT_TRUE(c.find("k15"));  // which makes it younger
    }
  }
  EXPECT_TRUE(c.find("k39"));
  EXPECT_TRUE(c.find("k15"));
  EXPECT_FALSE(c.find("k16"));
  EXPECT_FALSE(c.find("k0"));
}

TEST_F(CacheTest, ServesSeveralProcesses) {
  constexpr int kProcesses = 4, kEntries = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      const Cache c = cache(200'000);
      bool fine = true;
      for (int i = 0; i < 200; ++i) {
        const int k = (i * 7 + p) % kEntries;
        const std::string key = "k" + std::to_string(k);
        if (i % 3 == 0) fine &= c.put(key, bytes(5'000, k)).has_value();
        const auto found = c.find(key);
        fine &= !found || *found == bytes(5'000, k);
      }
      _exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int k = 0; k < kEntries; ++k)
    EXPECT_EQ(cache().find("k" + std::to_string(k)), bytes(5'000, k));
}

TEST_F(CacheTest, IsWhereTheEnvironmentSays) {
  setenv("TESSERA_CACHE_DIR", "/x", 1);
  EXPECT_EQ(Cache::default_folder(), "/x/code");
  setenv("TESSERA_CACHE_DIR", "none", 1);
  EXPECT_EQ(Cache::default_folder(), "");
  unsetenv("TESSERA_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/y", 1);
  EXPECT_EQ(Cache::default_folder(), "/y/tessera/code");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/z", 1);
  EXPECT_EQ(Cache::default_folder(), "/z/.cache/tessera/code");
}

}  // namespace
}  // namespace tessera::codegen::mlir
