import { constants } from 'node:fs';
import { open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { unless } from '../../../lib/files/unless.ts';
import { randomId } from '../../../lib/random-id.ts';
import { appended } from './append-files.ts';
import { numberedName } from './numbered-name.ts';

/** Time and bytes after which another pack begins, so that those of the past can be removed. */
const PACK_MS = 60_000;
const PACK_BYTES = 64 * 1024 * 1024;
/** Characters of the random part of a file name. */
export const KEY_LENGTH = 8;
/** Longest segment or initialization that is read. */
export const MAX_MEDIA_BYTES = 512 * 1024 * 1024;
export const PACK_NAME = /^pack_(\d{1,15})_[A-Za-z0-9]{8}\.media$/;

/** Where the media of a segment is. */
export interface Place {
  /** File name. */
  readonly pack: string;
  /** Position in the file. */
  readonly at: number;
  readonly bytes: number;
}

/** Media of a segment. */
export interface Packed {
  /** File name of the segment. */
  readonly name: string;
  readonly msn: number;
  readonly body: readonly Buffer[];
}

/** Segments of a pack whose names have one shape, a column each, in the order in which they became known: as they were written, at the node that writes. */
interface Columns {
  readonly msn: number[];
  readonly at: number[];
  readonly bytes: number[];
}

interface Pack {
  readonly name: string;
  /** By the shape of their names. */
  readonly columns: Map<string, Columns>;
}

/**
 * Files with the media of a run: the segments of all media playlists of about a minute one after another, so that a segment needs no
 * file, and those of a moment no calls of their own.
 */
export class Packs {
  readonly #folder: string;
  /** Oldest first. */
  readonly #packs: Pack[] = [];
  readonly #byName = new Map<string, Pack>();
  /** The pack that is written. */
  #current: { readonly pack: Pack; bytes: number; readonly since: number } | undefined;

  /** @param folder absolute, and there when something is written */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Adds segments by one call. @returns where each is @throws errors of the system: none of them is there then */
  async append(segments: readonly Packed[]): Promise<Place[]> {
    const [first] = segments;
    if (first === undefined) return [];
    const isDue = (this.#current?.bytes ?? 0) >= PACK_BYTES || this.#age() >= PACK_MS;
    if (isDue) await this.end();
    this.#current ??= this.#begin(first.msn);
    const { pack, bytes: begin } = this.#current;
    try {
      await appended.appendAt(join(this.#folder, pack.name), begin, ...segments.flatMap(({ body }) => body));
    } catch (error) {
      // it may have some of the bytes now; the first error is the reason
      await this.end().catch(() => undefined);
      throw error;
    }
    let at = begin;
    const places = segments.map(({ name, body }) => {
      const place = { pack: pack.name, at, bytes: body.reduce((sum, { length }) => sum + length, 0) };
      at += place.bytes;
      this.add(name, place);
      return place;
    });
    this.#current.bytes = at;
    return places;
  }

  /** Adds a segment that is in a pack. */
  add(name: string, { pack: file, at, bytes }: Place): void {
    const { shape, msn } = numberedName(name) ?? {};
    if (shape === undefined || msn === undefined) return;
    const pack = this.#byName.get(file) ?? this.#put({ name: file, columns: new Map() });
    const columns = pack.columns.get(shape) ?? { msn: [], at: [], bytes: [] };
    pack.columns.set(shape, columns);
    columns.msn.push(msn);
    columns.at.push(at);
    columns.bytes.push(bytes);
  }

  /** Where a segment is; undefined where no pack has it. */
  find(name: string): Place | undefined {
    const found = this.#lookUp(name);
    if (found === undefined) return undefined;
    const { pack, columns, index } = found;
    return { pack: pack.name, at: columns.at[index] as number, bytes: columns.bytes[index] as number };
  }

  /** Knows a pack that no journal names, such as one that was begun before a crash: it goes when those of its time have gone. */
  adopt(name: string): void {
    if (this.#byName.has(name)) return;
    this.#put({ name, columns: new Map() });
    this.#packs.sort((one, other) => beginOf(one) - beginOf(other));
  }

  /** Forgets the packs that are not among the files of the folder. */
  keep(files: { has(name: string): boolean }): void {
    for (const pack of this.#packs.filter(({ name }) => !files.has(name))) this.#forget(pack);
  }

  /** @throws errors of the system, ELOOP for a link among them; ENODATA for a file that is cut off; Error for one that is no pack */
  async read({ pack, at, bytes }: Place): Promise<Buffer> {
    const path = join(this.#folder, pack);
    if (bytes > MAX_MEDIA_BYTES) throw new Error(`no file of this server: ${path}`);
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const media = Buffer.allocUnsafeSlow(bytes);
      for (let done = 0; done < bytes;) {
        const { bytesRead } = await file.read(media, done, bytes - done, at + done);
        if (bytesRead === 0) throw Object.assign(new Error(`it is cut off: ${path}`), { code: 'ENODATA' });
        done += bytesRead;
      }
      return media;
    } finally {
      await file.close();
    }
  }

  /**
   * Forgets a segment. The pack goes with its last one.
   * @returns whether a file was removed; undefined for a segment of no pack
   * @throws errors of the system
   */
  async remove(name: string): Promise<boolean | undefined> {
    const found = this.#lookUp(name);
    if (found === undefined) return undefined;
    const { pack, shape, columns, index } = found;
    for (const column of [columns.msn, columns.at, columns.bytes]) column.splice(index, 1);
    if (columns.msn.length === 0) pack.columns.delete(shape);
    return await this.#removeIfLeft(pack);
  }

  /** Removes the oldest packs that have only segments before a number. @returns the number of files that are gone @throws errors of the system */
  async removeBefore(msn: number): Promise<number> {
    let removed = 0;
    for (let [pack] = this.#packs; pack !== undefined && pack !== this.#current?.pack; [pack] = this.#packs) {
      if (rangeOf(pack).to > msn) break;
      pack.columns.clear();
      if (await this.#removeIfLeft(pack)) removed++;
    }
    return removed;
  }

  /** Numbers of the oldest pack, which is written no longer from then on; undefined for none. @throws errors of the system */
  async oldest(): Promise<{ readonly from: number; readonly to: number } | undefined> {
    if (this.#current !== undefined && this.#packs[0] === this.#current.pack) await this.end();
    const [pack] = this.#packs;
    return pack && rangeOf(pack);
  }

  /** Ends the pack that is written: another one begins with the next segment. @throws errors of the system */
  async end(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    if (current === undefined) return;
    await appended.close(join(this.#folder, current.pack.name));
    await this.#removeIfLeft(current.pack);
  }

  #begin(msn: number) {
    const pack: Pack = { name: `pack_${msn}_${randomId(KEY_LENGTH)}.media`, columns: new Map() };
    return { pack: this.#put(pack), bytes: 0, since: performance.now() };
  }

  #age(): number {
    return this.#current === undefined ? 0 : performance.now() - this.#current.since;
  }

  #put(pack: Pack): Pack {
    this.#packs.push(pack);
    this.#byName.set(pack.name, pack);
    return pack;
  }

  #lookUp(name: string) {
    const { shape, msn } = numberedName(name) ?? {};
    if (shape === undefined || msn === undefined) return undefined;
    for (let at = this.#packs.length - 1; at >= 0; at--) {
      const pack = this.#packs[at] as Pack;
      const columns = pack.columns.get(shape);
      const index = columns?.msn.indexOf(msn) ?? -1;
      if (columns !== undefined && index >= 0) return { pack, shape, columns, index };
    }
    return undefined;
  }

  async #removeIfLeft(pack: Pack): Promise<boolean> {
    if (pack.columns.size > 0 || pack === this.#current?.pack) return false;
    this.#forget(pack);
    const path = join(this.#folder, pack.name);
    return (await unlink(path).then(() => true, unless('ENOENT'))) ?? false;
  }

  #forget(pack: Pack): void {
    this.#packs.splice(this.#packs.indexOf(pack), 1);
    this.#byName.delete(pack.name);
  }
}

/** Number of the first segment of a pack, by its name. */
function beginOf({ name }: Pack): number {
  return Number(PACK_NAME.exec(name)?.[1] ?? 0);
}

/** Numbers of the segments of a pack, the last one not included. */
function rangeOf(pack: Pack): { readonly from: number; readonly to: number } {
  const all = [...pack.columns.values()];
  const begin = beginOf(pack);
  if (all.length === 0) return { from: begin, to: begin + 1 };
  return {
    from: Math.min(...all.map(({ msn }) => msn[0] ?? begin)),
    to: Math.max(...all.map(({ msn }) => (msn.at(-1) ?? begin) + 1)),
  };
}
