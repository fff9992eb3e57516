import type { types } from 'mediasoup';
import { candidateLine, type HostCandidate } from './candidate.ts';

/** A media section in use: what a consumer sends. */
export interface SendingMedia {
  readonly mid: string;
  readonly kind: 'video' | 'audio';
  readonly rtpParameters: types.RtpParameters;
}

/** A media section of the peer's offer that nothing is sent on. */
export interface UnusedMedia {
  readonly mid: string;
  readonly kind: string;
  readonly protocol: string;
  readonly formats: string;
}

export interface LocalDescription {
  /** Name in the origin line. */
  readonly user: string;
  /** Number that tells the versions of one session's descriptions apart. */
  readonly sessionId: number;
  /** Names the media stream to the player. */
  readonly streamId: string;
  readonly setup: 'actpass' | 'passive' | 'active';
  readonly ice: types.IceParameters;
  readonly fingerprint: types.DtlsFingerprint;
  readonly candidates: readonly HostCandidate[];
  readonly media: readonly (SendingMedia | UnusedMedia)[];
}

const RTP_PROTOCOL = 'UDP/TLS/RTP/SAVPF';

/** Writes an offer or an answer of an ICE-lite sender that knows all its candidates. */
export function writeDescription(description: LocalDescription): string {
  const { user, sessionId, ice, setup, fingerprint, media } = description;
  const bundled = media.filter((section) => 'rtpParameters' in section || isRtp(section));
  const lines = [
    'v=0',
    `o=${user} ${sessionId} 2 IN IP4 127.0.0.1`,
    's=-',
    't=0 0',
    'a=ice-lite',
    `a=group:BUNDLE ${bundled.map(({ mid }) => mid).join(' ')}`,
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
    else lines.push(...unusedSection(section, transport));
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
  for (const { payloadType, mimeType, clockRate, channels = 1, parameters = {}, rtcpFeedback = [] } of codecs) {
    const name = mimeType.slice(mimeType.indexOf('/') + 1);
    lines.push(`a=rtpmap:${payloadType} ${name}/${clockRate}${channels > 1 ? `/${channels}` : ''}`);
    const format = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
    if (format.length > 0) lines.push(`a=fmtp:${payloadType} ${format.join(';')}`);
    for (const { type, parameter } of rtcpFeedback) {
      lines.push(`a=rtcp-fb:${payloadType} ${type}${parameter ? ` ${parameter}` : ''}`);
    }
  }
  for (const { id, uri } of headerExtensions) lines.push(`a=extmap:${id} ${uri}`);
  for (const { ssrc, rtx } of encodings) {
    const ssrcs = rtx === undefined ? [ssrc] : [ssrc, rtx.ssrc];
    if (rtx !== undefined) lines.push(`a=ssrc-group:FID ${ssrcs.join(' ')}`);
    for (const source of ssrcs) lines.push(`a=ssrc:${source} cname:${rtcp?.cname}`);
  }
  lines.push(...candidates.map((candidate) => `a=${candidateLine(candidate)}`), 'a=end-of-candidates');
  return lines;
}

/** Refused with port 0, except RTP, which stays in the bundle: it may be the section that carries the transport. */
function unusedSection(section: UnusedMedia, transport: readonly string[]): string[] {
  const { kind, mid, protocol, formats } = section;
  const rtp = isRtp(section);
  const lines = [`m=${kind} ${rtp ? 9 : 0} ${protocol} ${formats}`, 'c=IN IP4 0.0.0.0', `a=mid:${mid}`, 'a=inactive'];
  return rtp ? [...lines, ...transport] : lines;
}

function isRtp({ protocol }: UnusedMedia): boolean {
  return protocol === RTP_PROTOCOL;
}
