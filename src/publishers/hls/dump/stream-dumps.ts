import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import { listOfIFrames } from '../rewind/shelf.ts';
import { wildcard } from '../../../lib/wildcard.ts';
import { within } from '../../../lib/within.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import type { Logger } from '../../../log/log.ts';
import { PathError } from '../../../lib/files/paths.ts';
import { randomKey } from '../answer/names.ts';
import type { DumpedFolder } from '../../../recording/finished/recorded-index.ts';
import type { Package } from '../package/package.ts';
import { Dump, type DumpedMaster, type DumpOptions } from './dump.ts';
import { dumpPath } from './paths.ts';

export interface DumpRequest {
  readonly id: string;
  /** May contain macros. */
  readonly outputPath: string;
  /** File names of master playlists; empty: all. */
  readonly playlist: readonly string[];
  /** May contain macros. */
  readonly infoFile?: string;
  readonly userData?: string;
}

/** A dump in progress, or a failed one. */
export interface DumpState extends DumpRequest {
  /** Absolute, without macros, as `infoFile`. */
  readonly outputPath: string;
  readonly reason: string | undefined;
}

export interface StreamDumpsOptions {
  readonly package: Package;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  /** Present output stream, which changes when the stream is continued. */
  readonly output: () => OutputStream;
  readonly settled: () => Promise<void> | undefined;
  readonly past: DumpOptions['past'];
  /** Called when a dump has ended that has written media. @throws errors of the system */
  readonly onDumped?: ((dump: Omit<DumpedFolder, 'container'>) => Promise<void>) | undefined;
  readonly log: Logger;
}

interface Entry {
  readonly request: DumpRequest;
  readonly dump: Dump;
}

/** Playlists of I-frames are not dumped. */
const I_FRAME_STREAM = /^#EXT-X-I-FRAME-STREAM-INF:.*\n/gm;
const EXTENSION = '.m3u8';
/** Longest wait of a stop for the disk. */
const STOP_MS = 5000;

/** Dumps of one output stream. They end when its publisher leaves, or its playlists are concluded. */
export class StreamDumps {
  readonly #options: StreamDumpsOptions;
  readonly #dumps = new Map<string, Entry>();
  readonly #endings = new Set<Promise<void>>();

  constructor(options: StreamDumpsOptions) {
    this.#options = options;
  }

