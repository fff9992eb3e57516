import { resolve } from 'node:path';
import type { NodeIdentity } from '#cluster';
import type { Access } from '../../../access/access.ts';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import { refusesClear } from '../../../config/clear-publishers.ts';
import type { Application } from '../../../core/application.ts';
import type { CachedPackets } from '../../../core/cached-packets.ts';
import type { Histogram } from '../../../lib/histogram.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import type { DumpedFolder } from '../../../recording/finished/recorded-index.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { Logger } from '../../../log/log.ts';
import type { StreamDirectory } from '../../../directory/stream-directory.ts';
import type { StreamName } from '../../../directory/stream-key.ts';
import { CONTINUED_MS } from '../../../directory/stream-names.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { StreamDumps } from '../dump/stream-dumps.ts';
import type { PlayedStream } from '../answer/played-stream.ts';
import type { KeyCounts, PastCounts } from '../answer/counts.ts';
import { MediaCache } from '../answer/media-cache.ts';
import type { FindElsewhere } from '../rewind/elsewhere.ts';
import { folderName, StreamFolder } from '../rewind/stream-folder.ts';
import { RootWatch } from '../rewind/root-watch.ts';
import { Sweeps } from '../rewind/sweeps.ts';
import { Openings } from './openings.ts';
import { PackagedStream, type PackagedStreamOptions, type PastOptions, type StreamDrm } from './packaged-stream.ts';
import { keptState, storedState } from './saved-before.ts';
import { StreamKeys } from './stream-keys.ts';
import { StreamViewers } from './stream-viewers.ts';
import type { CreateHomeNodes } from '../sessions/home-nodes.ts';
import type { HandOver } from '../sessions/hand-over.ts';
import type { SessionTokens } from '../answer/token.ts';

/** Called when a dump has ended that has written media. @throws errors of the system */
export type OnDumped = (dump: DumpedFolder) => Promise<void>;

export interface OwnStreamsOptions {
  readonly form: HlsForm;
  readonly directory: Pick<StreamDirectory, 'known' | 'listen'>;
  readonly tokens: (application: Application, name: string) => SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: CreateHomeNodes;
  readonly handOver: HandOver;
  readonly partDelay: Histogram;
  readonly elsewhere: FindElsewhere;
  readonly pastCounts: PastCounts;
  readonly keyCounts: KeyCounts;
  readonly rewindFolder: string | undefined;
  readonly onDumped?: OnDumped | undefined;
  /** Folder of Server.xml. */
  readonly folder: string;
  readonly log: Logger;
}

export interface OwnStream extends PlayedStream {
  readonly stream: PackagedStream;
  readonly viewers: StreamViewers;
  readonly dumps: StreamDumps;
}

/** A stream that continues none of this node. */
type OpenedStream = Pick<PackagedStreamOptions, 'output' | 'application' | 'config' | 'past' | 'before'>;

/** Bytes of segments that were read from disks. */
const MAX_PAST_BYTES = 64 * 1024 * 1024;
/** Oldest are forgotten first. */
const MAX_ENDED_OPENINGS = 100_000;

/**
 * HLS of the output streams of this node. When a publisher leaves that may return, its stream stays as long as it can be continued
 * and no other node has it.
 */
export class OwnStreams {
  readonly #options: OwnStreamsOptions;
  readonly #streams = new Map<Application, Map<string, OwnStream>>();
  /** Timers that end streams whose publisher does not return. */
  readonly #ends = new Map<OwnStream, NodeJS.Timeout>();
  /** Pending completions of dumps and of segments on the disk, and hand-overs of sessions. */
  readonly #endings = new Set<Promise<void>>();
  readonly #pastMedia = new MediaCache(MAX_PAST_BYTES);
  readonly #endedOpenings = new RecentSet<string>(MAX_ENDED_OPENINGS);
  readonly #unlisten: () => void;
  readonly #sweeps: Sweeps;
  readonly #roots = new RootWatch();
  readonly #openings = new Openings();
  readonly #keys: StreamKeys;

  constructor(options: OwnStreamsOptions) {
    const { form, rewindFolder, log } = options;
    this.#options = options;
    this.#keys = new StreamKeys(options.folder, options.keyCounts);
    const openRuns = (names: Pick<StreamName, 'vhost' | 'app'>) => this.#openRuns(names);
    this.#sweeps = new Sweeps({ kind: form.kind, folder: rewindFolder, openRuns, log });
    this.#unlisten = options.directory.listen((name) => this.#follow(name));
  }

