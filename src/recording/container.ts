import { extname } from 'node:path';
import type { FileMuxer, Origin } from '../containers/file-muxer.ts';
import { Mp4File } from '../containers/fmp4/file.ts';
import { initSegment } from '../containers/fmp4/init.ts';
import { formOf } from '../containers/mpegts/elementary-form.ts';
import { Pids } from '../containers/mpegts/pids.ts';
import { WebmFile } from '../containers/webm/file.ts';
import { isWebm, trackEntry } from '../containers/webm/tracks.ts';
import { isMedia, type Codec, type MediaTrack, type SubtitleTrack, type Track } from '../core/track.ts';
import { TsFile } from './ts-file.ts';

/** Format of recorded files. */
export interface Container {
  readonly name: string;
  /** Longest wait for more output before writing: fragments come whole. */
  readonly waitMs: number;
  /** Whether a configuration change of a track needs no new file. */
  readonly followsChanges: boolean;
  /** Reason why a track cannot be carried; undefined when it can. */
  objection(track: Track): string | undefined;
  /** @param tracks tracks without an objection */
  open(tracks: readonly Track[], onFault: (fault: string) => void, origin: Origin | undefined): FileMuxer;
}

const MP4_CODECS: readonly Codec[] = ['H264', 'H265', 'AV1', 'AAC', 'MP3', 'OPUS', 'FLAC', 'WebVTT'];

const MP4: Container = {
  name: 'MP4',
  waitMs: 0,
  followsChanges: false,
  objection: (track) => refused('MP4', track, MP4_CODECS.includes(track.codec), () => initSegment(track as MediaTrack)),
  open: (tracks, _onFault, origin) => new Mp4File(tracks as readonly (MediaTrack | SubtitleTrack)[], origin),
};

const WEBM: Container = {
  name: 'WebM',
  waitMs: 0,
  followsChanges: false,
  objection: (track) => refused('WebM', track, isWebm(track.codec), () => trackEntry(track as MediaTrack, 1)),
  open: (tracks, _onFault, origin) => new WebmFile(tracks as readonly MediaTrack[], origin),
};

/** Same PIDs in all files of a recording, so that they can be concatenated. */
function ts(): Container {
  const pids = new Pids();
  return {
    name: 'MPEG-TS',
    waitMs: 500,
    followsChanges: true,
    objection: (track) => refused('MPEG-TS', track, isMedia(track) || track.type === 'data', () => formOf(track)),
    open: (tracks, onFault, origin) => new TsFile(tracks, { pids, onFault, origin }),
  };
}

/**
 * Container for the extension of a file name (docs/compatibility.md#recordings-pushes-dumps), by default MPEG-TS; for
 * the files of one recording.
 */
export function containerOf(path: string): Container {
  switch (extname(path).toLowerCase()) {
    case '.mp4':
      return MP4;
    case '.webm':
      return WEBM;
    default:
      return ts();
  }
}

/** @param describe throws for a track that is unusable after all, such as one without a configuration */
function refused(container: string, track: Track, isKnown: boolean, describe: () => unknown): string | undefined {
  if (!isKnown) return `${track.codec} cannot be carried in ${container}`;
  try {
    describe();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
