// SPDX-License-Identifier: Apache-2.0
//
// The cache of what was compiled at run time: what a kernel is kept by, and that nothing damaged,
// or another's, is believed. NVRTC's place is taken by a function.
#include "primitive/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "oneflow_lite/core/private_folder.h"
#include "oneflow_lite/core/sha256.h"

namespace oneflow_lite {
namespace {

namespace fs = std::filesystem;

int ModeOf(const fs::path& path) {
  struct stat status = {};
  stat(path.c_str(), &status);
  return status.st_mode & 07777;
}

std::string warning;

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "kernel_cache.XXXXXX").string();
    ASSERT_TRUE(mkdtemp(made.data()));
    root_ = made;
    folder_ = root_ / "new" / "cache";
    setenv("OFL_EXTENSION_CACHE", folder_.c_str(), 1);
    warning.clear();
    SetKernelWarningHandler([](const std::string& text) { warning = text; });
  }
  void TearDown() override {
    unsetenv("OFL_EXTENSION_CACHE");
    fs::remove_all(root_);
  }

  // As another process would ask.
  CompiledKernel Again(const KernelSource& source) {
    cache_.Forget();
    const auto kernel = cache_.Get(source);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return **kernel;
  }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "fused")) {
      files.push_back(entry.path());
    }
    return files;
  }

  fs::path root_, folder_;
  int compiled_ = 0;
  KernelCache cache_{[this](const KernelSource& source) -> StatusOr<CompiledKernel> {
    ++compiled_;
    return CompiledKernel{"", "image\n of " + source.text, "name_" + source.kernel};
  }};
  const KernelSource source_{"source", "f<int>", {"-arch=sm_90"}, "13.0"};
};

TEST(Sha256Test, GivesThePublishedDigests) {
  EXPECT_EQ(Sha256().Hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256().Add("abc").Hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256().Add("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").Hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 million;
  for (int i = 0; i < 1000; ++i) million.Add(std::string(1000, 'a'));
  EXPECT_EQ(million.Hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_NE(Sha256().AddField("ab").AddField("c").Hex(),
            Sha256().AddField("a").AddField("bc").Hex());
}

TEST_F(KernelCacheTest, KeepsKernelsAndCompilesDamagedOnesAgain) {
  const CompiledKernel kernel = Again(source_);
  EXPECT_EQ(Again(source_).image, kernel.image);
  EXPECT_EQ(compiled_, 1);
  ASSERT_EQ(Files().size(), 1u);
  const fs::path file = Files()[0];
  EXPECT_EQ(file.stem(), kernel.key);
  EXPECT_EQ(kernel.key.size(), 64u);
  for (const fs::path& path : {folder_.parent_path(), folder_, folder_ / "fused"}) {
    EXPECT_EQ(ModeOf(path), 0700) << path;
  }
  EXPECT_EQ(ModeOf(file), 0600);
  const std::string whole = *ReadPrivate(file.string());
  for (size_t i = 0; i < whole.size(); ++i) {  // in the name, the seal and the image
    std::string damaged = whole;
    damaged[i] ^= 4;
    ASSERT_TRUE(WriteWhole(file.string(), damaged).ok());
    EXPECT_EQ(Again(source_).image, kernel.image);
    EXPECT_EQ(compiled_, static_cast<int>(i) + 2);
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    ASSERT_TRUE(WriteWhole(file.string(), whole.substr(0, i)).ok());
    EXPECT_EQ(Again(source_).name, kernel.name);
  }
  EXPECT_EQ(*ReadPrivate(file.string()), whole);
}

TEST_F(KernelCacheTest, DoesNotBelieveAnothersFileUnderItsName) {
  const CompiledKernel kernel = Again(source_);
  const fs::path file = Files()[0];
  KernelSource changed = source_;
  changed.text = "other source";
  const CompiledKernel other = Again(changed);
  for (const fs::path& second : Files()) {
    if (second != file) fs::copy_file(second, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(Again(source_).image, kernel.image);
  EXPECT_NE(other.image, kernel.image);
}

TEST_F(KernelCacheTest, KeepsByAllThatNamesTheKernel) {
  std::set<std::string> keys = {Again(source_).key};
  for (auto change :
       {+[](KernelSource* s) { s->text += " "; }, +[](KernelSource* s) { s->kernel = "g"; },
        +[](KernelSource* s) { s->options[0] = "-arch=sm_80"; },
        +[](KernelSource* s) { s->options.push_back("-fast"); },
        +[](KernelSource* s) { s->compiler = "13.1"; },
        +[](KernelSource* s) { s->text += s->kernel, s->kernel.clear(); }}) {
    KernelSource source = source_;
    change(&source);
    keys.insert(Again(source).key);
  }
  EXPECT_EQ(keys.size(), 7u);
}

TEST_F(KernelCacheTest, DoesNotUseWhatOthersMayWriteTo) {
  fs::create_directories(folder_);
  chmod(folder_.c_str(), 0777);
  Again(source_);
  EXPECT_NE(warning.find("may be written by others (its mode is 777)"), std::string::npos);
  EXPECT_NE(warning.find("compiled anew"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_));
  chmod(folder_.c_str(), 0700);
  chmod(folder_.parent_path().c_str(), 0777);
  Again(source_);
  EXPECT_NE(warning.find("may be written by everybody"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_));
  chmod(folder_.parent_path().c_str(), 01777);  // as /tmp is: nobody takes away what is another's
  warning.clear();
  Again(source_);
  EXPECT_EQ(warning, "");
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(KernelCacheTest, ReadsPlainFilesOfItsOwnAlone) {
  const CompiledKernel kernel = Again(source_);
  const fs::path file = Files()[0];
  const std::string whole = *ReadPrivate(file.string());
  fs::rename(file, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", file);
  EXPECT_EQ(KindOf(ReadPrivate(file.string()).status()), ErrorKind::kValue);
  EXPECT_EQ(Again(source_).image, kernel.image);  // compiled, and put in the link's place
  EXPECT_EQ(compiled_, 2);
  EXPECT_FALSE(fs::is_symlink(file));
  chmod(file.c_str(), 0622);  // anybody may have written it since
  Again(source_);
  EXPECT_EQ(compiled_, 3);
  EXPECT_EQ(ModeOf(file), 0600);
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // reading it must not wait
  Again(source_);
  EXPECT_EQ(compiled_, 4);
  EXPECT_EQ(*ReadPrivate(file.string()), whole);
}

TEST_F(KernelCacheTest, DoesWithoutADisk) {
  ASSERT_TRUE(WriteWhole((root_ / "file").string(), "").ok());
  setenv("OFL_EXTENSION_CACHE", (root_ / "file" / "cache").c_str(), 1);
  Again(source_);
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(warning, "");
}

}  // namespace
}  // namespace oneflow_lite
