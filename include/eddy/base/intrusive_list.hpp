// Intrusive doubly linked list: the links live in the elements, so no allocation and O(1) removal.
#pragma once

#include <eddy/base/assert.hpp>

namespace eddy {

/// A link. An element inherits one for each list that it may be in at the same time, with a `Tag`
/// each. Destroying a linked element is a bug. While the element is in a list: only the list's
/// thread.
template <class Tag = void>
class list_link {
public:
    list_link() noexcept = default;
    list_link(const list_link&) = delete;
    list_link& operator=(const list_link&) = delete;
    ~list_link() {
        EDDY_PRECONDITION(!linked(),
                          "an object was destroyed while it is in an intrusive_list: an element, "
                          "or the frame of a coroutine that waits");
    }

    /// True while the element is in a list.
    bool linked() const noexcept { return next_ != nullptr; }

    /// Takes the element out of its list; does nothing when it is in none.
    void unlink() noexcept {
        if (!next_) return;
        prev_->next_ = next_;
        next_->prev_ = prev_;
        next_ = prev_ = nullptr;
    }

private:
    template <class, class>
    friend class intrusive_list;
    list_link* next_ = nullptr;
    list_link* prev_ = nullptr;
};

/// The list. It owns nothing; elements must outlive their membership. One thread.
template <class T, class Tag = void>
class intrusive_list {
    using link = list_link<Tag>;

public:
    intrusive_list() noexcept { head_.next_ = head_.prev_ = &head_; }
    intrusive_list(const intrusive_list&) = delete;
    intrusive_list& operator=(const intrusive_list&) = delete;
    ~intrusive_list() {
        while (!empty()) head_.next_->unlink();
        head_.next_ = head_.prev_ = nullptr;
    }

    /// True if the list has no element.
    bool empty() const noexcept { return head_.next_ == &head_; }
    /// The first element; the list must not be empty.
    T& front() noexcept { return static_cast<T&>(*head_.next_); }
    /// The last element; the list must not be empty.
    T& back() noexcept { return static_cast<T&>(*head_.prev_); }

    /// Puts `element`, which must be in no list of this tag, at the end.
    void push_back(T& element) noexcept { insert_before(&head_, &element); }
    /// The same at the front.
    void push_front(T& element) noexcept { insert_before(head_.next_, &element); }

    /// Takes the first element out; the list must not be empty.
    T& pop_front() noexcept {
        T& first = front();
        static_cast<link&>(first).unlink();
        return first;
    }

    /// Moves every element of `other` to the end of this list, in order.
    void splice_back(intrusive_list& other) noexcept {
        if (other.empty()) return;
        link* first = other.head_.next_;
        link* last = other.head_.prev_;
        first->prev_ = head_.prev_;
        head_.prev_->next_ = first;
        last->next_ = &head_;
        head_.prev_ = last;
        other.head_.next_ = other.head_.prev_ = &other.head_;
    }

    /// Calls `f` on each element; `f` may unlink that element, no other.
    template <class F>
    void for_each(F&& f) {
        for (link* at = head_.next_; at != &head_;) {
            link* next = at->next_;
            f(static_cast<T&>(*at));
            at = next;
        }
    }

private:
    static void insert_before(link* at, link* element) noexcept {
        EDDY_PRECONDITION(!element->linked(),
                          "an element was added to an intrusive_list while it is in one");
        element->prev_ = at->prev_;
        element->next_ = at;
        at->prev_->next_ = element;
        at->prev_ = element;
    }

    link head_;
};

}  // namespace eddy