  /** Lists dumps by id: those in progress and, until they are stopped or the stream ends, those that failed. */
  list(): DumpState[] {
    const all = Array.from(this.#dumps.values(), ({ request, dump }) => ({
      ...request,
      ...dump.paths,
      reason: dump.failure?.message,
    }));
    return all.sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /**
   * Starts a dump. Resolves when the window is written, or after a few seconds.
   * @throws dumpNotStarted, taskInvalid for an invalid path
   */
  async start(request: DumpRequest): Promise<void> {
    const { id } = request;
    const dump = this.#dump(request);
    if (this.#dumps.has(id)) throw kilnError('dumpNotStarted', this.#path, 'Duplicate ID');
    const entry = { request, dump };
    this.#dumps.set(id, entry);
    try {
      // until then the dates of the first segments are not final
      await this.#options.settled();
      await dump.start();
      this.#log(id).info({ event: 'dump.started', folder: dump.paths.outputPath }, 'the HLS dump has started');
    } catch (error) {
      if (this.#dumps.get(id) === entry) this.#dumps.delete(id);
      throw kilnError('dumpNotStarted', this.#path, (error as Error).message);
    }
  }

  /** Completes a dump, or all of them. Resolves within a few seconds. @returns their ids @throws dumpNotFound */
  async stop(id?: string): Promise<string[]> {
    const entry = id === undefined ? undefined : this.#dumps.get(id);
    if (id !== undefined && entry === undefined) throw kilnError('dumpNotFound', this.#path);
    const ids = id === undefined ? [...this.#dumps.keys()].sort() : [id];
    await soon(ids.map((one) => this.#end(one)));
    return ids;
  }

  /** Starts the configured dumps of this stream. Never rejects: failures are logged. */
  async startConfigured(): Promise<void> {
    const { name } = this.#options.output();
    const wanted = this.#options.config.dumps.filter(
      ({ enable, targetStreamName }) => enable && wildcard(targetStreamName).test(name),
    );
    await Promise.all(
      wanted.map(async ({ id = randomKey(), outputPath, playlists: playlist, infoFile, userData }) => {
        try {
          await this.start({
            id,
            outputPath,
            playlist,
            ...(infoFile !== undefined && { infoFile }),
            ...(userData !== undefined && { userData }),
          });
        } catch (error) {
          const { message: reason } = error as Error;
          this.#log(id).error({ event: 'dump.failed', reason }, 'an HLS dump of the configuration cannot start');
        }
      }),
    );
  }

  /** Completes all dumps. Resolves within a few seconds. */
  async end(): Promise<void> {
    for (const id of this.#dumps.keys()) void this.#end(id);
    await soon([...this.#endings]);
  }

  async #end(id: string): Promise<void> {
    const entry = this.#dumps.get(id);
    if (entry === undefined) return;
    this.#dumps.delete(id);
    const ending = entry.dump.end().then(() => this.#tell(entry));
    this.#endings.add(ending);
    await ending;
    this.#endings.delete(ending);
    if (entry.dump.failure === undefined)
      this.#log(id).info({ event: 'dump.finished', folder: entry.dump.paths.outputPath }, 'the HLS dump is complete');
  }

  async #tell({ request, dump }: Entry): Promise<void> {
    const { application, output, onDumped } = this.#options;
    const { dumped } = dump;
    if (dumped === undefined) return;
    const { vhost, name: app } = application;
    const { name: stream, input } = output();
    const { id, userData } = request;
    const { infoFile } = dump.paths;
    try {
      await onDumped?.({
        ...dumped,
        ...{ vhost: vhost.name, app, stream, source: input.name, id },
        ...(userData !== undefined && { userData }),
        ...(infoFile !== undefined && { infoFile }),
      });
    } catch (error) {
      const { message: reason } = error as Error;
      this.#log(id).warn(
        { folder: dumped.folder, reason },
        'an HLS dump is complete, and not listed with the recordings',
      );
    }
  }

  /** @throws taskInvalid for an invalid path, dumpNotStarted for a missing playlist */
  #dump({ id, outputPath, infoFile, userData, playlist }: DumpRequest): Dump {
    const { application, config, output, past } = this.#options;
    const { vhost, name: app } = application;
    const { name: stream } = output();
    const values = { vhost: vhost.name, app, stream, start: new Date() };
    const names = playlist.map((file) => (file.endsWith(EXTENSION) ? file.slice(0, -EXTENSION.length) : file));
    const isThere = names.every((name) => output().playlist(name) !== undefined);
    if (!isThere) throw kilnError('dumpNotStarted', this.#path, 'Could not dump master playlist');
    try {
      return new Dump({
        outputPath: dumpPath(outputPath, values),
        template: outputPath,
        ...(infoFile !== undefined && { infoFile: dumpPath(infoFile, values) }),
        ...(userData !== undefined && { userData }),
        stream: `/${vhost.name}/${app}/${stream}`,
        watch: () => output().addRelay(),
        follow: (follower) => this.#options.package.follow(follower),
        past,
        masters: () => this.#masters(names),
        onEnd: () => void this.#end(id),
        continues: !config.originMode,
        log: this.#log(id),
      });
    } catch (error) {
      throw error instanceof PathError ? kilnError('taskInvalid', error.message) : error;
    }
  }

  /** Makes master playlists whose media playlists are in the same folder. @param names of files, without extension; empty: all */
  #masters(names: readonly string[]): DumpedMaster[] {
    const { package: of, output } = this.#options;
    const { playlists } = output();
    return playlists.flatMap((playlist) => {
      const { fileName } = playlist;
      if (fileName === undefined || (names.length > 0 && !names.includes(fileName))) return [];
      const lists: string[] = [];
      const note = (uri: string): string => {
        const [list = ''] = uri.split('?', 1);
        if (listOfIFrames(list) === undefined) lists.push(list);
        return list;
      };
      try {
        const text = of.master(playlist, output(), note);
        return text === undefined
          ? []
          : [{ file: `${fileName}${EXTENSION}`, text: text.replaceAll(I_FRAME_STREAM, ''), lists }];
      } catch (error) {
        // this kind of HLS can play none of its renditions
        if (error instanceof KilnError && error.code === 'fileNotFound') return [];
        throw error;
      }
    });
  }

  #log(id: string): Logger {
    return this.#options.log.child({ dump: id });
  }

  get #path(): string {
    const { application, output } = this.#options;
    return `${application.vhost.name}/${application.name}/${output().name}`;
  }
}

async function soon(endings: readonly Promise<void>[]): Promise<void> {
  if (endings.length === 0) return;
  await within(STOP_MS, Promise.all(endings));
}
