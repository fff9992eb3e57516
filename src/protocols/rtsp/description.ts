import { parse, type MediaDescription } from 'sdp-transform';
import { isPayloadFormat } from '../rtp/receive/create.ts';
import { STATIC_FORMATS, type RtpFormat } from '../rtp/receive/format.ts';
import { sentByServer } from './direction.ts';
import { RtspError } from './error.ts';

/** One format of a track, as the description has it. */
export interface RtspFormat {
  readonly payloadType: number;
  readonly format: RtpFormat;
  /** 0 when it is not told. */
  readonly channels: number;
}

/** One track of a session description that can be taken, in the format that comes first. */
export interface RtspMedia extends RtspFormat {
  readonly kind: 'video' | 'audio';
  /** In which it may come as well, and change between (RFC 8866 section 5.14). */
  readonly others: readonly RtspFormat[];
  /** Bits per second, 0 when it is not told. */
  readonly bitrate: number;
  /** As the description has it. */
  readonly control: string | undefined;
}

export interface RtspDescription {
  /** Of the whole, as the description has it. */
  readonly control: string | undefined;
  /** At least one. */
  readonly media: readonly RtspMedia[];
}

const MAX_LINES = 1000;
const MAX_MEDIA = 32;
/** There are no more payload types. */
const MAX_FORMATS = 128;
const VIDEO_CLOCK = 90_000;
/** Kilobits, as `b=AS` counts. */
const AS_BITS = 1000;

/**
 * Reads what a server describes (RFC 4566, and what cameras make of it): pictures and sound in payload formats that
 * are taken. Metadata, and what the client would have to send, are left out.
 * @throws RtspError when nothing can be taken, or it is too long
 */
export function readDescription(text: string): RtspDescription {
  const { control, media, ...session } = parse(cleaned(text));
  const sections = media.slice(0, MAX_MEDIA).map((one) => ({ ...one, direction: one.direction ?? session.direction }));
  const taken = sentByServer(sections).flatMap((one) => readMedia(one) ?? []);
  if (taken.length === 0) throw new RtspError(nothingTaken(media));
  return { control: textOf(control), media: taken };
}

/** Names the codecs of a stream of which none can be taken. */
function nothingTaken(media: readonly MediaDescription[]): string {
  const formats = media.flatMap(({ type, rtp, payloads }) =>
    rtp.length > 0 ? rtp.map(({ codec }) => codec) : `${type} of payload type ${payloads ?? 'unknown'}`,
  );
  const offered = [...new Set(formats)].slice(0, MAX_MEDIA).join(', ');
  return `the stream has no track in a supported codec${offered === '' ? '' : `, only ${offered}`}`;
}

/** Without byte order mark, and blanks where none belong. */
function cleaned(text: string): string {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/, MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw new RtspError('the description of the stream is too long');
  return lines
    .map((line) => line.trim())
    .map((line) => line.replace(/^(a=(?:rtpmap|fmtp):\d+)\s+/, '$1 '))
    .join('\r\n');
}

function readMedia(media: MediaDescription): RtspMedia | undefined {
  const { type, payloads, protocol } = media;
  if ((type !== 'video' && type !== 'audio') || !/^RTP\/A?VP/i.test(protocol)) return undefined;
  const [first, ...others] = String(payloads ?? '')
    .trim()
    .split(/\s+/, MAX_FORMATS)
    .flatMap((payloadType) => readFormat(media, Number(payloadType)) ?? [])
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

function readFormat({ type, rtp, fmtp }: MediaDescription, payloadType: number): RtspFormat | undefined {
  const parameters = readParameters(textOf(fmtp.find(({ payload }) => payload === payloadType)?.config) ?? '');
  const map = rtp.find(({ payload }) => payload === payloadType);
  const known = STATIC_FORMATS[payloadType];
  if (map === undefined) return known && { payloadType, format: { ...known, parameters }, channels: 1 };
  const encoding = String(map.codec).toUpperCase();
  const clockRate =
    map.rate !== undefined && map.rate > 0 ? map.rate : type === 'video' ? VIDEO_CLOCK : (known?.clockRate ?? 0);
  // the clock of MPEG audio is its own, whatever is written there (RFC 3551 section 4.5.13)
  return {
    payloadType,
    format: { encoding, clockRate: encoding === 'MPA' ? VIDEO_CLOCK : clockRate, parameters },
    channels: Number(map.encoding) || 0,
  };
}

function readParameters(text: string): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0) parameters[part.slice(0, equals).trim().toLowerCase()] = part.slice(equals + 1).trim();
  }
  return parameters;
}

/** The parser makes numbers of what looks like one. */
function textOf(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value).trim();
}
