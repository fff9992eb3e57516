import { parseLinkedUrl } from '../../protocols/outbound/http-request.ts';
import { PullError } from '../pull/error.ts';
import { attributeList, type Attributes } from './attributes.ts';
import { Variables } from './variables.ts';

/** Part of a resource (RFC 8216 section 4.3.2.2), in bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** AES-128 in CBC mode with PKCS7 padding (RFC 8216 section 4.3.2.4). */
export interface SegmentKey {
  readonly uri: URL;
  /** Absent: the sequence number of the segment. */
  readonly iv: Buffer | undefined;
}

export interface Resource {
  readonly uri: URL;
  readonly range: ByteRange | undefined;
}

export interface Segment extends Resource {
  readonly sequence: number;
  /** In seconds. */
  readonly duration: number;
  readonly key: SegmentKey | undefined;
  /** Initialization of fragmented MP4. */
  readonly map: Resource | undefined;
  /** There is no such media (RFC 8216bis section 4.4.4.7). */
  readonly isGap: boolean;
  /** Number of the discontinuities before it: times and formats go on between two segments that have the same. */
  readonly discontinuity: number;
  /** When it begins by the clock of the server, in milliseconds; undefined where the playlist does not say. */
  readonly date: number | undefined;
}

export interface MediaPlaylist {
  readonly kind: 'media';
  /** In seconds. */
  readonly target: number;
  readonly segments: readonly Segment[];
  readonly isEnded: boolean;
}

/** A choice of a master playlist. */
export interface Variant {
  readonly uri: URL;
  /** Bits per second. */
  readonly bandwidth: number;
  /** As RFC 6381 writes them; empty where the playlist does not say. */
  readonly codecs: readonly string[];
  /** Audio that is not in the variant itself: the default rendition of its group, else the first. */
  readonly audio: URL | undefined;
}

export interface MasterPlaylist {
  readonly kind: 'master';
  readonly variants: readonly Variant[];
  /** Variables that its playlists may import. */
  readonly variables: Variables;
}

const MAX_SEGMENTS = 20_000;
const MAX_VARIANTS = 200;
/** Longest segment that a playlist may announce, in seconds. */
const MAX_DURATION = 600;

/**
 * Reads a playlist of HLS (RFC 8216; parts and hints of Low-Latency HLS are left out, their segments come a little later).
 * @param base URL that it came from
 * @param parent variables of the multivariant playlist that led to it
 * @throws PullError that says what is wrong
 */
export function parsePlaylist(text: string, base: URL, parent?: Variables): MediaPlaylist | MasterPlaylist {
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.trim());
  if (lines[0] !== '#EXTM3U') throw new PullError('the answer is no playlist of HLS');
  const isMaster = lines.some((line) => line.startsWith('#EXT-X-STREAM-INF:'));
  const variables = Variables.read(lines, base, parent);
  const reader = new LineReader(base, variables);
  return isMaster ? { ...readMaster(lines, reader), variables } : readMedia(lines, reader);
}

/** Reads what stands in lines, with their variables replaced. */
class LineReader {
  readonly #base: URL;
  readonly #variables: Variables;

  constructor(base: URL, variables: Variables) {
    this.#base = base;
    this.#variables = variables;
  }

