import type { MediaTrack } from '../../core/track.ts';
import { ascii, box, fitting, fullBox, u16, u32, zeros } from './box.ts';
import { sampleEntry } from './sample-entry.ts';

/** The one track of every file that `initSegment` starts. */
export const TRACK_ID = 1;

const UNITY_MATRIX = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);
const MOVIE_TIMESCALE = 1000;

/**
 * `ftyp` and `moov` of a fragmented file with one track (CMAF header, ISO/IEC 23000-19, 7.3.1).
 * Its timescale is the track's timebase.
 * @throws UnsupportedTrackError
 */
export function initSegment(track: MediaTrack): Buffer {
  const video = track.type === 'video';
  const size = video ? u32(fitting(track.width, 16) * 0x10000, fitting(track.height, 16) * 0x10000) : u32(0, 0);
  const tkhd = fullBox(
    'tkhd',
    0,
    7, // enabled, in movie, in preview
    u32(0, 0, TRACK_ID, 0, 0, 0, 0),
    u16(0, 0, video ? 0 : 0x100, 0),
    UNITY_MATRIX,
    size,
  );
  const hdlr = fullBox('hdlr', 0, 0, u32(0), ascii(video ? 'vide' : 'soun'), zeros(12), ascii('Kiln\0'));
  const mdhd = fullBox('mdhd', 0, 0, u32(0, 0, track.timebase.den, 0), u16(language(track.language), 0));
  const header = video ? fullBox('vmhd', 0, 1, zeros(8)) : fullBox('smhd', 0, 0, zeros(4));
  const dinf = box('dinf', fullBox('dref', 0, 0, u32(1), fullBox('url ', 0, 1)));
  const stbl = box(
    'stbl',
    fullBox('stsd', 0, 0, u32(1), sampleEntry(track)),
    fullBox('stts', 0, 0, u32(0)),
    fullBox('stsc', 0, 0, u32(0)),
    fullBox('stsz', 0, 0, u32(0, 0)),
    fullBox('stco', 0, 0, u32(0)),
  );
  const mdia = box('mdia', mdhd, hdlr, box('minf', header, dinf, stbl));
  const mvhd = fullBox(
    'mvhd',
    0,
    0,
    u32(0, 0, MOVIE_TIMESCALE, 0, 0x10000),
    u16(0x100, 0),
    zeros(8),
    UNITY_MATRIX,
    zeros(24),
    u32(TRACK_ID + 1),
  );
  const mvex = box('mvex', fullBox('trex', 0, 0, u32(TRACK_ID, 1, 0, 0, 0)));
  const ftyp = box('ftyp', ascii('iso6'), u32(0), ascii('iso6cmfcmp41'));
  return Buffer.concat([ftyp, box('moov', mvhd, box('trak', tkhd, mdia), mvex)]);
}

/** ISO 639-2 code, five bits a letter (ISO/IEC 14496-12, 8.4.2.3). */
function language(code: string | undefined): number {
  const letters = code !== undefined && /^[a-z]{3}$/.test(code) ? code : 'und';
  let packed = 0;
  for (const letter of letters) packed = packed * 32 + (letter.charCodeAt(0) - 0x60);
  return packed;
}
