import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import Type, { type Static } from 'typebox';
import type { MediaTrack, Track } from '../../core/track.ts';
import { IndexedTrack, NamedSubtitles, RECORDED } from '../journal.ts';

export const Upload = Type.Object({
  state: Type.Enum(['waiting', 'uploaded', 'failed']),
  bucket: Type.Optional(Type.String()),
  key: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
  /** Without quotes. */
  etag: Type.Optional(Type.String()),
});
export type Upload = Static<typeof Upload>;

const DumpFile = Type.Object({
  /** Absolute. */
  path: Type.String(),
  inode: Type.Number(),
  size: Type.Number(),
});
export type DumpFile = Static<typeof DumpFile>;

/** A WebVTT file beside a finished one. */
const IndexedSubtitles = Type.Object({
  ...NamedSubtitles.properties,
  /** Bytes. Older versions lack it. */
  size: Type.Optional(Type.Number()),
});
export type IndexedSubtitles = Static<typeof IndexedSubtitles>;

/** A finished file in the index, or an HLS dump. */
export const Entry = Type.Object({
  ...RECORDED,
  root: Type.String(),
  /** Paths below the root. */
  path: Type.String(),
  infoPath: Type.String(),
  /** Absolute, with links resolved, as in the info file. */
  filePath: Type.String(),
  container: Type.String(),
  tracks: Type.Optional(Type.Array(IndexedTrack)),
  /** WebVTT files beside it. */
  subtitles: Type.Optional(Type.Array(IndexedSubtitles)),
  /** Identifies the file under its name, with its size. */
  inode: Type.Number(),
  /** Bytes. */
  size: Type.Number(),
  /** Duration in milliseconds. */
  recordTime: Type.Number(),
  /** Milliseconds since the epoch. */
  finishTime: Type.Number(),
  /** Whether the file was not deleted after its upload. */
  isLocal: Type.Boolean(),
  upload: Type.Optional(Upload),
  /** Set for a dump: media playlists; master playlists and the info file. `root` is its folder, `path` the playlist to play. */
  dump: Type.Optional(Type.Object({ lists: Type.Array(DumpFile), others: Type.Array(DumpFile) })),
});
export type Entry = Static<typeof Entry>;

/** Bytes of a file and of what is beside it. */
export function bytesOf({ size, subtitles = [] }: Pick<Entry, 'size' | 'subtitles'>): number {
  return subtitles.reduce((sum, { size: own = 0 }) => sum + own, size);
}

/** Publisher module whose limits of age and size a file counts towards. */
export type Keeper = 'file' | 'llhls' | 'hls';

export function keeperOf({ dump, container }: Entry): Keeper {
  if (dump === undefined) return 'file';
  return container === 'MPEG-TS' ? 'hls' : 'llhls';
}

/** A finished file in a bucket. */
export const StoredFile = Type.Object({
  bucket: Type.String(),
  key: Type.String(),
  /** Address of the object, without credentials. */
  url: Type.String(),
  /** Without quotes; absent where it was not noted. */
  etag: Type.Optional(Type.String()),
  size: Type.Number(),
});
export type StoredFile = Static<typeof StoredFile>;

/** Where a file is that was deleted after its upload. */
export function storedOf({ isLocal, upload, size }: Entry): StoredFile | undefined {
  const { state, bucket, key, url, etag } = upload ?? {};
  if (isLocal || state !== 'uploaded' || bucket === undefined || key === undefined || url === undefined)
    return undefined;
  return { bucket, key, url, size, ...(etag !== undefined && { etag }) };
}

/** Id of a file: the UTC time of its start, by which ids sort, and the random part of its temporary name. */
const ID = /^\d{8}T\d{9}-[0-9a-f]{32}$/;
/** Ids, and times without a random part, which come before those of the same millisecond. */
export const CURSOR = '^\\d{8}T\\d{9}(-[0-9a-f]{32})?$';
export const ID_LENGTH = '20261129T140531123-'.length + 32;
const HOUR_LENGTH = '20261129T14'.length;
const TEMPORARY = 'tmp_';
/** Characters of a digest, of 6 bits each. */
const FORMAT_LENGTH = 16;
/** Years of four digits. */
const MAX_TIME = Date.UTC(10_000, 0) - 1;

export function isId(text: string): boolean {
  return ID.test(text);
}

/** @param temporary path, or name, of the file until it was finished */
export function idOf(startTime: number, temporary: string): string {
  return `${timeOf(startTime)}-${basename(temporary).slice(TEMPORARY.length)}`;
}

export function temporaryOf(id: string): string {
  return `${TEMPORARY}${id.slice(id.indexOf('-') + 1)}`;
}

/** UTC time as ids begin with it. @param time milliseconds since the epoch; times before it count as 0 */
export function timeOf(time: number): string {
  return new Date(Math.min(Math.max(time, 0), MAX_TIME)).toISOString().replaceAll(/[-:.Z]/g, '');
}

/** Hour of an id or a cursor. */
export function hourOf(id: string): string {
  return id.slice(0, HOUR_LENGTH);
}

/** Cursor after all ids of an hour. */
export function endOf(hour: string): string {
  return `${hour}9999999`;
}

/** Format of a track, with a digest instead of its configuration. */
export function indexedTrack(track: Track): IndexedTrack {
  const { type, codec } = track;
  if (type === 'data' || type === 'subtitle') return { type, codec };
  if (type === 'image') return { type, codec, width: track.width, height: track.height };
  const format = formatOf(track);
  if (type === 'audio') return { type, codec, samplerate: track.samplerate, channels: track.channels, format };
  return { type, codec, width: track.width, height: track.height, format };
}

function formatOf(track: MediaTrack): string {
  const { codec, timebase, config } = track;
  const { width, height, sar } = track.type === 'video' ? track : {};
  const { samplerate, channels } = track.type === 'audio' ? track : {};
  const facts = [
    codec,
    timebase.num,
    timebase.den,
    width,
    height,
    sar?.num,
    sar?.den,
    samplerate,
    channels,
    config === undefined,
  ];
  return createHash('sha256')
    .update(JSON.stringify(facts))
    .update(config ?? '')
    .digest('base64url')
    .slice(0, FORMAT_LENGTH);
}
