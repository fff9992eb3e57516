import { createHash } from 'node:crypto';
import { webVtt } from '../../packaging/subtitles/web-vtt.ts';
import { codecString } from '../../packaging/codec-string.ts';
import type { Application } from '../../core/application.ts';
import { kilnError } from '../../errors.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { SharedWork } from '../../lib/shared-work.ts';
import type { Logger } from '../../log/log.ts';
import { Text } from '../../publishers/hls/answer/text.ts';
import { SourceError } from '../byte-source.ts';
import { ClipError } from '../clip/error.ts';
import { readCues } from '../clip/cues.ts';
import type { ClipFile } from '../clip/joined.ts';
import type { RecordedMp4, RecordedTrack, ShownHow } from '../clip/recording.ts';
import { initOf, readSegment, segmentTracks, segmentsOf, type RecordedSegment } from '../clip/segments.ts';
import type { Clips } from '../clips.ts';
import type { Clip } from '../query.ts';
import type { RecordedFile } from '../recorded-files.ts';
import { JOIN_MS } from '../spans.ts';
import { masterPlaylist, mediaPlaylist, subtitlePlaylist, type ListedFile, type ListedVariant } from './playlists.ts';

/** Ticks of 90 kHz. Where WebVTT and media have the same times, hls.js 1.7 adds the time of the discontinuity to those of cues. */
const UNSEEN_TICK = 1;
/** Labels of subtitles in all recordings of a clip. */
const MAX_LABELS = 64;
/** Duration of segments, in seconds. */
const TARGET = 6;
/** Milliseconds by which segments of different recordings may overlap; files of one may seem to by JOIN_MS. */
const OVERLAP_MS = 500;
/** Rate of a busy segment beside the average: sizes of segments are not known. */
const PEAK_FACTOR = 1.5;
/** More than the fragments of a segment, which are numbered. */
const FRAGMENTS = 10_000;
/** Value of CODECS of MP3 (RFC 6381, section 3.3). */
const MP3 = 'mp4a.6B';
/** Clips that are kept for the requests that follow the master playlist. */
const MAX_KEPT = 32;
const FRESH_MS = 60_000;

/** A clip as playlists. */
interface Vod {
  readonly text: Text;
  readonly listed: readonly ListedFile[];
  readonly labels: readonly ShownHow[];
  readonly variant: ListedVariant;
  /** Seconds from the beginning of the playlist to that of the clip. */
  readonly start: number;
  /** By id. */
  readonly files: ReadonlyMap<string, PlayedFile>;
  /** Digest of the recordings that it is made of; undefined where one of them could not be read. */
  readonly made: string | undefined;
}

interface Kept {
  /** By the monotonic clock. */
  readonly since: number;
  readonly vod: SharedWork<Vod>;
  /** The clip as it was, or as the work before it found it. */
  last: Vod | undefined;
}

interface PlayedFile {
  readonly row: RecordedFile;
  /** Seconds from times of the recording to those of segments, which go on from file to file: ffmpeg loses frames otherwise. */
  readonly offset: number;
}

export interface VodsOptions {
  readonly clips: Clips;
  readonly log: Pick<Logger, 'error'>;
}

