import test from 'ava';
import { senderExtensions } from '../../../src/webrtc/extensions.ts';
import { negotiateCodec, negotiateExtensions } from '../../../src/webrtc/negotiate.ts';
import { parseRemoteDescription } from '../../../src/webrtc/remote-description.ts';
import { offerOf } from '../../support/webrtc/offers.ts';

function video(...lines: string[]) {
  const types = lines.flatMap((line) => /^a=rtpmap:(\d+)/.exec(line)?.[1] ?? []);
  const [media] = parseRemoteDescription(offerOf([{ kind: 'video', types, lines }])).media;
  if (media === undefined) throw new Error('no media');
  return media;
}

const h264 = (type: number, profile: string, mode = 1) => [
  `a=rtpmap:${type} H264/90000`,
  `a=fmtp:${type} level-asymmetry-allowed=1;packetization-mode=${mode};profile-level-id=${profile}`,
  `a=rtcp-fb:${type} nack`,
  `a=rtcp-fb:${type} nack pli`,
  `a=rtcp-fb:${type} ccm fir`,
  `a=rtcp-fb:${type} transport-cc`,
];
const rtx = (type: number, apt: number) => [`a=rtpmap:${type} rtx/90000`, `a=fmtp:${type} apt=${apt}`];

test('prefers constrained baseline with packetization-mode 1, as browsers list it', (t) => {
  const media = video(
    ...h264(102, '42001f'),
    ...h264(104, '42001f', 0),
    ...h264(106, '42e01f', 0),
    ...h264(108, '42e01f'),
    ...rtx(109, 108),
    ...h264(127, '4d001f'),
    ...h264(39, '640c1f'),
  );
  t.like(negotiateCodec('H264', media, true), {
    payloadType: 108,
    rtxPayloadType: 109,
    parameters: { 'packetization-mode': 1, 'profile-level-id': '42e01f', 'level-asymmetry-allowed': 1 },
  });
  t.is(negotiateCodec('H264', media, false)?.rtxPayloadType, undefined);
});

test('takes another profile where nothing better is offered, never packetization-mode 0', (t) => {
  t.is(negotiateCodec('H264', video(...h264(96, '640c1f'), ...h264(97, '4d001f')), false)?.payloadType, 97);
  t.is(negotiateCodec('H264', video(...h264(96, '640028')), false)?.payloadType, 96);
  t.is(negotiateCodec('H264', video(...h264(96, '42e01f', 0)), false), undefined);
  t.is(negotiateCodec('H264', video(...h264(96, 'zz')), false), undefined);
});

test('an H.264 without parameters is taken as it stands', (t) => {
  t.like(negotiateCodec('H264', video('a=rtpmap:96 H264/90000'), false), { payloadType: 96, parameters: {} });
});

test('keeps only feedback and parameters that it understands', (t) => {
  const media = video(
    'a=rtpmap:96 VP8/90000',
    'a=rtcp-fb:* nack pli',
    'a=rtcp-fb:96 nack',
    'a=rtcp-fb:96 something new',
    'a=fmtp:96 max-fs=99',
  );
  const codec = negotiateCodec('VP8', media, false);
  t.deepEqual(codec?.feedback.map(({ type, parameter }) => `${type} ${parameter}`.trim()).sort(), ['nack', 'nack pli']);
  t.deepEqual(codec?.parameters, {});
});

test('leaves out feedback without a type, which mediasoup refuses', (t) => {
  const media = video('a=rtpmap:96 VP8/90000', 'a=rtcp-fb:96  nack', 'a=rtcp-fb:96 ', 'a=rtcp-fb:96 ccm fir');
  t.deepEqual(negotiateCodec('VP8', media, false)?.feedback, [{ type: 'ccm', parameter: 'fir' }]);
});

