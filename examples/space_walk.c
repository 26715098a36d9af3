/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks walk each other's data structures, without messages: each has a binary tree of words on its
 * own heap and publishes its root, and all look words up in the trees of all others by following
 * their pointers, and count there, with an atomic addition, how often.  Run with
 * `hanare space run -n 4 example_space_walk`.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hanare/hanare.h"

enum { WORDS = 2000, LIMIT_MS = 60000 };

struct node {
    char word[24];
    atomic_int found;
    struct node *less, *more;
};

/* What a task publishes. */
struct tree {
    struct node *root;
    atomic_int readers; /* that have looked everything up */
};

static void check(hanare_status status, const char *what) {
    if (status == HANARE_STATUS_OK) return;
    char text[512];
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static void expect(int is_right, const char *what) {
    if (is_right) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

/* Word K of a task, in an order that keeps the tree flat. */
static void make_word(char *word, size_t bytes, int task, int k) {
    snprintf(word, bytes, "%08x of %d", (uint32_t)k * 2654435761u, task);
}

static void insert(struct tree *tree, const char *word) {
    struct node **place = &tree->root;
    while (*place != NULL) {
        place = strcmp(word, (*place)->word) < 0 ? &(*place)->less : &(*place)->more;
    }
    *place = calloc(1, sizeof **place);
    expect(*place != NULL, "memory");
    memcpy((*place)->word, word, strlen(word) + 1);
}

static struct node *look_up(const struct tree *tree, const char *word) {
    struct node *node = tree->root;
    while (node != NULL) {
        const int order = strcmp(word, node->word);
        if (order == 0) return node;
        node = order < 0 ? node->less : node->more;
    }
    return NULL;
}

static void look_up_all(struct tree *tree, int task) {
    for (int k = 0; k < WORDS; k++) {
        char word[24];
        make_word(word, sizeof word, task, k);
        struct node *node = look_up(tree, word);
        expect(node != NULL, "a word is missing");
        atomic_fetch_add(&node->found, 1);
    }
    atomic_fetch_add(&tree->readers, 1);
}

int main(void) {
    const char *own_text = getenv("HANARE_SPACE_TASK");
    const char *count_text = getenv("HANARE_SPACE_TASKS");
    if (own_text == NULL || count_text == NULL) {
        puts("run it with: hanare space run -n 4 example_space_walk");
        return 0;
    }
    const int own = atoi(own_text);
    const int count = atoi(count_text);

    static struct tree mine;
    for (int k = 0; k < WORDS; k++) {
        char word[24];
        make_word(word, sizeof word, own, k);
        insert(&mine, word);
    }
    char name[32];
    snprintf(name, sizeof name, "tree %d", own);
    check(hanare_space_publish(name, &mine), "publish");

    for (int other = 0; other < count; other++) {
        void *found = NULL;
        snprintf(name, sizeof name, "tree %d", other);
        check(hanare_space_find(name, LIMIT_MS, &found), "find");
        look_up_all(found, other);
    }

    /* Its memory goes with it: nobody leaves before all others have been here. */
    while (atomic_load(&mine.readers) < count) sched_yield();
    for (int k = 0; k < WORDS; k++) {
        char word[24];
        make_word(word, sizeof word, own, k);
        expect(atomic_load(&look_up(&mine, word)->found) == count, "how often a word was found");
    }
    printf("task %d: %d words, each found by %d tasks\n", own, WORDS, count);
    return 0;
}