  find(application: Application, name: string): OwnStream | undefined {
    return this.#streams.get(application)?.get(name);
  }

  get waiting(): number {
    let waiting = 0;
    for (const streams of this.#streams.values())
      for (const { stream } of streams.values()) waiting += stream.package.queue.size;
    return waiting;
  }

  open(output: OutputStream, application: Application): void {
    const { form } = this.#options;
    const config = form.config(application);
    if (config === undefined || output.closed) return;
    if (form.inTs && refusesClear(application.config.publishers)) return;
    if (config.createDefaultPlaylist) form.addDefaultPlaylist(output);
    const { name } = output;
    this.#openings.forget(application, name);
    this.#keys.forget(application, name);
    const own = this.find(application, name);
    if (own?.stream.isContinuedBy(output) === true) {
      this.#unschedule(own);
      own.stream.resume(output);
      own.viewers.attach();
      this.#attach(own, output, application);
    } else {
      if (own !== undefined) this.#drop(application, name, own, 'another stream has its name');
      this.#openNew(output, application, config);
    }
  }

  /** Resolves when a stream has begun whose state is read from a disk, or when it will not; undefined for any other. Never rejects. */
  opening(application: Application, name: string): Promise<void> | undefined {
    return this.#openings.of(application, name);
  }

  /** Opens a stream that continues none of this node: at once, or when its state was read from the disk. */
  #openNew(output: OutputStream, application: Application, config: HlsPublisherConfig): void {
    const past = this.#past(application, output.name, config);
    const opened = { output, application, config, past };
    const kept = keptState(this.#options.form, output);
    if (past === undefined || kept !== undefined) return this.#openWith({ ...opened, before: kept });
    const log = this.#logOf(application, output.name);
    this.#openings.open(output, application, {
      delayMs: config.delayBufferTimeMs,
      read: async (signal) =>
        await storedState(past.folder, signal).catch((error: Error) => {
          if (!signal.aborted)
            log.warn(
              { reason: error.message },
              'the state of the stream before cannot be read: its past is not listed',
            );
          return undefined;
        }),
      begin: (before, first) => this.#openWith({ ...opened, before }, first),
      onFault: (error) => log.error({ err: error }, 'the stream is not published: it could not be packaged'),
    });
  }

  /**
   * Opens a stream when its key is there.
   * @param first what came before; where the key has to be waited for, it would be older than what goes on then
   */
  #openWith(opened: OpenedStream, first?: Pick<CachedPackets, 'replay'>): void {
    const { output, application, config, before } = opened;
    const log = this.#logOf(application, output.name);
    let kept = first;
    const waiting = this.#keys.open({ output, application, config, saved: before?.key, log }, (drm) => {
      const own = this.#create({ ...opened, drm });
      this.#of(application).set(output.name, own);
      this.#attach(own, output, application);
      kept?.replay((packet) => own.stream.package.push(packet));
    });
    kept = undefined;
    if (waiting !== undefined) this.#await(waiting);
  }

  /** Follows the publisher of a stream. */
  #attach(own: OwnStream, output: OutputStream, application: Application): void {
    const { name } = output;
    void own.dumps.startConfigured();
    output.once('close', (reason) => {
      const { over, taken } = output.input.continuity;
      if (over && !taken) {
        own.stream.forgetState();
        this.#drop(application, name, own, reason);
      } else this.#interrupt(application, name, own);
    });
  }

  /** Idempotent. Resolves when dumps and segments on the disk are complete, and sessions handed over. */
  async close(): Promise<void> {
    this.#unlisten();
    this.#openings.close();
    this.#keys.close();
    this.#roots.close();
    for (const application of this.#streams.keys()) this.#dropAll(application);
    await Promise.all([...this.#endings, this.#sweeps.close()]);
  }

  #logOf({ internalName }: Application, name: string): Logger {
    return this.#options.log.child({ publisher: this.#options.form.kind, stream: `${internalName}/${name}` });
  }

  #create(opened: OpenedStream & { readonly drm: StreamDrm | undefined }): OwnStream {
    const { form, tokens, access, homes, partDelay, keyCounts, onDumped } = this.#options;
    const { application, config } = opened;
    const { name } = opened.output;
    const log = this.#logOf(application, name);
    const stream = new PackagedStream({ ...opened, form, partDelay, keyCounts, log });
    const viewers = new StreamViewers({
      ...{ form, stream, application, access, endedOpenings: this.#endedOpenings },
      tokens: tokens(application, name),
      homes: homes(application, name),
    });
    const dumps = new StreamDumps({
      ...{ package: stream.package, application, config, log },
      output: () => stream.output,
      settled: () => stream.settled(),
      past: () => stream.pastSegments(),
      onDumped: async (dump) => await onDumped?.({ ...dump, container: form.inTs ? 'MPEG-TS' : 'fMP4' }),
    });
    return { stream, viewers, dumps };
  }

  #past(application: Application, stream: string, { dvr }: HlsPublisherConfig): PastOptions | undefined {
    if (dvr?.enable !== true) return undefined;
    const names = { vhost: application.vhost.name, app: application.name, stream, kind: this.#options.form.kind };
    const root = resolve(dvr.tempStoragePath);
    this.#roots.use(root);
    this.#sweeps.use(root, names, dvr.maxDuration * 1000);
    return {
      root,
      folder: new StreamFolder(root, names),
      cache: this.#pastMedia,
      counts: this.#options.pastCounts,
      elsewhere: (run: string) => this.#options.elsewhere(names, run),
    };
  }

  /** Runs of the streams of an application, by the names of their folders. */
  #openRuns({ vhost, app }: Pick<StreamName, 'vhost' | 'app'>): ReadonlyMap<string, string> {
    const runs = new Map<string, string>();
    for (const [application, streams] of this.#streams) {
      if (application.name !== app || application.vhost.name !== vhost) continue;
      for (const [stream, own] of streams) runs.set(folderName(stream), own.stream.run);
    }
    return runs;
  }

  #of(application: Application): Map<string, OwnStream> {
    let streams = this.#streams.get(application);
    if (streams === undefined) {
      this.#streams.set(application, (streams = new Map()));
      application.once('close', () => this.#dropAll(application));
    }
    return streams;
  }

  #interrupt(application: Application, name: string, own: OwnStream): void {
    own.viewers.detach();
    own.stream.interrupt();
    this.#endDumps(own);
    this.#ends.set(
      own,
      setTimeout(() => this.#drop(application, name, own, 'its publisher did not return'), CONTINUED_MS).unref(),
    );
  }

  #unschedule(own: OwnStream): void {
    clearTimeout(this.#ends.get(own));
    this.#ends.delete(own);
  }

  /** Hands over interrupted streams that another node continues. */
  #follow({ vhost, app }: StreamName): void {
    for (const [application, streams] of this.#streams) {
      if (application.name !== app || application.vhost.name !== vhost) continue;
      for (const [name, own] of streams) {
        if (!own.stream.interrupted) continue;
        const location = this.#options.directory.known(application, name);
        if (location !== undefined) this.#handOver(application, name, own, location.owner);
      }
    }
  }

  #handOver(application: Application, name: string, own: OwnStream, owner: NodeIdentity): void {
    const { access, handOver } = this.#options;
    const sessions = own.viewers.handOver();
    this.#drop(application, name, own, 'another node goes on with the stream');
    if (sessions.length === 0) return;
    const handing = handOver(application, name, owner, sessions).then((left) => {
      this.#endings.delete(handing);
      for (const { until, openings } of left.flatMap(({ grants }) => grants))
        access.resume(until, openings).end('the node that goes on with the stream did not take over the session');
    });
    this.#endings.add(handing);
  }

  #drop(application: Application, name: string, own: OwnStream, reason: string): void {
    const streams = this.#streams.get(application);
    if (streams?.get(name) === own) streams.delete(name);
    this.#unschedule(own);
    own.viewers.close(reason);
    own.stream.close();
    this.#endDumps(own);
    this.#await(own.stream.written());
  }

  #endDumps({ dumps }: OwnStream): void {
    this.#await(dumps.end());
  }

  /** Lets `close` wait for an ending. */
  #await(promise: Promise<void>): void {
    const ending = promise.finally(() => this.#endings.delete(ending));
    this.#endings.add(ending);
  }

  #dropAll(application: Application): void {
    for (const [name, own] of this.#streams.get(application) ?? [])
      this.#drop(application, name, own, 'the application or the server has closed');
    this.#streams.delete(application);
  }
}
