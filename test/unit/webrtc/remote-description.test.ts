import test from 'ava';
import { parseRemoteDescription, SdpError } from '../../../src/webrtc/remote-description.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO, TRANSPORT } from '../../support/webrtc/offers.ts';

test('reads what a sender of media needs', (t) => {
  const description = parseRemoteDescription(
    offerOf([OPUS_AUDIO, { ...H264_VIDEO, lines: [...(H264_VIDEO.lines ?? []), 'a=extmap:4/recvonly urn:x'] }]),
  );
  t.like(description, { setup: 'actpass', iceUfrag: 'abcd', fingerprint: { algorithm: 'sha-256' } });
  t.like(description.media[0], { kind: 'audio', mid: '0', receives: true, formats: '111' });
  t.like(description.media[0]?.codecs[0], { name: 'opus', clockRate: 48_000, channels: 2, payloadType: 111 });
  t.deepEqual(description.media[1]?.extensions, [{ id: 4, uri: 'urn:x' }]);
  t.is(description.media[1]?.codecs[0]?.parameters['profile-level-id'], '42e01f');
});

test('a viewer that only sends, has switched a section off or is inactive receives nothing', (t) => {
  for (const change of [{ direction: 'sendonly' }, { direction: 'inactive' }, { port: 0 }]) {
    t.false(parseRemoteDescription(offerOf([{ ...H264_VIDEO, ...change }])).media[0]?.receives);
  }
  const bundled = { ...H264_VIDEO, port: 0, lines: [...(H264_VIDEO.lines ?? []), 'a=bundle-only'] };
  t.true(parseRemoteDescription(offerOf([bundled])).media[0]?.receives);
});

test('names of qualities may be numbers', (t) => {
  const lines = (list: string) => [
    ...(H264_VIDEO.lines ?? []),
    'a=rid:1 send',
    'a=rid:2 send',
    `a=simulcast:send ${list}`,
  ];
  const ridsOf = (list: string) =>
    parseRemoteDescription(offerOf([{ ...H264_VIDEO, direction: 'sendonly', lines: lines(list) }])).media[0]?.rids;
  t.deepEqual(ridsOf('1'), ['1']);
  t.deepEqual(ridsOf('1;2'), ['1', '2']);
});

test('an SSRC belongs to one section', (t) => {
  const ssrc = (section: typeof H264_VIDEO, ...lines: string[]) => ({
    ...section,
    lines: [...(section.lines ?? []), ...lines],
  });
  const offer = (...lines: string[]) => offerOf([ssrc(OPUS_AUDIO, 'a=ssrc:7 cname:x'), ssrc(H264_VIDEO, ...lines)]);
  t.is(parseRemoteDescription(offer('a=ssrc:8 cname:x')).media[1]?.source?.ssrc, 8);
  t.throws(() => parseRemoteDescription(offer('a=ssrc:7 cname:x')), { instanceOf: SdpError });
  t.throws(() => parseRemoteDescription(offer('a=ssrc-group:FID 8 7', 'a=ssrc:8 cname:x', 'a=ssrc:7 cname:x')), {
    instanceOf: SdpError,
  });
  t.throws(() => parseRemoteDescription(offer('a=ssrc-group:FID 8 8', 'a=ssrc:8 cname:x')), { instanceOf: SdpError });
});

const without = (name: string) => TRANSPORT.filter((line) => !line.startsWith(`a=${name}`));
const refused: Record<string, string> = {
  nothing: '',
  'no SDP': 'hello',
  JSON: '{"sdp":"v=0"}',
  'no media': offerOf([]),
  'no fingerprint': offerOf([H264_VIDEO], without('fingerprint')),
  'no ufrag': offerOf([H264_VIDEO], without('ice-ufrag')),
  'a short fingerprint': offerOf([H264_VIDEO], [...without('fingerprint'), 'a=fingerprint:sha-256 AA:BB']),
  'an unknown hash': offerOf([H264_VIDEO], [...without('fingerprint'), `a=fingerprint:md5 ${'AA:'.repeat(15)}AA`]),
  'too many sections': offerOf(Array.from({ length: 33 }, () => H264_VIDEO)),
  'too many lines': `${offerOf([H264_VIDEO])}${'a=x\r\n'.repeat(1500)}`,
  'a mid twice': offerOf([H264_VIDEO, H264_VIDEO]).replace('a=mid:1', 'a=mid:0'),
  'a mid that is too long': offerOf([H264_VIDEO]).replace('a=mid:0', `a=mid:${'x'.repeat(17)}`),
};
for (const [what, sdp] of Object.entries(refused)) {
  test(`a remote description is rejected: ${what}`, (t) => {
    t.throws(() => parseRemoteDescription(sdp), { instanceOf: SdpError });
  });
}

test('mutated offers are read or refused, never anything else', (t) => {
  let seed = 99;
  const random = (below: number) => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % below;
  const offer = offerOf([OPUS_AUDIO, H264_VIDEO]);
  for (let i = 0; i < 2000; i++) {
    const bytes = Buffer.from(offer);
    for (let n = random(6); n >= 0; n--) bytes[random(bytes.length)] = random(256);
    const cut = random(4) === 0 ? bytes.subarray(0, random(bytes.length)) : bytes;
    t.notThrows(() => {
      try {
        parseRemoteDescription(cut.toString());
      } catch (error) {
        if (!(error instanceof SdpError)) throw error;
      }
    });
  }
});
