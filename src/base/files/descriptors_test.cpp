// Reserved descriptors: their numbers.
#include "base/files/descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <climits>
#include <memory>
#include <vector>

namespace eddy::descriptors {
namespace {

/// The limit of open files, for as long as it lives.
class open_files {
public:
    explicit open_files(rlim_t most) {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit chosen = before_;
        chosen.rlim_cur = most;
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &chosen), 0);
    }
    ~open_files() { setrlimit(RLIMIT_NOFILE, &before_); }
    open_files(const open_files&) = delete;
    open_files& operator=(const open_files&) = delete;

private:
    rlimit before_{};
};

unique_fd next() { return unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(descriptors, name_their_limit_when_they_run_out) {
    const open_files limit(321);
    const std::string text = explain_shortage(std::make_error_code(std::errc::too_many_files_open));
    EXPECT_NE(text.find(" 321 open files"), std::string::npos) << text;
    EXPECT_NE(text.find("LimitNOFILE="), std::string::npos) << text;
    EXPECT_NE(explain_shortage(std::make_error_code(std::errc::too_many_files_open_in_system))
                  .find("fs.file-max"),
              std::string::npos);
    EXPECT_EQ(explain_shortage(std::make_error_code(std::errc::permission_denied)), "");
}

TEST(descriptors, are_kept_in_reserve_at_the_end_of_the_table) {
    {
        const open_files limit(1000);
        EXPECT_EQ(first_reserved(use::client), 1000 - reserved);
        EXPECT_EQ(first_reserved(use::control), 1000 - reserved_for_files);
        EXPECT_FALSE(in_reserve(1000 - reserved - 1, use::client));
        EXPECT_TRUE(in_reserve(1000 - reserved, use::client));
        EXPECT_FALSE(in_reserve(-1, use::client)) << "the simulator has none";
    }
    const open_files limit(40);
    EXPECT_EQ(first_reserved(use::client), 20) << "half of a small table";
    EXPECT_EQ(first_reserved(use::control), 30);
}

TEST(descriptors, have_room_while_a_low_one_is_free) {
    const open_files limit(64);
    std::vector<unique_fd> taken;
    for (;;) {
        unique_fd one = next();
        ASSERT_TRUE(one);
        EXPECT_EQ(has_room(use::client), one.get() + 1 < first_reserved(use::client));
        taken.push_back(std::move(one));
        if (!has_room(use::control)) break;
    }
    EXPECT_EQ(taken.back().get() + 1, first_reserved(use::control));
    EXPECT_TRUE(next()) << "files have what is left";
    unique_fd high = std::move(taken.back());
    const int number = high.get();
    lower(high);
    EXPECT_EQ(high.get(), number) << "there is no lower one";
    const int freed = taken.front().get();
    taken.erase(taken.begin());
    EXPECT_TRUE(has_room(use::client));
    lower(high);
    EXPECT_EQ(high.get(), freed);
    EXPECT_FALSE(has_room(use::client));
}

TEST(descriptors, hold_a_limited_number_of_connections_that_wait) {
    std::vector<std::unique_ptr<waiting_connection>> all;
    for (int i = 0; i < waiting_connection::most; ++i) {
        all.push_back(std::make_unique<waiting_connection>());
        EXPECT_TRUE(all.back()->may_wait());
    }
    EXPECT_FALSE(waiting_connection().may_wait());
    all.pop_back();
    EXPECT_TRUE(waiting_connection().may_wait());
}

}  // namespace
}  // namespace eddy::descriptors
