import type { types } from 'mediasoup';
import type { MediaTrack } from '../../core/track.ts';
import { formatOf, hasLayers, isKnownFeedback, offeredCodec, type RtpCodec } from '../../webrtc/codecs.ts';
import { declared } from '../../webrtc/declared.ts';
import { receiverExtensions } from '../../webrtc/extensions.ts';
import type { ReceivingMedia } from '../../webrtc/local-description.ts';
import {
  answeredParameters,
  codecNamed,
  demandBundled,
  rankForReceiving,
  retransmissionOf,
} from '../../webrtc/negotiate.ts';
import type { RemoteCodec, RemoteDescription, RemoteMedia } from '../../webrtc/remote-description.ts';
import { kilnError } from '../../errors.ts';

type Codec = MediaTrack['codec'];

/** Section that a publisher sends: video, in one stream or several qualities, or audio. */
export interface IngestPlan {
  readonly mid: string;
  readonly kind: 'video' | 'audio';
  readonly codec: Codec;
  /** Negotiated format, with the payload types and parameters of the descriptions. */
  readonly format: RtpCodec;
  readonly extensions: readonly { readonly id: number; readonly uri: string }[];
  /** Names of the qualities; empty for one stream. */
  readonly rids: readonly string[];
  readonly source: RemoteMedia['source'];
}

/** Audio parameters that Kiln asks for (RFC 7587 section 6.1). */
const OPUS_WISHES = { minptime: 10, stereo: 1, useinbandfec: 1 } as const;

/**
 * Plans how to receive an offer: each section in its first supported codec.
 * @param rtx whether retransmissions in a stream of their own are accepted
 * @throws notAcceptable when nothing is offered, when there is more than one video or audio section, when they are not
 * bundled, or a section is not supported: a publisher would not notice a partial acceptance (RFC 9725 sections 4.4.2 and
 * 4.4.3)
 */
export function planIngest(offer: RemoteDescription, rtx: boolean): IngestPlan[] {
  const sending = offer.media.filter(({ sends }) => sends).filter(isMediaSection);
  if (sending.length === 0) throw kilnError('notAcceptable', 'it sends neither video nor audio');
  for (const kind of ['video', 'audio'] as const) {
    if (sending.filter((section) => section.kind === kind).length > 1)
      throw kilnError('notAcceptable', `it has more than one ${kind} section`);
  }
  demandBundled(offer, sending);
  return sending.map((section) => {
    const plan = planSection(section, rtx);
    if (plan === undefined) throw kilnError('notAcceptable', `no codec of its ${section.kind} section is supported`);
    return plan;
  });
}

/** Plans how to receive an answer to Kiln's offer. @throws notAcceptable when it accepts nothing */
export function planAnswered(
  offered: readonly ReceivingMedia[],
  { media }: Pick<RemoteDescription, 'media'>,
): IngestPlan[] {
  const plans = offered.flatMap(({ mid, kind, accepted, extensions }): IngestPlan[] => {
    const section = media.find((answered) => answered.mid === mid);
    if (section === undefined || !section.sends) return [];
    // codecs of the answer come in the publisher's order of preference
    const [format] = section.codecs.flatMap(({ payloadType }) =>
      accepted.filter((codec) => codec.payloadType === payloadType),
    );
    const codec = format && codecNamed(format.mimeType);
    if (format === undefined || codec === undefined) return [];
    const { rtxPayloadType, ...plain } = format;
    const retransmits = section.codecs.some(({ payloadType }) => payloadType === rtxPayloadType);
    const agreed = extensions.filter(({ id, uri }) =>
      section.extensions.some((other) => other.id === id && other.uri === uri),
    );
    return [
      { mid, kind, codec, format: retransmits ? format : plain, extensions: agreed, rids: [], source: section.source },
    ];
  });
  if (plans.length === 0) throw kilnError('notAcceptable', 'it accepts nothing of the offer');
  return plans;
}

/** Payload types of an offer to publishers beyond those that `offeredCodec` has. */
const MORE_H264 = [
  ['42001f', 106, 107],
  ['4d001f', 108, 109],
  ['64001f', 112, 113],
] as const;
const OFFERED_VIDEO = ['H264', 'VP8', 'VP9', 'AV1', 'H265'] as const;

