import { UnreachableError, type Cluster } from '#cluster';
import type { Application } from '../core/application.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { relayKey } from '../directory/relay-path.ts';
import type { RelayTree } from '../directory/relay-tree.ts';
import type { StreamChanges } from '../directory/stream-changes.ts';
import type { Location, StreamDirectory } from '../directory/stream-directory.ts';
import { Relay } from './relay.ts';
import { isRelayFailure } from './refusal.ts';
import { nameOf, RelayedStream } from './relayed-stream.ts';

export interface RelaysOptions {
  readonly cluster: Pick<Cluster, 'self' | 'nodes' | 'events' | 'connect'>;
  readonly tree: Pick<RelayTree, 'self' | 'parent' | 'has' | 'unreachable' | 'hasChildren'>;
  readonly directory: Pick<StreamDirectory, 'locate' | 'catchUp' | 'known' | 'knownOwner'>;
  readonly changes: StreamChanges;
  readonly log: Logger;
}

interface Entry {
  readonly relay: Relay;
  readonly opened: Promise<OutputStream>;
}

/** Relays of other nodes' output streams: one for each stream, however many viewers it has. */
export class Relays {
  readonly #options: RelaysOptions;
  readonly #entries = new Map<string, Entry>();
  /** Keys of relays that other nodes wait for. */
  readonly #asked = new Set<string>();
  readonly #onNodes = (): void => {
    for (const { relay } of [...this.#entries.values()]) relay.leaveGone();
  };

  constructor(options: RelaysOptions) {
    this.#options = { ...options, log: options.log.child({ module: 'relay' }) };
    options.cluster.events.on('nodes', this.#onNodes);
  }

  /** Finds and relays another node's output stream, as FindOutput does. @throws ownerUnreachable */
  async find(application: Application, name: string): Promise<OutputStream | undefined> {
    const location = await this.#options.directory.locate(application, name);
    if (location === undefined) return undefined;
    try {
      return await this.open(application, name, location);
    } catch (error) {
      if (!isRelayFailure(error)) throw error;
      this.#options.log.warn(
        { stream: `${application.internalName}/${name}`, reason: error.message },
        'a stream of another node cannot be relayed',
      );
      if (error instanceof UnreachableError) throw kilnError('ownerUnreachable');
      return undefined;
    }
  }

  /**
   * Opens the relay of an output stream, or returns the present one. Concurrent calls share it.
   * @throws OvtError, UnreachableError why there is none
   */
  open(application: Application, name: string, location: Location): Promise<OutputStream> {
    const key = relayKey(nameOf(application, name));
    const present = this.#entries.get(key);
    if (present !== undefined) return present.opened;
    const stream = new RelayedStream(application, name, location.input, this.#options);
    const relay: Relay = new Relay(stream, location, this.#options, () => {
      if (this.#entries.get(key)?.relay === relay) this.#entries.delete(key);
    });
    const opened = relay.open();
    this.#entries.set(key, { relay, opened });
    return opened;
  }

  /** Resolves to the relay of an output stream, for another node, once it plays; undefined when there is none. */
  async playing(application: Application, name: string): Promise<OutputStream | undefined> {
    const key = relayKey(nameOf(application, name));
    const before = this.#entries.get(key)?.relay;
    this.#asked.add(key);
    try {
      if (before !== undefined) return await before.playing();
      const location = await this.#options.directory.locate(application, name);
      return location && (await this.open(application, name, location));
    } catch (error) {
      if (!isRelayFailure(error)) throw error;
      return undefined;
    } finally {
      this.#asked.delete(key);
    }
  }

  /** Tests whether other nodes get the stream from this one, or are about to. */
  isPassedOn(application: Application, { name }: OutputStream): boolean {
    const key = relayKey(nameOf(application, name));
    if (this.#asked.has(key)) return true;
    const owner = this.#options.directory.known(application, name)?.owner;
    return owner !== undefined && this.#options.tree.hasChildren(key, owner);
  }

  /** Ends every relay. Idempotent. */
  close(): void {
    this.#options.cluster.events.off('nodes', this.#onNodes);
    for (const { relay } of [...this.#entries.values()]) relay.close('the server is closing');
  }
}
