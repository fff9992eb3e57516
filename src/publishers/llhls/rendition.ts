import { ChunklistBuilder, type ChunklistForm, type ChunklistOptions, type FileNames, type RenditionReport } from '../../packaging/playlist.ts';
import type { TrackPackager } from '../../packaging/track-packager.ts';
import { Text } from './text.ts';
import { Waiters } from './waiters.ts';

/** What a stream tells its renditions when a chunklist is built. */
export interface ChunklistContext {
  /** Grows with every change in any rendition of the stream. */
  readonly edition: number;
  readonly options: Omit<ChunklistOptions, 'partTarget'>;
  reports(except: Rendition): RenditionReport[];
}

/** How many segments, and with short parts how many parts, a player may ask ahead (RFC 8216bis 6.2.5.2). */
const MAX_SEGMENTS_AHEAD = 2;
const PARTS_AHEAD_SECONDS = 3;
const MIN_PARTS_AHEAD = 3;

/** One track as players see it: its chunklist in all forms, and who waits for the next one. */
export class Rendition {
  readonly packager: TrackPackager;
  readonly names: FileNames;
  readonly waiters = new Waiters();
  /** When the newest part came, in milliseconds since the epoch. */
  newestAt = 0;
  readonly #builder: ChunklistBuilder;
  #texts: Partial<Record<ChunklistForm, Text>> = {};
  #edition = -1;

  constructor(packager: TrackPackager, names: FileNames) {
    this.packager = packager;
    this.names = names;
    this.#builder = new ChunklistBuilder(names);
  }

  /** Whether there is a chunklist. */
  get begun(): boolean {
    return this.packager.window.last !== undefined;
  }

  /** Whether players can start with it: a part is there. */
  get started(): boolean {
    const { listed, open } = this.packager.window;
    return (open !== undefined && open.parts.length > 0) || listed.some(({ gap }) => !gap);
  }

  /** The chunklist as of now; built once for all who ask before the next change. */
  chunklist(form: ChunklistForm, context: ChunklistContext): Text {
    if (this.#edition !== context.edition) {
      this.#texts = {};
      this.#edition = context.edition;
    }
    const { window, partTarget } = this.packager;
    return (this.#texts[form] ??= new Text(
      this.#builder.build(window, form, { ...context.options, partTarget: ceiling(partTarget) }, context.reports(this)),
    ));
  }

  /** Whether the chunklist has a complete segment, or with `part` that part, or what came after. */
  has(msn: number, part?: number): boolean {
    const { listed, open } = this.packager.window;
    const newest = listed.at(-1);
    if (newest !== undefined && msn <= newest.msn) {
      // beyond a segment's final part, part 0 of the next segment is meant (RFC 8216bis 6.2.5.2)
      if (part !== undefined && msn === newest.msn && !newest.gap && part >= newest.parts.length) return this.has(msn + 1, 0);
      return true;
    }
    return part !== undefined && open?.msn === msn && part < open.parts.length;
  }

  /** Whether a player asks for something further ahead than it has reason to. */
  tooFar(msn: number, part: number | undefined): boolean {
    const { partTarget, window: { last } } = this.packager;
    const msnNow = last?.msn ?? this.packager.msn;
    if (msn > msnNow + MAX_SEGMENTS_AHEAD) return true;
    if (part === undefined || msn < msnNow) return false;
    const ahead = Math.max(MIN_PARTS_AHEAD, partTarget < 1 ? Math.ceil(PARTS_AHEAD_SECONDS / partTarget) : 0);
    return part > (msn === msnNow && last !== undefined ? last.part : 0) + ahead;
  }

  report(): RenditionReport | undefined {
    const last = this.packager.window.last;
    return last === undefined ? undefined : { uri: this.names.chunklist(), ...last };
  }

  close(): void {
    this.waiters.close();
  }
}

/** Seconds, up to the next millisecond: playlists must not promise less than there is. */
export function ceiling(seconds: number): number {
  return Math.ceil(seconds * 1000 - 1e-6) / 1000;
}
