import type { FileHandle } from 'node:fs/promises';
import { Looks } from './looks.ts';
import { MediaBusyError, MediaError } from './media-error.ts';
import type { MediaInfo } from './media-info.ts';
import { measureMedia, MEASURE_MS, probeMedia, PROBE_MS } from './media-probe.ts';
import { openBelow } from './media-root.ts';
import { readFileUrl } from './media-url.ts';

const OPEN_MS = 5000;
/** A program that is out of time is killed first, and hangs only when that does not end it. */
const KILL_MS = 2000;
/** Files of one measurement of many that are looked at at a time. */
const AHEAD_AT_ONCE = 4;
/** Files and URLs that are remembered; the oldest go first. */
const MAX_REMEMBERED = 10_000;

/** A media file that is open for its reader, who closes it. */
export interface OpenMedia {
  readonly handle: FileHandle;
  readonly info: MediaInfo;
}

interface Described extends OpenMedia {
  /** Of the file as it was. */
  readonly identity: string;
}

type OpenFile = Pick<Described, 'handle' | 'identity'>;

/** What is known of the file that a URL named when it was last opened; `length` in milliseconds. */
interface Known {
  readonly identity: string;
  readonly length: number | undefined;
}

/** The places of those who look at files for one purpose. */
class Places {
  readonly openings: Looks;
  readonly probes: Looks;
  /** What is being probed, by identity. */
  readonly probing = new Map<string, Promise<MediaInfo>>();

  constructor(openings: number, probes: number) {
    this.openings = new Looks({ atOnce: openings, withinMs: OPEN_MS });
    this.probes = new Looks({ atOnce: probes, withinMs: PROBE_MS + KILL_MS });
  }
}

/**
 * The media files below one folder, and what is known of them; a file that has changed is looked at anew. An item that is about
 * to play does not wait for files that are looked at beforehand.
 */
export class MediaFiles {
  readonly root: string;
  readonly #ffmpeg: string;
  readonly #playing = new Places(2, 4);
  readonly #ahead = new Places(1, 2);
  readonly #measures = new Looks({ atOnce: 2, withinMs: MEASURE_MS + KILL_MS });
  /** By identity. */
  readonly #infos = new Map<string, MediaInfo>();
  readonly #measured = new Map<string, number | undefined>();
  readonly #measuring = new Map<string, Promise<void>>();
  readonly #known = new Map<string, Known>();
  readonly #listeners = new Set<(url: string) => void>();

  /** @param ffmpeg path of the program */
  constructor(root: string, ffmpeg: string) {
    this.root = root;
    this.#ffmpeg = ffmpeg;
  }

  /**
   * Milliseconds of the file that a URL named when it was last there; undefined: not known. A file that does not tell its length
   * is measured when it was opened or measured, or tells it by being played.
   */
  readonly lengthOf = (url: string): number | undefined => this.#known.get(url)?.length;

  /** Hears of URLs whose lengths have become known, or are others. @returns undo */
  onLength(listener: (url: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Opens a file below the folder for an item that is about to play, and finds out what is in it.
   * @throws MediaError
   */
  async open(url: string): Promise<OpenMedia> {
    const { handle, info } = await this.#describe(url, this.#playing);
    // a failure is told by who measures; who plays it finds its end
    if (this.#lacksLength(url)) this.#measure(url).catch(() => {});
    return { handle, info };
  }

  /** A file was played to its end, which nothing had told before. @param length milliseconds */
  played(url: string, length: number): void {
    const known = this.#known.get(url);
    if (known === undefined || known.length !== undefined) return;
    remember(this.#measured, known.identity, Math.round(length));
    this.#note(url, known.identity, undefined);
  }

  /**
   * Learns the lengths of files, as far as they can be read. Streams are passed over.
   * @param onUnreadable hears of each that cannot be read
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
      // the others go on with what is left as well
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
    const untold = [...files].filter((url) => this.#lacksLength(url));
    await visitAll(untold.values(), (url) => this.#measure(url));
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

  /** A file is there that was not measured, and tells no length. */
  #lacksLength(url: string): boolean {
    const known = this.#known.get(url);
    return known !== undefined && known.length === undefined && !this.#measured.has(known.identity);
  }

  /** @throws MediaError */
  async #measure(url: string): Promise<void> {
    const { handle, identity } = await this.#describe(url, this.#ahead);
    try {
      // another may have measured it while it was being opened
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
      // one that cannot be read to its end is not read again
      if (isRead) remember(this.#measured, identity, length ?? this.#measured.get(identity));
    }
  }

  #note(url: string, identity: string, told: number | undefined): void {
    const before = this.#known.get(url);
    const length = told ?? this.#measured.get(identity);
    remember(this.#known, url, { identity, length });
    if (length === before?.length) return;
    for (const listener of this.#listeners) listener(url);
  }
}

/** What was read of a file stays true where a broken disk or mount fails to close it. Never rejects. */
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
