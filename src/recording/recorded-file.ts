import { open, stat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import type { FileMuxer, Origin } from '../containers/file-muxer.ts';
import { placedCue } from '../core/cue-store.ts';
import type { Packet } from '../core/packet.ts';
import { MILLISECONDS, rescale } from '../core/timebase.ts';
import type { SubtitleTrack, Track } from '../core/track.ts';
import type { Container } from './container.ts';
import type { Disk } from '../core/disks.ts';
import { FileWriter } from './file-writer.ts';
import { finishFile, valuesOf } from './finish.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { indexedTrack } from './finished/entry.ts';
import { mendFile } from './mend.ts';
import { freeName, placeBelow, temporaryBeside } from '../lib/files/paths.ts';
import { partsOf } from './settings.ts';
import { SubtitleFile } from './subtitle-file.ts';
import { dropSubtitles, labelOf, mendSubtitles, temporarySubtitles } from './subtitles-beside.ts';

export interface RecordedFileOptions {
  readonly container: Container;
  readonly tracks: readonly Track[];
  /** Tracks that have a WebVTT file beside the file, and are in it where the container carries them. */
  readonly subtitles: readonly SubtitleTrack[];
  /** Track that determines the length of the file. */
  readonly leader: Track;
  readonly origin: Origin | undefined;
  readonly disk: Disk;
  readonly journal: Journal;
  readonly entry: Omit<JournalEntry, 'temporary'>;
  readonly onFault: (fault: string) => void;
  readonly onInfoFailure: (error: Error) => void;
  /** Called once, when nothing more can be written. */
  readonly onFailure: (error: Error) => void;
}

/** Paths of a file and its info file. */
export interface Places {
  readonly file: string;
  readonly info: string;
}

/** One file of a recording, from its first packet until it has its name. */
export class RecordedFile {
  readonly #options: RecordedFileOptions;
  readonly #muxer: FileMuxer;
  readonly #writer: FileWriter;
  readonly #tracks: Map<number, Track>;
  readonly #parts: ReturnType<typeof partsOf>;
  #places: Places;
  #entry: JournalEntry | undefined;
  #begin: number | undefined;
  /** Decode time of the newest frame, and its end. */
  #newest: number | undefined;
  #last = 0;
  /** By track id. */
  readonly #subtitles: ReadonlyMap<number, SubtitleFile>;
  readonly #opening: Promise<FileHandle>;
  /** Times in milliseconds at which the first frame of the leader is shown, and the last one ends. */
  #shownFrom: number | undefined;
  #shownUntil = -Infinity;

  /** @throws PathError */
  constructor(options: RecordedFileOptions) {
    const { container, tracks, subtitles, origin, disk, entry, onFault, onFailure } = options;
    this.#parts = partsOf(entry, valuesOf({ ...entry, temporary: '' }, entry.startTime));
    this.#places = { file: join(entry.root, ...this.#parts.file), info: join(entry.root, ...this.#parts.info) };
    this.#options = options;
    this.#tracks = new Map(tracks.map((track) => [track.id, track]));
    const carried = subtitles.filter((track) => container.objection(track) === undefined);
    this.#muxer = container.open([...tracks, ...carried], onFault, origin);
    this.#opening = disk.take(() => this.#open());
    this.#writer = new FileWriter(this.#opening, disk, { waitMs: container.waitMs, onFailure });
    this.#subtitles = new Map(
      subtitles.map(({ id }, index) => [
        id,
        new SubtitleFile({ open: () => this.#openSubtitles(index), disk, onFailure }),
      ]),
    );
  }

  get sequence(): number {
    return this.#options.entry.sequence;
  }

  get startTime(): number {
    return this.#options.entry.startTime;
  }

  /** Paths that the files get if the recording ends now. */
  get places(): Places {
    return this.#places;
  }

  /** Bytes on the disk, or waiting to be written. */
  get bytes(): number {
    return this.#writer.bytes;
  }

  /** Milliseconds of media. */
  get time(): number {
    return this.elapsed(this.#last);
  }

  get origin(): Origin | undefined {
    return this.#muxer.origin;
  }

  get full(): boolean {
    return this.#muxer.full;
  }

  /** Milliseconds from the beginning of the file to a time of its leading track. */
  elapsed(dts: number): number {
    const { timebase } = this.#options.leader;
    return this.#begin === undefined ? 0 : Math.max(0, rescale(dts - this.#begin, timebase, MILLISECONDS));
  }

  /** Track of that id when it was added to the file. */
  track(id: number): Track | undefined {
    return this.#tracks.get(id);
  }

  /** Adds the data tracks among these, which the file does not depend on. */
  addEvents(tracks: readonly Track[]): void {
    for (const track of tracks) if (track.type === 'data') this.#tracks.set(track.id, track);
  }

  write(packet: Packet): void {
    this.#tracks.set(packet.track.id, packet.track);
    if (packet.track.id === this.#options.leader.id) {
      const before = this.#newest ?? packet.dts;
      this.#begin ??= packet.dts;
      this.#newest = packet.dts;
      // a frame of unknown duration lasts as long as the one before
      this.#last = packet.dts + (packet.duration || Math.max(0, packet.dts - before));
    }
    this.#writer.append(this.#muxer.write(packet));
    if (packet.track.id === this.#options.leader.id) this.#showUntil(packet);
  }

  /** Writes a cue. What of it is before the first frame is left out. */
  writeCue(packet: Packet): void {
    const cue = placedCue(packet);
    const file = this.#subtitles.get(packet.track.id);
    if (cue === undefined || file === undefined) return;
    this.#muxer.write(packet);
    const start = Math.max(cue.start, this.#shownFrom ?? cue.start);
    if (start < cue.end && !file.add({ ...cue, start })) this.#options.onFault('too many subtitles at a time');
  }

  /**
   * Completes the file and gives it its name, even if the disk has failed.
   * @returns paths of the file and its info file
   * @throws errors that prevented its completion; it has its name then, if possible
   */
  async end(lastSequence: boolean) {
    // media may come faster than it plays
    const finishTime = Math.max(Date.now(), Math.ceil(this.startTime + this.time));
    const { tail, patches } = this.#muxer.end();
    this.#writer.append(tail);
    let failure: unknown;
    await this.#writer.end(patches).catch((error: unknown) => (failure = error));
    for (const subtitles of this.#subtitles.values())
      await subtitles.end(this.#zero ?? 0, this.#shownUntil).catch((error: unknown) => (failure ??= error));
    const entry = this.#entry;
    if (entry === undefined) throw failure;
    const { disk, journal, onInfoFailure } = this.#options;
    if (failure !== undefined) await mendSubtitles(entry);
    const recordBytes =
      failure === undefined ? this.bytes : await mendFile(entry.temporary, extname(entry.file).toLowerCase());
    if (recordBytes === 0) {
      await dropSubtitles(entry);
      await unlink(entry.temporary);
      await journal.remove(entry);
      throw failure ?? new Error('nothing of the stream can be recorded');
    }
    const finished = { recordBytes, recordTime: this.time, lastSequence, finishTime };
    const places = await disk.take(() => finishFile(entry, finished, journal, onInfoFailure));
    if (failure !== undefined) throw failure;
    return { ...places, finishTime };
  }

  /** Time that is 0 in the file, in milliseconds of the source; undefined as long as it may change. */
  get #zero(): number | undefined {
    const { origin } = this.#muxer;
    return origin && this.bytes > 0 ? rescale(origin.time, origin.timebase, MILLISECONDS) : undefined;
  }

  /** Writes the subtitles of the time up to a frame of the leader. */
  #showUntil({ pts, track: { timebase } }: Packet): void {
    if (this.#subtitles.size === 0) return;
    const duration = this.#last - (this.#newest ?? this.#last);
    this.#shownFrom ??= rescale(pts, timebase, MILLISECONDS);
    this.#shownUntil = Math.max(this.#shownUntil, rescale(pts + duration, timebase, MILLISECONDS));
    const zero = this.#zero;
    if (zero === undefined) return;
    for (const subtitles of this.#subtitles.values()) subtitles.write(zero, this.#shownUntil);
  }

  async #openSubtitles(index: number): Promise<FileHandle> {
    await this.#opening;
    const { temporary = '' } = this.#entry ?? {};
    return await this.#options.disk.take(() => open(temporarySubtitles(temporary, index), 'wx'));
  }

  async #open() {
    const { entry, journal, tracks, subtitles } = this.#options;
    const place = await placeBelow(entry.root, this.#parts.file);
    const temporary = temporaryBeside(place);
    const { ino: folder } = await stat(dirname(temporary));
    const labels = subtitles.map(labelOf);
    const hasLabels = labels.length > 0;
    const known = { ...entry, temporary, folder, tracks: tracks.map(indexedTrack), ...(hasLabels && { labels }) };
    await journal.put(known);
    try {
      const handle = await open(temporary, 'wx');
      // a failure to place the info file is reported when that is written
      const info = await placeBelow(entry.root, this.#parts.info, false).catch(() => this.#places.info);
      this.#places = { file: await freeName(place), info };
      this.#entry = known;
      return handle;
    } catch (error) {
      await journal.remove({ temporary });
      throw error;
    }
  }
}
