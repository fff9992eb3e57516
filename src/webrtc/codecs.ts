import type { types } from 'mediasoup';
import { parseHevcConfig } from '../codecs/h265.ts';
import { tolerant } from '../codecs/bits.ts';
import type { Codec, MediaTrack } from '../core/track.ts';
import { declared } from './declared.ts';

/** Codec as agreed with a peer, with the payload types that the peer uses. */
export interface RtpCodec {
  readonly kind: 'video' | 'audio';
  readonly mimeType: string;
  readonly clockRate: number;
  readonly channels?: number;
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly payloadType: number;
  readonly rtxPayloadType?: number;
  readonly feedback: readonly types.RtcpFeedback[];
}

type Format = Pick<RtpCodec, 'kind' | 'mimeType' | 'clockRate' | 'channels' | 'parameters'>;

/** Codecs that workers route, with the parameters of a server's offer. */
const FORMATS: Partial<Record<Codec, Format>> = {
  H264: {
    kind: 'video',
    mimeType: 'video/H264',
    clockRate: 90_000,
    // browsers decode any profile, but all of them accept only this one in an offer
    parameters: { 'level-asymmetry-allowed': 1, 'packetization-mode': 1, 'profile-level-id': '42e01f' },
  },
  H265: {
    kind: 'video',
    mimeType: 'video/H265',
    clockRate: 90_000,
    parameters: { 'level-id': 93, 'profile-id': 1, 'tier-flag': 0, 'tx-mode': 'SRST' },
  },
  VP8: { kind: 'video', mimeType: 'video/VP8', clockRate: 90_000, parameters: {} },
  VP9: { kind: 'video', mimeType: 'video/VP9', clockRate: 90_000, parameters: { 'profile-id': 0 } },
  AV1: { kind: 'video', mimeType: 'video/AV1', clockRate: 90_000, parameters: {} },
  OPUS: {
    kind: 'audio',
    mimeType: 'audio/opus',
    clockRate: 48_000,
    channels: 2,
    parameters: { minptime: 10, 'sprop-stereo': 1, stereo: 1, useinbandfec: 1 },
  },
  PCMU: { kind: 'audio', mimeType: 'audio/PCMU', clockRate: 8000, parameters: {} },
  PCMA: { kind: 'audio', mimeType: 'audio/PCMA', clockRate: 8000, parameters: {} },
  // samples are of 16 kHz, and the clock is not (RFC 3551 section 4.5.2)
  G722: { kind: 'audio', mimeType: 'audio/G722', clockRate: 8000, parameters: {} },
};

/** Payload types of a server's offer, media and RTX (docs/compatibility.md#webrtc-signalling). */
const OFFERED: Partial<Record<Codec, readonly [media: number, rtx?: number]>> = {
  VP8: [96, 97],
  H264: [98, 99],
  H265: [100, 101],
  AV1: [102, 103],
  VP9: [104, 105],
  OPUS: [110],
  PCMU: [0],
  PCMA: [8],
  G722: [9],
};

/** Order in which mediasoup assigns payload types to codecs without a preferred one. */
const AUTOMATIC = [...range(100, 127), ...range(96, 99)];

/** Sample rates of the codecs of telephony, whose formats in WebRTC have one channel (RFC 7874 section 3, RFC 3551 section 4.5). */
const TELEPHONY: Partial<Record<Codec, number>> = { PCMA: 8000, PCMU: 8000, G722: 16_000 };

export function isTelephony(codec: Codec): boolean {
  return codec in TELEPHONY;
}

/** Whether WebRTC has a format for a track: G.711 and G.722 of one channel and their usual sample rate only. */
export function isRoutable(track: MediaTrack): boolean {
  if (!(track.codec in FORMATS)) return false;
  const rate = TELEPHONY[track.codec];
  return rate === undefined || (track.type === 'audio' && track.samplerate === rate && track.channels === 1);
}

/** Whether mediasoup can forward simulcast layers of the codec. */
export function hasLayers(codec: Codec): boolean {
  return codec === 'H264' || codec === 'VP8';
}

/** Whether workers know the key frames of the codec: of others they start with any packet. */
export function hasKnownKeys(codec: Codec): boolean {
  return codec !== 'AV1' && codec !== 'H265';
}

/** @throws RangeError for a codec that mediasoup does not route */
export function formatOf(codec: Codec): Format {
  const format = FORMATS[codec];
  if (format === undefined) throw new RangeError(`${codec} cannot be sent over WebRTC`);
  return format;
}

