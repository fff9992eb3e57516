import { duplexPair } from 'node:stream';
import type { ExecutionContext } from 'ava';
import { UnreachableError, type Cluster, type NodeIdentity, type PeerStreamHandler } from '#cluster';
import { Registry } from '../../src/core/registry.ts';
import { PeerCalls } from '../../src/origins/peer-calls.ts';
import { StreamChanges } from '../../src/origins/stream-changes.ts';
import type { StreamName } from '../../src/origins/stream-key.ts';
import { Relays } from '../../src/providers/ovt/relays.ts';
import { RelaySource } from '../../src/publishers/ovt/relay-source.ts';
import { addVhost } from './live.ts';
import { silent } from './ovt.ts';

/**
 * Two registries, of which the second relays what the first has, or a third that takes its place. `asked` are the calls
 * of the fake directory.
 */
export function relayNodes(t: ExecutionContext) {
  const owners = new Map<string, { registry: Registry; take: PeerStreamHandler }>();
  const listeners: ((name: StreamName) => void)[] = [];
  const near: NodeIdentity = { id: 'near', incarnation: '1' };
  const add = (id: string): Registry => {
    const registry = new Registry();
    addVhost(registry);
    const tell = (input: string): void => {
      for (const listener of listeners) listener({ vhost: 'default', app: 'app', stream: input });
    };
    registry.on('output', ({ input }) => tell(input.name)).on('starting', (_application, { name }) => tell(name));
    let take: PeerStreamHandler = () => {};
    const serve: Cluster['serve'] = (_handler, streams) => void (take = streams ?? take);
    const calls = new PeerCalls(
      { serve, forward: () => Promise.reject(new UnreachableError('none is called')) },
      silent,
    );
    const source = new RelaySource({ registry, calls, log: silent });
    owners.set(id, { registry, take: (stream, path, from) => take(stream, path, from) });
    t.teardown(() => {
      registry.close('the test is over');
      source.close();
    });
    return registry;
  };
  /** Nodes that nobody reaches. */
  const dead = new Set<string>();
  /** Nodes that the directory takes for dead. */
  const buried = new Set<string>();
  const far = add('far');
  const here = new Registry();
  addVhost(here);
  const application = here.vhost('default').application('app');
  const cluster = {
    self: near,
    connect: async (to: NodeIdentity, path: string) => {
      const owner = owners.get(to.id);
      if (owner === undefined || dead.has(to.id)) throw new UnreachableError(`there is no node ${to.id}`);
      const [client, server] = duplexPair();
      owner.take(server, path, near);
      return client;
    },
  };
  const owner = (name: string) => {
    for (const [id, { registry }] of owners) {
      if (buried.has(id)) continue;
      const output = registry.vhost('default').application('app').outputs.get(name);
      if (output !== undefined) return { node: { id, incarnation: `of ${id}` }, input: output.input.name };
    }
    return undefined;
  };
  const asked: string[] = [];
  const known = (name: string) => {
    const found = owner(name);
    return found && { owner: found.node, input: found.input };
  };
  const directory = {
    locate: async (_: unknown, name: string) => {
      asked.push('locate');
      return known(name);
    },
    catchUp: async () => void asked.push('catchUp'),
    known: (_: unknown, name: string) => {
      asked.push('known');
      return known(name);
    },
    knownOwner: ({ stream }: { stream: string }) => {
      asked.push('knownOwner');
      const found = owner(stream);
      return found && { node: found.node, isSelf: false, live: true };
    },
  };
  const changes = new StreamChanges(here, { listen: (listener) => (listeners.push(listener), () => {}) });
  const relays = new Relays({ cluster, directory, changes, log: silent });
  t.teardown(() => {
    relays.close();
    changes.close();
    here.close('the test is over');
  });
  return { far, here, application, relays, add, asked, dead, buried };
}
