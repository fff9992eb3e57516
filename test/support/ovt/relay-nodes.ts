import { EventEmitter } from 'node:events';
import { duplexPair } from 'node:stream';
import type { ExecutionContext } from 'ava';
import {
  UnreachableError,
  type Cluster,
  type ClusterEvents,
  type NodeIdentity,
  type NodeRow,
  type PeerStreamHandler,
} from '#cluster';
import type { Application } from '../../../src/core/application.ts';
import { Registry } from '../../../src/core/registry.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { RelayTree } from '../../../src/directory/relay-tree.ts';
import { relayPath, type RelayPrefix } from '../../../src/directory/relay-path.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import type { StreamName } from '../../../src/directory/stream-key.ts';
import { OvtError } from '../../../src/protocols/ovt/error.ts';
import { OvtClient } from '../../../src/providers/ovt/client.ts';
import { Relays } from '../../../src/relay/relays.ts';
import { FedNodes } from '../../../src/relay/fed-nodes.ts';
import { RelaySource } from '../../../src/relay/relay-source.ts';
import { addVhost } from '../server/live.ts';
import { silent } from './ovt.ts';

export interface RelayNode {
  readonly id: string;
  readonly registry: Registry;
  readonly application: Application;
  readonly relays: Relays;
  readonly fed: FedNodes;
  /** What the directory of this node was asked. */
  readonly asked: string[];
}

interface Known extends RelayNode {
  readonly take: PeerStreamHandler;
  readonly events: EventEmitter<ClusterEvents>;
  readonly tell: (stream: StreamName) => void;
}

interface Opened {
  readonly from: string;
  readonly to: string;
  readonly prefix: string;
  readonly isOpen: () => boolean;
  readonly end: () => void;
  /** Nothing more of it comes, and it stays open. */
  readonly hang: () => void;
}

/** How a node knows others, unless they are as they should be. */
type Rows = (rows: readonly NodeRow[], id: string) => readonly NodeRow[];

/** Several nodes that relay each other's streams, on a network in memory. */
export class RelayNodes {
  readonly #test: Pick<ExecutionContext, 'teardown'>;
  readonly #fanOut: number;
  readonly #nodes = new Map<string, Known>();
  readonly #states = new Map<string, NodeRow['state']>();
  /** Nodes that stand still: who connects to them hears nothing. */
  readonly #still = new Set<string>();
  /** Nodes that nobody reaches. */
  readonly dead = new Set<string>();
  /** Nodes that the directory takes for dead. */
  readonly buried = new Set<string>();
  /** Nodes that close what they do not know: a prefix of streams. */
  readonly old = new Set<string>();
  /** Pairs of nodes of which the first does not reach the second. */
  readonly apart = new Set<string>();
  /** Streams that were opened: from, to, and the beginning of the path. */
  readonly opened: Opened[] = [];
  /** The same, with those that could not be opened. */
  readonly asked: Pick<Opened, 'from' | 'to' | 'prefix'>[] = [];
  rows: Rows = (rows) => rows;

  constructor(t: Pick<ExecutionContext, 'teardown'>, fanOut = 8) {
    this.#test = t;
    this.#fanOut = fanOut;
  }