  attributes(list: string): Attributes {
    return attributeList(list, (value) => this.#variables.expand(value));
  }

  url(text: string): URL {
    const url = parseLinkedUrl(this.#variables.expand(text), this.#base);
    if (url === undefined) throw new PullError('the playlist leads to something else than a URL of HTTP');
    return url;
  }
}

function readMaster(lines: readonly string[], reader: LineReader): Omit<MasterPlaylist, 'variables'> {
  const groups = audioGroups(lines, reader);
  const variants: Variant[] = [];
  for (const [at, line] of lines.entries()) {
    const value = after(line, '#EXT-X-STREAM-INF:');
    if (value === undefined) continue;
    const text = lines.slice(at + 1).find((next) => next !== '' && !next.startsWith('#'));
    if (text === undefined) throw new PullError('a variant of the playlist has no URL');
    const { BANDWIDTH, AUDIO, CODECS = '' } = reader.attributes(value);
    const uri = reader.url(text);
    const audio = AUDIO === undefined ? undefined : groups.get(AUDIO);
    variants.push({
      uri,
      bandwidth: Number(BANDWIDTH) || 0,
      codecs: CODECS.split(',').flatMap((codec) => codec.trim() || []),
      // a variant of audio alone is its own rendition
      audio: audio?.href === uri.href ? undefined : audio,
    });
    if (variants.length > MAX_VARIANTS) throw new PullError(`the playlist has more than ${MAX_VARIANTS} variants`);
  }
  return { kind: 'master', variants };
}

/** The rendition of each group that is taken (RFC 8216 section 4.3.4.1); undefined where it is in the variants themselves. */
function audioGroups(lines: readonly string[], reader: LineReader): ReadonlyMap<string, URL | undefined> {
  const groups = new Map<string, { readonly uri: URL | undefined; readonly isDefault: boolean }>();
  for (const line of lines) {
    const value = after(line, '#EXT-X-MEDIA:');
    if (value === undefined) continue;
    const { TYPE, URI, DEFAULT, ['GROUP-ID']: group } = reader.attributes(value);
    if (TYPE !== 'AUDIO' || group === undefined) continue;
    const known = groups.get(group);
    const isDefault = DEFAULT === 'YES';
    if (known === undefined || (isDefault && !known.isDefault))
      groups.set(group, { uri: URI === undefined ? undefined : reader.url(URI), isDefault });
  }
  return new Map(Array.from(groups, ([group, { uri }]) => [group, uri]));
}

function readMedia(lines: readonly string[], reader: LineReader): MediaPlaylist {
  const segments: Segment[] = [];
  let target: number | undefined;
  let sequence = 0;
  let discontinuity = 0;
  let isEnded = false;
  let key: SegmentKey | undefined;
  let map: Resource | undefined;
  // of the next segment
  let duration: number | undefined;
  let date: number | undefined;
  let isGap = false;
  let length: string | undefined;
  /** End of the last range of each resource: one without an offset follows it. */
  const ends = new Map<string, number>();
  for (const line of lines) {
    if (line === '') continue;
    const [tag = '', value = ''] = /^(#EXT[^:]*):?(.*)$/.exec(line)?.slice(1) ?? [];
    switch (tag) {
      case '#EXT-X-TARGETDURATION':
        target = seconds(value);
        break;
      case '#EXT-X-MEDIA-SEQUENCE':
        sequence = integer(tag, value);
        break;
      case '#EXT-X-DISCONTINUITY-SEQUENCE':
        discontinuity += integer(tag, value);
        break;
      case '#EXT-X-DISCONTINUITY':
        discontinuity++;
        break;
      case '#EXT-X-PROGRAM-DATE-TIME':
        date = dateOf(value);
        break;
      case '#EXTINF':
        duration = seconds(value.split(',')[0] ?? '');
        break;
      case '#EXT-X-GAP':
        isGap = true;
        break;
      case '#EXT-X-BYTERANGE':
        length = value;
        break;
      case '#EXT-X-KEY':
        key = readKey(reader.attributes(value), reader);
        break;
      case '#EXT-X-MAP':
        map = readMap(reader.attributes(value), reader);
        break;
      case '#EXT-X-ENDLIST':
        isEnded = true;
        break;
      default: {
        if (line.startsWith('#') || duration === undefined) break;
        const uri = reader.url(line);
        const range = length === undefined ? undefined : readRange(length, ends.get(uri.href) ?? 0);
        if (range !== undefined) ends.set(uri.href, range.offset + range.length);
        segments.push({ uri, range, sequence, duration, key, map, isGap, discontinuity, date });
        if (segments.length > MAX_SEGMENTS) throw new PullError(`the playlist has more than ${MAX_SEGMENTS} segments`);
        sequence++;
        date = date === undefined ? undefined : date + duration * 1000;
        [duration, isGap, length] = [undefined, false, undefined];
      }
    }
  }
  if (target === undefined) throw new PullError('the playlist has no EXT-X-TARGETDURATION');
  return { kind: 'media', target, segments, isEnded };
}

function readMap({ URI, BYTERANGE }: Attributes, reader: LineReader): Resource {
  if (URI === undefined) throw new PullError('EXT-X-MAP has no URI');
  return { uri: reader.url(URI), range: BYTERANGE === undefined ? undefined : readRange(BYTERANGE, 0) };
}

function readKey({ METHOD, URI, IV, KEYFORMAT }: Attributes, reader: LineReader): SegmentKey | undefined {
  if (METHOD === 'NONE') return undefined;
  if (METHOD !== 'AES-128' || (KEYFORMAT ?? 'identity') !== 'identity')
    throw new PullError(
      `its segments are encrypted by ${METHOD ?? 'an unknown method'}, which cannot be decrypted here`,
    );
  if (URI === undefined) throw new PullError('EXT-X-KEY has no URI');
  const digits = /^0x([\da-f]{1,32})$/i.exec(IV ?? '')?.[1];
  if (IV !== undefined && digits === undefined)
    throw new PullError('the IV of EXT-X-KEY is no hexadecimal number of 128 bits');
  return { uri: reader.url(URI), iv: digits === undefined ? undefined : Buffer.from(digits.padStart(32, '0'), 'hex') };
}

/** @param following offset of a range that names none */
function readRange(value: string, following: number): ByteRange {
  const [, length, offset] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value.trim()) ?? [];
  if (length === undefined) throw new PullError('a byte range of the playlist is malformed');
  return { length: Number(length), offset: offset === undefined ? following : Number(offset) };
}

function after(line: string, tag: string): string | undefined {
  return line.startsWith(tag) ? line.slice(tag.length) : undefined;
}

function dateOf(value: string): number | undefined {
  const date = Date.parse(value.trim());
  return Number.isNaN(date) ? undefined : date;
}

function seconds(value: string): number {
  const number = /^\s*\d{1,9}(?:\.\d*)?\s*$/.test(value) ? Number(value) : NaN;
  if (!(number <= MAX_DURATION))
    throw new PullError(`the playlist has a duration that is no number of at most ${MAX_DURATION} seconds`);
  return number;
}

function integer(tag: string, value: string): number {
  if (!/^\s*\d{1,15}\s*$/.test(value)) throw new PullError(`${tag.slice(1)} is no number`);
  return Number(value);
}
