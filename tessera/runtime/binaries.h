// Where a launch's code is on the device: among the functions that claim sources came with, or in
// an executable that one of them made at run time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tessera/hal/device.h"
#include "tessera/op/problem.h"

namespace tessera::runtime {

// An entry of a loaded executable.
struct Entry {
  const hal::Executable* executable = nullptr;
  uint32_t index = 0;
};

// Executables made at run time, loaded once each and kept as long as the store. Thread-safe.
class BinaryStore {
 public:
  explicit BinaryStore(std::shared_ptr<hal::Device> device) : device_(std::move(device)) {}

  // kNotFound, kUnimplemented and the like: the device takes no such executable, and why.
  Result<Entry> find(const op::Binary& binary, std::string_view entry);
  size_t size() const;  // executables

 private:
  std::shared_ptr<hal::Device> device_;
  mutable std::mutex mutex_;
  std::map<std::string, hal::Executable> loaded_;  // by op::Binary::key; nodes stay where they are
};

}  // namespace tessera::runtime
