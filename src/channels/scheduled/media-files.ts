import type { FileHandle } from 'node:fs/promises';
import { MediaProbePool } from './media-probe-pool.ts';
import { MediaBusyError, MediaError } from './media-error.ts';
import type { MediaInfo } from './media-info.ts';
import { measureMedia, MEASURE_MS, probeMedia, PROBE_MS } from './media-probe.ts';
import { openBelow } from './media-root.ts';
import { readFileUrl } from './media-url.ts';

const OPEN_MS = 5000;
/** A program that exceeds its time is killed; it counts as hanging only if that does not end it. */
const KILL_MS = 2000;
/** Files that one measurement examines at a time. */
const AHEAD_AT_ONCE = 4;
/** Files and URLs remembered; the oldest are dropped first. */
const MAX_REMEMBERED = 10_000;

/** An open media file, which its reader closes. */
export interface OpenMedia {
  readonly handle: FileHandle;
  readonly info: MediaInfo;
}

interface Described extends OpenMedia {
  /** Identity of the file when it was opened. */
  readonly identity: string;
}

type OpenFile = Pick<Described, 'handle' | 'identity'>;

/** Facts about the file of a URL when it was last opened; `length` in milliseconds. */
interface Known {
  readonly identity: string;
  readonly length: number | undefined;
}

/** Places for examining files for one purpose. */
class Places {
  readonly openings: MediaProbePool;
  readonly probes: MediaProbePool;
  /** Running probes, by identity. */
  readonly probing = new Map<string, Promise<MediaInfo>>();

  constructor(openings: number, probes: number) {
    this.openings = new MediaProbePool({ atOnce: openings, withinMs: OPEN_MS });
    this.probes = new MediaProbePool({ atOnce: probes, withinMs: PROBE_MS + KILL_MS });
  }
}

/**
 * Media files below one folder with their cached descriptions; a changed file is examined again. An item that is
 * about to play does not wait for files that are examined beforehand.
 */
export class MediaFiles {
  readonly root: string;
  readonly #ffmpeg: string;
  readonly #playing = new Places(2, 4);
  readonly #ahead = new Places(1, 2);
  readonly #measures = new MediaProbePool({ atOnce: 2, withinMs: MEASURE_MS + KILL_MS });
  readonly #infos = new Map<string, MediaInfo>();
  readonly #measured = new Map<string, number | undefined>();
  readonly #measuring = new Map<string, Promise<void>>();
  readonly #known = new Map<string, Known>();
  readonly #listeners = new Set<(url: string) => void>();

  constructor(root: string, ffmpeg: string) {
    this.root = root;
    this.#ffmpeg = ffmpeg;
  }

  /**
   * Length in milliseconds of the file that a URL last named; undefined: not known. A file without a declared length
   * is measured once it was opened or measured, or when it was played to its end.
   */
  readonly lengthOf = (url: string): number | undefined => this.#known.get(url)?.length;

