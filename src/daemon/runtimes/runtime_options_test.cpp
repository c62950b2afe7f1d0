// Tests of options: secrets and changes that a running instance can take.
#include "daemon/runtimes/runtime_options.hpp"

#include "daemon/testing.hpp"
#include "runtime/options/option.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {
namespace {

std::string all_but_the_user(const std::string& value) {
    return value.substr(0, value.find(':') + 1) + std::string(runtime::hidden);
}

/// The fake type with an option that has a secret: "user:password".
runtime::type secretive_type() {
    runtime::type made = testing::fake_types().front();
    runtime::option login;
    login.name = "login";
    login.kind = runtime::option_kind::text;
    login.help = "a secret";
    login.shown = all_but_the_user;
    made.options.push_back(login);
    login.name = "logins";
    login.kind = runtime::option_kind::list;
    made.options.push_back(login);
    return made;
}

class runtime_options_test : public ::testing::Test {
protected:
    runtime::settings parsed(const json& given) const { return *check_options(type_, given); }

    const runtime::type type_ = secretive_type();
    const json stored_ = {{"port", 80}, {"login", "ann:swordfish"}};
};

TEST_F(runtime_options_test, applies_the_table_and_then_the_check_of_the_type) {
    EXPECT_EQ(check_options(type_, {{"port", 80}})->number("port"), 80);
    EXPECT_EQ(check_options(type_, {{"port", "many"}}).error().status, 400);
    EXPECT_EQ(check_options(type_, {{"nonsense", 1}}).error().status, 400);
    EXPECT_EQ(check_options(type_, {{"port", 1}}).error().message, "port 1 needs another level");
}

TEST_F(runtime_options_test, secrets_are_masked) {
    const json shown = mask_secrets(&type_, stored_);
    EXPECT_EQ(shown.at("login"), "ann:***");
    EXPECT_EQ(shown.at("port"), 80);
    EXPECT_EQ(mask_secrets(nullptr, stored_), stored_) << "of a type that is not known";
}

TEST_F(runtime_options_test, a_masked_value_means_the_stored_one) {
    json changed = mask_secrets(&type_, stored_);
    changed["port"] = 81;
    ASSERT_TRUE(unmask_secrets(type_, stored_, changed));
    EXPECT_EQ(changed, json({{"port", 81}})) << "the login is left as it is";
    changed = {{"login", "bob:tuna"}};
    ASSERT_TRUE(unmask_secrets(type_, stored_, changed));
    EXPECT_EQ(changed.at("login"), "bob:tuna");
    changed = {{"login", nullptr}};
    ASSERT_TRUE(unmask_secrets(type_, stored_, changed));
    EXPECT_TRUE(changed.at("login").is_null()) << "taken back";
}

TEST_F(runtime_options_test, items_of_a_list_are_masked_alone) {
    const json stored = {{"logins", {"ann:swordfish", "bob:tuna"}}};
    EXPECT_EQ(mask_secrets(&type_, stored).at("logins"), json({"ann:***", "bob:***"}));
    json changed = {{"logins", {"bob:***", "eve:eel"}}};
    ASSERT_TRUE(unmask_secrets(type_, stored, changed));
    EXPECT_EQ(changed.at("logins"), json({"bob:tuna", "eve:eel"}));
    changed = {{"logins", "ann:***"}};
    ASSERT_TRUE(unmask_secrets(type_, stored, changed));
    EXPECT_EQ(changed.at("logins"), json::array({"ann:swordfish"}));
    changed = {{"logins", {"eve:***"}}};
    const auto refused = unmask_secrets(type_, stored, changed);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("write the secret itself"), std::string::npos);
}

TEST_F(runtime_options_test, a_mask_elsewhere_is_refused) {
    json changed = {{"login", "bob:***"}};
    const auto unmasked = unmask_secrets(type_, stored_, changed);
    ASSERT_FALSE(unmasked);
    EXPECT_EQ(unmasked.error().status, 400);
    EXPECT_NE(unmasked.error().message.find("write the password itself"), std::string::npos);
    EXPECT_EQ(unmasked.error().message.find("swordfish"), std::string::npos);
}

TEST_F(runtime_options_test, a_change_needs_a_restart_for_options_that_are_not_live) {
    const auto now = parsed({{"port", 80}, {"level", 2}});
    const auto between = [&](const json& next) {
        return restart_options(type_, now, parsed(next));
    };
    const std::vector<std::string_view> port = {"port"};
    EXPECT_THAT(restart_options(type_, now, now), ::testing::IsEmpty());
    EXPECT_THAT(between({{"port", 80}, {"level", 3}}), ::testing::IsEmpty());
    EXPECT_THAT(between({{"port", 80}}), ::testing::IsEmpty());
    EXPECT_EQ(between({{"port", 81}, {"level", 2}}), port);
    EXPECT_EQ(between({{"port", 81}, {"level", 3}}), port);
    EXPECT_EQ(between({{"level", 2}}), port);
}

TEST_F(runtime_options_test, a_default_that_is_written_out_needs_no_restart) {
    const auto now = parsed(json::object());
    const auto written = parsed({{"port", 1000}, {"lingering", false}});
    EXPECT_THAT(restart_options(type_, now, written), ::testing::IsEmpty());
    EXPECT_THAT(restart_options(type_, written, now), ::testing::IsEmpty()) << "taken back";
}

}  // namespace
}  // namespace eddy::daemon
