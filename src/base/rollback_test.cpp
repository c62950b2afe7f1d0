// Tests of rollback.
#include "base/rollback.hpp"

#include <gtest/gtest.h>

#include <new>

namespace eddy {
namespace {

int undone_after(bool is_kept, bool fails) {
    int undone = 0;
    try {
        rollback guard([&undone] { ++undone; });
        if (fails) throw std::bad_alloc();
        if (is_kept) guard.keep();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): counted above
    }
    return undone;
}

TEST(rollback, undoes_what_is_not_kept) {
    EXPECT_EQ(undone_after(false, false), 1);
    EXPECT_EQ(undone_after(true, false), 0);
    EXPECT_EQ(undone_after(true, true), 1);
}

}  // namespace
}  // namespace eddy
