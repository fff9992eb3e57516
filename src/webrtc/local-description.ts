import type { types } from 'mediasoup';
import { candidateLine, type HostCandidate } from './candidate.ts';
import type { RtpCodec } from './codecs.ts';

/** Media section on which a consumer sends. */
export interface SendingMedia {
  readonly mid: string;
  readonly kind: 'video' | 'audio';
  readonly rtpParameters: types.RtpParameters;
}

/** Media section on which the peer sends. */
export interface ReceivingMedia {
  readonly mid: string;
  readonly kind: 'video' | 'audio';
  /** Codecs that the peer may send, the best first. */
  readonly accepted: readonly RtpCodec[];
  readonly extensions: readonly { readonly id: number; readonly uri: string }[];
  /** Simulcast layers; empty without simulcast. */
  readonly rids: readonly string[];
}

/** Media section of the peer's offer for data channels (RFC 8841). */
export interface DataChannelMedia {
  readonly mid: string;
  readonly protocol: string;
  readonly sctpPort: number;
  /** Bytes. */
  readonly maxMessageSize: number;
}

/** Media section of the peer's offer that stays unused. */
export interface UnusedMedia {
  readonly mid: string;
  readonly kind: string;
  readonly protocol: string;
  readonly formats: string;
}

export interface LocalDescription {
  /** Session id of the origin line. */
  readonly sessionId: number;
  readonly streamId: string;
  readonly setup: 'actpass' | 'passive' | 'active';
  readonly ice: types.IceParameters;
  readonly fingerprint: types.DtlsFingerprint;
  readonly candidates: readonly HostCandidate[];
  readonly media: readonly (SendingMedia | ReceivingMedia | DataChannelMedia | UnusedMedia)[];
  /** In an answer: mids that the offer bundles, as only they can be in a group. */
  readonly bundle?: readonly string[];
}

const USER = 'Kiln';
/** The format of data channels. */
export const DATA_CHANNEL = 'webrtc-datachannel';
const RTP_PROTOCOL = 'UDP/TLS/RTP/SAVPF';

/** Writes the offer or answer of an end with all its candidates: a lite one of ICE, unless `ice.iceLite` is false. */
export function writeDescription(description: LocalDescription): string {
  const { sessionId, ice, setup, fingerprint, media, bundle = media.map(({ mid }) => mid) } = description;
  const bundled = media.filter(
    (section) => bundle.includes(section.mid) && (!('formats' in section) || isRtp(section)),
  );
  const lines = [
    'v=0',
    `o=${USER} ${sessionId} 2 IN IP4 127.0.0.1`,
    's=-',
    't=0 0',
    ...(ice.iceLite === false ? [] : ['a=ice-lite']),
    ...(bundled.length > 0 ? [`a=group:BUNDLE ${bundled.map(({ mid }) => mid).join(' ')}`] : []),
    `a=msid-semantic: WMS ${description.streamId}`,
  ];
  const transport = [
    `a=ice-ufrag:${ice.usernameFragment}`,
    `a=ice-pwd:${ice.password}`,
    'a=ice-options:trickle',
    `a=fingerprint:${fingerprint.algorithm} ${fingerprint.value}`,
    `a=setup:${setup}`,
    'a=rtcp-mux',
    'a=rtcp-rsize',
  ];
  for (const section of media) {
    if ('rtpParameters' in section) lines.push(...sendingSection(section, description, transport));
    else if ('accepted' in section) lines.push(...receivingSection(section, description, transport));
    else if ('sctpPort' in section) lines.push(...dataSection(section, description, transport));
    else lines.push(...unusedSection(section, bundled.includes(section), description, transport));
  }
  return `${lines.join('\r\n')}\r\n`;
}

