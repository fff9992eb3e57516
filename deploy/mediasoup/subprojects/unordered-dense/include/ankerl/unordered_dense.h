#pragma once

// ankerl::unordered_dense is not in Debian: its names, on the containers of the standard library.

#include <cstdint>
#include <functional>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

namespace ankerl::unordered_dense {

// mediasoup combines hashes of small integers into identifiers of transports, so an integer's own
// value, which is what std::hash answers, will not do: every bit has to depend on every other
// (the finalizer of MurmurHash3, in the public domain).
template<typename Key>
struct hash {
  uint64_t operator()(const Key& key) const {
    uint64_t bits = std::hash<Key>{}(key);
    if constexpr (std::is_integral_v<Key> || std::is_enum_v<Key> || std::is_pointer_v<Key>) {
      bits ^= bits >> 33U;
      bits *= 0xff51afd7ed558ccdULL;
      bits ^= bits >> 33U;
      bits *= 0xc4ceb9fe1a85ec53ULL;
      bits ^= bits >> 33U;
    }
    return bits;
  }
};

template<typename Key, typename Value, typename Hash = hash<Key>, typename Equal = std::equal_to<Key>>
using map = std::unordered_map<Key, Value, Hash, Equal>;

template<typename Key, typename Hash = hash<Key>, typename Equal = std::equal_to<Key>>
using set = std::unordered_set<Key, Hash, Equal>;

} // namespace ankerl::unordered_dense
