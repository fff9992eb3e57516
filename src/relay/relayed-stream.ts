import type { Cluster, NodeIdentity } from '#cluster';
import type { Application } from '../core/application.ts';
import { relayKey, relayPath, type OutputName, type RelayPrefix } from '../directory/relay-path.ts';
import type { StreamChanges, StreamWatch } from '../directory/stream-changes.ts';
import type { StreamDirectory } from '../directory/stream-directory.ts';

export interface RelayedStreamOptions {
  readonly cluster: Pick<Cluster, 'self'>;
  readonly directory: Pick<StreamDirectory, 'catchUp' | 'known' | 'knownOwner'>;
  readonly changes: StreamChanges;
}

/** Cluster-wide name of an output stream. */
export function nameOf({ vhost, name: app }: Application, output: string): OutputName {
  return { vhost: vhost.name, app, output };
}

/** An output stream of another node, as the directory of this node knows it. */
export class RelayedStream {
  readonly application: Application;
  readonly name: string;
  /** Name of its input stream. */
  readonly input: string;
  readonly #options: RelayedStreamOptions;

  constructor(application: Application, name: string, input: string, options: RelayedStreamOptions) {
    this.application = application;
    this.name = name;
    this.input = input;
    this.#options = options;
  }

  /** Key by which the relay tree ranks nodes for it. */
  get key(): string {
    return relayKey(nameOf(this.application, this.name));
  }

  /** Its owner: this node itself if a publisher has come here; undefined when none is known. */
  get owner(): NodeIdentity | undefined {
    const { cluster, directory } = this.#options;
    if (this.application.outputs.has(this.name)) return cluster.self;
    return directory.known(this.application, this.name)?.owner;
  }

  get isOwned(): boolean {
    const { vhost, name: app } = this.application;
    return this.#options.directory.knownOwner({ vhost: vhost.name, app, stream: this.input }) !== undefined;
  }

  /** Watches the input streams that it may be made of. The caller has to close the watch. */
  watch(): StreamWatch {
    const mayBeIts = (input: string): boolean => input === this.input || this.application.mayPutOut(input, this.name);
    return this.#options.changes.watch(this.application, mayBeIts);
  }

  /** Resolves when this node knows everything that the cluster did at the call. */
  async catchUp(): Promise<void> {
    await this.#options.directory.catchUp();
  }

  pathAt(prefix: RelayPrefix): string {
    return relayPath(prefix, nameOf(this.application, this.name));
  }

  urlAt({ id }: NodeIdentity): string {
    return `ovt://${id}/${encodeURIComponent(this.application.name)}/${encodeURIComponent(this.name)}`;
  }
}
