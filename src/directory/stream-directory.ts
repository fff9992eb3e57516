import { setImmediate } from 'node:timers/promises';
import { isSameIncarnation, joinKey, type Cluster, type NodeIdentity, type Owner, type OwnerChange } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import { MissMemory } from './miss-memory.ts';
import { MovingStreams, type LeftStream } from './moving-streams.ts';
import { readMeta, streamKey, streamOfKey, STREAMS, type StreamMeta, type StreamName } from './stream-key.ts';

/** Time, and number of streams, for which the cluster is not asked again for an output stream that no node had. */
const MISSED_MS = 300;
const MAX_MISSED = 10_000;

export interface Location {
  readonly owner: NodeIdentity;
  readonly input: string;
}

export interface StreamOwner {
  readonly node: NodeIdentity;
  readonly isSelf: boolean;
  readonly live: boolean;
}

interface Entry {
  readonly name: StreamName;
  readonly owner: Owner;
  readonly meta: StreamMeta;
}

export interface StreamDirectoryOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
}

/** The streams of the whole cluster, and their owners. */
export class StreamDirectory {
  readonly #cluster: Cluster;
  readonly #registry: Registry;
  readonly #entries = new Map<string, Entry>();
  readonly #byApplication = new Map<string, Map<string, Map<string, Entry>>>();
  /** Key of the input stream, by application and output stream. */
  readonly #outputs = new Map<string, string>();
  /** Streams whose outputs are not ready yet: by application, by key. Few, whatever the number of streams. */
  readonly #starting = new Map<string, Map<string, Entry>>();
  readonly #moving: MovingStreams;
  readonly #misses = new MissMemory({ stepMs: MISSED_MS, longestMs: MISSED_MS, max: MAX_MISSED });
  readonly #listeners = new Set<(name: StreamName) => void>();
  readonly #unwatch: () => void;

  constructor({ cluster, registry }: StreamDirectoryOptions) {
    this.#cluster = cluster;
    this.#registry = registry;
    this.#moving = new MovingStreams(cluster, (name) => this.#tell(name));
    const unwatch = cluster.watch(STREAMS, (changes) => this.#follow(changes));
    // changes from the time without a store arrive in no order: only the result counts
    const onState = (): void => {
      if (cluster.state === 'connected') void this.#mirrorConfigured(() => this.#entries.values());
    };
    cluster.events.on('state', onState);
    this.#unwatch = () => {
      unwatch();
      cluster.events.off('state', onState);
    };
  }

