import { getSupportedRtpCapabilities } from 'mediasoup';
import test from 'ava';
import { playoutDelayExtension, receiverExtensions, senderExtensions } from '../../../src/webrtc/extensions.ts';

const { headerExtensions = [] } = getSupportedRtpCapabilities();

/** What mediasoup has of the URIs of `used`, in its order. */
function known(used: readonly { uri: string }[], kind: string, not: string) {
  const uris = new Set(used.map(({ uri }) => uri));
  return headerExtensions.filter((one) => one.kind === kind && one.direction !== not && uris.has(one.uri));
}

test("identifiers and order of header extensions are mediasoup's", (t) => {
  const sent = senderExtensions({ bandwidthEstimation: 'All', playoutDelay: { min: 0, max: 0 } });
  for (const kind of ['audio', 'video'] as const) {
    const own = sent.filter((one) => one.kind === kind);
    t.deepEqual(own, known(own, kind, 'recvonly'));
    const received = receiverExtensions(kind);
    t.deepEqual(received, known(received, kind, 'sendonly'));
  }
  t.deepEqual(
    sent.map(({ kind, preferredId }) => [kind, preferredId]),
    [
      ['audio', 1],
      ['video', 1],
      ['audio', 4],
      ['video', 4],
      ['video', 5],
      ['audio', 11],
      ['video', 11],
    ],
  );
  const { uri, id } = playoutDelayExtension();
  t.is(headerExtensions.find((one) => one.uri === uri)?.preferredId, id);
});

test('what bandwidth is estimated by is offered as configured', (t) => {
  const ids = (bandwidthEstimation: 'All' | 'REMB' | 'TransportCC') =>
    senderExtensions({ bandwidthEstimation, playoutDelay: undefined })
      .filter(({ kind }) => kind === 'video')
      .map(({ preferredId }) => preferredId);
  t.deepEqual(ids('All'), [1, 4, 5]);
  t.deepEqual(ids('REMB'), [1, 4]);
  t.deepEqual(ids('TransportCC'), [1, 5]);
});
