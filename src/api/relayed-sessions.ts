import { joinKey, splitKey, type PeerRequest, type PeerResponse } from '#cluster';
import type { Registry } from '../core/registry.ts';
import type { Session } from '../core/session.ts';
import { peerRequest, type OtherNodes } from '../origins/other-nodes.ts';
import type { PeerCalls } from '../origins/peer-calls.ts';
import type { StreamName } from '../origins/stream-key.ts';
import { sessionStatistics } from '../stats/session.ts';

const PREFIX = '/sessions/';
const MISSING: PeerResponse = { status: 404, headers: {}, body: Buffer.alloc(0) };

type SessionStatistics = ReturnType<typeof sessionStatistics>;

/** Sessions of a stream that other nodes serve through their relays of it: asked by the node that has the stream. */
export class RelayedSessions {
  readonly #registry: Registry;
  readonly #others: OtherNodes;

  constructor(registry: Registry, others: OtherNodes, calls: PeerCalls) {
    this.#registry = registry;
    this.#others = others;
    calls.add(PREFIX, async (request) => this.#answer(request));
  }

  /** Ids of all of them, as far as their nodes can be reached. */
  async list(name: StreamName): Promise<string[]> {
    const replies = await this.#ask<readonly string[]>('GET', name);
    return replies.flat();
  }

  /** @returns undefined when no node has such a session */
  async statistics(name: StreamName, session: string): Promise<SessionStatistics | undefined> {
    const [found] = await this.#ask<SessionStatistics>('GET', name, session);
    return found;
  }

  /** Disconnects one. @returns false when no node has such a session */
  async kick(name: StreamName, session: string): Promise<boolean> {
    return (await this.#ask('DELETE', name, session)).length > 0;
  }

  /** What the nodes answer that have something to say. */
  async #ask<T>(method: string, { vhost, app, stream }: StreamName, ...session: string[]): Promise<T[]> {
    const replies = await this.#others.ask(peerRequest(method, `${PREFIX}${joinKey(vhost, app, stream, ...session)}`));
    return replies.flatMap(({ response }) => (response?.status === 200 ? [JSON.parse(response.body.toString()) as T] : []));
  }

  #answer({ method, path }: PeerRequest): PeerResponse {
    const [vhost = '', app = '', stream = '', id] = splitKey(path.slice(PREFIX.length));
    const sessions = this.#sessions({ vhost, app, stream });
    if (id === undefined) return content([...sessions.keys()]);
    const session = sessions.get(id);
    if (session === undefined) return MISSING;
    if (method !== 'DELETE') return content(sessionStatistics(session));
    session.kick();
    return content(null);
  }

  #sessions({ vhost, app, stream }: StreamName): Map<string, Session> {
    const relays = [...(this.#registry.vhosts.get(vhost)?.applications.get(app)?.relays.values() ?? [])];
    const sessions = relays.filter(({ input }) => input.name === stream).flatMap((relay) => [...relay.sessions.values()]);
    return new Map(sessions.map((session) => [session.id, session]));
  }
}

function content(value: unknown): PeerResponse {
  return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(value)) };
}
