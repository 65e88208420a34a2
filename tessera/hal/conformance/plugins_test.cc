// Plugins that are older, newer, smaller, missing symbols, refusing to initialise or linked to an
// absent library: each loads as far as it can, or says why it does not.
#include <gtest/gtest.h>

#include <string>

#include "tessera/hal/backend.h"
#include "tessera/hal/device.h"

namespace tessera::hal::conformance {
namespace {

std::string path(const std::string& variant) { return TESSERA_TEST_PLUGINS "/" + variant + ".so"; }

Error refusal(const std::string& variant, AbiRange versions = {}) {
  auto result = Backend::open(path(variant), versions);
  EXPECT_FALSE(result) << variant << " loads";
  return result ? Error{} : result.error();
}

TEST(Plugins, LoadWhatFits) {
  for (const char* variant : {"current", "larger"}) {
    auto backend = Backend::open(path(variant));
    ASSERT_TRUE(backend) << backend.error().message;
    EXPECT_EQ((*backend)->name(), "variant");
    EXPECT_EQ(*(*backend)->device_count(), 1u);
    auto device = Device::open(**backend, 0);
    ASSERT_TRUE(device) << device.error().message;
    EXPECT_EQ((*device)->info().name, "A device in C");
  }
}

TEST(Plugins, MissingEntriesAnswerUnimplementedAndNameThemselves) {
  auto backend = *Backend::open(path("current"));
  EXPECT_TRUE(backend->has(&tessera_backend::device_count));
  EXPECT_FALSE(backend->has(&tessera_backend::slab_wrap));
  auto device = *Device::open(*backend, 0);
  const auto buffer = device->allocate(Bytes(8));
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, Code::kUnimplemented);
  EXPECT_EQ(buffer.error().message, "the backend has no 'slab_allocate'");
  EXPECT_EQ(device->queue().error().message, "the backend has no 'queue_create'");
  EXPECT_EQ(device->timeline().error().message, "the backend has no 'timeline_create'");
  EXPECT_EQ(device->status().error().code, Code::kUnimplemented);
}

TEST(Plugins, ASmallerTableMissesWhatItDoesNotReach) {
  auto backend = Backend::open(path("smaller"));
  ASSERT_TRUE(backend) << backend.error().message;
  EXPECT_EQ(*(*backend)->device_count(), 1u);
  EXPECT_EQ(Device::open(**backend, 0).error().message, "the backend has no 'device_properties'");
}

TEST(Plugins, NegotiateARange) {
  EXPECT_EQ(refusal("older").code, Code::kFailedPrecondition);
  EXPECT_TRUE(Backend::open(path("older"), {.oldest = 0, .newest = 1}));
  EXPECT_EQ(refusal("newer").code, Code::kFailedPrecondition);
  EXPECT_EQ((*Backend::open(path("newer"), {.oldest = 1, .newest = 2}))->table().abi_version, 2u);
  EXPECT_EQ((*Backend::open(path("newer"), {.oldest = 1, .newest = 9}))->table().abi_version, 3u);
  EXPECT_EQ(refusal("newer", {.oldest = 4, .newest = 9}).code, Code::kFailedPrecondition);
  EXPECT_EQ(refusal("lies").message.find("the plugin has version 7, this host takes 1 to 1"), 0u);
}

TEST(Plugins, SayWhyTheyDoNotLoad) {
  EXPECT_EQ(refusal("tiny").code, Code::kFailedPrecondition);
  EXPECT_EQ(refusal("no_table").code, Code::kInternal);
  const Error no_symbol = refusal("no_symbol");
  EXPECT_EQ(no_symbol.code, Code::kNotFound);
  EXPECT_NE(no_symbol.message.find("exports no tessera_plugin_main"), std::string::npos);
  const Error refuses = refusal("refuses");
  EXPECT_EQ(refuses.code, Code::kUnavailable);
  EXPECT_EQ(refuses.message.find("no such device on this machine; plugin '"), 0u);
  EXPECT_EQ(refusal("absent_from_this_folder").code, Code::kUnavailable);
}

TEST(Plugins, AnAbsentVendorLibraryIsNamed) {
  for (const char* variant : {"opens_vendor", "linked_vendor"}) {
    const Error e = refusal(variant);
    EXPECT_EQ(e.code, Code::kUnavailable) << variant;
    EXPECT_NE(e.message.find("libtessera_absent_vendor.so"), std::string::npos) << e.message;
  }
}

TEST(Plugins, LiveInTheVisibleList) {
  Registry registry({{"fine", nullptr, path("current")}, {"gone", nullptr, path("linked_vendor")}});
  EXPECT_TRUE(registry.open("fine:0"));
  EXPECT_EQ(registry.open("fine:1").error().code, Code::kNotFound);
  EXPECT_EQ(registry.find("gone").error().code, Code::kUnavailable);
  EXPECT_EQ(registry.find("gone").error().code, Code::kUnavailable);
  EXPECT_EQ(registry.find("other").error().message,
            "there is no backend 'other'; there are: fine, gone");
  EXPECT_EQ(registry.open("fine:x").error().code, Code::kNotFound);  // a chip
  for (const char* name : {"", ":0", "fine:", "fine:x:", "fine:-1", "fine:99999999999"})
    EXPECT_EQ(registry.open(name).error().code, Code::kInvalidArgument) << name;
}

TEST(Plugins, LoadAndUnloadManyTimes) {
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Backend::open(path("current")));
}

}  // namespace
}  // namespace tessera::hal::conformance
