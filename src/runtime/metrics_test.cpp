// Tests of metrics: descriptions, label sets and their limit, samples.
#include "runtime/metrics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace eddy::runtime {
namespace {

constexpr metric answers = {"answers_total", metric_kind::counter, "Answers.", {"code"}};
constexpr metric sizes = {"answer_bytes", metric_kind::histogram, "Sizes.", {"code", "kind"}};
constexpr metric keys = {"keys", metric_kind::gauge, "Keys."};

TEST(metric, description_needs_a_name_with_its_unit_and_a_help_text) {
    for (const metric& each : {answers, sizes, keys, latency_metric})
        EXPECT_TRUE(each.is_valid()) << each.name;
    for (const common_metric& each : common_metrics) EXPECT_TRUE(each.of.is_valid());

    const auto described = [](std::string_view name, metric_kind kind) {
        return metric{name, kind, "Help."}.is_valid();
    };
    EXPECT_FALSE(described("", metric_kind::gauge));
    EXPECT_FALSE(described("Keys", metric_kind::gauge));
    EXPECT_FALSE(described("1st", metric_kind::gauge));
    EXPECT_FALSE(described("a-b", metric_kind::gauge));
    EXPECT_FALSE(described("keys_total", metric_kind::gauge));
    EXPECT_FALSE(described("keys", metric_kind::counter));
    EXPECT_FALSE(described("latency", metric_kind::histogram));
    EXPECT_FALSE((metric{"keys", metric_kind::gauge, ""}.is_valid()));
}

TEST(metric, labels_have_names_of_their_own) {
    const auto labelled_by = [](std::array<std::string_view, max_labels> labels) {
        return metric{"keys", metric_kind::gauge, "Keys.", labels}.is_valid();
    };
    EXPECT_TRUE(labelled_by({"a", "b", "c"}));
    EXPECT_FALSE(labelled_by({"a", "", "c"}));
    EXPECT_FALSE(labelled_by({"a", "a"}));
    EXPECT_FALSE(labelled_by({"a b"}));
    for (const std::string_view reserved : {"runtime", "type", "le"})
        EXPECT_FALSE(labelled_by({reserved})) << reserved;
    EXPECT_EQ(answers.label_count(), 1U);
    EXPECT_EQ(keys.label_count(), 0U);
}

TEST(labelled, each_label_set_is_counted_apart_and_stays_where_it_is) {
    labelled<serving::tally> counted(answers);
    serving::tally& good = counted.at({"200"});
    for (int code = 300; code < 340; ++code) ++counted.at({std::to_string(code)});
    good += 2;
    ++counted.at({"200"});
    EXPECT_EQ(&good, &counted.at({"200"}));
    EXPECT_EQ(good.value(), 3U);

    counted.erase({"301"});
    metrics all;
    all.add_samples(counted);
    ASSERT_EQ(all.samples.size(), 40U);
    EXPECT_EQ(all.samples[0].of, &answers);
    EXPECT_EQ(all.samples[0].labels, std::vector<std::string>{"200"});
    EXPECT_EQ(std::get<double>(all.samples[0].value), 3);
    EXPECT_EQ(all.samples[2].labels, std::vector<std::string>{"302"});
}

TEST(labelled, sets_above_the_limit_count_together) {
    labelled<serving::tally> counted(answers);
    for (std::size_t i = 0; i < max_label_sets + 5; ++i) ++counted.at({"code" + std::to_string(i)});
    EXPECT_EQ(counted.sets().size(), max_label_sets + 1);
    EXPECT_EQ(counted.at({std::string(other_label)}).value(), 5U);
    EXPECT_EQ(counted.at({"code0"}).value(), 1U);
    // Room again.
    counted.erase({"code0"});
    counted.erase({"code1"});
    ++counted.at({"late"});
    EXPECT_EQ(counted.at({"late"}).value(), 1U);
    EXPECT_EQ(counted.at({std::string(other_label)}).value(), 5U);
}

TEST(labelled, distributions_have_labels_too) {
    labelled<histogram> counted(sizes);
    counted.at({"200", "page"}).record(1000);
    metrics all;
    all.add_samples(counted);
    counted.at({"200", "page"}).record(2000);
    ASSERT_EQ(all.samples.size(), 1U);
    EXPECT_EQ(all.samples[0].labels, (std::vector<std::string>{"200", "page"}));
    EXPECT_EQ(std::get<std::shared_ptr<const histogram>>(all.samples[0].value)->count(), 1U);
}

TEST(metrics, of_the_type_stand_beside_those_of_all_types) {
    serving::counters part;
    part.messages_in = 3;
    metrics all(part);
    all.add(part);
    all.add_sample(keys, 7);
    EXPECT_EQ(all.messages_in.value(), 6U);
    ASSERT_EQ(all.samples.size(), 1U);
    EXPECT_EQ(std::get<double>(all.samples[0].value), 7);
}

}  // namespace
}  // namespace eddy::runtime