  add(id: string): RelayNode {
    const registry = new Registry();
    addVhost(registry);
    const application = registry.vhost('default').application('app');
    const tell = (input: string): void => {
      for (const node of this.#nodes.values()) node.tell({ vhost: 'default', app: 'app', stream: input });
    };
    registry.on('output', ({ input }) => input.isRelay || tell(input.name));
    registry.on('starting', (_application, { name }) => tell(name));
    const events = new EventEmitter<ClusterEvents>();
    const self = identity(id);
    const cluster = {
      self,
      events: events.setMaxListeners(0) as unknown as Cluster['events'],
      nodes: () => this.rows(this.#rows(), id),
      connect: async (to: NodeIdentity, path: string) => this.#connect(self, to.id, path),
    };
    let take: PeerStreamHandler = () => {};
    const serve: Cluster['serve'] = (_handler, streams) => void (take = streams ?? take);
    const calls = new PeerCalls(
      { serve, forward: () => Promise.reject(new UnreachableError('none is called')) },
      silent,
    );
    const asked: string[] = [];
    const listeners: ((name: StreamName) => void)[] = [];
    const changes = new StreamChanges(registry, { listen: (listener) => (listeners.push(listener), () => {}) });
    const tree = new RelayTree(cluster, this.#fanOut);
    const relays = new Relays({ cluster, tree, directory: this.#directory(id, asked), changes, log: silent });
    const fed = new FedNodes();
    const source = new RelaySource({ registry, calls, tree, relays, fed, log: silent });
    const node: Known = {
      id,
      registry,
      application,
      relays,
      fed,
      asked,
      take: (stream, path, from) => take(stream, path, from),
      events,
      tell: (stream) => listeners.forEach((listener) => listener(stream)),
    };
    this.#nodes.set(id, node);
    this.#test.teardown(() => {
      relays.close();
      changes.close();
      registry.close('the test is over');
      source.close();
    });
    return node;
  }

  /** All nodes are told. */
  setState(id: string, state: NodeRow['state']): void {
    this.#states.set(id, state);
    for (const { events } of this.#nodes.values()) events.emit('nodes');
  }

  /** Nobody reaches it any more, and what it had open is lost. */
  kill(id: string): void {
    this.dead.add(id);
    for (const { from, to, end } of this.opened) if (from === id || to === id) end();
  }

  /** It does nothing any more, and nobody is told. */
  stop(id: string): void {
    this.#still.add(id);
    for (const { to, hang } of this.opened) if (to === id) hang();
  }

  /** Pairs of nodes that a stream goes between, sender first. */
  get ways(): string[] {
    const all = [...this.#nodes.values()].flatMap(({ id, application }) =>
      [...application.relays.keys()].map(() => id),
    );
    return all
      .flatMap((id) => this.opened.filter(({ from, isOpen }) => from === id && isOpen()))
      .map(({ from, to }) => `${to} to ${from}`)
      .toSorted();
  }

  /** Has a node ask another one to describe its stream `talk`. @throws OvtError */
  dial(from: string, to: string, prefix: RelayPrefix): Promise<OvtClient> {
    const stream = this.#connect(
      identity(from),
      to,
      relayPath(prefix, { vhost: 'default', app: 'app', output: 'talk' }),
    );
    return OvtClient.connect({ stream, target: `ovt://${to}/app/talk` }, { log: silent, plain: true });
  }

  /** The code of its answer. */
  async ask(from: string, to: string, prefix: RelayPrefix): Promise<number | undefined> {
    try {
      (await this.dial(from, to, prefix)).close();
      return 200;
    } catch (error) {
      if (error instanceof OvtError) return error.code;
      throw error;
    }
  }

  #rows(): NodeRow[] {
    return [...this.#nodes.keys()].map((id) => ({
      ...identity(id),
      load: 0,
      full: false,
      info: {},
      address: undefined,
      state: this.#states.get(id) ?? 'ready',
      uptimeMs: 0,
      silentMs: 0,
    }));
  }

  #connect(from: NodeIdentity, id: string, path: string) {
    const to = this.#nodes.get(id);
    const prefix = path.slice(0, path.indexOf('/', 1) + 1);
    this.asked.push({ from: from.id, to: id, prefix });
    if (to === undefined || this.dead.has(id) || this.dead.has(from.id) || this.apart.has(`${from.id} ${id}`))
      throw new UnreachableError(`there is no node ${id}`);
    const [client, server] = duplexPair();
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    const hang = (): void => void server.cork();
    this.opened.push({ from: from.id, to: id, prefix, isOpen: () => !client.destroyed, end, hang });
    if (this.#still.has(id)) hang();
    if (this.old.has(id) && prefix !== '/relay/') server.destroy();
    else to.take(server, path, from);
    return client;
  }

  #ownerOf(name: string): { readonly owner: NodeIdentity; readonly input: string } | undefined {
    for (const { id, application } of this.#nodes.values()) {
      const output = this.buried.has(id) ? undefined : application.outputs.get(name);
      if (output !== undefined) return { owner: identity(id), input: output.input.name };
    }
    return undefined;
  }

  #directory(self: string, asked: string[]) {
    const known = (name: string) => {
      const found = this.#ownerOf(name);
      return found?.owner.id === self ? undefined : found;
    };
    return {
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
        const found = this.#ownerOf(stream);
        return found && { node: found.owner, isSelf: found.owner.id === self, live: true };
      },
    };
  }
}

function identity(id: string): NodeIdentity {
  return { id, incarnation: `of ${id}` };
}

/** A node that relays what another one has, or one that takes its place. */
export function relayNodes(t: Pick<ExecutionContext, 'teardown'>) {
  const nodes = new RelayNodes(t);
  const { registry: far } = nodes.add('far');
  const { registry: here, application, relays, asked } = nodes.add('near');
  const { dead, buried } = nodes;
  const add = (id: string) => nodes.add(id).registry;
  return { far, here, application, relays, add, stop: (id: string) => nodes.stop(id), asked, dead, buried };
}