function sendingSection(
  { mid, kind, rtpParameters }: SendingMedia,
  { streamId, candidates }: LocalDescription,
  transport: readonly string[],
): string[] {
  const { codecs, encodings = [], headerExtensions = [], rtcp } = rtpParameters;
  const lines = [
    `m=${kind} 9 ${RTP_PROTOCOL} ${codecs.map(({ payloadType }) => payloadType).join(' ')}`,
    'c=IN IP4 0.0.0.0',
    `a=mid:${mid}`,
    'a=sendonly',
    ...transport,
    `a=msid:${streamId} ${kind}`,
  ];
  for (const codec of codecs) lines.push(...codecLines(codec));
  for (const { id, uri } of headerExtensions) lines.push(`a=extmap:${id} ${uri}`);
  for (const { ssrc, rtx } of encodings) {
    const ssrcs = rtx === undefined ? [ssrc] : [ssrc, rtx.ssrc];
    if (rtx !== undefined) lines.push(`a=ssrc-group:FID ${ssrcs.join(' ')}`);
    for (const source of ssrcs) lines.push(`a=ssrc:${source} cname:${rtcp?.cname}`);
  }
  return [...lines, ...candidateLines(candidates)];
}

function receivingSection(
  { mid, kind, accepted, extensions, rids }: ReceivingMedia,
  { candidates }: LocalDescription,
  transport: readonly string[],
): string[] {
  const codecs = accepted.flatMap((codec) => [{ ...codec, rtcpFeedback: codec.feedback }, ...retransmission(codec)]);
  return [
    `m=${kind} 9 ${RTP_PROTOCOL} ${codecs.map(({ payloadType }) => payloadType).join(' ')}`,
    'c=IN IP4 0.0.0.0',
    `a=mid:${mid}`,
    'a=recvonly',
    ...transport,
    ...codecs.flatMap(codecLines),
    ...extensions.map(({ id, uri }) => `a=extmap:${id} ${uri}`),
    ...rids.map((rid) => `a=rid:${rid} recv`),
    ...(rids.length > 0 ? [`a=simulcast:recv ${rids.join(';')}`] : []),
    ...candidateLines(candidates),
  ];
}

function dataSection(
  { mid, protocol, sctpPort, maxMessageSize }: DataChannelMedia,
  { candidates }: LocalDescription,
  transport: readonly string[],
): string[] {
  return [
    `m=application 9 ${protocol} ${DATA_CHANNEL}`,
    'c=IN IP4 0.0.0.0',
    `a=mid:${mid}`,
    ...transport.filter((line) => !line.startsWith('a=rtcp')),
    `a=sctp-port:${sctpPort}`,
    `a=max-message-size:${maxMessageSize}`,
    ...candidateLines(candidates),
  ];
}

type CodecFields = Pick<types.RtpCodecParameters, 'payloadType' | 'mimeType' | 'clockRate' | 'channels'> & {
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly rtcpFeedback?: readonly types.RtcpFeedback[];
};

function retransmission({ kind, clockRate, payloadType, rtxPayloadType }: RtpCodec): CodecFields[] {
  if (rtxPayloadType === undefined) return [];
  return [{ mimeType: `${kind}/rtx`, clockRate, payloadType: rtxPayloadType, parameters: { apt: payloadType } }];
}

function codecLines({
  payloadType,
  mimeType,
  clockRate,
  channels = 1,
  parameters = {},
  rtcpFeedback = [],
}: CodecFields): string[] {
  const name = mimeType.slice(mimeType.indexOf('/') + 1);
  const lines = [`a=rtpmap:${payloadType} ${name}/${clockRate}${channels > 1 ? `/${channels}` : ''}`];
  const format = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
  if (format.length > 0) lines.push(`a=fmtp:${payloadType} ${format.join(';')}`);
  for (const { type, parameter } of rtcpFeedback) {
    lines.push(`a=rtcp-fb:${payloadType} ${type}${parameter ? ` ${parameter}` : ''}`);
  }
  return lines;
}

function candidateLines(candidates: readonly HostCandidate[]): string[] {
  return [...candidates.map((candidate) => `a=${candidateLine(candidate)}`), 'a=end-of-candidates'];
}

/** Rejects a section with port 0, except in a bundle: it may be the section that carries the transport. */
function unusedSection(
  { kind, mid, protocol, formats }: UnusedMedia,
  isBundled: boolean,
  { candidates }: LocalDescription,
  transport: readonly string[],
): string[] {
  const lines = [
    `m=${kind} ${isBundled ? 9 : 0} ${protocol} ${formats}`,
    'c=IN IP4 0.0.0.0',
    `a=mid:${mid}`,
    'a=inactive',
  ];
  return isBundled ? [...lines, ...transport, ...candidateLines(candidates)] : lines;
}

function isRtp({ protocol }: UnusedMedia): boolean {
  return protocol === RTP_PROTOCOL;
}
