import type { Duplex } from 'node:stream';
import type { NodeIdentity } from '#cluster';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Logger } from '../../log.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import { readRelayPath, RELAY_PREFIX } from '../../origins/relay-path.ts';
import { OvtSession, type Account, type Found } from './session.ts';
import { StartCaches } from '../../core/start-caches.ts';

export interface RelaySourceOptions {
  readonly registry: Registry;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

/** Gives output streams of this node to other nodes of the cluster, which relay them to viewers of their own. */
export class RelaySource {
  readonly #registry: Registry;
  readonly #log: Logger;
  readonly #caches: StartCaches;
  readonly #sessions = new Set<OvtSession>();
  #lastId = 0;

  constructor({ registry, calls, log }: RelaySourceOptions) {
    this.#registry = registry;
    this.#log = log.child({ module: 'relay' });
    this.#caches = new StartCaches(registry, 'relayed');
    calls.addStreams(RELAY_PREFIX, (stream, path, from) => this.#take(stream, path, from));
  }

  /** Ends every session. Idempotent. */
  close(): void {
    for (const session of [...this.#sessions]) session.close('the server is closing');
    this.#caches.close();
  }

  #take(stream: Duplex, path: string, { id }: NodeIdentity): void {
    const found = this.#find(path);
    const session: OvtSession = new OvtSession(stream, {
      kind: 'relay',
      log: this.#log.child({ node: id, path }),
      id: ++this.#lastId >>> 0,
      forms: 'plain',
      keepAlive: true,
      find: async () => found,
      play: async () => found && { ...found, account: this.#count(found.output) },
      start: (output) => this.#caches.of(output),
      onClose: () => this.#sessions.delete(session),
    });
    this.#sessions.add(session);
  }

  #count(output: OutputStream): Account {
    const leaves = [this.#caches.hold(output), output.addRelay()];
    return { sent: () => {}, leave: () => leaves.forEach((leave) => leave()) };
  }

  /** Of this node's own: a relay is not relayed again. */
  #find(path: string): Found | undefined {
    const name = readRelayPath(path);
    const application = name && this.#registry.vhosts.get(name.vhost)?.applications.get(name.app);
    const output = name && application?.outputs.get(name.output);
    return application === undefined || output === undefined ? undefined : { application, output, delayMs: 0 };
  }
}
