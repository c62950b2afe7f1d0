// Forms of beats, and files that are fit to be read or not.
#include "cluster/folder/folder_files.hpp"

#include <eddy/base/random.hpp>
#include <eddy/base/unique_fd.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "cluster/folder/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace eddy::cluster {
namespace {

using namespace cluster::testing;

TEST(beat_text, reads_back) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (int i = 0; i < eddy::testing::rounds(1000); ++i) {
        const beat its{random_id(random), random(), random() >> random.below(64), random()};
        const std::string text = format_beat(its);
        ASSERT_LE(text.size(), max_beat_bytes);
        const auto read = parse_beat(text);
        ASSERT_TRUE(read) << text;
        ASSERT_EQ(*read, its);
        for (std::size_t size = 0; size < text.size(); ++size)
            ASSERT_FALSE(parse_beat(text.substr(0, size))) << "a cut of " << text;
    }
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    EXPECT_LE(format_beat({std::string(max_start_id, 'x'), most, most, most}).size(),
              max_beat_bytes);
}

TEST(beat_text, refuses_other_forms) {
    EXPECT_TRUE(parse_beat("eddy-beat 1 a 1 2 3 4 of a newer version\n"));
    for (const std::string_view text :
         {"", "\n", "eddy-beat 1\n", "eddy-beat 1 a\n", "eddy-beat 1 a 1\n", "eddy-beat 1 a 1 2\n",
          "eddy-beat 2 a 1 2 3\n", "eddy-beat 10 a 1 2 3\n", "eddy-beat 1  1 2 3\n",
          "eddy-beat 1 a -1 2 3\n", "eddy-beat 1 a 1 2 0x3\n", "eddy-beat 1 a/b 1 2 3\n",
          "eddy-beat 1 a 1 2 99999999999999999999\n", "eddy-beat 1 a 1 2 3\nx\n", "{}\n"})
        EXPECT_FALSE(parse_beat(text)) << text;
}

TEST(beat_text, survives_any_bytes) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (int i = 0; i < eddy::testing::rounds(5000); ++i) {
        std::string text = format_beat({random_id(random), 1, 2, 3});
        for (auto faults = 1 + random.below(4); faults > 0; --faults)
            text[random.below(text.size())] = static_cast<char>(random());
        if (const auto read = parse_beat(text)) {
            ASSERT_TRUE(is_start_id(read->id));
        }
    }
}

TEST(folder_files, replaces_a_file_at_once) {
    const test_folder folder;
    const unique_fd fd(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const trusted_owners owners({});
    const auto first = replace_file(fd.get(), ".new", "a", "one");
    ASSERT_TRUE(first);
    EXPECT_EQ(stamp_at(fd.get(), "a"), *first);
    folder.put(".new", "left by another process");
    const auto second = replace_file(fd.get(), ".new", "a", "");
    ASSERT_TRUE(second) << "the remains refuse no further file";
    EXPECT_NE(*first, *second);
    EXPECT_EQ(read_shared(fd.get(), "a", 10, owners)->text, "");
    EXPECT_FALSE(folder.has(".new"));
    fs::create_directory(folder.file("b"));
    const auto failed = replace_file(fd.get(), ".new", "b", "x");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error(), errno_code(EISDIR));
    EXPECT_FALSE(folder.has(".new")) << "nothing is left after a failure";
}

TEST(folder_files, are_bounded) {
    const test_folder folder;
    const unique_fd fd(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const trusted_owners owners({});
    folder.put("a", std::string(100, 'x'));
    EXPECT_EQ(read_shared(fd.get(), "a", 100, owners)->text.size(), 100U);
    const auto large = read_shared(fd.get(), "a", 99, owners);
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().why, unreadable::cause::unfit);
    EXPECT_EQ(large.error().reason, "has 100 bytes, at most 99 may be");
    const auto absent = read_shared(fd.get(), "b", 99, owners);
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().why, unreadable::cause::absent);
}

TEST(folder_files, trust_this_user_and_root_and_those_named) {
    trusted_owners owners({1234});
    EXPECT_TRUE(owners.contains(::geteuid()));
    EXPECT_TRUE(owners.contains(0));
    EXPECT_TRUE(owners.contains(1234));
    EXPECT_FALSE(owners.contains(4321));
    owners.add(4321);
    EXPECT_TRUE(owners.contains(4321));
}

}  // namespace
}  // namespace eddy::cluster
