import type { Cluster } from '#cluster';
import type { Access } from '../../../access/access.ts';
import type { Application } from '../../../core/application.ts';
import type { Logger } from '../../../log/log.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { Location, StreamDirectory } from '../../../directory/stream-directory.ts';
import type { RelayTree } from '../../../directory/relay-tree.ts';
import type { StreamName } from '../../../directory/stream-key.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { SessionTokens } from '../answer/token.ts';
import type { CreateHomeNodes } from '../sessions/home-nodes.ts';
import { MediaCache } from '../answer/media-cache.ts';
import { RemoteStream } from './stream.ts';

const TICK_MS = 500;
const MAX_CACHE_BYTES = 256 * 1024 * 1024;
/** Time after which unused streams and files are dropped. */
const IDLE_MS = 60_000;

export interface RemoteStreamsOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'connect'>;
  readonly calls: PeerCalls;
  readonly directory: StreamDirectory;
  readonly tree: RelayTree;
  readonly tokens: (application: Application, name: string) => SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: CreateHomeNodes;
  readonly log: Logger;
}

export class RemoteStreams {
  readonly #options: RemoteStreamsOptions;
  readonly #cache = new MediaCache(MAX_CACHE_BYTES);
  readonly #streams = new Map<Application, Map<string, RemoteStream>>();
  readonly #timer = setInterval(() => this.#tick(performance.now()), TICK_MS).unref();
  readonly #unlisten: () => void;

  constructor(options: RemoteStreamsOptions) {
    this.#options = options;
    this.#unlisten = options.directory.listen((name) => this.#follow(name));
  }

  /** Finds a stream by the name that viewers ask for, as far as this node knows. */
  find(application: Application, name: string): RemoteStream | undefined {
    const present = this.#streams.get(application)?.get(name);
    if (present !== undefined && !present.ended) return present;
    const location = this.#options.directory.known(application, name);
    return location && this.#open(application, name, location);
  }

  /** Finds a stream after asking the cluster. */
  async locate(application: Application, name: string): Promise<RemoteStream | undefined> {
    const location = await this.#options.directory.locate(application, name);
    if (location === undefined || application.closed) return undefined;
    return this.find(application, name) ?? this.#open(application, name, location);
  }

  /** Ends a stream that is on this node now. */
  handOver(application: Application, name: string): void {
    this.#streams.get(application)?.get(name)?.handOver();
    this.#streams.get(application)?.delete(name);
  }

  /** Idempotent. */
  close(): void {
    this.#unlisten();
    clearInterval(this.#timer);
    for (const application of this.#streams.keys()) this.#drop(application);
  }

  #open(application: Application, name: string, { owner, input }: Location): RemoteStream | undefined {
    const config = this.#options.form.config(application);
    if (config === undefined || application.closed) return undefined;
    const { form, cluster, calls, directory, tree, tokens, access, homes, log } = this.#options;
    const stream = new RemoteStream({
      form,
      cluster,
      calls,
      directory,
      tree,
      application,
      config,
      name,
      owner,
      input,
      cache: this.#cache,
      tokens: tokens(application, name),
      access,
      homes: homes(application, name),
      log: log.child({ publisher: form.kind, stream: `${application.internalName}/${name}` }),
    });
    let streams = this.#streams.get(application);
    if (streams === undefined) {
      this.#streams.set(application, (streams = new Map()));
      application.once('close', () => this.#drop(application));
    }
    streams.set(name, stream);
    return stream;
  }

  #drop(application: Application): void {
    for (const stream of this.#streams.get(application)?.values() ?? []) stream.close();
    this.#streams.delete(application);
  }

  #follow({ vhost, app }: StreamName): void {
    for (const [application, streams] of this.#streams) {
      if (application.name !== app || application.vhost.name !== vhost) continue;
      for (const [name, stream] of streams) stream.follow(this.#options.directory.known(application, name)?.owner);
    }
  }

  #tick(now: number): void {
    this.#cache.expire(now - IDLE_MS);
    for (const streams of this.#streams.values()) {
      for (const [name, stream] of streams) {
        if (!stream.ended) stream.tick(now);
        if (!stream.ended && now - stream.usedAt > IDLE_MS) stream.close();
        if (stream.ended) streams.delete(name);
      }
    }
  }
}
