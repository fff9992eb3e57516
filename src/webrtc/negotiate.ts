import type { types } from 'mediasoup';
import type { Codec } from '../core/track.ts';
import { kilnError } from '../errors.ts';
import { canBeRtx, formatOf, isKnownFeedback, type RtpCodec } from './codecs.ts';
import {
  parseRemoteDescription,
  SdpError,
  type RemoteCodec,
  type RemoteDescription,
  type RemoteMedia,
} from './remote-description.ts';

const ROUTED = ['H264', 'H265', 'VP8', 'VP9', 'AV1', 'OPUS'] as const;

/** In order of preference: constrained baseline, which every client decodes, then the others up to high. */
const H264_PROFILES = ['42e0', '42c0', '4200', '4d', '64'];

/** Profiles of H.265 (annex A.3): the first is assumed where none is named (RFC 7798 section 7.1). */
const MAIN = 1;
const MAIN_10 = 2;

/** Format parameters that an answer repeats with the offered value. */
const ANSWERED_PARAMETERS = new Set([
  'level-asymmetry-allowed',
  'packetization-mode',
  'profile-level-id',
  'profile-id',
  'tier-flag',
  'level-id',
  'tx-mode',
  'profile',
  'level-idx',
  'tier',
]);

/** Largest identifier of the one-byte header extensions that mediasoup writes (RFC 8285 section 4.2). */
const MAX_ONE_BYTE_ID = 14;

/** Parses a peer's offer. Parsing costs time: admit the peer first. @throws sdpMalformed */
export function readOffer(sdp: string): RemoteDescription {
  try {
    return parseRemoteDescription(sdp);
  } catch (error) {
    if (error instanceof SdpError) throw kilnError('sdpMalformed', error.message);
    throw error;
  }
}

/**
 * Chooses how to send `codec` to a peer: payload type, parameters and feedback of its offer.
 * @param rtx use a separate stream for retransmissions if the offer has one
 * @param sent format parameters of what is sent (`formatParameters`)
 * @returns undefined when the offer has no usable form of the codec
 */
export function negotiateCodec(
  codec: Codec,
  media: RemoteMedia,
  rtx: boolean,
  sent: RtpCodec['parameters'] = formatOf(codec).parameters,
): RtpCodec | undefined {
  const { kind, mimeType, clockRate, channels } = formatOf(codec);
  const name = mimeType.slice(mimeType.indexOf('/') + 1).toLowerCase();
  const offered = media.codecs
    .filter((remote) => remote.name === name && remote.clockRate === clockRate && remote.channels === (channels ?? 1))
    .map((remote) => ({ remote, rank: rank(codec, remote, sent) }))
    .filter((choice) => choice.rank < Infinity)
    .sort((a, b) => a.rank - b.rank);
  const chosen = offered[0]?.remote;
  if (chosen === undefined) return undefined;
  const retransmission = rtx ? retransmissionOf(chosen, media) : undefined;
  const rtxPayloadType = retransmission !== undefined && canBeRtx(retransmission) ? retransmission : undefined;
  return {
    kind,
    mimeType,
    clockRate,
    ...(channels === undefined ? {} : { channels }),
    parameters: codec === 'OPUS' ? formatOf(codec).parameters : answeredParameters(chosen.parameters),
    payloadType: chosen.payloadType,
    ...(rtxPayloadType === undefined ? {} : { rtxPayloadType }),
    feedback: chosen.feedback.filter((feedback) => isKnownFeedback(kind, feedback)),
  };
}

/**
 * Supported header extensions that a peer offers, with its identifiers: an answer must not give an offered identifier
 * another meaning (RFC 8285 section 6).
 * @param maps false: packets have mediasoup's identifiers, so only extensions offered with the same ones can be used
 */
