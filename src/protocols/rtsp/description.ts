import { parse, type MediaDescription } from 'sdp-transform';
import { isPayloadFormat } from '../rtp/receive/create.ts';
import { STATIC_FORMATS, type RtpFormat } from '../rtp/receive/format.ts';
import { sentByServer } from './direction.ts';
import { RtspError } from './error.ts';
import { describedRange } from './range.ts';

/** One format of a track in a description. */
export interface RtspFormat {
  readonly payloadType: number;
  readonly format: RtpFormat;
  /** 0 when unknown. */
  readonly channels: number;
}

/** One track of a session description with a supported format, the first of them. */
export interface RtspMedia extends RtspFormat {
  readonly kind: 'video' | 'audio';
  /** Further formats, between which the track may change (RFC 8866 section 5.14). */
  readonly others: readonly RtspFormat[];
  /** Bits per second, 0 when unknown. */
  readonly bitrate: number;
  /** As the description has it. */
  readonly control: string | undefined;
}

export interface RtspDescription {
  /** Control URL of the whole session, as the description has it. */
  readonly control: string | undefined;
  /** `a=range` of the session, or of the first track that has one. */
  readonly range: string | undefined;
  /** At least one. */
  readonly media: readonly RtspMedia[];
  /** Names of the codecs of each track without a supported one. */
  readonly ignored: readonly string[];
}

const MAX_LINES = 1000;
const MAX_MEDIA = 32;
/** Characters of format names in the description of one track. */
const MAX_NAMES = 100;
/** Number of payload types that exist. */
const MAX_FORMATS = 128;
const VIDEO_CLOCK = 90_000;
/** Clock rates of encodings with a usual one (RFC 3551 section 6, RFC 7587 section 4.1). */
const AUDIO_CLOCKS: Readonly<Record<string, number>> = { PCMA: 8000, PCMU: 8000, G722: 8000, OPUS: 48_000 };
/** Bits in the unit of `b=AS`. */
const AS_BITS = 1000;

/** One track that a client announces. */
export interface AnnouncedTrack {
  /** As the description has it. */
  readonly control: string | undefined;
  /** Undefined for a track without a supported format, or that is neither audio nor video. */
  readonly media: RtspMedia | undefined;
  /** Names of its codecs. */
  readonly codecs: string;
}

export interface RtspAnnouncement {
  /** Control URL of the whole session, as the description has it. */
  readonly control: string | undefined;
  /** All of them, since clients set up each. At least one has media. */
  readonly tracks: readonly AnnouncedTrack[];
}

/**
 * Reads a server's description (RFC 4566, and how cameras deviate from it): audio and video in supported payload formats.
 * Metadata, and tracks that the client would have to send, are left out.
 * @throws RtspError when no track is supported, or the description is too long
 */
export function readDescription(text: string): RtspDescription {
  const { control, media, ...session } = parseDescription(text);
  const sections = media.slice(0, MAX_MEDIA).map((one) => ({ ...one, direction: one.direction ?? session.direction }));
  const sent = sentByServer(sections);
  const read = sent.map(readMedia);
  const taken = read.flatMap((one) => one ?? []);
  if (taken.length === 0) throw new RtspError(nothingTaken(media));
  const ignored = sent.filter(({ type }, place) => read[place] === undefined && (type === 'video' || type === 'audio'));
  return {
    control: textOf(control),
    range: describedRange([session, ...media]),
    media: taken,
    ignored: ignored.map(namedCodecs),
  };
}

/**
 * Reads the description of a client that publishes (RFC 2326 section 10.3): marks of directions do not count, since it sends all.
 * @throws RtspError when no track is supported, or the description is too long
 */
export function readAnnouncement(text: string): RtspAnnouncement {
  const { control, media } = parseDescription(text);
  const tracks = media.slice(0, MAX_MEDIA).map((one) => ({
    control: textOf(one.control),
    media: readMedia(one),
    codecs: namedCodecs(one),
  }));
  if (tracks.every((track) => track.media === undefined)) throw new RtspError(nothingTaken(media));
  return { control: textOf(control), tracks };
}

function parseDescription(text: string): ReturnType<typeof parse> {
  const description = parse(cleaned(text));
  return { ...description, media: description.media ?? [] };
}

function namedCodecs(media: MediaDescription): string {
  return codecsOf(media).join(', ').slice(0, MAX_NAMES);
}

