import type { Duplex } from 'node:stream';
import type { NodeIdentity } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { StartCaches } from '../core/start-caches.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import {
  readRelayPath,
  relayKey,
  RELAY_PREFIXES,
  RELAY_SILENCE_MS,
  type OutputName,
  type RelayPrefix,
} from '../directory/relay-path.ts';
import type { RelayTree } from '../directory/relay-tree.ts';
import type { FedNodes } from './fed-nodes.ts';
import { OvtSession, type Account, type Found } from '../publishers/ovt/session.ts';

export interface RelaySourceOptions {
  readonly registry: Registry;
  readonly calls: PeerCalls;
  readonly tree: Pick<RelayTree, 'hasRoom' | 'mostChildren' | 'mayFeed'>;
  readonly fed: FedNodes;
  readonly relays: {
    /** Resolves to the relay of another node's stream once it plays; undefined when there is none. */
    playing(application: Application, name: string): Promise<OutputStream | undefined>;
    isPassedOn(application: Application, output: OutputStream): boolean;
  };
  readonly log: Logger;
}

/** A node that leaves a stalled sender lacks what came until the stall was noticed, and until another one answered. */
const PAST_SECONDS = RELAY_SILENCE_MS / 1000 + 1;

interface Asked {
  readonly name: OutputName;
  readonly prefix: RelayPrefix;
  readonly from: NodeIdentity;
}

/** Sends output streams of this node, and those it relays, to other nodes of the cluster for their viewers. */
export class RelaySource {
  readonly #options: RelaySourceOptions;
  readonly #log: Logger;
  readonly #caches: StartCaches;
  readonly #sessions = new Set<OvtSession>();
  #lastId = 0;

  constructor(options: RelaySourceOptions) {
    const { registry, calls, relays, log } = options;
    this.#options = options;
    this.#log = log.child({ module: 'relay' });
    this.#caches = new StartCaches(
      registry,
      'relayed',
      (output, application) => output.input.isRelay && relays.isPassedOn(application, output),
      PAST_SECONDS,
    );
    for (const prefix of RELAY_PREFIXES)
      calls.addStreams(prefix, (stream, path, from) => this.#take(stream, prefix, path, from));
  }

  /** Ends every session. Idempotent. */
  close(): void {
    for (const session of [...this.#sessions]) session.close('the server is closing');
    this.#caches.close();
  }

  #take(stream: Duplex, prefix: RelayPrefix, path: string, from: NodeIdentity): void {
    const name = readRelayPath(prefix, path);
    let found: Promise<Found | undefined> | undefined;
    const fed = new AbortController();
    const find = (): Promise<Found | undefined> => (found ??= this.#find(name && { name, prefix, from }, fed.signal));
    const session: OvtSession = new OvtSession(stream, {
      kind: 'relay',
      log: this.#log.child({ node: from.id, path }),
      id: ++this.#lastId >>> 0,
      forms: 'plain',
      keepAlive: true,
      find,
      play: async () => {
        const one = await find();
        return one && { ...one, account: this.#count(one.output) };
      },
      start: (output) => this.#caches.of(output),
      onClose: () => {
        fed.abort();
        this.#sessions.delete(session);
      },
    });
    this.#sessions.add(session);
  }

  #count(output: OutputStream): Account {
    const leaves = [this.#caches.hold(output), output.addRelay()];
    return { sent: () => {}, leave: () => leaves.forEach((leave) => leave()) };
  }

  /**
   * Finds the output stream for a node: one of this node's own, or a relay that may be passed on.
   * @param until aborted when the node has left
   * @throws relayedEnough
   */
  async #find(asked: Asked | undefined, until: AbortSignal): Promise<Found | undefined> {
    if (asked === undefined) return undefined;
    const { name, prefix, from } = asked;
    const { tree, fed, relays, registry } = this.#options;
    const application = registry.vhosts.get(name.vhost)?.applications.get(name.app);
    if (application === undefined) return undefined;
    const own = application.outputs.get(name.output);
    const key = relayKey(name);
    if (own !== undefined) {
      const hasRoom = tree.hasRoom(key, from, fed.countWithout(own, from.id));
      if (prefix === '/branch/' && !hasRoom) throw kilnError('relayedEnough');
      return this.#feed(application, own, asked, until);
    }
    if (prefix !== '/branch/' || !tree.mayFeed(key, from)) return undefined;
    const output = await relays.playing(application, name.output);
    if (output === undefined) return undefined;
    if (fed.countWithout(output, from.id) >= tree.mostChildren) throw kilnError('relayedEnough');
    return this.#feed(application, output, asked, until);
  }

  #feed(application: Application, output: OutputStream, { from, prefix }: Asked, until: AbortSignal): Found {
    const { fed } = this.#options;
    if (!until.aborted) until.addEventListener('abort', fed.add(output, from.id, prefix), { once: true });
    return { application, output, delayMs: 0 };
  }
}
