import type { types } from 'mediasoup';
import { parse, parseParams, parseSimulcastStreamList, type SessionDescription } from 'sdp-transform';
import type { MediaDescription } from 'sdp-transform';

/** An SDP that is malformed, or lacks what a media session needs. */
export class SdpError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SdpError';
  }
}

export interface RemoteCodec {
  readonly payloadType: number;
  /** As in `a=rtpmap`, in lower case. */
  readonly name: string;
  readonly clockRate: number;
  readonly channels: number;
  readonly parameters: Readonly<Record<string, string | number>>;
  readonly feedback: readonly types.RtcpFeedback[];
}

export interface RemoteMedia {
  /** Media type: `audio`, `video`, or another one. */
  readonly kind: string;
  readonly mid: string;
  readonly protocol: string;
  /** Formats of the m-line, for the answer of an unused section. */
  readonly formats: string;
  readonly receives: boolean;
  readonly sends: boolean;
  /** Simulcast layers that the peer sends (RFC 8853); empty without simulcast. */
  readonly rids: readonly string[];
  /** SSRC that the peer sends with, and that of its retransmissions; undefined if not declared. */
  readonly source: { readonly ssrc: number; readonly rtxSsrc?: number } | undefined;
  readonly codecs: readonly RemoteCodec[];
  readonly extensions: readonly { readonly id: number; readonly uri: string }[];
  /** Data channels: SCTP port, and largest message that the peer accepts, in bytes; 0: any size (RFC 8841). */
  readonly sctp: { readonly port: number; readonly maxMessageSize: number } | undefined;
}

export interface RemoteDescription {
  readonly media: readonly RemoteMedia[];
  /** Mids of the sections that share a transport if accepted (RFC 9143); may be empty. */
  readonly bundle: readonly string[];
  readonly fingerprint: types.DtlsFingerprint;
  readonly setup: 'actpass' | 'active' | 'passive';
  readonly iceUfrag: string;
}

/** Parsing costs time with every line; browsers write a few hundred. */
const MAX_LINES = 1500;
const MAX_MEDIA = 32;
const MAX_FORMATS = 128;
const ALGORITHMS = new Set(['sha-1', 'sha-224', 'sha-256', 'sha-384', 'sha-512']);
/** Bytes, for a peer that declares none (RFC 8841 section 6.1). */
const MAX_MESSAGE_SIZE = 65_536;
const RECEIVING = new Set(['recvonly', 'sendrecv']);
const SENDING = new Set(['sendonly', 'sendrecv']);
const MAX_RIDS = 8;
const RID = /^[A-Za-z0-9]{1,16}$/;
/** Largest identifier of two-byte header extensions (RFC 8285). */
const MAX_EXTENSION_ID = 255;

/** Parses the parts of a peer's offer or answer that sending and receiving need. @throws SdpError */
export function parseRemoteDescription(sdp: string): RemoteDescription {
  const session = parseSession(sdp);
  if (session.media.length === 0) throw new SdpError('there is no media section');
  if (session.media.length > MAX_MEDIA) throw new SdpError('there are too many media sections');
  const media = session.media.map((section, index) => parseMedia(section, session, index));
  demandOnce(
    'mid',
    media.map(({ mid }) => mid),
  );
  demandOnce(
    'SSRC',
    media.flatMap(({ source }) => (source === undefined ? [] : [source.ssrc, source.rtxSsrc ?? []].flat())),
  );
  const secured = session.media.find(({ fingerprint }) => fingerprint !== undefined);
  const fingerprint = secured?.fingerprint ?? session.fingerprint;
  if (fingerprint === undefined) throw new SdpError('there is no fingerprint');
  const iceUfrag = session.media.find((section) => section.iceUfrag !== undefined)?.iceUfrag ?? session.iceUfrag;
  if (iceUfrag === undefined) throw new SdpError('there is no ice-ufrag');
  return {
    media,
    bundle:
      session.groups
        ?.find(({ type }) => type === 'BUNDLE')
        ?.mids.toString()
        .split(' ') ?? [],
    fingerprint: parseFingerprint(fingerprint.type, fingerprint.hash),
    setup: parseSetup(secured?.setup ?? session.setup),
    iceUfrag: String(iceUfrag),
  };
}

/** @throws SdpError */
function demandOnce(what: string, values: readonly (string | number)[]): void {
  const again = values.find((value, index) => values.indexOf(value) !== index);
  if (again !== undefined) throw new SdpError(`the ${what} ${again} is used twice`);
}

function parseSession(sdp: string): SessionDescription {
  if (!/^v=0\s*$/m.test(sdp.slice(0, 16))) throw new SdpError('it does not begin with v=0');
  if (countLines(sdp) > MAX_LINES) throw new SdpError('there are too many lines');
  try {
    return parse(sdp);
  } catch (error) {
    throw new SdpError((error as Error).message);
  }
}

