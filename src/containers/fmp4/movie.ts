import { shownSize, type MediaTrack, type SubtitleTrack } from '../../core/track.ts';
import { ascii, box, fitting, fullBox, u16, u32, u64, zeros } from './box.ts';
import { threeLetters } from '../language.ts';
import { sampleEntry } from './sample-entry.ts';
import { roleOf } from './web-vtt.ts';

const UNITY_MATRIX = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);
const MAX_U32 = 0xffff_ffff;
/** Flags of `tkhd`: in movie, in preview; and enabled (ISO/IEC 14496-12, 8.3.2). */
const USED = 6;
const ENABLED = 1;
/** Players show one track of a group at a time. */
const SUBTITLE_GROUP = 1;

/** Handler types and media headers of tracks (ISO/IEC 14496-12, 12; 14496-30, 7.2). */
const HANDLERS = { video: 'vide', audio: 'soun', subtitle: 'text' } as const;
const MEDIA_HEADERS = {
  video: fullBox('vmhd', 0, 1, zeros(8)),
  audio: fullBox('smhd', 0, 0, zeros(4)),
  subtitle: fullBox('nmhd', 0, 0),
} as const;

export interface TrackPlace {
  readonly id: number;
  /** In ticks of the movie, including edits. */
  readonly duration: number;
  /** In ticks of the track. */
  readonly mediaDuration: number;
  /** Box `edts`. */
  readonly edits?: Buffer;
  /** Boxes of `stbl` after the sample description. */
  readonly tables: readonly Buffer[];
  /** Sample entry; undefined for that of a track in clear. */
  readonly entry?: Buffer | undefined;
}

/** `mvhd` (ISO/IEC 14496-12, 8.2.2). The duration is in ticks of the timescale. */
export function movieHeader(timescale: number, duration: number, nextTrackId: number): Buffer {
  return timedBox(
    'mvhd',
    0,
    u32(timescale),
    duration,
    u32(0x10000),
    u16(0x100, 0),
    zeros(8),
    UNITY_MATRIX,
    zeros(24),
    u32(nextTrackId),
  );
}

/**
 * `trak` of a track, with its timebase as timescale (ISO/IEC 14496-12, 8.3).
 * @throws UnsupportedTrackError
 */
export function trackBox(
  track: MediaTrack | SubtitleTrack,
  { id, duration, mediaDuration, edits, tables, entry }: TrackPlace,
): Buffer {
  const video = track.type === 'video';
  const subtitle = track.type === 'subtitle' ? track : undefined;
  const shown = video ? shownSize(track) : { width: 0, height: 0 };
  const tkhd = timedBox(
    'tkhd',
    subtitle?.isDefault === false ? USED : USED | ENABLED,
    u32(id, 0),
    duration,
    u32(0, 0),
    u16(0, subtitle === undefined ? 0 : SUBTITLE_GROUP, track.type === 'audio' ? 0x100 : 0, 0),
    UNITY_MATRIX,
    u32(fixed(shown.width), fixed(shown.height)),
  );
  const name = Buffer.from(`${subtitle?.publicName ?? 'Kiln'}\0`);
  const hdlr = fullBox('hdlr', 0, 0, u32(0), ascii(HANDLERS[track.type]), zeros(12), name);
  const mdhd = timedBox('mdhd', 0, u32(track.timebase.den), mediaDuration, u16(language(track.language), 0));
  const tag = subtitle?.language === undefined ? [] : [fullBox('elng', 0, 0, Buffer.from(`${subtitle.language}\0`))];
  const header = MEDIA_HEADERS[track.type];
  const dinf = box('dinf', fullBox('dref', 0, 0, u32(1), fullBox('url ', 0, 1)));
  const stbl = box('stbl', fullBox('stsd', 0, 0, u32(1), entry ?? sampleEntry(track)), ...tables);
  const mdia = box('mdia', mdhd, ...tag, hdlr, box('minf', header, dinf, stbl));
  const role = subtitle === undefined ? [] : [roleOf(subtitle)];
  return box('trak', tkhd, ...(edits === undefined ? [] : [edits]), mdia, ...role);
}

/** A fixed-point 16.16 number (ISO/IEC 14496-12). */
function fixed(value: number): number {
  return fitting(Math.round(value * 0x10000), 32);
}

/** Builds a box with creation and modification times, which are 0 (unknown), and a duration that may need 64 bits. */
export function timedBox(type: string, flags: number, before: Buffer, duration: number, ...rest: Buffer[]): Buffer {
  return duration > MAX_U32
    ? fullBox(type, 1, flags, zeros(16), before, u64(duration), ...rest)
    : fullBox(type, 0, flags, zeros(8), before, u32(duration), ...rest);
}

/** ISO 639-2 code, five bits a letter (ISO/IEC 14496-12, 8.4.2.3). */
function language(code: string | undefined): number {
  const letters = (code === undefined ? undefined : threeLetters(code)) ?? 'und';
  let packed = 0;
  for (const letter of letters) packed = packed * 32 + (letter.charCodeAt(0) - 0x60);
  return packed;
}
