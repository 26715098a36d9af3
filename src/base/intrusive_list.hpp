// SPDX-License-Identifier: Apache-2.0
//
// Doubly linked list whose links live inside the elements: insertion and removal in O(1) and no
// allocation, which the fault path requires.  Not synchronised; the owner's lock protects it.
#pragma once

#include <cstddef>

#include "base/assert.hpp"

namespace hanare {

struct ListLink {
    ListLink* previous = nullptr;
    ListLink* next = nullptr;

    bool linked() const { return next != nullptr; }
};

// T derives from ListLink.
template <typename T>
class IntrusiveList {
public:
    IntrusiveList() { head_.previous = head_.next = &head_; }
    IntrusiveList(const IntrusiveList&) = delete;
    IntrusiveList& operator=(const IntrusiveList&) = delete;

    bool empty() const { return head_.next == &head_; }
    size_t size() const { return size_; }
    T* front() { return empty() ? nullptr : static_cast<T*>(head_.next); }
    T* back() { return empty() ? nullptr : static_cast<T*>(head_.previous); }
    // The element after `element`, nullptr at the end.
    T* after(T* element) {
        return element->next == &head_ ? nullptr : static_cast<T*>(element->next);
    }

    // The element before `element`, nullptr at the begin.
    T* before(T* element) {
        return element->previous == &head_ ? nullptr : static_cast<T*>(element->previous);
    }

    void push_back(T* element) { insert_before(&head_, element); }
    void push_front(T* element) { insert_before(head_.next, element); }

    void remove(T* element) {
        ListLink* link = element;
        HANARE_ASSERT(link->linked());
        link->previous->next = link->next;
        link->next->previous = link->previous;
        link->previous = link->next = nullptr;
        --size_;
    }

    T* pop_front() {
        T* element = front();
        if (element != nullptr) remove(element);
        return element;
    }

private:
    void insert_before(ListLink* position, T* element) {
        ListLink* link = element;
        HANARE_ASSERT(!link->linked());
        link->previous = position->previous;
        link->next = position;
        position->previous->next = link;
        position->previous = link;
        ++size_;
    }

    ListLink head_;
    size_t size_ = 0;
};

}  // namespace hanare
