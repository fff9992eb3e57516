import type { NodeIdentity } from '#cluster';
import type { Access } from '../../../access/access.ts';
import type { Application } from '../../../core/application.ts';
import type { Histogram } from '../../../lib/histogram.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import type { OutputStream } from '../../../core/stream.ts';
import type { Logger } from '../../../log/log.ts';
import type { StreamDirectory } from '../../../directory/stream-directory.ts';
import type { StreamName } from '../../../directory/stream-key.ts';
import { CONTINUED_MS } from '../../../directory/stream-names.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { OwnStream } from './own-stream.ts';
import type { CreateHomeNodes } from '../sessions/home-nodes.ts';
import type { HandOver } from '../sessions/hand-over.ts';
import type { SessionTokens } from '../answer/token.ts';

export interface OwnStreamsOptions {
  readonly form: HlsForm;
  readonly directory: Pick<StreamDirectory, 'known' | 'listen'>;
  readonly tokens: (application: Application, name: string) => SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: CreateHomeNodes;
  readonly handOver: HandOver;
  /** As in `PackageOptions`. */
  readonly partDelay: Histogram;
  readonly log: Logger;
}

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
  /** Pending completions of dumps and hand-overs of sessions. */
  readonly #endings = new Set<Promise<void>>();
  readonly #endedOpenings = new RecentSet<string>(MAX_ENDED_OPENINGS);
  readonly #unlisten: () => void;

  constructor(options: OwnStreamsOptions) {
    this.#options = options;
    this.#unlisten = options.directory.listen((name) => this.#follow(name));
  }

  find(application: Application, name: string): OwnStream | undefined {
    return this.#streams.get(application)?.get(name);
  }

  /** Number of requests that wait for media or playlists. */
  get waiting(): number {
    let waiting = 0;
    for (const streams of this.#streams.values())
      for (const stream of streams.values()) waiting += stream.package.queue.size;
    return waiting;
  }

  open(output: OutputStream, application: Application): void {
    const { form, tokens, access, homes, partDelay } = this.#options;
    const config = form.config(application);
    if (config === undefined || output.closed) return;
    if (config.createDefaultPlaylist) form.addDefaultPlaylist(output);
    const { name } = output;
    let stream = this.find(application, name);
    if (stream?.isContinuedBy(output) === true) {
      this.#unschedule(stream);
      stream.resume(output);
    } else {
      if (stream !== undefined) this.#drop(application, name, stream, 'another stream has its name');
      const log = this.#options.log.child({ publisher: form.kind, stream: `${application.internalName}/${name}` });
      const known = { form, output, application, config, access, endedOpenings: this.#endedOpenings, partDelay, log };
      stream = new OwnStream({
        ...known,
        tokens: tokens(application, name),
        homes: homes(application, name),
      });
      this.#of(application).set(name, stream);
    }
    const opened = stream;
    output.once('close', (reason) => {
      const { over, taken } = output.input.continuity;
      if (over && !taken) this.#drop(application, name, opened, reason);
      else this.#interrupt(application, name, opened);
    });
  }

  /** Idempotent. Resolves when dumps are complete, and sessions handed over. */
  async close(): Promise<void> {
    this.#unlisten();
    for (const application of this.#streams.keys()) this.#dropAll(application);
    await Promise.all(this.#endings);
  }

  #of(application: Application): Map<string, OwnStream> {
    let streams = this.#streams.get(application);
    if (streams === undefined) {
      this.#streams.set(application, (streams = new Map()));
      application.once('close', () => this.#dropAll(application));
    }
    return streams;
  }

  #interrupt(application: Application, name: string, stream: OwnStream): void {
    stream.interrupt();
    this.#endDumps(stream);
    this.#ends.set(
      stream,
      setTimeout(() => this.#drop(application, name, stream, 'its publisher did not return'), CONTINUED_MS).unref(),
    );
  }

  #unschedule(stream: OwnStream): void {
    clearTimeout(this.#ends.get(stream));
    this.#ends.delete(stream);
  }

  /** Hands over interrupted streams that another node continues. */
  #follow({ vhost, app }: StreamName): void {
    for (const [application, streams] of this.#streams) {
      if (application.name !== app || application.vhost.name !== vhost) continue;
      for (const [name, stream] of streams) {
        if (!stream.interrupted) continue;
        const location = this.#options.directory.known(application, name);
        if (location !== undefined) this.#handOver(application, name, stream, location.owner);
      }
    }
  }

  #handOver(application: Application, name: string, stream: OwnStream, owner: NodeIdentity): void {
    const { access, handOver } = this.#options;
    const sessions = stream.handOver();
    this.#drop(application, name, stream, 'another node goes on with the stream');
    if (sessions.length === 0) return;
    const handing = handOver(application, name, owner, sessions).then((left) => {
      this.#endings.delete(handing);
      for (const { until, openings } of left.flatMap(({ grants }) => grants))
        access.resume(until, openings).end('the node that goes on with the stream did not take over the session');
    });
    this.#endings.add(handing);
  }

  #drop(application: Application, name: string, stream: OwnStream, reason: string): void {
    const streams = this.#streams.get(application);
    if (streams?.get(name) === stream) streams.delete(name);
    this.#unschedule(stream);
    stream.close(reason);
    this.#endDumps(stream);
  }

  #endDumps({ dumps }: OwnStream): void {
    const ending = dumps.end().finally(() => this.#endings.delete(ending));
    this.#endings.add(ending);
  }

  #dropAll(application: Application): void {
    for (const [name, stream] of this.#streams.get(application) ?? [])
      this.#drop(application, name, stream, 'the application or the server has closed');
    this.#streams.delete(application);
  }
}
