// SPDX-License-Identifier: Apache-2.0
#include "base/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/prng.hpp"

namespace hanare {
namespace {

struct Item : ListLink {
    int number = 0;
};

std::vector<int> numbers(IntrusiveList<Item>& list) {
    std::vector<int> result;
    for (Item* item = list.front(); item != nullptr; item = list.after(item)) {
        result.push_back(item->number);
    }
    return result;
}

TEST(IntrusiveList, KeepsOrderAtBothEnds) {
    IntrusiveList<Item> list;
    Item items[3] = {{{}, 0}, {{}, 1}, {{}, 2}};
    EXPECT_EQ(list.front(), nullptr);
    EXPECT_EQ(list.pop_front(), nullptr);
    list.push_back(&items[1]);
    list.push_back(&items[2]);
    list.push_front(&items[0]);
    EXPECT_EQ(numbers(list), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(list.size(), 3u);
    list.remove(&items[1]);
    EXPECT_FALSE(items[1].linked());
    EXPECT_EQ(numbers(list), (std::vector<int>{0, 2}));
    EXPECT_EQ(list.pop_front(), &items[0]);
    EXPECT_EQ(list.pop_front(), &items[2]);
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.size(), 0u);
}

// Ten thousand random operations, compared with a standard container.
TEST(IntrusiveList, AgreesWithDeque) {
    Prng random(20091);
    IntrusiveList<Item> list;
    std::vector<Item> items(50);
    std::deque<int> model;
    for (int i = 0; i < 50; ++i) items[static_cast<size_t>(i)].number = i;
    for (int step = 0; step < 10000; ++step) {
        Item& item = items[random.below(items.size())];
        if (item.linked()) {
            list.remove(&item);
            model.erase(std::find(model.begin(), model.end(), item.number));
        } else if (random.below(2) == 0) {
            list.push_back(&item);
            model.push_back(item.number);
        } else {
            list.push_front(&item);
            model.push_front(item.number);
        }
        ASSERT_EQ(list.size(), model.size());
        ASSERT_EQ(list.empty(), model.empty());
        if (step % 100 == 0) {
            ASSERT_EQ(numbers(list), std::vector<int>(model.begin(), model.end()));
        }
    }
}

TEST(IntrusiveListDeathTest, MisuseTraps) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(
        {
            IntrusiveList<Item> list;
            Item item;
            list.remove(&item);
        },
        "internal error: link->linked\\(\\) does not hold at intrusive_list.hpp");
    EXPECT_DEATH(
        {
            IntrusiveList<Item> list;
            Item item;
            list.push_back(&item);
            list.push_back(&item);
        },
        "internal error: !link->linked");
}

}  // namespace
}  // namespace hanare