test('VP9 and AV1 go in profile 0 only', (t) => {
  const vp9 = video(
    'a=rtpmap:98 VP9/90000',
    'a=fmtp:98 profile-id=2',
    'a=rtpmap:100 VP9/90000',
    'a=fmtp:100 profile-id=0',
  );
  t.is(negotiateCodec('VP9', vp9, false)?.payloadType, 100);
  t.is(negotiateCodec('AV1', video('a=rtpmap:45 AV1/90000', 'a=fmtp:45 profile=1'), false), undefined);
  t.is(negotiateCodec('VP8', vp9, false), undefined);
});

const H265 = ['a=rtpmap:49 H265/90000', 'a=fmtp:49 level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST'];
const H265_10_BIT = ['a=rtpmap:51 H265/90000', 'a=fmtp:51 level-id=180;profile-id=2;tier-flag=0;tx-mode=SRST'];

test('H.265 goes to a profile that decodes it, in one stream and in order', (t) => {
  const sent = (profile: number) => ({ 'profile-id': profile });
  const both = video(...H265_10_BIT, ...H265);
  t.like(negotiateCodec('H265', both, true, sent(1)), {
    mimeType: 'video/H265',
    payloadType: 49,
    parameters: { 'level-id': 180, 'profile-id': 1, 'tier-flag': 0, 'tx-mode': 'SRST' },
  });
  t.is(negotiateCodec('H265', both, true, sent(2))?.payloadType, 51);
  t.is(negotiateCodec('H265', video(...H265_10_BIT), true, sent(1))?.payloadType, 51);
  t.is(negotiateCodec('H265', video(...H265), true, sent(2)), undefined);
  t.is(negotiateCodec('H265', video(...H265), true, sent(4)), undefined);
  // parameters that are not there mean the first profile (RFC 7798 section 7.1)
  t.like(negotiateCodec('H265', video('a=rtpmap:96 H265/90000'), true), { payloadType: 96, parameters: {} });
  for (const not of ['tx-mode=MRST', 'sprop-max-don-diff=2'])
    t.is(negotiateCodec('H265', video('a=rtpmap:96 H265/90000', `a=fmtp:96 ${not}`), true), undefined);
  t.is(negotiateCodec('H265', video('a=rtpmap:45 AV1/90000'), true), undefined);
  t.is(negotiateCodec('AV1', both, true), undefined);
});

test('H.265 of a payload type below 96 has no retransmissions of its own where theirs is below it too', (t) => {
  t.is(negotiateCodec('H265', video(...H265, ...rtx(50, 49)), true)?.rtxPayloadType, undefined);
  t.is(negotiateCodec('H265', video(...H265, ...rtx(100, 49)), true)?.rtxPayloadType, 100);
});

test('a retransmission whose payload type cannot be given is left out', (t) => {
  const media = video(...h264(108, '42e01f'), ...rtx(40, 108));
  t.is(negotiateCodec('H264', media, true)?.rtxPayloadType, undefined);
});

test('header extensions are answered under the identifiers of the offer, or only where those are the ones that are written', (t) => {
  const supported = senderExtensions({ bandwidthEstimation: 'All', playoutDelay: undefined });
  const uri = (name: string) =>
    supported.find((extension) => extension.kind === 'video' && extension.uri.includes(name));
  const mid = uri('sdes:mid');
  const cc = uri('transport-wide-cc');
  const media = video(
    'a=rtpmap:96 VP8/90000',
    `a=extmap:${mid?.preferredId} ${mid?.uri}`,
    `a=extmap:14 ${cc?.uri}`,
    'a=extmap:5 urn:other',
  );
  t.deepEqual(negotiateExtensions(media, supported, false), [mid]);
  const ids = (offer: typeof media) =>
    negotiateExtensions(offer, supported, true).map(({ uri, preferredId }) => [preferredId, uri]);
  t.deepEqual(ids(media), [
    [mid?.preferredId, mid?.uri],
    [14, cc?.uri],
  ]);
  // larger ones need another form of header
  t.deepEqual(ids(video('a=rtpmap:96 VP8/90000', `a=extmap:15 ${cc?.uri}`)), []);
});
