// The lists that the host passes in: one after another from the heap's base, and all given up, zeroed, behind each export.
#pragma once
#include <stddef.h>
#include <stdint.h>

static const size_t PAGE_BYTES = 65536;  // of linear memory

extern uint8_t __heap_base;  // the linker's
static uintptr_t heap_top;

__attribute__((export_name("cabi_realloc")))
void *cabi_realloc(void *old, size_t old_bytes, size_t align, size_t bytes) {
    if (heap_top == 0) heap_top = (uintptr_t)&__heap_base;
    uintptr_t at = (heap_top + align - 1) & ~(align - 1);
    uintptr_t have = __builtin_wasm_memory_size(0) * PAGE_BYTES;
    if (at < heap_top || bytes > UINTPTR_MAX - at) __builtin_trap();
    if (at + bytes > have) {
        size_t pages = (at + bytes - have + PAGE_BYTES - 1) / PAGE_BYTES;
        if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) __builtin_trap();
    }
    if (old_bytes > 0) __builtin_memcpy((void *)at, old, old_bytes < bytes ? old_bytes : bytes);
    heap_top = at + bytes;
    return (void *)at;
}

static inline void release_lists(void) {
    if (heap_top == 0) return;
    __builtin_memset(&__heap_base, 0, heap_top - (uintptr_t)&__heap_base);
    heap_top = (uintptr_t)&__heap_base;
}
