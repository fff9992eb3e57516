import { open, stat, unlink } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import type { FileMuxer, Origin } from '../containers/file-muxer.ts';
import type { Packet } from '../core/packet.ts';
import { MILLISECONDS, rescale } from '../core/timebase.ts';
import type { Track } from '../core/track.ts';
import type { Container } from './container.ts';
import type { Disk } from '../core/disks.ts';
import { FileWriter } from './file-writer.ts';
import { finishFile, valuesOf } from './finish.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { indexedTrack } from './finished/entry.ts';
import { mendFile } from './mend.ts';
import { freeName, placeBelow, temporaryBeside } from '../lib/files/paths.ts';
import { partsOf } from './settings.ts';

export interface RecordedFileOptions {
  readonly container: Container;
  readonly tracks: readonly Track[];
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

  /** @throws PathError */
  constructor(options: RecordedFileOptions) {
    const { container, tracks, origin, disk, entry, onFault, onFailure } = options;
    this.#parts = partsOf(entry, valuesOf({ ...entry, temporary: '' }, entry.startTime));
    this.#places = { file: join(entry.root, ...this.#parts.file), info: join(entry.root, ...this.#parts.info) };
    this.#options = options;
    this.#tracks = new Map(tracks.map((track) => [track.id, track]));
    this.#muxer = container.open(tracks, onFault, origin);
    this.#writer = new FileWriter(
      disk.take(() => this.#open()),
      disk,
      { waitMs: container.waitMs, onFailure },
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
    const entry = this.#entry;
    if (entry === undefined) throw failure;
    const { journal, onInfoFailure } = this.#options;
    const recordBytes =
      failure === undefined ? this.bytes : await mendFile(entry.temporary, extname(entry.file).toLowerCase());
    if (recordBytes === 0) {
      await unlink(entry.temporary);
      await journal.remove(entry);
      throw failure ?? new Error('nothing of the stream can be recorded');
    }
    const finished = { recordBytes, recordTime: this.time, lastSequence, finishTime };
    const places = await finishFile(entry, finished, journal, onInfoFailure);
    if (failure !== undefined) throw failure;
    return { ...places, finishTime };
  }

  async #open() {
    const { entry, journal, tracks } = this.#options;
    const place = await placeBelow(entry.root, this.#parts.file);
    const temporary = temporaryBeside(place);
    const { ino: folder } = await stat(dirname(temporary));
    const known = { ...entry, temporary, folder, tracks: tracks.map(indexedTrack) };
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