/** Sections that Kiln offers: video and audio, in any codec that workers route. */
export function offeredMedia(rtx: boolean): ReceivingMedia[] {
  const [h264, ...others] = OFFERED_VIDEO.map((codec) => offeredCodec(codec, rtx, 'All')) as [RtpCodec, ...RtpCodec[]];
  const profiles = MORE_H264.map(([profile, payloadType, rtxPayloadType]): RtpCodec => ({
    ...h264,
    parameters: { ...h264.parameters, 'profile-level-id': profile },
    payloadType,
    ...(rtx ? { rtxPayloadType } : {}),
  }));
  const opus: RtpCodec = {
    ...offeredCodec('OPUS', false, 'All'),
    parameters: OPUS_WISHES,
    feedback: [{ type: 'transport-cc' }],
  };
  const sections = [
    ['video', [h264, ...profiles, ...others]],
    ['audio', [opus]],
  ] as const;
  return sections.map(([kind, accepted], index) => ({
    mid: `${index}`,
    kind,
    accepted,
    rids: [],
    extensions: receiverExtensions(kind).map(({ uri, preferredId }) => ({ uri, id: preferredId })),
  }));
}

/** Answer's section for a plan. */
export function receivingMedia({ mid, kind, format, extensions, rids }: IngestPlan): ReceivingMedia {
  return { mid, kind, accepted: [format], extensions, rids };
}

/** Parameters of a plan's packets for mediasoup. */
export function rtpParameters({ mid, kind, codec, format, extensions, rids, source }: IngestPlan): types.RtpParameters {
  const { mimeType, clockRate, channels, parameters } = formatOf(codec);
  const { payloadType, rtxPayloadType, feedback } = format;
  const codecs: types.RtpCodecParameters[] = [
    {
      mimeType: declared(mimeType),
      clockRate,
      channels,
      parameters: { ...parameters },
      payloadType,
      rtcpFeedback: [...feedback],
    },
  ];
  if (rtxPayloadType !== undefined) {
    codecs.push({ mimeType: `${kind}/rtx`, clockRate, payloadType: rtxPayloadType, parameters: { apt: payloadType } });
  }
  return {
    mid,
    codecs,
    headerExtensions: extensions.map(({ id, uri }) => ({ id, uri: uri as types.RtpHeaderExtensionUri })),
    encodings: rids.length > 0 ? rids.map((rid) => ({ rid })) : [encodingOf(source, rtxPayloadType !== undefined)],
    rtcp: { reducedSize: true },
  };
}

function encodingOf(source: IngestPlan['source'], rtx: boolean): types.RtpEncodingParameters {
  if (source === undefined) return {};
  const { ssrc, rtxSsrc } = source;
  return { ssrc, ...(rtx && rtxSsrc !== undefined && { rtx: { ssrc: rtxSsrc } }) };
}

function isMediaSection(section: RemoteMedia): section is RemoteMedia & { kind: 'video' | 'audio' } {
  return section.kind === 'video' || section.kind === 'audio';
}

function planSection(section: RemoteMedia & { kind: 'video' | 'audio' }, rtx: boolean): IngestPlan | undefined {
  const { mid, kind, source } = section;
  // the order of the m-line is that of preference (RFC 3264 section 5.1)
  const order = section.formats.split(' ').map(Number);
  const [chosen] = section.codecs
    .flatMap((remote) => {
      const codec = codecNamed(`${kind}/${remote.name}`);
      const rank = codec === undefined ? Infinity : rankForReceiving(codec, remote);
      const place = order.indexOf(remote.payloadType);
      return codec === undefined || rank === Infinity || place < 0 ? [] : [{ codec, remote, rank, place }];
    })
    .sort((one, other) => one.rank - other.rank || one.place - other.place);
  if (chosen === undefined) return undefined;
  const { codec, remote } = chosen;
  const agreed = receiverExtensions(kind).flatMap(
    ({ uri }) => section.extensions.find((offered) => offered.uri === uri) ?? [],
  );
  const rids = hasLayers(codec) && agreed.some(({ uri }) => uri.endsWith(':rtp-stream-id')) ? section.rids : [];
  // a publisher that offered qualities and sends one stream must not name one
  const isSingle = rids.length < section.rids.length;
  const extensions = isSingle ? agreed.filter(({ uri }) => !uri.endsWith('rtp-stream-id')) : agreed;
  return {
    mid,
    kind,
    codec,
    extensions,
    source,
    rids,
    format: formatFor(codec, remote, rtx ? retransmissionOf(remote, section) : undefined),
  };
}

function formatFor(codec: Codec, remote: RemoteCodec, rtxPayloadType: number | undefined): RtpCodec {
  const { kind, mimeType, clockRate, channels } = formatOf(codec);
  return {
    kind,
    mimeType,
    clockRate,
    ...(channels !== undefined && { channels }),
    parameters: codec === 'OPUS' ? OPUS_WISHES : answeredParameters(remote.parameters),
    payloadType: remote.payloadType,
    ...(rtxPayloadType !== undefined && { rtxPayloadType }),
    // the bandwidth estimate of a publisher includes its audio
    feedback: remote.feedback.filter((feedback) => isKnownFeedback(kind, feedback) || feedback.type === 'transport-cc'),
  };
}
