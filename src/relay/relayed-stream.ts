import type { Cluster, NodeIdentity } from '#cluster';
import type { Application } from '../core/application.ts';
import { relayKey, relayPath, type OutputName, type RelayPrefix } from '../directory/relay-path.ts';
import type { StreamChanges, StreamWatch } from '../directory/stream-changes.ts';
import type { StreamDirectory } from '../directory/stream-directory.ts';

/** What tells of the streams of other nodes. */
export interface RelayedStreamOptions {
  readonly cluster: Pick<Cluster, 'self'>;
  readonly directory: Pick<StreamDirectory, 'catchUp' | 'known' | 'knownOwner'>;
  readonly changes: StreamChanges;
}

/** The name of an output stream of an application in the whole cluster. */
export function nameOf({ vhost, name: app }: Application, output: string): OutputName {
  return { vhost: vhost.name, app, output };
}

/** An output stream of another node, by what this one has heard of it. */
export class RelayedStream {
  readonly application: Application;
  readonly name: string;
  /** Name of the input stream that it is made of. */
  readonly input: string;
  readonly #options: RelayedStreamOptions;

  constructor(application: Application, name: string, input: string, options: RelayedStreamOptions) {
    this.application = application;
    this.name = name;
    this.input = input;
    this.#options = options;
  }

  /** By which nodes are ranked for it. */
  get key(): string {
    return relayKey(nameOf(this.application, this.name));
  }

  /** The node that has it, which may be this very node, if a publisher has come here; undefined when none is known. */
  get owner(): NodeIdentity | undefined {
    const { cluster, directory } = this.#options;
    if (this.application.outputs.has(this.name)) return cluster.self;
    return directory.known(this.application, this.name)?.owner;
  }

  /** Whether a node has the name of its input stream. */
  get isOwned(): boolean {
    const { vhost, name: app } = this.application;
    return this.#options.directory.knownOwner({ vhost: vhost.name, app, stream: this.input }) !== undefined;
  }

  /** Hears of changes of what it may be made of. The caller has to close it. */
  watch(): StreamWatch {
    const mayBeIts = (input: string): boolean => input === this.input || this.application.mayPutOut(input, this.name);
    return this.#options.changes.watch(this.application, mayBeIts);
  }

  /** Resolves when this node has heard of everything that was there at the call. */
  async catchUp(): Promise<void> {
    await this.#options.directory.catchUp();
  }

  /** The path of the stream of bytes that a node is asked for. */
  pathAt(prefix: RelayPrefix): string {
    return relayPath(prefix, nameOf(this.application, this.name));
  }

  /** What OVT calls it on a node. */
  urlAt({ id }: NodeIdentity): string {
    return `ovt://${id}/${encodeURIComponent(this.application.name)}/${encodeURIComponent(this.name)}`;
  }
}
