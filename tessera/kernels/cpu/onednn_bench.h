// oneDNN as a rival of kernels in benchmarks.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "tessera/kernels/cpu/bench.h"

namespace tessera::kernels::cpu::bench {

// A primitive with its memory; what derives from it makes both.
class OneDnn {
 public:
  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 protected:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  void add(int argument, const dnnl::memory::desc& desc) {
    buffers_.push_back(buffer(static_cast<int64_t>(desc.get_size())));
    arguments_.emplace(argument, dnnl::memory(desc, engine_, buffers_.back().get()));
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<Buffer> buffers_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace tessera::kernels::cpu::bench
