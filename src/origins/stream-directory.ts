import { joinKey, type Cluster, type NodeIdentity, type Owner, type OwnerChange } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import { readMeta, streamKey, streamOfKey, STREAMS, type StreamName } from './stream-key.ts';

/** Where an output stream is that another node has. */
export interface Location {
  readonly owner: NodeIdentity;
  /** Name of its input stream. */
  readonly input: string;
}

/** Who has an input stream. */
export interface StreamOwner {
  readonly node: NodeIdentity;
  readonly isSelf: boolean;
  /** Its tracks are known: it is listed. */
  readonly live: boolean;
}

interface Entry {
  readonly name: StreamName;
  readonly owner: Owner;
  readonly outputs: readonly string[];
}

export interface StreamDirectoryOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
}

/** Which streams there are in the whole cluster, and who has them. */
export class StreamDirectory {
  readonly #cluster: Cluster;
  readonly #registry: Registry;
  readonly #entries = new Map<string, Entry>();
  /** By application and output stream: the key of the input stream. */
  readonly #outputs = new Map<string, string>();
  readonly #listeners = new Set<(name: StreamName) => void>();
  readonly #unwatch: () => void;

  constructor({ cluster, registry }: StreamDirectoryOptions) {
    this.#cluster = cluster;
    this.#registry = registry;
    this.#unwatch = cluster.watch(STREAMS, (changes) => this.#follow(changes));
  }

  /** Where another node has an output stream; undefined when none has. Asks the cluster before it says so. */
  async locate(application: Application, output: string): Promise<Location | undefined> {
    const found = this.known(application, output);
    if (found !== undefined) return found;
    const owners = await this.#cluster.list(joinKey(STREAMS, application.vhost.name, application.name));
    for (const [key, owner] of owners) {
      const has = readMeta(owner.meta)?.outputs.includes(output) === true && !this.#isSelf(owner);
      if (has) return { owner, input: streamOfKey(key).stream };
    }
    return undefined;
  }

  /** The same as far as this node has heard, without asking. */
  known({ vhost, name: app }: Application, output: string): Location | undefined {
    const entry = this.#entries.get(this.#outputs.get(joinKey(vhost.name, app, output)) ?? '');
    if (entry === undefined || this.#isSelf(entry.owner)) return undefined;
    return { owner: entry.owner, input: entry.name.stream };
  }

  /** Tells of input streams whose owner or whose outputs are others than before. Returns its undo. */
  listen(listener: (name: StreamName) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The node that has an input stream, this one or another. */
  async ownerOf(name: StreamName): Promise<StreamOwner | undefined> {
    const owner = await this.#cluster.ownerOf(streamKey(name));
    const meta = readMeta(owner?.meta);
    if (owner === undefined || meta === undefined) return undefined;
    return { node: owner, isSelf: this.#isSelf(owner), live: meta.live };
  }

  /** Names of the live input streams of an application that other nodes have. */
  async elsewhere({ vhost, name: app }: Application): Promise<string[]> {
    const owners = await this.#cluster.list(joinKey(STREAMS, vhost.name, app));
    return [...owners].flatMap(([key, owner]) => {
      const live = readMeta(owner.meta)?.live === true && !this.#isSelf(owner);
      return live ? [streamOfKey(key).stream] : [];
    });
  }

  /** Output streams that other nodes have in a virtual host, as far as this one has heard. */
  *remoteOutputs(vhost: string): IterableIterator<{ readonly app: string; readonly output: string; readonly location: Location }> {
    for (const { name, owner, outputs } of this.#entries.values()) {
      if (name.vhost !== vhost || this.#isSelf(owner)) continue;
      for (const output of outputs) yield { app: name.app, output, location: { owner, input: name.stream } };
    }
  }

  /** Whether any node has a stream of an application, live or about to be. */
  inUse(vhost: string, app: string): boolean {
    for (const { name } of this.#entries.values()) if (name.vhost === vhost && name.app === app) return true;
    return false;
  }

  /** Follows no more. */
  close(): void {
    this.#unwatch();
  }

  #isSelf({ id, incarnation }: NodeIdentity): boolean {
    const { self } = this.#cluster;
    return id === self.id && incarnation === self.incarnation;
  }

  #follow(changes: readonly OwnerChange[]): void {
    for (const { key, owner } of changes) {
      const before = this.#entries.get(key);
      this.#forget(key);
      const name = streamOfKey(key);
      const meta = readMeta(owner?.meta);
      const entry = owner === undefined || meta === undefined ? undefined : { name, owner, outputs: meta.outputs };
      if (entry !== undefined) this.#enter(key, entry);
      if (!isSame(before, entry)) for (const listener of this.#listeners) listener(name);
    }
  }

  #enter(key: string, entry: Entry): void {
    const { name, outputs } = entry;
    this.#entries.set(key, entry);
    for (const output of outputs) this.#outputs.set(joinKey(name.vhost, name.app, output), key);
    this.#mirror(name);
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    for (const output of entry.outputs) {
      const path = joinKey(entry.name.vhost, entry.name.app, output);
      if (this.#outputs.get(path) === key) this.#outputs.delete(path);
    }
  }

  /** An application that was made on demand where the stream is, is here, too: its viewers and the API ask any node. */
  #mirror({ vhost, app }: StreamName): void {
    try {
      this.#registry.vhosts.get(vhost)?.demandApplication(app);
    } catch (error) {
      // this node has no template for it, or no room: it answers that there is no such application
      if (!(error instanceof KilnError)) throw error;
    }
  }
}

function isSame(one: Entry | undefined, other: Entry | undefined): boolean {
  return one?.owner.fence === other?.owner.fence && one?.outputs.join('\n') === other?.outputs.join('\n');
}
