import type { FileHandle } from 'node:fs/promises';
import { runProgram } from '../../run-program.ts';
import { Turns } from '../../tasks/turns.ts';
import { measureArguments, probeArguments } from './media-command.ts';
import { MediaError } from './media-error.ts';
import { readMediaInfo, type MediaInfo } from './media-info.ts';
import { openBelow } from './media-root.ts';
import { readFileUrl } from './media-url.ts';

const PROBES_AT_ONCE = 4;
/** Files that are open to be measured. */
const OPEN_AT_ONCE = 8;
const PROBE_MS = 10_000;
/** A file that does not tell its length is read from its beginning to its end. */
const MEASURE_MS = 120_000;
/** Files and URLs that are remembered; the oldest go first. */
const MAX_REMEMBERED = 10_000;

/** A media file that is open for its reader, who closes it. */
export interface OpenMedia {
  readonly handle: FileHandle;
  readonly info: MediaInfo;
}

/** The media files below one folder, and what is known of them; a file that has changed is looked at anew. */
export class MediaFiles {
  readonly root: string;
  readonly #ffmpeg: string;
  readonly #turns = new Turns(PROBES_AT_ONCE);
  readonly #reading = new Turns(OPEN_AT_ONCE);
  /** By identity of a file as it was. */
  readonly #infos = new Map<string, Promise<MediaInfo>>();
  readonly #lengths = new Map<string, number | undefined>();

  /** @param ffmpeg path of the program */
  constructor(root: string, ffmpeg: string) {
    this.root = root;
    this.#ffmpeg = ffmpeg;
  }

  /** Milliseconds of the file that a URL named when it was last opened or measured; undefined: not known, or no file. */
  readonly lengthOf = (url: string): number | undefined => this.#lengths.get(url);

  /**
   * Opens a file below the folder and finds out what is in it.
   * @throws MediaError
   */
  async open(url: string): Promise<OpenMedia> {
    const handle = await openBelow(this.root, url).catch((error: unknown) => this.#forget(url, error));
    try {
      const { dev, ino, size, mtimeNs } = await handle.stat({ bigint: true });
      const key = `${dev}:${ino}:${size}:${mtimeNs}`;
      const known = this.#infos.get(key) ?? this.#turns.take(() => this.#probe(handle));
      remember(this.#infos, key, known);
      known.catch(() => this.#infos.delete(key));
      const info = await known;
      remember(this.#lengths, url, info.length);
      return { handle, info };
    } catch (error) {
      await handle.close();
      const { message } = error as Error;
      return this.#forget(url, error instanceof MediaError ? error : new MediaError(message));
    }
  }

  /**
   * Learns the lengths of files, as far as they can be read. Streams are passed over.
   * @param onUnreadable hears of each that cannot be read
   */
  async measure(urls: Iterable<string>, onUnreadable?: (url: string) => void): Promise<void> {
    const files = [...new Set(urls)].filter((url) => readFileUrl(url) !== undefined);
    await Promise.all(
      files.map(async (url) => {
        if (!(await this.#reading.take(() => this.has(url)))) onUnreadable?.(url);
      }),
    );
  }

  /** Whether there is a file that may be read. */
  async exists(url: string): Promise<boolean> {
    try {
      const handle = await openBelow(this.root, url);
      await handle.close();
      return true;
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      return false;
    }
  }

  /** Whether a file can be read and has audio or video. */
  async has(url: string): Promise<boolean> {
    try {
      const { handle } = await this.open(url);
      await handle.close();
      return true;
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      return false;
    }
  }

  #forget(url: string, error: unknown): never {
    this.#lengths.delete(url);
    throw error;
  }

  /** @throws MediaError */
  async #probe({ fd: input }: FileHandle): Promise<MediaInfo> {
    try {
      const options = { timeoutMs: PROBE_MS, input, answersOnStderr: true };
      const info = readMediaInfo(await runProgram(this.#ffmpeg, probeArguments(), options));
      if (info === undefined || (info.video === undefined && info.audio.length === 0))
        throw new MediaError('there is neither audio nor video in the file');
      return info.length === undefined ? { ...info, length: await this.#measure(input) } : info;
    } catch (error) {
      if (error instanceof MediaError) throw error;
      throw new MediaError(`ffmpeg cannot read the file: ${(error as Error).message}`);
    }
  }

  async #measure(input: number): Promise<number | undefined> {
    const told = await runProgram(this.#ffmpeg, measureArguments(), { timeoutMs: MEASURE_MS, input });
    const [, last] = [...told.matchAll(/^out_time_us=(\d+)$/gm)].at(-1) ?? [];
    return last === undefined ? undefined : Math.round(Number(last) / 1000);
  }
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_REMEMBERED && oldest !== undefined) map.delete(oldest);
}
