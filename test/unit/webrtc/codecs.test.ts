import { ortc } from 'mediasoup';
import test from 'ava';
import { codecKey, mediaCodecs, offeredCodec } from '../../../src/webrtc/codecs.ts';

test("payload types of offers are the protocol's, retransmissions included", (t) => {
  for (const [codec, media, rtx] of [
    ['VP8', 96, 97],
    ['H264', 98, 99],
    ['AV1', 102, 103],
    ['H265', 100, 101],
  ] as const) {
    const offered = offeredCodec(codec, true, 'All');
    t.is(offered.payloadType, media);
    const { codecs = [] } = ortc.generateRouterRtpCapabilities(mediaCodecs(offered));
    const video = codecs.filter(({ kind }) => kind === 'video');
    t.deepEqual(
      video.map(({ preferredPayloadType }) => preferredPayloadType),
      [media, rtx],
      codec,
    );
  }
  t.is(offeredCodec('OPUS', true, 'All').payloadType, 110);
  t.is(offeredCodec('H264', false, 'All').rtxPayloadType, undefined);
});

test('mediasoup takes any payload types, whichever stands first', (t) => {
  for (const [payloadType, rtxPayloadType] of [
    [108, 109],
    [127, 96],
    [96, 127],
    [35, 100],
    [100, 101],
    [99, 98],
  ] as const) {
    const codec = { ...offeredCodec('VP8', false, 'All'), payloadType, rtxPayloadType };
    const { codecs = [] } = ortc.generateRouterRtpCapabilities(mediaCodecs(codec));
    const video = codecs.filter(({ kind }) => kind === 'video');
    t.deepEqual(
      video.map(({ preferredPayloadType }) => preferredPayloadType),
      [payloadType, rtxPayloadType],
    );
    t.is(video[1]?.parameters?.apt, payloadType);
  }
});

test('bandwidth estimation chooses the feedback', (t) => {
  const types = (estimation: 'All' | 'REMB' | 'TransportCC') =>
    offeredCodec('H264', false, estimation).feedback.map(({ type }) => type);
  t.true(types('All').includes('goog-remb') && types('All').includes('transport-cc'));
  t.false(types('REMB').includes('transport-cc'));
  t.false(types('TransportCC').includes('goog-remb'));
});

test('codecs that differ in what a viewer sees do not share a producer', (t) => {
  const base = offeredCodec('H264', true, 'All');
  const others = [
    { ...base, payloadType: 108 },
    { ...base, rtxPayloadType: 109 },
    { ...base, parameters: { ...base.parameters, 'profile-level-id': '640c1f' } },
    offeredCodec('VP8', true, 'All'),
  ];
  t.is(new Set([base, ...others].map(codecKey)).size, 5);
  t.is(
    codecKey({ ...base, parameters: Object.fromEntries(Object.entries(base.parameters).reverse()) }),
    codecKey(base),
  );
});