export function negotiateExtensions(
  media: RemoteMedia,
  supported: readonly types.RtpHeaderExtension[],
  maps: boolean,
): types.RtpHeaderExtension[] {
  return supported.flatMap((extension) => {
    const { kind, uri, preferredId } = extension;
    const offered = media.extensions.find(
      ({ uri: offeredUri, id }) => offeredUri === uri && (maps ? id <= MAX_ONE_BYTE_ID : id === preferredId),
    );
    return kind === media.kind && offered !== undefined ? [{ ...extension, preferredId: offered.id }] : [];
  });
}

/**
 * Checks that the accepted sections of an offer share one transport, as there is only one (RFC 9725 section 4.4.1).
 * @throws notAcceptable
 */
export function demandBundled({ bundle }: RemoteDescription, taken: readonly { readonly mid: string }[]): void {
  if (taken.length > 1 && taken.some(({ mid }) => !bundle.includes(mid)))
    throw kilnError('notAcceptable', 'its sections are not bundled');
}

/** Codec of a media type, compared without case; undefined for one that workers do not route. */
export function codecNamed(mimeType: string): (typeof ROUTED)[number] | undefined {
  return ROUTED.find((codec) => formatOf(codec).mimeType.toLowerCase() === mimeType.toLowerCase());
}

/**
 * Rank of a codec of a peer's offer for receiving: 0 is best, Infinity cannot be received.
 */
export function rankForReceiving(codec: Codec, remote: RemoteCodec): number {
  const { clockRate, channels = 1 } = formatOf(codec);
  if (remote.clockRate !== clockRate || remote.channels !== channels) return Infinity;
  // the stream itself has its profile; fewer viewers have it than any other codec
  if (codec === 'H265') return isPlainH265(remote) ? 2 : Infinity;
  if (codec !== 'H264') return rank(codec, remote);
  // all profiles are equal; packets of single NAL units need no mode
  return remote.parameters['packetization-mode'] === 2
    ? Infinity
    : remote.parameters['packetization-mode'] === 1
      ? 0
      : 1;
}

/** Payload type of a codec's retransmissions in a peer's offer; undefined without one. */
export function retransmissionOf({ payloadType }: RemoteCodec, media: RemoteMedia): number | undefined {
  return media.codecs.find(({ name, parameters }) => name === 'rtx' && parameters.apt === payloadType)?.payloadType;
}

export function answeredParameters(offered: RemoteCodec['parameters']): RtpCodec['parameters'] {
  return Object.fromEntries(Object.entries(offered).filter(([key]) => ANSWERED_PARAMETERS.has(key)));
}

/** Whether an H.265 is of one stream, in order (RFC 7798 section 7.1). */
function isPlainH265({ parameters }: RemoteCodec): boolean {
  return (parameters['tx-mode'] ?? 'SRST') === 'SRST' && Number(parameters['sprop-max-don-diff'] ?? 0) === 0;
}

/** Lower is better, Infinity is impossible. */
function rank(codec: Codec, remote: RemoteCodec, sent: RtpCodec['parameters'] = {}): number {
  const { parameters } = remote;
  if (codec === 'VP9') return Number(parameters['profile-id'] ?? 0) === 0 ? 0 : Infinity;
  if (codec === 'AV1') return Number(parameters.profile ?? 0) === 0 ? 0 : Infinity;
  if (codec === 'H265') {
    const [taken, has] = [parameters, sent].map((of) => Number(of['profile-id'] ?? MAIN));
    // decoders of 10 bits decode what has 8, and no other profile is another's
    const isDecoded = taken === has || (taken === MAIN_10 && has === MAIN);
    if (!isDecoded || !isPlainH265(remote)) return Infinity;
    return taken === has ? 0 : 1;
  }
  if (codec !== 'H264') return 0;
  const mode = parameters['packetization-mode'];
  // fragments and aggregates need mode 1; peers that give no mode nearly always accept them
  if (mode !== undefined && mode !== 1) return Infinity;
  const profile = String(parameters['profile-level-id'] ?? '42e01f').toLowerCase();
  const index = H264_PROFILES.findIndex((known) => profile.startsWith(known));
  if (!/^[0-9a-f]{6}$/.test(profile) || index < 0) return Infinity;
  return index + (mode === undefined ? H264_PROFILES.length : 0);
}
