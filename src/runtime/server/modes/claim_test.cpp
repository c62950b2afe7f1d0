// Tests of the master's claim: one client has it, and guesses are limited by address.
#include "runtime/server/modes/claim.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace eddy::runtime::server {
namespace {

using eddy::testing::must;
using namespace std::chrono_literals;

endpoint at(const std::string& address, std::uint16_t port = 1) {
    return must(endpoint::ip(address, port));
}

endpoint numbered(std::size_t n) {
    return at("10.0." + std::to_string(n / 256) + "." + std::to_string(n % 256));
}

class server_claim : public ::testing::Test {
protected:
    server_claim() { claim.set_password("sesame"); }

    claim_answer ask(std::string_view password, const endpoint& from = at("10.9.9.9"),
                     std::uint64_t client = 1) {
        return claim.claim(password, from, {client, nullptr}, now);
    }

    master_claim claim;
    time_point now = time_point(1h);
};

TEST_F(server_claim, one_client_has_it_until_it_leaves) {
    EXPECT_FALSE(claim.has_master());
    EXPECT_EQ(ask("sesame"), claim_answer::granted);
    EXPECT_EQ(ask("sesame"), claim_answer::granted);
    EXPECT_TRUE(claim.is_master(1));
    EXPECT_EQ(ask("sesame", at("10.1.1.1"), 2), claim_answer::taken);
    EXPECT_FALSE(claim.release(2));
    EXPECT_TRUE(claim.release(1));
    EXPECT_EQ(ask("sesame", at("10.1.1.1"), 2), claim_answer::granted);
    EXPECT_EQ(claim.master().client, 2U);
    EXPECT_EQ(claim.granted(), 3U);
    EXPECT_EQ(claim.refused(), 1U);
}

TEST_F(server_claim, another_password_ends_it_and_the_same_does_not) {
    EXPECT_EQ(ask("sesame"), claim_answer::granted);
    claim.set_password("sesame");
    EXPECT_TRUE(claim.has_master());
    claim.set_password("other");
    EXPECT_FALSE(claim.has_master());
    EXPECT_EQ(ask("sesame"), claim_answer::wrong);
    EXPECT_EQ(ask("other"), claim_answer::granted);
    claim.end();
    EXPECT_FALSE(claim.has_master());
}

TEST_F(server_claim, without_a_password_none_is_right) {
    claim.set_password("");
    EXPECT_EQ(ask(""), claim_answer::wrong);
    EXPECT_EQ(ask("x"), claim_answer::wrong);
}

TEST_F(server_claim, a_guessing_address_is_locked_out_at_the_limit) {
    for (unsigned i = 0; i < max_wrong_passwords; ++i) {
        EXPECT_EQ(ask("guess"), claim_answer::wrong) << i;
        now += 1s;
    }
    EXPECT_EQ(ask("sesame"), claim_answer::locked);
    // Neither another port nor the same address of IPv6 is another address.
    EXPECT_EQ(ask("sesame", at("10.9.9.9", 7)), claim_answer::locked);
    EXPECT_EQ(ask("sesame", at("::ffff:10.9.9.9")), claim_answer::locked);
    EXPECT_EQ(ask("sesame", at("10.9.9.8")), claim_answer::granted);
    claim.end();
    now += wrong_password_time - 1s - 1ns;
    EXPECT_EQ(ask("sesame"), claim_answer::locked);
    now += 1ns;
    EXPECT_EQ(ask("sesame"), claim_answer::granted);
    EXPECT_EQ(claim.refused(), max_wrong_passwords + 4U);
}

TEST_F(server_claim, one_wrong_password_less_locks_nothing_out) {
    for (unsigned i = 0; i + 1 < max_wrong_passwords; ++i)
        EXPECT_EQ(ask("guess"), claim_answer::wrong);
    EXPECT_EQ(ask("sesame"), claim_answer::granted);
    // The right one is the end of the count; so is the time.
    for (unsigned i = 0; i + 1 < max_wrong_passwords; ++i)
        EXPECT_EQ(ask("guess"), claim_answer::wrong);
    now += wrong_password_time;
    for (unsigned i = 0; i + 1 < max_wrong_passwords; ++i)
        EXPECT_EQ(ask("guess"), claim_answer::wrong);
    EXPECT_EQ(ask("sesame"), claim_answer::granted);
}

TEST_F(server_claim, addresses_of_one_network_of_ipv6_guess_together) {
    for (unsigned i = 0; i < max_wrong_passwords; ++i)
        EXPECT_EQ(ask("guess", at("2001:db8::" + std::to_string(i + 1))), claim_answer::wrong);
    EXPECT_EQ(ask("sesame", at("2001:db8::ffff")), claim_answer::locked);
    EXPECT_EQ(ask("sesame", at("2001:db8:0:1::1")), claim_answer::granted);
}

TEST(password_guesses, the_table_is_bounded_and_the_oldest_guesser_is_forgotten) {
    password_guesses all;
    time_point now(1h);
    const auto guess = [&](std::size_t n) {
        now += 1us;
        const std::string key = guess_key(numbered(n));
        return all.may_guess(key, now) && (all.note_wrong(key, now), true);
    };
    for (std::size_t n = 0; n < max_guessing_addresses; ++n) EXPECT_TRUE(guess(n));
    EXPECT_EQ(all.size(), max_guessing_addresses);
    EXPECT_TRUE(guess(max_guessing_addresses));
    EXPECT_EQ(all.size(), max_guessing_addresses);
    // The first one begins anew.
    for (unsigned i = 0; i < max_wrong_passwords; ++i) EXPECT_TRUE(guess(0)) << i;
    EXPECT_FALSE(guess(0));
}

TEST(password_guesses, while_all_of_the_table_are_locked_out_so_are_the_others) {
    password_guesses all;
    time_point now(1h);
    for (std::size_t n = 0; n < max_guessing_addresses; ++n) {
        const std::string key = guess_key(numbered(n));
        for (unsigned i = 0; i < max_wrong_passwords; ++i) {
            EXPECT_TRUE(all.may_guess(key, now));
            EXPECT_EQ(all.note_wrong(key, now), i + 1 == max_wrong_passwords);
        }
    }
    const std::string other = guess_key(numbered(max_guessing_addresses));
    EXPECT_FALSE(all.may_guess(other, now));
    now += wrong_password_time;
    EXPECT_TRUE(all.may_guess(other, now));
    EXPECT_EQ(all.size(), 0U);
}

}  // namespace
}  // namespace eddy::runtime::server
