// The input as JSON: {"left": "0x...", "right": "0x..."}, members in any order. Messages never quote it, for it is secret.
#pragma once
#include "fr.h"

typedef struct { const uint8_t *at, *end; } reader;

static inline void skip_space(reader *json) {
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
}

// Whether this comes next, after white space; it is then taken.
static inline bool take(reader *json, const char *text) {
    skip_space(json);
    const uint8_t *at = json->at;
    while (*text)
        if (at == json->end || *at++ != (uint8_t)*text++) return false;
    json->at = at;
    return true;
}

static inline int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A string of 0x and 1 to 64 hexadecimal digits, of a number below r.
static inline bool take_element(reader *json, fr *value) {
    if (!take(json, "\"0x")) return false;
    *value = (fr){{0}};
    int digits = 0;
    for (; json->at < json->end && *json->at != '"'; json->at++, digits++) {
        int digit = hex_digit(*json->at);
        if (digit < 0 || digits == 64) return false;
        for (int i = 3; i > 0; i--) value->limbs[i] = value->limbs[i] << 4 | value->limbs[i - 1] >> 60;
        value->limbs[0] = value->limbs[0] << 4 | (uint64_t)digit;
    }
    return digits > 0 && json->at++ < json->end && fr_is_reduced(value);
}

// Both halves, canonical. What is wrong comes back as a sentence, or an empty one.
static inline zk_string read_input(reader json, fr *left, fr *right) {
    bool have_left = false, have_right = false;
    if (!take(&json, "{")) return ZK_STRING("an object {\"left\": \"0x...\", \"right\": \"0x...\"} was expected");
    do {
        if (!have_left && take(&json, "\"left\"")) {
            if (!take(&json, ":") || !take_element(&json, left))
                return ZK_STRING("field `left`: a string of 0x and 1 to 64 hexadecimal digits below r was expected");
            have_left = true;
        } else if (!have_right && take(&json, "\"right\"")) {
            if (!take(&json, ":") || !take_element(&json, right))
                return ZK_STRING("field `right`: a string of 0x and 1 to 64 hexadecimal digits below r was expected");
            have_right = true;
        } else {
            return ZK_STRING("the fields `left` and `right` were expected, each once, and no others");
        }
    } while (take(&json, ","));
    if (!take(&json, "}") || !have_left || !have_right)
        return ZK_STRING("the fields `left` and `right` were expected, each once, and no others");
    skip_space(&json);
    return json.at == json.end ? ZK_STRING("") : ZK_STRING("one JSON value was expected; more follows it");
}
