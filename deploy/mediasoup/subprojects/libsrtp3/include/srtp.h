#pragma once

// The calls of libsrtp 3 that mediasoup-worker makes, answered by libsrtp 2. Two things differ:
// version 3 hides its policy behind setters, and it reads from one buffer and writes to another.

#define srtp_policy_t srtp2_policy_t
#include <srtp2/srtp.h>
#undef srtp_policy_t

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

// Errors that version 2 never answers; mediasoup names them in a table.
inline constexpr auto srtp_err_status_buffer_small = static_cast<srtp_err_status_t>(28);
inline constexpr auto srtp_err_status_cryptex_err = static_cast<srtp_err_status_t>(29);

namespace kiln {

struct Policy {
  srtp2_policy_t settings{};
  std::array<unsigned char, SRTP_MAX_KEY_LEN> key{};
};

// `work` is a call of version 2, which grows or shrinks its packet in place by at most `growth` bytes.
template<typename Work>
srtp_err_status_t in_place(
  Work work, srtp_t session, const uint8_t* in, size_t in_size, uint8_t* out, size_t* out_size, size_t growth) {
  if (*out_size < growth || in_size > *out_size - growth) return srtp_err_status_buffer_small;
  if (out != in) std::memmove(out, in, in_size);

  auto size = static_cast<int>(in_size);
  const auto status = work(session, out, &size);
  if (status == srtp_err_status_ok) *out_size = static_cast<size_t>(size);
  return status;
}

} // namespace kiln

using srtp_policy_t = kiln::Policy*;

inline srtp_err_status_t srtp_policy_create(srtp_policy_t* policy) {
  *policy = new (std::nothrow) kiln::Policy();
  return *policy == nullptr ? srtp_err_status_alloc_fail : srtp_err_status_ok;
}

inline void srtp_policy_destroy(srtp_policy_t policy) {
  delete policy;
}

inline srtp_err_status_t srtp_policy_set_ssrc(srtp_policy_t policy, srtp_ssrc_t ssrc) {
  policy->settings.ssrc = ssrc;
  return srtp_err_status_ok;
}

inline srtp_err_status_t srtp_policy_set_profile(srtp_policy_t policy, srtp_profile_t profile) {
  const auto status = srtp_crypto_policy_set_from_profile_for_rtp(&policy->settings.rtp, profile);
  if (status != srtp_err_status_ok) return status;
  return srtp_crypto_policy_set_from_profile_for_rtcp(&policy->settings.rtcp, profile);
}

// Version 2 wants key and salt in one piece. Key identifiers (MKI) are not used by mediasoup.
inline srtp_err_status_t srtp_policy_add_key(
  srtp_policy_t policy, const uint8_t* key, size_t key_size, const uint8_t* salt, size_t salt_size,
  const uint8_t* /* mki */, size_t mki_size) {
  if (mki_size != 0 || key_size + salt_size > policy->key.size()) return srtp_err_status_bad_param;
  std::copy_n(salt, salt_size, std::copy_n(key, key_size, policy->key.begin()));
  policy->settings.key = policy->key.data();
  return srtp_err_status_ok;
}

inline srtp_err_status_t srtp_policy_set_allow_repeat_tx(srtp_policy_t policy, bool allow) {
  policy->settings.allow_repeat_tx = allow ? 1 : 0;
  return srtp_err_status_ok;
}

inline srtp_err_status_t srtp_policy_set_window_size(srtp_policy_t policy, size_t packets) {
  policy->settings.window_size = packets;
  return srtp_err_status_ok;
}

inline srtp_err_status_t srtp_create(srtp_t* session, srtp_policy_t policy) {
  const srtp2_policy_t* settings = &policy->settings;
  return srtp_create(session, settings);
}

inline srtp_err_status_t srtp_stream_remove(srtp_t session, uint32_t ssrc) {
  return srtp_remove_stream(session, ssrc);
}

inline srtp_err_status_t srtp_protect(
  srtp_t session, const uint8_t* in, size_t in_size, uint8_t* out, size_t* out_size, size_t /* mki */) {
  const auto work = [](srtp_t to, void* packet, int* size) { return srtp_protect(to, packet, size); };
  return kiln::in_place(work, session, in, in_size, out, out_size, SRTP_MAX_TRAILER_LEN);
}

inline srtp_err_status_t srtp_unprotect(
  srtp_t session, const uint8_t* in, size_t in_size, uint8_t* out, size_t* out_size) {
  const auto work = [](srtp_t from, void* packet, int* size) { return srtp_unprotect(from, packet, size); };
  return kiln::in_place(work, session, in, in_size, out, out_size, 0);
}

// An SRTCP packet carries an index of four bytes besides the trailer.
inline srtp_err_status_t srtp_protect_rtcp(
  srtp_t session, const uint8_t* in, size_t in_size, uint8_t* out, size_t* out_size, size_t /* mki */) {
  const auto work = [](srtp_t to, void* packet, int* size) { return srtp_protect_rtcp(to, packet, size); };
  return kiln::in_place(work, session, in, in_size, out, out_size, SRTP_MAX_TRAILER_LEN + sizeof(uint32_t));
}

inline srtp_err_status_t srtp_unprotect_rtcp(
  srtp_t session, const uint8_t* in, size_t in_size, uint8_t* out, size_t* out_size) {
  const auto work = [](srtp_t from, void* packet, int* size) { return srtp_unprotect_rtcp(from, packet, size); };
  return kiln::in_place(work, session, in, in_size, out, out_size, 0);
}