  /**
   * Finds an output stream on another node. A negative answer is confirmed by the cluster, unless it was a moment ago: changes
   * since then are known here.
   */
  async locate(application: Application, output: string): Promise<Location | undefined> {
    const found = this.known(application, output);
    const path = joinKey(application.vhost.name, application.name, output);
    if (found !== undefined || this.#misses.has(path)) return found;
    await this.catchUp();
    const now = this.known(application, output);
    if (now === undefined) this.#misses.add(path);
    return now;
  }

  /** Finds an output stream on another node, as far as this node knows, without asking. */
  known({ vhost, name: app }: Application, output: string): Location | undefined {
    const entry = this.#entries.get(this.#outputs.get(joinKey(vhost.name, app, output)) ?? '');
    if (entry === undefined || this.#isSelf(entry.owner) || this.#isPast(entry)) return undefined;
    return { owner: entry.owner, input: entry.name.stream };
  }

  /** Whether an input stream of another node, or a moving one, is about to have an output stream, as far as this node knows. */
  isStarting(application: Application, output: string): boolean {
    for (const entry of this.#starting.get(joinKey(application.vhost.name, application.name))?.values() ?? []) {
      const { name, owner, meta } = entry;
      if (this.#isSelf(owner) || this.#isPast(entry)) continue;
      if (!meta.outputs.includes(output) && application.mayPutOut(name.stream, output)) return true;
    }
    const mayPutOut = (left: LeftStream): boolean =>
      !this.#isPast(left) && (left.meta.outputs.includes(output) || application.mayPutOut(left.name.stream, output));
    return this.#moving.has(application.vhost.name, application.name, output, mayPutOut);
  }

  /** Whether an output stream that a node no longer has may soon have another owner, as far as this node knows. */
  mayMove(application: Application, output: string, from: NodeIdentity): boolean {
    // a node may keep the name of a stream that it has ended itself
    if (this.known(application, output) !== undefined) return this.#moving.isLeaving(from);
    return this.isStarting(application, output);
  }

  /** Calls the listener for input streams whose owner or outputs have changed. Returns its undo. */
  listen(listener: (name: StreamName) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Finds the node that has an input stream, this one or another. Asks the cluster. */
  async ownerOf(name: StreamName): Promise<StreamOwner | undefined> {
    await this.catchUp();
    return this.knownOwner(name);
  }

  /** Finds the node that has an input stream, as far as this node knows, without asking. */
  knownOwner(name: StreamName): StreamOwner | undefined {
    const entry = this.#entries.get(streamKey(name));
    if (entry === undefined || this.#isPast(entry)) return undefined;
    return { node: entry.owner, isSelf: this.#isSelf(entry.owner), live: entry.meta.live };
  }

  /** Names of the live input streams of an application on other nodes, as far as this node knows. */
  elsewhere({ vhost, name: app }: Application): string[] {
    const entries = [...(this.#byApplication.get(vhost.name)?.get(app)?.values() ?? [])];
    return entries
      .filter((entry) => entry.meta.live && !this.#isSelf(entry.owner) && !this.#isPast(entry))
      .map(({ name }) => name.stream);
  }

  /** Output streams of a virtual host on other nodes, as far as this node knows. */
  *remoteOutputs(
    vhost: string,
  ): IterableIterator<{ readonly app: string; readonly output: string; readonly location: Location }> {
    for (const [app, entries] of this.#byApplication.get(vhost) ?? []) {
      for (const { name, owner, meta } of entries.values()) {
        if (this.#isSelf(owner) || this.#isPast({ name, meta })) continue;
        for (const output of meta.outputs) yield { app, output, location: { owner, input: name.stream } };
      }
    }
  }

  inUse(vhost: string, app: string): boolean {
    return this.#byApplication.get(vhost)?.has(app) === true;
  }

  /** Asks the cluster: afterwards this node knows everything that happened before. Simultaneous calls share one request. */
  async catchUp(): Promise<void> {
    await this.#cluster.ownerOf(STREAMS);
    // watchers are called in the turn after the answer
    await setImmediate();
  }

  close(): void {
    this.#unwatch();
    this.#moving.close();
  }

  /** Whether the application was restarted or created again since: the owner is about to end the stream. */
  #isPast({ name, meta }: Pick<Entry, 'name' | 'meta'>): boolean {
    const application = this.#registry.vhosts.get(name.vhost)?.applications.get(name.app);
    return application !== undefined && meta.generation < application.generation;
  }

  #isSelf(node: NodeIdentity): boolean {
    return isSameIncarnation(node, this.#cluster.self);
  }

  #follow(changes: readonly OwnerChange[]): void {
    for (const { key, owner } of changes) {
      const before = this.#entries.get(key);
      this.#forget(key);
      const name = streamOfKey(key);
      const meta = readMeta(owner?.meta);
      const entry = owner === undefined || meta === undefined ? undefined : { name, owner, meta };
      if (entry !== undefined) this.#enter(key, entry);
      if (owner !== undefined) this.#moving.delete(key);
      else if (before !== undefined && !this.#isSelf(before.owner)) this.#moving.add(key, before);
      // later changes of the claim do not restore an application that was closed since
      if (entry !== undefined && before?.owner.fence !== entry.owner.fence) this.#mirror(entry);
      if (!isSame(before, entry)) this.#tell(name);
    }
  }

  #tell(name: StreamName): void {
    for (const listener of this.#listeners) listener(name);
  }

  #enter(key: string, entry: Entry): void {
    const { name, meta } = entry;
    this.#entries.set(key, entry);
    const vhost = getOrAdd(this.#byApplication, name.vhost);
    getOrAdd(vhost, name.app).set(key, entry);
    if (meta.starting === true) getOrAdd(this.#starting, joinKey(name.vhost, name.app)).set(key, entry);
    for (const output of meta.outputs) this.#outputs.set(joinKey(name.vhost, name.app, output), key);
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const { vhost, app } = entry.name;
    const ofVhost = this.#byApplication.get(vhost);
    const ofApp = ofVhost?.get(app);
    ofApp?.delete(key);
    if (ofApp?.size === 0) ofVhost?.delete(app);
    if (ofVhost?.size === 0) this.#byApplication.delete(vhost);
    const path = joinKey(vhost, app);
    const starting = this.#starting.get(path);
    if (starting?.delete(key) === true && starting.size === 0) this.#starting.delete(path);
    for (const output of entry.meta.outputs) {
      const outputPath = joinKey(vhost, app, output);
      if (this.#outputs.get(outputPath) === key) this.#outputs.delete(outputPath);
    }
  }

  /**
   * Creates an application that was created on demand on the stream's node, since viewers and API calls come to any node. It
   * needs the virtual host, whose configuration may arrive later.
   */
  #mirror(entry: Entry): void {
    if (this.#registry.vhosts.has(entry.name.vhost)) this.#demand(entry.name);
    else void this.#mirrorConfigured(() => [entry]);
  }

  /** Waits until this node has the cluster's configuration. */
  async #mirrorConfigured(entries: () => Iterable<Entry>): Promise<void> {
    await this.#cluster.config.sync();
    for (const { name } of entries()) this.#demand(name);
  }

  #demand({ vhost, app }: StreamName): void {
    try {
      this.#registry.vhosts.get(vhost)?.demandApplication(app);
    } catch (error) {
      // this node has no template for it, or no room: here the application does not exist
      if (!(error instanceof KilnError)) throw error;
    }
  }
}

function getOrAdd<T>(maps: Map<string, Map<string, T>>, key: string): Map<string, T> {
  const present = maps.get(key) ?? new Map<string, T>();
  maps.set(key, present);
  return present;
}

function isSame(one: Entry | undefined, other: Entry | undefined): boolean {
  return (
    one?.owner.fence === other?.owner.fence &&
    one?.meta.starting === other?.meta.starting &&
    one?.meta.outputs.join('\n') === other?.meta.outputs.join('\n')
  );
}
