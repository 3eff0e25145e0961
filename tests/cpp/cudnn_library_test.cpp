// SPDX-License-Identifier: Apache-2.0
//
// Which cuDNN is taken where the loader's path has 9.10.2 and CUDA_HOME has 9.19.0
// (fake_cudnn.cpp).
#include "primitive/cudnn_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace oneflow_lite {
namespace {

using testing::HasSubstr;

size_t VersionOf(const CudnnLibrary& library) {
  void* get = dlsym(library.handle, "cudnnGetVersion");
  return get ? reinterpret_cast<size_t (*)()>(get)() : 0;
}

class CudnnLibraryTest : public testing::Test {
 protected:
  void SetUp() override { setenv("CUDA_HOME", FAKE_CUDNN_HOME, 1); }
};

TEST_F(CudnnLibraryTest, TheFirstThatIsNewEnoughIsTaken) {
  const CudnnLibrary library = OpenCudnn(90000);
  ASSERT_TRUE(library.handle) << library.problem;
  EXPECT_EQ(library.name, "cuDNN 9.10.2");
  EXPECT_EQ(library.problem, "");
}

TEST_F(CudnnLibraryTest, AnOlderOneOnThePathIsPassedOver) {
  const CudnnLibrary library = OpenCudnn(91501);
  ASSERT_TRUE(library.handle) << library.problem;
  EXPECT_EQ(library.name, "cuDNN 9.19.0");
  EXPECT_EQ(VersionOf(library), 91900u);  // its parts are its own, whatever the path has
}

TEST_F(CudnnLibraryTest, WhereNoneWillDoAllThatWereTriedAreNamed) {
  const CudnnLibrary library = OpenCudnn(999999);
  EXPECT_FALSE(library.handle);
  EXPECT_THAT(library.problem, HasSubstr("old/libcudnn.so.9 is cuDNN 9.10.2"));
  EXPECT_THAT(library.problem, HasSubstr("new/lib/libcudnn.so.9 is cuDNN 9.19.0"));
}

TEST_F(CudnnLibraryTest, WhatRunsAlreadyCannotBeReplaced) {
  void* running = dlopen("libcudnn.so.9", RTLD_NOW);
  ASSERT_TRUE(running);
  ASSERT_EQ(VersionOf({running, "", ""}), 91002u);  // which loads its part
  const CudnnLibrary library = OpenCudnn(91501);
  EXPECT_FALSE(library.handle);
  EXPECT_THAT(library.problem, HasSubstr("runs as cuDNN 9.10.2, whose parts were loaded before"));
}

}  // namespace
}  // namespace oneflow_lite
