import test from 'ava';
import { consentTimeout } from '../../../src/webrtc/peer-link.ts';

test('a peer may be silent for a second at least, and for as long as mediasoup can count', (t) => {
  t.deepEqual(
    [0, 400, 30_000, 255_000, 256_000, 300_000, 3_600_000].map(consentTimeout),
    [1, 1, 30, 255, 255, 255, 255],
  );
});