function countLines(text: string): number {
  let count = 0;
  for (let at = 0; at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

function parseMedia(
  section: SessionDescription['media'][number],
  session: SessionDescription,
  index: number,
): RemoteMedia {
  const mid = String(section.mid ?? index);
  // a one-byte header extension holds 16 bytes (RFC 8285)
  if (!/^[\x21-\x7e]{1,16}$/.test(mid)) throw new SdpError('a mid is malformed');
  const direction = section.direction ?? session.direction ?? 'sendrecv';
  // a section with port 0 is off, unless it is only offered within a bundle (RFC 8843 section 6)
  const off = section.port === 0 && section.bundleOnly === undefined;
  return {
    kind: section.type,
    mid,
    protocol: section.protocol,
    formats: String(section.payloads ?? ''),
    receives: !off && RECEIVING.has(direction),
    sends: !off && SENDING.has(direction),
    rids: parseRids(section),
    source: parseSource(section),
    codecs: parseCodecs(section),
    extensions: (section.ext ?? []).flatMap(({ value, uri }) =>
      typeof value === 'number' && value >= 1 && value <= MAX_EXTENSION_ID ? [{ id: value, uri: String(uri) }] : [],
    ),
    sctp: off ? undefined : parseSctp(section),
  };
}

function parseSctp({ type, sctpPort, maxMessageSize = MAX_MESSAGE_SIZE }: MediaDescription): RemoteMedia['sctp'] {
  const isPort = Number.isInteger(sctpPort) && (sctpPort as number) > 0 && (sctpPort as number) < 65_536;
  if (type !== 'application' || !isPort || !(maxMessageSize >= 0)) return undefined;
  return { port: sctpPort as number, maxMessageSize };
}

/** Reads the simulcast layers that the peer sends: of alternatives the first, which is the preferred one. */
function parseRids({ rids = [], simulcast }: MediaDescription): string[] {
  const streams = [
    [simulcast?.dir1, simulcast?.list1],
    [simulcast?.dir2, simulcast?.list2],
  ].find(([dir]) => dir === 'send')?.[1];
  if (streams === undefined) return [];
  const declared = new Set(rids.filter(({ direction }) => direction === 'send').map(({ id }) => String(id)));
  const found = parseSimulcastStreamList(String(streams)).flatMap((choices) =>
    choices.slice(0, 1).map(({ scid }) => String(scid)),
  );
  return [...new Set(found)].filter((rid) => declared.has(rid) && RID.test(rid)).slice(0, MAX_RIDS);
}

function parseSource({ ssrcs = [], ssrcGroups = [] }: MediaDescription): RemoteMedia['source'] {
  const pair = ssrcGroups
    .find(({ semantics }) => semantics === 'FID')
    ?.ssrcs.split(' ')
    .map(Number);
  const [ssrc, rtxSsrc] = pair ?? [Number(ssrcs[0]?.id)];
  if (!isSsrc(ssrc)) return undefined;
  return { ssrc, ...(isSsrc(rtxSsrc) && { rtxSsrc }) };
}

function isSsrc(value: number | undefined): value is number {
  return value !== undefined && Number.isInteger(value) && value > 0 && value < 2 ** 32;
}

function parseCodecs(section: MediaDescription): RemoteCodec[] {
  if (section.rtp.length > MAX_FORMATS) throw new SdpError('there are too many formats');
  return section.rtp.flatMap(({ payload, codec, rate, encoding }) => {
    if (!(payload >= 0 && payload <= 127) || rate === undefined) return [];
    const fmtp = section.fmtp.find((format) => format.payload === payload)?.config ?? '';
    return [
      {
        payloadType: payload,
        name: codec.toLowerCase(),
        clockRate: rate,
        channels: Number(encoding ?? 1),
        parameters: parseParameters(fmtp),
        feedback: (section.rtcpFb ?? [])
          .filter((feedback) => feedback.payload === payload || (feedback.payload as unknown) === '*')
          .map(({ type, subtype }) => ({ type, parameter: subtype ?? '' })),
      },
    ];
  });
}

function parseParameters(fmtp: string): Record<string, string | number> {
  const parameters: Record<string, string | number> = {};
  for (const [key, value] of Object.entries(parseParams(fmtp))) {
    if (key !== '' && value !== undefined) parameters[key] = value;
  }
  return parameters;
}

function parseFingerprint(type: string, hash: string): types.DtlsFingerprint {
  const algorithm = String(type).toLowerCase();
  if (!ALGORITHMS.has(algorithm) || !/^([0-9a-f]{2}:){19,63}[0-9a-f]{2}$/i.test(String(hash))) {
    throw new SdpError('the fingerprint is malformed');
  }
  return { algorithm: algorithm as types.FingerprintAlgorithm, value: hash.toUpperCase() };
}

function parseSetup(setup: string | undefined): RemoteDescription['setup'] {
  if (setup === 'active' || setup === 'passive') return setup;
  return 'actpass';
}