  /** Subscribes to URLs whose lengths become known or change. @returns undo */
  onLength(listener: (url: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Opens and probes a file below the folder for an item that is about to play. @throws MediaError */
  async open(url: string): Promise<OpenMedia> {
    const { handle, info } = await this.#describe(url, this.#playing);
    // measurements report a failure; the player finds the end itself
    if (this.#lacksLength(url)) this.#measure(url).catch(() => {});
    return { handle, info };
  }

  /**
   * Records the length of a file that was played to its end, if it is not known otherwise. @param length milliseconds
   */
  played(url: string, length: number): void {
    const known = this.#known.get(url);
    if (known === undefined || known.length !== undefined) return;
    remember(this.#measured, known.identity, Math.round(length));
    this.#note(url, known.identity, undefined);
  }

  /**
   * Measures the lengths of readable files. Streams are skipped.
   * @param onUnreadable called with each unreadable URL
   * @param signal ends it
   */
  async measure(
    urls: Iterable<string>,
    onUnreadable: (url: string) => void = () => {},
    signal?: AbortSignal,
  ): Promise<void> {
    const files = new Set<string>();
    for (const url of urls) if (readFileUrl(url) !== undefined) files.add(url);
    const visit = async (some: Iterator<string>, look: (url: string) => Promise<void>): Promise<void> => {
      // workers share what is left
      for (;;) {
        const next = some.next();
        if (next.done === true || signal?.aborted === true) return;
        try {
          await look(next.value);
        } catch (error) {
          if (!(error instanceof MediaError)) throw error;
          if (!(error instanceof MediaBusyError)) onUnreadable(next.value);
        }
      }
    };
    const visitAll = async (some: Iterator<string>, look: (url: string) => Promise<void>): Promise<void> => {
      await Promise.all(Array.from({ length: AHEAD_AT_ONCE }, () => visit(some, look)));
    };
    await visitAll(files.values(), async (url) => {
      const { handle } = await this.#describe(url, this.#ahead);
      await close(handle);
    });
    const unmeasured = [...files].filter((url) => this.#lacksLength(url));
    await visitAll(unmeasured.values(), (url) => this.#measure(url));
  }

  /** Whether there is a file that may be read. */
  async exists(url: string): Promise<boolean> {
    try {
      const { handle } = await this.#ahead.openings.take((late) => this.#open(url, late));
      await close(handle);
      return true;
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      return false;
    }
  }

  /** @throws MediaError */
  async #open(url: string, late: AbortSignal): Promise<OpenFile> {
    const handle = await openBelow(this.root, url);
    try {
      const { dev, ino, size, mtimeNs } = await handle.stat({ bigint: true });
      if (late.aborted) throw new MediaError('the file was opened too late');
      return { handle, identity: `${dev}:${ino}:${size}:${mtimeNs}` };
    } catch (error) {
      await close(handle);
      throw asMediaError(error);
    }
  }

  /** @throws MediaError */
  async #describe(url: string, places: Places): Promise<Described> {
    let opened: OpenFile | undefined;
    try {
      opened = await places.openings.take((late) => this.#open(url, late));
      const { handle, identity } = opened;
      const info = this.#infos.get(identity) ?? (await this.#probe(identity, handle, places));
      this.#note(url, identity, info.length);
      return { handle, info, identity };
    } catch (error) {
      if (opened !== undefined) await close(opened.handle);
      throw asMediaError(error);
    }
  }

  async #probe(identity: string, { fd }: FileHandle, places: Places): Promise<MediaInfo> {
    const known = this.#playing.probing.get(identity) ?? places.probing.get(identity);
    if (known !== undefined) return known;
    const probe = places.probes.take(() => probeMedia(this.#ffmpeg, fd));
    places.probing.set(identity, probe);
    try {
      const info = await probe;
      remember(this.#infos, identity, info);
      return info;
    } finally {
      places.probing.delete(identity);
    }
  }

  /** Whether a file exists without a declared or measured length. */
  #lacksLength(url: string): boolean {
    const known = this.#known.get(url);
    return known !== undefined && known.length === undefined && !this.#measured.has(known.identity);
  }

  /** @throws MediaError */
  async #measure(url: string): Promise<void> {
    const { handle, identity } = await this.#describe(url, this.#ahead);
    try {
      // a concurrent call may have measured it
      if (!this.#measured.has(identity)) {
        const measuring = this.#measuring.get(identity) ?? this.#read(identity, handle);
        this.#measuring.set(identity, measuring);
        await measuring;
      }
      this.#note(url, identity, undefined);
    } finally {
      this.#measuring.delete(identity);
      await close(handle);
    }
  }

  /** @throws MediaError */
  async #read(identity: string, { fd }: FileHandle): Promise<void> {
    let length: number | undefined;
    let isRead = false;
    try {
      length = await this.#measures.take(() => {
        isRead = true;
        return measureMedia(this.#ffmpeg, fd);
      });
    } finally {
      // a file that cannot be read to its end is not read again
      if (isRead) remember(this.#measured, identity, length ?? this.#measured.get(identity));
    }
  }

  #note(url: string, identity: string, declared: number | undefined): void {
    const before = this.#known.get(url);
    const length = declared ?? this.#measured.get(identity);
    remember(this.#known, url, { identity, length });
    if (length === before?.length) return;
    for (const listener of this.#listeners) listener(url);
  }
}

/** Closes a file, ignoring errors: what was read stays true where a broken disk or mount fails to close it. */
async function close(handle: FileHandle): Promise<void> {
  await handle.close().catch(() => undefined);
}

function asMediaError(error: unknown): MediaError {
  return error instanceof MediaError ? error : new MediaError((error as Error).message);
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_REMEMBERED && oldest !== undefined) map.delete(oldest);
}
