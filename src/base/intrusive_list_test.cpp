// Order, removal and membership in several lists at once.
#include <eddy/base/intrusive_list.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace eddy {
namespace {

struct by_age;
struct by_name;

struct item : list_link<by_age>, list_link<by_name> {
    explicit item(int n) : number(n) {}
    int number;
};

using age_list = intrusive_list<item, by_age>;
using name_list = intrusive_list<item, by_name>;

template <class List>
std::vector<int> numbers(List& list) {
    std::vector<int> all;
    list.for_each([&all](item& i) { all.push_back(i.number); });
    return all;
}

TEST(intrusive_list, keeps_order_at_both_ends) {
    item a(1), b(2), c(3);
    age_list list;
    EXPECT_TRUE(list.empty());
    list.push_back(b);
    list.push_back(c);
    list.push_front(a);
    EXPECT_EQ(numbers(list), (std::vector{1, 2, 3}));
    EXPECT_EQ(list.front().number, 1);
    EXPECT_EQ(list.back().number, 3);
    EXPECT_EQ(list.pop_front().number, 1);
    EXPECT_FALSE(a.list_link<by_age>::linked());
    EXPECT_EQ(numbers(list), (std::vector{2, 3}));
}

TEST(intrusive_list, removes_from_the_middle_and_twice) {
    item a(1), b(2), c(3);
    age_list list;
    for (item* i : {&a, &b, &c}) list.push_back(*i);
    b.list_link<by_age>::unlink();
    b.list_link<by_age>::unlink();
    EXPECT_EQ(numbers(list), (std::vector{1, 3}));
    list.push_back(b);
    EXPECT_EQ(numbers(list), (std::vector{1, 3, 2}));
}

TEST(intrusive_list, lets_an_element_be_in_two_lists) {
    item a(1), b(2);
    age_list ages;
    name_list names;
    ages.push_back(a);
    ages.push_back(b);
    names.push_front(a);
    names.push_front(b);
    EXPECT_EQ(numbers(ages), (std::vector{1, 2}));
    EXPECT_EQ(numbers(names), (std::vector{2, 1}));
    a.list_link<by_age>::unlink();
    EXPECT_EQ(numbers(ages), (std::vector{2}));
    EXPECT_EQ(numbers(names), (std::vector{2, 1}));
}

TEST(intrusive_list, splices_whole_lists) {
    item a(1), b(2), c(3);
    age_list first, second, third;
    first.push_back(a);
    second.push_back(b);
    second.push_back(c);
    first.splice_back(second);
    EXPECT_TRUE(second.empty());
    EXPECT_EQ(numbers(first), (std::vector{1, 2, 3}));
    first.splice_back(second);
    EXPECT_EQ(numbers(first), (std::vector{1, 2, 3}));
    third.splice_back(first);
    EXPECT_TRUE(first.empty());
    EXPECT_EQ(third.back().number, 3);
}

TEST(intrusive_list, allows_removal_of_the_current_element) {
    std::array<item, 4> items{item(1), item(2), item(3), item(4)};
    age_list list;
    for (item& i : items) list.push_back(i);
    list.for_each([](item& i) {
        if (i.number % 2 == 0) i.list_link<by_age>::unlink();
    });
    EXPECT_EQ(numbers(list), (std::vector{1, 3}));
}

TEST(intrusive_list, lets_go_of_its_elements_at_its_end) {
    item a(1);
    {
        age_list list;
        list.push_back(a);
    }
    EXPECT_FALSE(a.list_link<by_age>::linked());
}

TEST(intrusive_list_death, catches_misuse) {
    EXPECT_DEATH(
        {
            age_list list;
            item a(1);
            list.push_back(a);
            list.push_back(a);
        },
        "an element was added to an intrusive_list while it is in one");
    EXPECT_DEATH(
        {
            age_list list;
            item a(1);
            list.push_back(a);
            // `a` ends while it is still linked.
        },
        "an object was destroyed while it is in an intrusive_list");
}

}  // namespace
}  // namespace eddy