/** Clips of recordings as HLS: nothing is copied, and what is asked for is read from the recordings. */
export class Vods {
  readonly #options: VodsOptions;
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);

  constructor(options: VodsOptions) {
    this.#options = options;
  }

  /** @param base of the URIs of the media playlists @throws as Clips.find; ClipError, SourceError */
  async master(application: Application, stream: string, clip: Clip, base: string, signal: AbortSignal): Promise<Text> {
    const { variant, labels, start } = await this.#find(application, stream, clip, signal);
    return new Text(masterPlaylist(base, variant, labels, start));
  }

  /** @throws as `master` */
  async media(application: Application, stream: string, clip: Clip, signal: AbortSignal): Promise<Text> {
    return (await this.#find(application, stream, clip, signal)).text;
  }

  /** @param label number of the label @throws as `master`; fileNotFound */
  async subtitles(
    application: Application,
    stream: string,
    clip: Clip,
    label: number,
    signal: AbortSignal,
  ): Promise<Text> {
    const { listed, labels, start } = await this.#find(application, stream, clip, signal);
    if (labels[label] === undefined) throw kilnError('fileNotFound');
    return new Text(subtitlePlaylist(listed, start, label));
  }

  /** Writes a segment of subtitles: the cues of the time of a segment of media. @throws as `init` */
  async cues(
    application: Application,
    stream: string,
    clip: Clip,
    { id, number, label }: { readonly id: string; readonly number: number; readonly label: number },
    signal: AbortSignal,
  ): Promise<Buffer> {
    const wanted = (await this.#find(application, stream, clip, signal)).labels[label];
    const { row, offset } = await this.#file(application, stream, clip, id, signal);
    const file = await this.#options.clips.reopen(application, row, id, signal);
    const segment = segmentsOf(file.recording, TARGET)[number];
    if (wanted === undefined || segment === undefined || !isIn(clip, file, segment)) throw kilnError('fileNotFound');
    const { tracks, begin: first } = file.recording;
    const begin = first + segment.start;
    const track = tracks.find(({ shown }) => shown?.label === wanted.label);
    const cues = track && (await readCues(file.recording, track, begin, begin + segment.duration, signal));
    const by = offset * 1000;
    const placed = cues?.map((cue) => ({ ...cue, start: cue.start + by, end: cue.end + by })) ?? [];
    return webVtt((begin + offset) * 1000, placed, UNSEEN_TICK);
  }

  /** Writes the initialization segment of a recording of the clip. @throws as `master`; fileNotFound */
  async init(application: Application, stream: string, clip: Clip, id: string, signal: AbortSignal): Promise<Buffer> {
    const { row } = await this.#file(application, stream, clip, id, signal);
    return initOf((await this.#options.clips.reopen(application, row, id, signal)).recording);
  }

  /** Writes a segment of a recording of the clip. @throws as `init` */
  async segment(
    application: Application,
    stream: string,
    clip: Clip,
    { id, number }: { readonly id: string; readonly number: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<Buffer>> {
    const { row, offset } = await this.#file(application, stream, clip, id, signal);
    const file = await this.#options.clips.reopen(application, row, id, signal);
    const segment = segmentsOf(file.recording, TARGET)[number];
    if (segment === undefined || !isIn(clip, file, segment)) throw kilnError('fileNotFound');
    return readSegment(moved(file.recording, offset), segment, number * FRAGMENTS + 1, signal);
  }

  async #file(
    application: Application,
    stream: string,
    clip: Clip,
    id: string,
    signal: AbortSignal,
  ): Promise<PlayedFile> {
    const file = (await this.#find(application, stream, clip, signal)).files.get(id);
    if (file === undefined) throw kilnError('fileNotFound');
    return file;
  }

  async #find(application: Application, stream: string, clip: Clip, signal: AbortSignal): Promise<Vod> {
    const key = `${application.internalName}/${stream}/${clip.start}-${clip.end}`;
    const known = this.#kept.get(key);
    const now = performance.now();
    const isKnown = known !== undefined && now - known.since < FRESH_MS && !known.vod.isLeft;
    const last = known?.last;
    const kept: Kept = isKnown
      ? known
      : { since: now, last, vod: new SharedWork((stop) => this.#list(application, stream, clip, last, stop)) };
    if (!isKnown) this.#kept.set(key, kept);
    const { vod } = kept;
    try {
      return (kept.last = await vod.join(signal));
    } catch (error) {
      // those that wait for it learn why, and later ones try again
      if ((vod.isDone || vod.isLeft) && this.#kept.get(key)?.vod === vod) this.#kept.delete(key);
      throw error;
    }
  }

  /** @param before what the clip was: it still is if its recordings are the same, which are not opened again */
  async #list(
    application: Application,
    stream: string,
    clip: Clip,
    before: Vod | undefined,
    stop: AbortSignal,
  ): Promise<Vod> {
    const rows = await this.#options.clips.find(application, stream, clip);
    const made = digestOf(rows);
    if (before?.made === made) return before;
    const listed: ListedFile[] = [];
    const files = new Map<string, PlayedFile>();
    const labels = new Map<string, ShownHow>();
    let played: number | undefined;
    const codecs = new Set<string>();
    let size = { width: 0, height: 0 };
    let [bytes, milliseconds, most] = [0, 0, 0];
    let end = -Infinity;
    let recordId: string | undefined;
    const { opened, failure } = await this.#open(application, rows, clip, stop);
    for (const { row, file } of opened) {
      const { recording, id } = file;
      const overlap = row.recordId === recordId ? JOIN_MS : OVERLAP_MS;
      const segments = [...segmentsOf(recording, TARGET).entries()].filter(
        ([, one]) => isIn(clip, file, one) && timeOf(file, one) >= end - overlap,
      );
      const [first] = segments;
      const last = segments.at(-1);
      if (first === undefined || last === undefined) continue;
      // dates do not go back
      const begin = Math.max(end, timeOf(file, first[1]));
      end = timeOf(file, last[1]) + last[1].duration * 1000;
      ({ recordId } = row);
      for (const { description } of segmentTracks(recording)) {
        if (description.type === 'subtitle') continue;
        codecs.add(description.codec === 'MP3' ? MP3 : codecString(description));
        if (description.type === 'video' && size.width === 0) size = description;
      }
      for (const { shown } of recording.tracks)
        if (shown !== undefined && !labels.has(shown.label) && labels.size < MAX_LABELS) labels.set(shown.label, shown);
      bytes += row.size;
      milliseconds += row.recordTime;
      most = Math.max(most, (row.size * 8000) / row.recordTime);
      const offset = played === undefined ? 0 : played - first[1].start;
      played = offset + last[1].start + last[1].duration;
      files.set(id, { row, offset });
      listed.push({
        init: `${id}.mp4`,
        startTime: begin,
        segments: segments.map(([number, { duration }]) => ({ uri: `${id}_${number}.m4s`, duration })),
      });
    }
    const [beginning] = listed;
    if (beginning === undefined) throw failure ?? kilnError('playbackNothing');
    const start = Math.max(0, (clip.start - beginning.startTime) / 1000);
    const average = (bytes * 8000) / milliseconds;
    const variant = { codecs, average, peak: most * PEAK_FACTOR, width: size.width, height: size.height };
    const text = new Text(mediaPlaylist(listed, start));
    const known = failure === undefined ? made : undefined;
    return { text, listed, labels: [...labels.values()], variant, start, files, made: known };
  }

  /** Opens the recordings of a clip. @returns also why the first one that cannot be read is missing */
  async #open(application: Application, rows: readonly RecordedFile[], clip: Clip, stop: AbortSignal) {
    const { clips, log } = this.#options;
    const opened: { readonly row: RecordedFile; readonly file: ClipFile }[] = [];
    let failure: Error | undefined;
    for (const row of rows) {
      try {
        for (const file of await clips.open(application, row, clip, stop)) opened.push({ row, file });
      } catch (error) {
        if (!(error instanceof ClipError || error instanceof SourceError)) throw error;
        failure ??= error;
        log.error({ reason: error.message }, 'a recording cannot be read for a viewer');
      }
    }
    return { opened, failure };
  }
}

function digestOf(rows: readonly RecordedFile[]): string {
  return createHash('sha256').update(JSON.stringify(rows)).digest('base64url');
}

/** Milliseconds since the epoch. */
function timeOf({ startTime }: ClipFile, { start }: RecordedSegment): number {
  return startTime + start * 1000;
}

function isIn(clip: Clip, file: ClipFile, segment: RecordedSegment): boolean {
  const time = timeOf(file, segment);
  return time < clip.end && time + segment.duration * 1000 > clip.start;
}

/** A recording whose media is later. @param by seconds */
function moved(recording: RecordedMp4, by: number): RecordedMp4 {
  const tracks = recording.tracks.map((track) => ({ ...track, shift: track.shift + Math.round(by * track.timescale) }));
  return { ...recording, tracks, leader: tracks[recording.tracks.indexOf(recording.leader)] as RecordedTrack };
}