/** Format parameters of a track: those of its codec, and its profile and level where they are known. */
export function formatParameters(track: MediaTrack): RtpCodec['parameters'] {
  const { parameters } = formatOf(track.codec);
  const { config } = track;
  if (track.codec !== 'H265' || config === undefined) return parameters;
  const known = tolerant(() => parseHevcConfig(config));
  if (known === undefined) return parameters;
  const { profile, tier, level } = known;
  return { ...parameters, 'level-id': level, 'profile-id': profile, 'tier-flag': Number(tier) };
}

/** Codec with the payload types and feedback of a server's offer. @throws RangeError for a codec that mediasoup does not route */
export function offeredCodec(codec: Codec, rtx: boolean, estimation: 'All' | 'REMB' | 'TransportCC'): RtpCodec {
  const format = formatOf(codec);
  const [payloadType, rtxPayloadType] = OFFERED[codec] as readonly [number, number?];
  if (format.kind === 'audio') return { ...format, payloadType, feedback: [] };
  const feedback = [{ type: 'nack' }, { type: 'nack', parameter: 'pli' }, { type: 'ccm', parameter: 'fir' }];
  if (estimation !== 'TransportCC') feedback.push({ type: 'goog-remb' });
  if (estimation !== 'REMB') feedback.push({ type: 'transport-cc' });
  return { ...format, payloadType, ...(rtx ? { rtxPayloadType } : {}), feedback };
}

/** Whether mediasoup supports a type of feedback. */
export function isKnownFeedback(kind: 'video' | 'audio', { type, parameter = '' }: types.RtcpFeedback): boolean {
  const name = parameter === '' ? type : `${type} ${parameter}`;
  if (kind === 'audio') return name === 'nack';
  return ['nack', 'nack pli', 'ccm fir', 'goog-remb', 'transport-cc'].includes(name);
}

/** Whether `mediaCodecs` can assign this payload type to retransmissions. */
export function canBeRtx(payloadType: number): boolean {
  return AUTOMATIC.includes(payloadType);
}

/** Parameters of H.265 that say what a decoder can do, not what is sent (RFC 7798 section 7.1). They differ from device to device. */
const CAPABILITIES: ReadonlySet<string> = new Set(['level-id', 'tier-flag']);

/** Key of a codec; peers with equal keys can share a producer. */
export function codecKey({ mimeType, payloadType, rtxPayloadType, parameters }: RtpCodec): string {
  return JSON.stringify([
    mimeType,
    payloadType,
    rtxPayloadType,
    Object.entries(parameters)
      .filter(([name]) => !CAPABILITIES.has(name))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  ]);
}

/**
 * Router codecs for `codec` and its retransmissions. mediasoup itself assigns the RTX payload type, the first free one of
 * its list: unused placeholder codecs occupy those before the wanted one.
 */
export function mediaCodecs(codec: RtpCodec): types.RouterRtpCodecCapability[] {
  const { kind, mimeType, clockRate, channels, parameters, payloadType, rtxPayloadType } = codec;
  const occupied = rtxPayloadType === undefined ? [] : AUTOMATIC.slice(0, AUTOMATIC.indexOf(rtxPayloadType));
  const placeholders = occupied
    .filter((taken) => taken !== payloadType)
    .map((taken) => ({ kind: 'audio' as const, mimeType: 'audio/PCMU', clockRate: 8000, preferredPayloadType: taken }));
  return [
    ...placeholders,
    {
      kind,
      mimeType: declared(mimeType),
      clockRate,
      channels,
      parameters: { ...parameters },
      preferredPayloadType: payloadType,
    },
  ];
}

/** Receiver capabilities, as mediasoup takes them, of a peer that agreed on `codec`. */
export function receiverCapabilities(
  codec: RtpCodec,
  headerExtensions: readonly types.RtpHeaderExtension[],
): types.RtpCapabilities {
  const { kind, mimeType, clockRate, channels, parameters, payloadType, rtxPayloadType, feedback } = codec;
  const codecs: types.RtpCodecCapability[] = [
    {
      kind,
      mimeType: declared(mimeType),
      clockRate,
      channels,
      parameters: { ...parameters },
      preferredPayloadType: payloadType,
      rtcpFeedback: [...feedback],
    },
  ];
  if (rtxPayloadType !== undefined) {
    codecs.push({
      kind,
      mimeType: `${kind}/rtx`,
      clockRate,
      preferredPayloadType: rtxPayloadType,
      parameters: { apt: payloadType },
    });
  }
  return { codecs, headerExtensions: headerExtensions.map((extension) => ({ ...extension })) };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