function codecsOf({ type, rtp, payloads }: MediaDescription): string[] {
  return rtp.length > 0 ? rtp.map(({ codec }) => codec) : [`${type} of payload type ${payloads ?? 'unknown'}`];
}

/** Error text with the codecs of a stream of which none is supported. */
function nothingTaken(media: readonly MediaDescription[]): string {
  const offered = [...new Set(media.flatMap(codecsOf))].slice(0, MAX_MEDIA).join(', ');
  return `the stream has no track in a supported codec${offered === '' ? '' : `, only ${offered}`}`;
}

/** Removes a byte order mark, and misplaced blanks. */
function cleaned(text: string): string {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/, MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw new RtspError('the description of the stream is too long');
  return lines
    .map((line) => line.trim())
    .map((line) => line.replace(/^(a=(?:rtpmap|fmtp):\d+)\s+/, '$1 '))
    .join('\r\n');
}

function readMedia(media: MediaDescription): RtspMedia | undefined {
  const { type, protocol, payloads, rtp, fmtp } = media;
  if ((type !== 'video' && type !== 'audio') || !/^RTP\/A?VP/i.test(protocol)) return undefined;
  const numbers = String(payloads ?? '')
    .trim()
    .split(/\s+/, MAX_FORMATS)
    .map(Number);
  const maps = byFormat(rtp, numbers, numbers);
  const mapped = new Set(numbers.map((number) => maps.get(number)?.payload));
  const unlisted = rtp.map(({ payload }) => payload).filter((payload) => !mapped.has(payload));
  const parameters = byFormat(fmtp, numbers, [...numbers, ...unlisted]);
  const [first, ...others] = numbers
    .flatMap((number) => readFormat(type, number, maps.get(number), textOf(parameters.get(number)?.config)) ?? [])
    .filter(({ format }) => isPayloadFormat(format.encoding));
  if (first === undefined) return undefined;
  const limit = media.bandwidth?.find((one) => one.type === 'AS')?.limit;
  return {
    kind: type,
    ...first,
    others,
    bitrate: (Number(limit) || 0) * AS_BITS,
    control: textOf(media.control),
  };
}

function readFormat(
  kind: RtspMedia['kind'],
  payloadType: number,
  map: MediaDescription['rtp'][number] | undefined,
  fmtp = '',
): RtspFormat | undefined {
  const parameters = readParameters(fmtp);
  const known = STATIC_FORMATS[payloadType];
  if (map === undefined) return known && { payloadType, format: { ...known, parameters }, channels: 1 };
  const encoding = String(map.codec).toUpperCase();
  const usual = kind === 'video' ? VIDEO_CLOCK : (known?.clockRate ?? AUDIO_CLOCKS[encoding] ?? 0);
  const clockRate = map.rate !== undefined && map.rate > 0 ? map.rate : usual;
  return {
    payloadType,
    // MPEG audio always has this clock, whatever is declared (RFC 3551 section 4.5.13)
    format: { encoding, clockRate: encoding === 'MPA' ? VIDEO_CLOCK : clockRate, parameters },
    channels: Number(map.encoding) || 0,
  };
}

/**
 * Assigns the lines of a section to its formats by payload number. Cameras change a number in one place and forget the other:
 * the only line with an unknown number belongs to the only format without a line.
 * @param listed the formats that the section lists
 * @param known numbers that are of a format, listed or not
 */
function byFormat<T extends { readonly payload: number }>(
  lines: readonly T[],
  listed: readonly number[],
  known: readonly number[],
): ReadonlyMap<number, T> {
  const found = new Map<number, T>();
  for (const line of lines) if (!found.has(line.payload)) found.set(line.payload, line);
  const [without, ...more] = listed.filter((number) => !found.has(number) && !Object.hasOwn(STATIC_FORMATS, number));
  const numbers = new Set(known);
  const [stray, ...others] = lines.filter(({ payload }) => !numbers.has(payload));
  if (without !== undefined && stray !== undefined && more.length + others.length === 0) found.set(without, stray);
  return found;
}

function readParameters(text: string): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0) parameters[part.slice(0, equals).trim().toLowerCase()] = part.slice(equals + 1).trim();
  }
  return parameters;
}

/** Undoes the parser's conversion of texts that look like numbers. */
function textOf(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value).trim();
}
