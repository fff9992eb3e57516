import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, stat, unlink, utimes, type FileHandle } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { MediaTrack } from '../../core/track.ts';
import { replaceFile } from '../../lib/files/paths.ts';
import { unless } from '../../lib/files/unless.ts';
import { Limiter } from '../../lib/limiter.ts';
import { runProgram } from '../../lib/run-program.ts';
import type { Capabilities } from '../../transcode/probe.ts';
import { MediaError } from '../scheduled/media-error.ts';
import type { MediaInfo } from '../scheduled/media-info.ts';
import { probeMedia } from '../scheduled/media-probe.ts';
import { slateArguments, type SlateTrack } from './slate-command.ts';

const ENCODE_MS = 600_000;
/** Encodings at a time, and such that wait. */
const AT_ONCE = 1;
const MAX_WAITING = 100;
/** Files kept on disk; those that were not used for the longest time leave first. */
const MAX_FILES = 100;
const SUFFIX = '.nut';

export interface SlateWish {
  readonly tracks: readonly SlateTrack[];
  /** Path of a media file; undefined to generate a slate. */
  readonly file: string | undefined;
  /** Text on a generated slate. */
  readonly text: string;
}

/** An encoded slate on disk: a NUT with a stream for each of the tracks, in their order. */
export interface Slate {
  readonly path: string;
  readonly tracks: readonly MediaTrack[];
}

interface SourceFile {
  readonly handle: FileHandle;
  readonly info: MediaInfo;
  /** Changes with its content. */
  readonly identity: string;
}

export interface SlatesOptions {
  /** Folder for encoded slates. */
  readonly folder: string;
  /** Base of relative paths. */
  readonly base: string;
  /** Undefined without an ffmpeg. */
  readonly capabilities: () => Promise<Capabilities | undefined>;
}

/** Slates, each encoded once for all streams that have the same settings, and kept on disk. */
export class Slates {
  readonly #options: SlatesOptions;
  readonly #encoders = new Limiter(AT_ONCE, MAX_WAITING);
  /** By name of the file. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(options: SlatesOptions) {
    this.#options = options;
  }

  /** Encodes a slate, unless it is there. @throws MediaError */
  async prepare(wish: SlateWish): Promise<Slate> {
    const capabilities = await this.#options.capabilities();
    if (capabilities === undefined) throw new MediaError('there is no ffmpeg');
    const source = wish.file === undefined ? undefined : await this.#open(capabilities.path, wish.file);
    try {
      const path = await this.#encoded(capabilities, wish, source);
      return { path, tracks: wish.tracks.map(({ track }) => track) };
    } catch (error) {
      throw error instanceof MediaError ? error : new MediaError((error as Error).message);
    } finally {
      await source?.handle.close();
    }
  }

  async #encoded({ path, encoders, filters }: Capabilities, wish: SlateWish, source: SourceFile | undefined) {
    const { folder } = this.#options;
    const text = filters.has('drawtext') ? wish.text : '';
    const args = slateArguments({ tracks: wish.tracks, file: source?.info, text, encoders });
    const name = createHash('sha256')
      .update(JSON.stringify([args, source?.identity]))
      .digest('hex')
      .slice(0, 32);
    const file = join(folder, name + SUFFIX);
    const now = new Date();
    const isThere = await utimes(file, now, now).then(() => true, unless('ENOENT'));
    if (isThere === true) return file;
    const encode = async (): Promise<void> => {
      await mkdir(folder, { recursive: true });
      await this.#prune();
      const run = (some: readonly string[]): Promise<void> =>
        replaceFile(file, async (temporary) => {
          const input = source && { input: source.handle.fd };
          await runProgram(path, [...some, temporary], { timeoutMs: ENCODE_MS, ...input });
        });
      // fonts may be missing
      await run(args).catch((error: unknown) => {
        if (text === '' || source?.info.video !== undefined) throw error;
        return run(slateArguments({ tracks: wish.tracks, file: source?.info, text: '', encoders }));
      });
    };
    const running =
      this.#running.get(name) ??
      this.#encoders
        .run(encode, () => new MediaError('too many slates wait to be encoded'))
        .finally(() => this.#running.delete(name));
    this.#running.set(name, running);
    await running;
    return file;
  }

  /** @throws MediaError */
  async #open(ffmpeg: string, path: string): Promise<SourceFile> {
    let handle: FileHandle | undefined;
    try {
      handle = await open(resolve(this.#options.base, path), constants.O_RDONLY | constants.O_NONBLOCK);
      const found = await handle.stat({ bigint: true });
      if (!found.isFile()) throw new MediaError('it is not a regular file');
      const { dev, ino, size, mtimeNs } = found;
      return { handle, info: await probeMedia(ffmpeg, handle.fd), identity: `${dev}:${ino}:${size}:${mtimeNs}` };
    } catch (error) {
      await handle?.close();
      throw new MediaError(`${path}: ${(error as Error).message}`);
    }
  }

  /** Deletes the oldest files beyond the limit. One that is being shown stays readable for those that have it open. */
  async #prune(): Promise<void> {
    const { folder } = this.#options;
    const names = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX));
    if (names.length < MAX_FILES) return;
    const aged = await Promise.all(
      names.map(async (name) => ({ name, at: (await stat(join(folder, name)).catch(unless('ENOENT')))?.mtimeMs ?? 0 })),
    );
    aged.sort((one, other) => one.at - other.at);
    for (const { name } of aged.slice(0, names.length - MAX_FILES + 1))
      await unlink(join(folder, name)).catch(unless('ENOENT'));
  }
}
