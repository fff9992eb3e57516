import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

/** How STUN, DTLS, RTP and RTCP begin (RFC 7983). */
const BEGINNINGS = [
  Buffer.from('000100002112a442000000000000000000000000', 'hex'),
  Buffer.from('16fefd0000000000000000003001000024', 'hex'),
  Buffer.from('8060000100000001000004d2', 'hex'),
  Buffer.from('80c80006000004d2', 'hex'),
];

/** What strangers send to a media port. */
export function datagrams(random: Random): Buffer[] {
  return Array.from({ length: 1 + random.below(20) }, () => {
    const bytes = Buffer.concat([random.pick(BEGINNINGS), random.bytes(random.below(200))]);
    return mutate(bytes, random, random.pick(BEGINNINGS));
  });
}
